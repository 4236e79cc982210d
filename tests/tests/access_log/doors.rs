//! Access log lines of requests over HTTP/1.1, HTTP/2 and gRPC that are answered, refused, malformed,
//! rejected for too many connections or aborted by the client.

use std::time::Duration;

use mesh_testbed::{Answer, Mesh, TlsClient};
use mesh_tests::{
    Call, MeshClient, Rpc, TableLock, WebSocket,
    access::{line, line_with, lines},
    assert_has, fixture, raw,
};
use serde_json::{Value, json};

use crate::access_log::{logging_all, logging_errors};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const TIME_LIMIT: Duration = Duration::from_secs(20);

/// The line of an answered request.
async fn line_of(mesh: &Mesh, answer: &Answer) -> Value {
    line(mesh, answer.header("x-request-id").unwrap()).await
}

#[tokio::test]
async fn an_http_request_is_logged_with_its_id_and_result() {
    let (_, mesh) = logging_all().await;
    let mesh_client = MeshClient::new(mesh);
    // The first answer comes from the service, the others from the edge's cache.
    for method in ["GET", "GET", "GET", "HEAD"] {
        let answer = mesh_client.send(method, "/api/v2/delegations").await;
        let line = line_of(mesh, &answer).await;
        let expected = json!({
            "level": "INFO", "method": method, "path": "/api/v2/delegations", "operation": "ListDelegations",
            "status": 200, "client": "127.0.0.1", "protocol": "HTTP/1.1", "ended": "whole",
            "bytes": answer.body.len(), "errors": null, "grpc_status": null, "trace_id": null,
        });
        assert_has(&line, &expected);
        assert!(line["duration_ms"].as_f64().is_some_and(|took| took > 0.0 && took < 20_000.0), "{line}");
        assert!(line["timestamp"].as_str().is_some_and(|time| time.ends_with('Z')), "{line}");
    }
}

#[tokio::test]
async fn a_refused_request_is_logged_and_in_errors_mode_only_those() {
    let (_, mesh) = logging_errors().await;
    let mesh_client = MeshClient::new(mesh);
    mesh_client.get("/api/v2/delegations").await;
    mesh_client.get("/health").await;
    let parent = format!("00-{TRACE}-b7ad6b7169203331-00");
    for (method, path, status, operation, errors) in [
        ("GET", "/api/v2/withdrawal/none", 400, "GetWithdrawal", json!([80_005])),
        ("GET", "/nowhere", 404, "none", json!([10_000])),
        ("POST", "/transaction", 400, "SubmitTransaction", json!([10_015])),
        ("BREW", "/accounts", 405, "ListAccounts", json!([10_000])),
    ] {
        let answer = mesh_client.send_with(method, path, &[("traceparent", &parent)]).await;
        assert_eq!(answer.status, status, "{answer:?}");
        let known = if method == "BREW" { "_OTHER" } else { method };
        // Only a path that is known is written.
        let path = (operation != "none").then_some(path);
        let expected = json!({
            "method": known, "status": status, "operation": operation, "errors": errors, "trace_id": TRACE,
            "ended": "whole", "path": path,
        });
        assert_has(&line_of(mesh, &answer).await, &expected);
    }
    let own = mesh_client.get_with("/nowhere", "x-request-id", "my-own.id_1").await;
    assert_has(&line_of(mesh, &own).await, &json!({"request_id": "my-own.id_1"}));
    let is_error = |line: &Value| line["status"].as_u64().is_none_or(|status| status >= 400);
    assert!(lines(mesh).iter().all(is_error), "{:?}", lines(mesh));
}

