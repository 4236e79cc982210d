//! Late heads and bodies (contract section 7), with timeouts of one second instead of ten. The clients run in
//! parallel.

use std::time::Duration;

use futures_util::future::join_all;
use mesh_testbed::Mesh;
use mesh_tests::{MeshClient, Traffic, assert_problem};
use tokio::time::{Instant, interval, timeout};

use crate::http_hardening::{VALID_REQUEST, answer, begin, connect, rest, send};

/// Configured timeout of a head, and between two pieces of a body.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Most additional time until the connection is closed.
const SLACK: Duration = Duration::from_secs(2);

/// Incomplete heads with which late clients begin.
const HEADS: [&str; 9] = [
    "",
    "\r\n",
    "G",
    "GET /accounts HT",
    "GET /accounts HTTP/1.1\r\n",
    "GET /accounts HTTP/1.1\r\nHost: x\r\n",
    "GET /accounts HTTP/1.1\r\nHost: x\r\n\r",
    "PRI",
    "PRI * HTTP/2.0\r\n\r\nSM\r\n",
];

/// A connection with a late head is closed without an answer.
async fn late_head(url: &str, begun: &str) {
    let started = Instant::now();
    let mut connection = begin(url, begun).await;
    let rest = timeout(TIMEOUT + SLACK, connection.rest()).await;
    let received = rest.unwrap_or_else(|_| panic!("{begun:?} is kept")).expect("the edge closes properly");
    assert_eq!(received.escape_ascii().to_string(), "", "{begun:?}");
    let took = started.elapsed();
    assert!(took + Duration::from_millis(50) >= TIMEOUT, "{begun:?} after {took:?}");
}

/// A head that arrives byte by byte has the same timeout.
async fn dripping_head(url: &str) {
    let started = Instant::now();
    let mut connection = connect(url).await;
    let mut pace = interval(TIMEOUT / 10);
    for byte in "GET /accounts HTTP/1.1\r\nHost: x\r\n".bytes() {
        pace.tick().await;
        if connection.send(&[byte]).await.is_err() {
            return;
        }
        assert!(started.elapsed() < TIMEOUT + SLACK, "a dripping head is still read");
    }
    panic!("a dripping head was read to its end");
}

/// The second head of a connection has the same timeout, counted from its first byte. It begins in the packet
/// of the first request, or after its answer.
async fn late_second_head(url: &str, with_first: &str, later: &str) {
    let mut connection = begin(url, &format!("{VALID_REQUEST}{with_first}")).await;
    assert_eq!(answer(&mut connection).await.status, 200);
    send(&mut connection, later).await;
    let rest = timeout(TIMEOUT + SLACK, connection.rest()).await.expect("the connection is given up");
    assert_eq!(rest.expect("the edge closes properly"), b"");
}

/// A late body is answered with 408, whether the operation reads a body or not.
async fn late_body(url: &str, head: &str, begun: &str) {
    let started = Instant::now();
    let mut connection = begin(url, &format!("{head}\r\n{begun}")).await;
    assert_problem(&answer(&mut connection).await, 408, 4, 10_000);
    assert!(started.elapsed() >= TIMEOUT, "{head:?} after {:?}", started.elapsed());
    assert_eq!(rest(&mut connection).await, b"", "{head:?}");
}

/// A body in small pieces has no total timeout.
async fn slow_body(url: &str) {
    let head = "POST /transaction HTTP/1.1\r\nHost: x\r\nContent-Length: 8\r\n\r\n";
    let mut connection = begin(url, head).await;
    // The first tick is now, so the last piece follows after 1.2 times the timeout.
    let mut pace = interval(TIMEOUT * 4 / 10);
    for piece in ["{\"", "tx", "\":", "1}"] {
        pace.tick().await;
        send(&mut connection, piece).await;
    }
    assert_eq!(answer(&mut connection).await.status, 400, "the body was read whole");
}

/// A keep-alive connection may be idle for longer than the timeout of a head.
async fn idle_connection(url: &str) {
    let mut connection = connect(url).await;
    for pause in [Duration::ZERO, TIMEOUT + SLACK / 2] {
        timeout(pause, connection.answer(false)).await.expect_err("an idle connection is closed");
        send(&mut connection, VALID_REQUEST).await;
        assert_eq!(answer(&mut connection).await.status, 200);
    }
}

#[tokio::test]
async fn late_heads_are_closed_late_bodies_answered_and_other_clients_unaffected() {
    let database = mesh_tests::fixture::database().await;
    let late = TIMEOUT.as_millis().to_string();
    let setup = Mesh::configure(&database).env("MESH_EDGE_HEAD_TIMEOUT_MS", &late);
    let mesh = setup.env("MESH_EDGE_BODY_IDLE_MS", &late).start().await;
    let mesh = MeshClient::new(&mesh);
    let traffic = Traffic::start(&mesh);
    let url = mesh.url();
    let length = "Host: x\r\nContent-Length: 100\r\n";
    let chunked = "Host: x\r\nTransfer-Encoding: chunked\r\n";
    let bodies = [
        (format!("POST /transaction HTTP/1.1\r\n{length}"), "{\"tx\":"),
        (format!("POST /transaction HTTP/1.1\r\n{chunked}"), "5\r\n{\"tx"),
        (format!("GET /accounts HTTP/1.1\r\n{length}"), "{"),
        (format!("GET /health HTTP/1.1\r\n{chunked}"), ""),
        (format!("POST /nowhere HTTP/1.1\r\n{chunked}"), "1\r\n{\r\n0\r\n"),
    ];
    tokio::join!(
        join_all(HEADS.into_iter().map(|begun| late_head(url, begun))),
        dripping_head(url),
        late_second_head(url, "", "GET /acc"),
        late_second_head(url, "GET /acc", ""),
        join_all(bodies.iter().map(|(head, begun)| late_body(url, head, begun))),
        slow_body(url),
        idle_connection(url),
    );
    traffic.end().await;
}
