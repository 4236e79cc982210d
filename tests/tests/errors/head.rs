//! What is refused by the head of a request alone: path and method. Sizes are in `http_hardening/sizes.rs`.

use mesh_tests::{MeshClient, assert_problem, raw};
use proto_msgs::{Contract, Method};

/// Greatest body, bytes (contract section 7).
const MAX_BODY_BYTES: usize = 2 << 20;

#[tokio::test]
async fn an_unknown_path_is_not_found() {
    let mesh = MeshClient::fixture().await;
    for path in [
        "/nowhere", "/api/v2/candle/", "/api//v2/candle", "/API/v2/candle", "/api/v2/withdrawal",
        "/api/v2/withdrawal/a/b", "/api/v2%2Fcandle", "/blockchain/height%00", "/accounts/", "/console",
        "/console/app.js",
    ] {
        assert_problem(&mesh.get(path).await, 404, 5, 10000);
        for (name, value) in [("if-match", "\"x\""), ("if-none-match", "*")] {
            assert_problem(&mesh.get_with(path, name, value).await, 404, 5, 10000);
        }
        assert_problem(&mesh.post(path, "{}").await, 404, 5, 10000);
    }
}

#[tokio::test]
async fn errors_are_indented_as_other_answers_are() {
    let mesh = MeshClient::fixture().await;
    for (query, lines) in [("", 1), ("?pretty", 12), ("?pretty=x", 1)] {
        assert_eq!(mesh.get(&format!("/nowhere{query}")).await.text().lines().count(), lines, "{query}");
    }
}

#[tokio::test]
async fn a_target_that_is_no_path_is_not_found() {
    let mesh = MeshClient::fixture().await;
    for line in ["GET x", "GET x:80", "CONNECT x:80", "OPTIONS x:80", "GET *", "POST *"] {
        let answer = raw::answer_to(mesh.url(), &format!("{line} HTTP/1.1\r\nHost: x\r\n\r\n")).await;
        assert_problem(&answer, 404, 5, 10000);
    }
    for line in ["GET http://x/accounts", "GET http://x", "GET http://x?y"] {
        let absolute = raw::answer_to(mesh.url(), &format!("{line} HTTP/1.1\r\nHost: x\r\n\r\n")).await;
        assert_eq!(absolute.status, 200, "{line}: a URL is a path, too; without any that of the console");
    }
}

#[tokio::test]
async fn options_of_the_whole_gateway_names_its_methods() {
    let mesh = MeshClient::fixture().await;
    let mut connection = raw::connect(mesh.url()).await;
    for target in ["*", "http://x", "*"] {
        raw::send(&mut connection, &format!("OPTIONS {target} HTTP/1.1\r\nHost: x\r\n\r\n")).await;
        let answer = raw::answer(&mut connection).await;
        assert_eq!((answer.status, answer.body.len()), (204, 0), "{target}: {answer:?}");
        let allowed = if target == "*" { "GET, HEAD, POST, OPTIONS" } else { "GET, HEAD, OPTIONS" };
        assert_eq!(answer.header("allow"), Some(allowed), "{target}");
    }
}

#[tokio::test]
async fn a_method_that_a_path_does_not_have_is_refused_with_those_it_has() {
    let mesh = MeshClient::fixture().await;
    for operation in Contract::get().operations() {
        let path = operation.template();
        let (allowed, others): (_, &[&str]) = match operation.method {
            Method::Get => ("GET, HEAD, OPTIONS", &["POST", "PUT", "DELETE", "PATCH", "TRACE", "BREW"]),
            Method::Post => ("POST, OPTIONS", &["GET", "PUT", "DELETE", "PATCH", "TRACE", "BREW"]),
        };
        for method in others {
            let answer = mesh.send(method, &path).await;
            assert_problem(&answer, 405, 12, 10000);
            assert_eq!(answer.header("allow"), Some(allowed), "{method} {path}");
        }
        if operation.method == Method::Post {
            let answer = mesh.send("HEAD", &path).await;
            assert_eq!((answer.status, answer.body.len()), (405, 0), "HEAD {path}");
            assert_eq!(answer.header("allow"), Some(allowed), "HEAD {path}");
        }
    }
    for page in ["/openapi.json", "/health", "/docs"] {
        for (method, status) in [("OPTIONS", 204), ("POST", 405), ("DELETE", 405)] {
            let answer = mesh.send(method, page).await;
            let allowed = answer.header("allow");
            assert_eq!((answer.status, allowed), (status, Some("GET, HEAD, OPTIONS")), "{page}");
        }
    }
}

