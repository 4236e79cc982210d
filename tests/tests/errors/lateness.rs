//! What comes too late (contract section 7). These tests really wait, side by side.

use std::time::Duration;

use mesh_tests::{outside::Outside, problem, raw::Connection};
use tokio::time::{Instant, sleep, timeout};

/// Longest time for a head, and between two pieces of a body.
const LATE: Duration = Duration::from_secs(10);

/// How much later than that an answer may come.
const SOON: Duration = Duration::from_secs(2);

async fn connect(mesh: &Outside) -> Connection {
    Connection::open(mesh.url()).await.expect("the edge listens")
}

/// What a connection says that the edge gives up on: the whole of it, and when it was closed.
async fn given_up(mesh: &Outside, sent: &str) -> (Vec<u8>, Duration) {
    let started = Instant::now();
    let mut connection = connect(mesh).await;
    connection.send(sent.as_bytes()).await.expect("the edge reads");
    let rest = timeout(LATE + SOON, connection.rest()).await;
    (rest.expect("the edge gives up in time").expect("the edge closes properly"), started.elapsed())
}

/// A body that stops coming is answered with 408.
async fn late_body(mesh: &Outside) {
    let started = Instant::now();
    let mut connection = connect(mesh).await;
    let head = "POST /transaction HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{\"tx\":";
    connection.send(head.as_bytes()).await.expect("the edge reads");
    let answer = timeout(LATE + SOON, connection.answer(false)).await.expect("the edge gives up in time");
    let answer = answer.expect("the edge answers HTTP").expect("the edge answers");
    assert!(started.elapsed() >= LATE, "after {:?}", started.elapsed());
    let seen = problem::read(408, |name| answer.header(name).map(str::to_owned), &answer.body);
    let seen = seen.unwrap_or_else(|wrong| panic!("{wrong}: {answer:?}"));
    assert_eq!((answer.status, seen.code, seen.number), (408, 4, 10000), "{answer:?}");
}

/// A body in small pieces is waited for.
async fn slow_body(mesh: &Outside) {
    let mut connection = connect(mesh).await;
    let head = "POST /transaction HTTP/1.1\r\nHost: x\r\nContent-Length: 8\r\n\r\n";
    connection.send(head.as_bytes()).await.expect("the edge reads");
    for piece in ["{\"", "tx", "\":", "1}"] {
        sleep(Duration::from_secs(3)).await;
        connection.send(piece.as_bytes()).await.expect("the edge still reads");
    }
    let answer = connection.answer(false).await.expect("the edge answers HTTP").expect("the edge answers");
    assert_eq!(answer.status, 400, "the body was read whole: {answer:?}");
}

/// A head that is late is closed without an answer, whether none of it came, some of it, or drop by drop.
async fn late_heads(mesh: &Outside) {
    let (nothing, some) = tokio::join!(given_up(mesh, ""), given_up(mesh, "GET /accounts HTTP/1.1\r\nHost:"));
    for (said, after) in [nothing, some] {
        assert!(said.is_empty(), "{:?}", String::from_utf8_lossy(&said));
        assert!(after >= LATE, "after {after:?}");
    }
}

/// Drops do not keep a head alive.
async fn dripping_head(mesh: &Outside) {
    let started = Instant::now();
    let mut connection = connect(mesh).await;
    connection.send(b"GET /accounts HTTP/1.1\r\n").await.expect("the edge reads");
    while connection.send(b"X: y\r\n").await.is_ok() {
        assert!(started.elapsed() < LATE + SOON, "a dripping head is still read");
        sleep(Duration::from_millis(500)).await;
    }
}

/// A kept connection may be idle for longer than a head may take.
async fn idle_connection(mesh: &Outside) {
    let mut connection = connect(mesh).await;
    for pause in [Duration::ZERO, LATE + SOON / 2] {
        sleep(pause).await;
        connection.send(b"GET /accounts HTTP/1.1\r\nHost: x\r\n\r\n").await.expect("the connection is kept");
        let answer =
            connection.answer(false).await.expect("the edge answers HTTP").expect("the connection is kept");
        assert_eq!(answer.status, 200);
    }
}

#[tokio::test]
async fn late_heads_are_closed_late_bodies_answered_and_idle_connections_kept() {
    let mesh = Outside::fixture().await;
    tokio::join!(
        late_body(&mesh),
        slow_body(&mesh),
        late_heads(&mesh),
        dripping_head(&mesh),
        idle_connection(&mesh)
    );
}
