//! A client that asks for much and reads nothing: what the system holds for it is bounded, or each such
//! client would cost megabytes that nobody counts.

use std::{fs, time::Duration};

use mesh_testbed::eventually;
use mesh_tests::{outside::Outside, raw::Connection};
use tokio::time::{Instant, sleep};

use crate::http_hardening::{SOON, connect, traffic::Traffic};

/// The edge's bound of what lies unsent on a connection, bytes: `TCP_NOTSENT_LOWAT`.
const UNSENT_BYTES: usize = 128 << 10;

/// The system looks at the bound between two buffers of its own, of at most 64 KiB.
const OVERSHOOT: usize = 64 << 10;

/// An answer of some hundred kilobytes, and so many of them that they fill any buffer of the system's.
const LARGE: &str = "/openapi.json";
const ASKED: usize = 24 << 20;

/// For how long more would have come.
const WATCHED: Duration = Duration::from_millis(500);

/// Bytes that the edge has written to a connection and its client has not taken (`tx_queue` of
/// `/proc/net/tcp`), by the two ports. The client's window is shut, so that they are the unsent ones.
fn waiting(edge: u16, client: u16) -> usize {
    let table = fs::read_to_string("/proc/net/tcp").expect("this is Linux");
    let port = |address: &str| u16::from_str_radix(address.split(':').next_back()?, 16).ok();
    let of_line = |line: &str| {
        let mut columns = line.split_whitespace().skip(1);
        let (local, remote) = (port(columns.next()?)?, port(columns.next()?)?);
        let queues = columns.nth(1)?;
        let waiting = usize::from_str_radix(queues.split(':').next()?, 16).ok()?;
        (local == edge && remote == client).then_some(waiting)
    };
    table.lines().find_map(of_line).expect("the connection is open")
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn an_answer_that_nobody_reads_stays_in_the_edge() {
    let mesh = Outside::fixture().await;
    let traffic = Traffic::to(&mesh);
    let length = mesh.get(LARGE).await.body.len();
    let mut greedy = Connection::open_narrow(mesh.url(), 16 << 10).await.expect("the edge listens");
    let request = format!("GET {LARGE} HTTP/1.1\r\nHost: x\r\n\r\n");
    greedy.send(request.repeat(ASKED / length + 1).as_bytes()).await.expect("the edge reads");
    let (head, stream) = greedy.head_then_stream().await.expect("the edge answers");
    assert_eq!(head.status, 200);
    let ports = (stream.peer_addr().expect("a port").port(), stream.local_addr().expect("a port").port());

    eventually(SOON, "nothing waits for the client", async || waiting(ports.0, ports.1) >= UNSENT_BYTES / 2)
        .await;
    let (watched, mut most) = (Instant::now() + WATCHED, 0);
    while Instant::now() < watched {
        most = most.max(waiting(ports.0, ports.1));
        sleep(Duration::from_millis(5)).await;
    }
    println!("{most} bytes lie unsent for a client that reads nothing");
    assert!(most <= UNSENT_BYTES + OVERSHOOT, "{most} bytes lie unsent");
    // The edge has nothing against such a client: others are answered, and it may still read on.
    drop(connect(mesh.url()).await);
    drop(stream);
    traffic.end().await;
}
