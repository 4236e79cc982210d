//! Oversized requests (contract section 7) are refused with 413, 414 or 431, and those just within the limits
//! are answered; normal clients are not affected.

use mesh_tests::{MeshClient, Traffic, assert_problem};
use serde_json::{Value, json};

use crate::http_hardening::answer_to;

/// Greatest body, URL and header block, bytes; most headers.
const MAX_BODY_BYTES: usize = 2 << 20;
const MAX_URL_BYTES: usize = 8 << 10;
const MAX_HEAD_BYTES: usize = 16 << 10;
const MAX_HEADERS: usize = 100;

/// Sends requests and expects their statuses; refusals have the contract's form and number.
async fn expect(url: &str, requests: Vec<(String, String, u16)>) {
    for (what, request, status) in requests {
        let answer = answer_to(url, &request).await;
        assert_eq!(answer.status, status, "{what}: {answer:?}");
        let code = match status {
            413 => 8,
            414 | 431 => 3,
            _ => continue,
        };
        assert_problem(&answer, status, code, 10_000);
    }
}

fn urls() -> Vec<(String, String, u16)> {
    let row = |before: &str, length: usize, status| {
        let target = format!("{before}{}", "y".repeat(length - before.len()));
        (format!("a URL of {length}"), format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n"), status)
    };
    vec![
        row("/accounts?x=", MAX_URL_BYTES, 200),
        row("/accounts?x=", MAX_URL_BYTES + 1, 414),
        row("/", MAX_URL_BYTES + 1, 414),
        row("/accounts?x=", 40_000, 414),
    ]
}

fn header_blocks() -> Vec<(String, String, u16)> {
    let request = |headers: &str| format!("GET /accounts HTTP/1.1\r\nHost: x\r\n{headers}\r\n");
    // All bytes in one header, and spread over sixteen.
    let one = |length: usize, status| {
        let padding = "y".repeat(length - "Host: x\r\nX: \r\n".len());
        (format!("headers of {length}"), request(&format!("X: {padding}\r\n")), status)
    };
    let sixteen = |length: usize, status| {
        let headers: String = (0..16).map(|at| format!("X-{at}: {}\r\n", "y".repeat(length / 16))).collect();
        (format!("sixteen headers, in all {length}"), request(&headers), status)
    };
    let many = |count: usize, status| {
        let headers: String = (1..count).map(|at| format!("X-{at}: y\r\n")).collect();
        (format!("{count} headers"), request(&headers), status)
    };
    vec![
        one(MAX_HEAD_BYTES, 200),
        one(MAX_HEAD_BYTES + 1, 431),
        one(40_000, 431),
        sixteen(MAX_HEAD_BYTES - 512, 200),
        sixteen(MAX_HEAD_BYTES, 431),
        many(MAX_HEADERS, 200),
    ]
}

/// Bodies of spaces, which are not JSON: an operation that reads a body refuses it for that once it is
/// complete.
fn bodies() -> Vec<(String, String, u16)> {
    let mut rows = Vec::new();
    for (head, fits) in [("POST /transaction", 400), ("GET /accounts", 200)] {
        for (length, status) in [(MAX_BODY_BYTES, fits), (MAX_BODY_BYTES + 1, 413), (1 << 30, 413)] {
            let body = " ".repeat(length.min(MAX_BODY_BYTES));
            let announced = format!("{head} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n{body}");
            rows.push((format!("{head} with {length}"), announced, status));
            let end = if status == 413 { " \r\n" } else { "\r\n0\r\n\r\n" };
            let chunk = format!("{length:x}\r\n{body}{end}");
            let chunked = format!("{head} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n{chunk}");
            rows.push((format!("{head} with a chunk of {length}"), chunked, status));
        }
    }
    let head = "POST /transaction HTTP/1.1\r\nHost: x\r\n";
    let only = format!("{head}Content-Length: {}\r\n\r\n", MAX_BODY_BYTES + 1);
    rows.push(("a body that is announced too large and does not come".to_owned(), only, 413));
    let chunks = format!("10000\r\n{}\r\n", " ".repeat(0x10000)).repeat(MAX_BODY_BYTES / 0x10000);
    for (more, status) in [("0\r\n\r\n", 400), ("1\r\n \r\n0\r\n\r\n", 413)] {
        let request = format!("{head}Transfer-Encoding: chunked\r\n\r\n{chunks}{more}");
        rows.push(("a body that grows by small chunks".to_owned(), request, status));
    }
    let json = format!("{{{}}}", " ".repeat(MAX_BODY_BYTES - 2));
    let request = format!("{head}Content-Length: {MAX_BODY_BYTES}\r\n\r\n{json}");
    // A mesh without a node runs no tx-relay.
    rows.push(("a whole body of the greatest size".to_owned(), request, 503));
    rows
}

/// Too many headers, and far too large heads, are refused by the HTTP parser itself, without a body.
#[tokio::test]
async fn a_head_above_the_parsers_limits_is_refused() {
    let mesh = MeshClient::fixture().await;
    let many = |count: usize| (1..count).map(|at| format!("X-{at}: y\r\n")).collect::<String>();
    for (target, headers) in [
        ("y".repeat(70_000), String::new()),
        (String::new(), format!("X: {}\r\n", "y".repeat(100_000))),
        (String::new(), many(MAX_HEADERS + 1)),
        (String::new(), many(5000)),
    ] {
        let request = format!("GET /accounts?{target} HTTP/1.1\r\nHost: x\r\n{headers}\r\n");
        assert_eq!(answer_to(mesh.url(), &request).await.status, 431);
    }
}

#[tokio::test]
async fn oversized_requests_get_413_414_or_431_and_those_at_the_limit_are_answered() {
    let mesh = MeshClient::fixture().await;
    let traffic = Traffic::start(&mesh);
    for requests in [urls(), header_blocks(), bodies()] {
        expect(mesh.url(), requests).await;
    }
    traffic.end().await;
}

#[tokio::test]
async fn the_request_limits_are_the_published_ones() {
    let limits = MeshClient::fixture().await.get("/limits").await.json();
    for (name, value) in [
        ("bodyBytes", MAX_BODY_BYTES),
        ("urlBytes", MAX_URL_BYTES),
        ("headBytes", MAX_HEAD_BYTES),
        ("headers", MAX_HEADERS),
        ("listElements", 50),
    ] {
        assert_eq!(limits["request"][name], json!(value), "{name}");
    }
    assert!(limits["rate"].as_object().unwrap().values().all(Value::is_u64));
}