#[tokio::test]
async fn a_web_socket_is_logged_when_it_ends() {
    let (_, mesh) = logging_all().await;
    let mut socket = WebSocket::open(&mesh.url(), &[("x-request-id", "socket-1")]).await.unwrap();
    socket.watch("a", "/api/v2/delegations").await;
    socket.news().await;
    socket.close().await;
    let line = line(mesh, "socket-1").await;
    let expected =
        json!({"path": "/watch", "operation": "watch", "status": 101, "ended": "whole", "errors": null});
    assert_has(&line, &expected);
    assert_has(&line, &json!({"protocol": "HTTP/1.1"}));
    assert!(line["bytes"].as_u64() > Some(50), "{line}");
}

#[tokio::test]
async fn a_grpc_call_is_logged_with_its_status() {
    let (_, mesh) = logging_all().await;
    let rpc = Rpc::connect(mesh).await;
    rpc.call(&Call::from_path("/accounts").unwrap()).await.unwrap();
    let answered = line_with(mesh, "a call", |line| line["path"] == "/api.v2.Query/ListAccounts").await;
    assert_has(&answered, &json!({"protocol": "gRPC", "status": 200, "grpc_status": 0, "ended": "whole"}));
    assert_has(&answered, &json!({"client": "127.0.0.1", "errors": null}));
    assert!(answered["bytes"].as_u64() > Some(5), "{answered}");

    let called = Call::from_path(&format!("/api/v2/withdrawal/{}", fixture::UNKNOWN_ID)).unwrap();
    let refused = rpc.call(&called).await.expect_err("there is none");
    let unknown = tonic::Request::new(Default::default());
    let unknown = rpc.call_at("/api.v2.Query/Nothing".parse().unwrap(), unknown).await;
    let of_refused =
        json!({"operation": "GetWithdrawal", "grpc_status": 5, "errors": [150_001], "ended": "whole"});
    let of_unknown = json!({"operation": "none", "grpc_status": 12, "path": null});
    let unknown = unknown.expect_err("no such method");
    for (status, expected) in [(refused, of_refused), (unknown, of_unknown)] {
        let id = status.metadata().get("x-request-id").unwrap().to_str().unwrap();
        assert_has(&line(mesh, id).await, &expected);
    }
}

#[tokio::test]
async fn malformed_requests_are_logged_with_generated_ids() {
    let (_, mesh) = logging_errors().await;
    let many = format!("GET /health HTTP/1.1\r\nHost: x\r\n{}\r\n", "X: y\r\n".repeat(120));
    let body =
        "POST /transaction HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\n{}\r\n0\r\n\r\n";
    for (bytes, status, because) in [
        ("GET /health HTTP/1.1\r\nHost: a b\r\n\r\n", 400, "an invalid host"),
        ("GET http://u@x/health HTTP/1.1\r\nHost: x\r\n\r\n", 400, "an invalid host"),
        ("GET /health HTTP/1.1\r\n\r\n", 400, "no host"),
        (many.as_str(), 431, "message head is too large"),
        (body, 400, "a bare line feed"),
    ] {
        let before: Vec<Value> = lines(mesh);
        let answer = raw::answer_to(&mesh.url(), bytes).await;
        assert_eq!(answer.status, status, "{bytes:?}");
        let line = line_with(mesh, bytes, |line| line["because"] == because && !before.contains(line)).await;
        let expected = json!({"status": status, "client": "127.0.0.1", "bytes": 0, "ended": "whole"});
        assert_has(&line, &expected);
        let id = line["request_id"].as_str().filter(|id| id.len() == 22).expect("an id");
        // The parser's own answers have none.
        let is_parsed = bytes == body || bytes.contains("u@x");
        assert_eq!(answer.header("x-request-id"), is_parsed.then_some(id), "{bytes:?}");
    }
    assert!(!mesh.service("edge").log().contains("u@x"));
}

