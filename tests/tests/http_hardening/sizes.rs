//! What is too large (contract section 7): 413, 414, 431, and what just fits.

use mesh_tests::{outside::Outside, raw::RawAnswer};

use crate::http_hardening::{connect, traffic::Traffic};

/// Greatest body, URL and header block, and most headers.
const BODY_AT_MOST: usize = 2 << 20;
const URL_AT_MOST: usize = 8 << 10;
const HEAD_AT_MOST: usize = 16 << 10;
const HEADERS_AT_MOST: usize = 100;

async fn answer_to(url: &str, request: &str) -> RawAnswer {
    let mut connection = connect(url).await;
    connection.send(request.as_bytes()).await.expect("the edge reads");
    crate::http_hardening::answer(&mut connection).await
}

#[tokio::test]
async fn what_is_too_large_is_refused_by_its_kind_and_what_just_fits_is_answered() {
    let mesh = Outside::fixture().await;
    let traffic = Traffic::to(&mesh);
    let target = |length: usize| format!("/accounts?x={}", "y".repeat(length - "/accounts?x=".len()));
    for (length, status) in [(URL_AT_MOST, 200), (URL_AT_MOST + 1, 414), (40_000, 414)] {
        let request = format!("GET {} HTTP/1.1\r\nHost: x\r\n\r\n", target(length));
        assert_eq!(answer_to(mesh.url(), &request).await.status, status, "a URL of {length}");
    }
    // What the block takes with its host and one long field, on the wire.
    let rest = "Host: x\r\nX: \r\n".len();
    for (length, status) in [(HEAD_AT_MOST, 200), (HEAD_AT_MOST + 1, 431), (40_000, 431), (100_000, 431)] {
        let padding = "y".repeat(length - rest);
        let request = format!("GET /accounts HTTP/1.1\r\nHost: x\r\nX: {padding}\r\n\r\n");
        assert_eq!(answer_to(mesh.url(), &request).await.status, status, "headers of {length}");
    }
    for (count, status) in [(HEADERS_AT_MOST, 200), (HEADERS_AT_MOST + 1, 431), (5000, 431)] {
        let headers: String = (1..count).map(|at| format!("X-{at}: y\r\n")).collect();
        let request = format!("GET /accounts HTTP/1.1\r\nHost: x\r\n{headers}\r\n");
        assert_eq!(answer_to(mesh.url(), &request).await.status, status, "{count} headers");
    }
    for (length, status) in [(BODY_AT_MOST, 400), (BODY_AT_MOST + 1, 413), (1 << 30, 413)] {
        for head in ["POST /transaction", "GET /accounts"] {
            let status = if status == 400 && head.starts_with("GET") { 200 } else { status };
            let body = " ".repeat(length.min(BODY_AT_MOST));
            let request = format!("{head} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n{body}");
            assert_eq!(answer_to(mesh.url(), &request).await.status, status, "{head} with {length}");
            let chunk = format!("{length:x}\r\n{body} \r\n");
            let chunk = if status == 413 { chunk } else { chunk.replace(" \r\n", "\r\n0\r\n\r\n") };
            let request = format!("{head} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n{chunk}");
            assert_eq!(
                answer_to(mesh.url(), &request).await.status,
                status,
                "{head} with a chunk of {length}"
            );
        }
    }
    traffic.end().await;
}