/// gRPC-Web, and gRPC with another codec than protobuf, on any path.
#[tokio::test]
async fn a_call_in_a_form_of_grpc_that_is_not_spoken_is_refused_as_a_media_type() {
    let mesh = MeshClient::fixture().await;
    for path in ["/api.v2.Query/ListMarkets", "/transaction", "/nowhere", "/watch"] {
        for media_type in [
            "application/grpc-web",
            "Application/gRPC-Web+proto; charset=utf-8",
            "application/grpc-web-text+proto",
            "application/grpc+json",
            "application/grpc",
        ] {
            let headers = [("content-type", media_type), ("origin", "https://one.example")];
            let answer = mesh.post_with(path, &headers, "x").await;
            assert_problem(&answer, 415, 3, 10000);
            assert_eq!(answer.header("access-control-allow-origin"), Some("*"), "{media_type} {path}");
        }
    }
    for media_type in ["application/json", "application/grpcx", "text/plain", ""] {
        let answer = mesh.post_with("/nowhere", &[("content-type", media_type)], "").await;
        assert_problem(&answer, 404, 5, 10000);
    }
}

#[tokio::test]
async fn a_client_that_sends_all_of_a_refused_body_still_reads_its_answer_and_keeps_its_connection() {
    let mesh = MeshClient::fixture().await;
    let mut connection = raw::connect(mesh.url()).await;
    for (path, status) in [("/nowhere", 404), ("/accounts", 405), ("/transaction", 413), ("/nowhere", 404)] {
        let body = " ".repeat(2 * MAX_BODY_BYTES);
        let head = format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", body.len());
        raw::send(&mut connection, &head).await;
        raw::send(&mut connection, &body).await;
        assert_eq!(raw::answer(&mut connection).await.status, status, "{path}");
    }
}

#[tokio::test]
async fn expect_100_continue_is_answered_with_100_or_the_refusal() {
    let mesh = MeshClient::fixture().await;
    let ask = |path: &str, length: usize| {
        format!("POST {path} HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: {length}\r\n\r\n")
    };
    for (path, length, status) in [("/transaction", MAX_BODY_BYTES + 1, "413"), ("/nowhere", 2, "404")] {
        let received = raw::rest(&mut raw::begin(mesh.url(), &ask(path, length)).await).await;
        let begins = received.starts_with(format!("HTTP/1.1 {status} ").as_bytes());
        assert!(begins, "{}", received.escape_ascii());
    }
    let mut connection = raw::begin(mesh.url(), &ask("/transaction", 2)).await;
    raw::send(&mut connection, "{}").await;
    let answer = raw::answer(&mut connection).await;
    assert_eq!(answer.status, 503, "no replica serves submissions yet: {answer:?}");
}

#[tokio::test]
async fn a_request_id_comes_back_and_one_that_is_missing_or_odd_is_replaced() {
    let mesh = MeshClient::fixture().await;
    for path in ["/accounts", "/nowhere", "/api/v2/withdrawal/x", "/transaction/check"] {
        let given = mesh.get_with(path, "x-request-id", "my-id_1.2").await;
        assert_eq!(given.header("x-request-id"), Some("my-id_1.2"), "{path}");
        let made = mesh.get(path).await.header("x-request-id").map(str::to_owned);
        assert!(made.as_ref().is_some_and(|id| id.len() > 8), "{path}: {made:?}");
        for invalid in ["<script>alert(1)</script>", "a b", "", "a\u{e9}"] {
            let replaced = mesh.get_with(path, "x-request-id", invalid).await;
            let id = replaced.header("x-request-id");
            assert!(id.is_some_and(|id| !id.is_empty() && id != invalid), "{path} {invalid}: {id:?}");
        }
    }
}