/// That of a connection without TLS is tested in `limits/connections.rs`.
#[tokio::test]
async fn a_connection_that_is_rejected_before_its_handshake_is_logged_without_a_status() {
    let (_database, mesh, _) = fixture::start(|setup| {
        setup.tls().env("MESH_EDGE_CONNECTIONS", "2").env("MESH_EDGE_ACCESS_LOG", "errors")
    })
    .await;
    let tls = mesh.tls();
    let mut open = Vec::new();
    while let Ok(connection) = TlsClient::connect(tls.http, &tls.files.ca, &[]).await {
        open.push(connection);
        assert!(open.len() < 4, "there is room for all");
    }
    let because =
        |line: &Value| line["because"].as_str().unwrap_or_default().starts_with("too many connections");
    let line = line_with(&mesh, "a connection over the limit", because).await;
    assert_has(&line, &json!({"status": null, "client": "127.0.0.1", "bytes": 0, "ended": "broken"}));
}

#[tokio::test]
async fn a_client_that_disconnects_before_its_answer_is_logged() {
    let (database, mesh) = logging_errors().await;
    let locked = TableLock::acquire(database, "withdrawals").await;
    let path = format!("/api/v2/withdrawal/{}", fixture::UNKNOWN_ID);
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nX-Request-Id: left-1\r\n\r\n");
    let connection = raw::begin(&mesh.url(), &request).await;
    locked.await_queries("query", 1, TIME_LIMIT).await;
    drop(connection);
    let line = line(mesh, "left-1").await;
    assert_has(&line, &json!({"operation": "GetWithdrawal", "ended": "left", "bytes": 0, "status": null}));
    let left = "http_server_request_duration_seconds_count{operation=\"GetWithdrawal\",http_request_method=\"GET\",\
        http_route=\"/api/v2/withdrawal/{id}\",http_response_status_code=\"499\"";
    mesh.service("edge").until_metric(left, |count| count >= 1.0).await;
    let abandoned = "db_client_operation_duration_seconds_count{db_system_name=\"postgresql\",\
        db_client_connection_pool_name=\"points\",error_type=\"abandoned\"";
    mesh.service("query").until_metric(abandoned, |count| count >= 1.0).await;
    locked.release().await;
}

#[tokio::test]
async fn a_watch_that_its_client_leaves_is_no_error() {
    let watch_and_leave = async |mesh: &Mesh, id: &str| {
        let head = "GET /api/v2/network/limits HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n";
        let mut connection = raw::begin(&mesh.url(), &format!("{head}X-Request-Id: {id}\r\n\r\n")).await;
        let (head, mut framing) = connection.head().await.unwrap().expect("a head");
        assert_eq!(head.status, 200, "{id}: {head:?}");
        connection.piece(&mut framing, &mut Vec::new(), 1).await.unwrap();
    };
    let (_, all) = logging_all().await;
    watch_and_leave(all, "watched-1").await;
    assert_has(&line(all, "watched-1").await, &json!({"status": 200, "ended": "left"}));
    let (_, errors) = logging_errors().await;
    watch_and_leave(errors, "watched-2").await;
    errors.service("edge").until_metric("mesh_edge_watches ", |open| open == 0.0).await;
    line_of(errors, &MeshClient::new(errors).get("/nowhere").await).await;
    let log = errors.service("edge").log();
    let about: Vec<&str> = log.lines().filter(|line| line.contains("watched-2")).collect();
    assert!(about.is_empty(), "{about:?}");
}

#[test]
fn the_access_log_is_off_by_default() {
    fixture::exclusively(async |_, mesh| {
        let mesh_client = MeshClient::new(mesh);
        mesh_client.get("/api/v2/delegations").await;
        let id = mesh_client.get("/nowhere").await.header("x-request-id").unwrap().to_owned();
        let refused = raw::answer_to(&mesh.url(), "GET /health HTTP/1.1\r\nHost: a b\r\n\r\n").await;
        assert_eq!(refused.status, 400);
        assert!(mesh.service("edge").stop().await.success());
        let log = mesh.service("edge").log();
        assert!(log.contains("\"message\":\"stopped\""), "the other lines are there: {log}");
        assert!(!log.contains("edge::access") && !log.contains(&id), "{log}");
    });
}
