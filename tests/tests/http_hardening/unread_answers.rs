//! A client that requests much and reads nothing: the kernel's send buffer is bounded, since the edge's own
//! limits do not count what lies there.

use std::{fs, time::Duration};

use mesh_testbed::{eventually, http1::Connection};
use mesh_tests::MeshClient;
use tokio::time::interval;

use crate::http_hardening::{TIME_LIMIT, connect, traffic::Traffic};

/// The edge's limit of unsent bytes on a connection: `TCP_NOTSENT_LOWAT`.
const UNSENT_BYTES: usize = 128 << 10;

/// The kernel checks the limit once per buffer of at most 64 KiB.
const OVERSHOOT: usize = 64 << 10;

/// An answer of some hundred kilobytes; the requested total, bytes, exceeds any kernel buffer.
const LARGE: &str = "/openapi.json";
const REQUESTED_BYTES: usize = 24 << 20;

/// How often the number of unsent bytes is sampled, and for how long.
const SAMPLING_INTERVAL: Duration = Duration::from_millis(5);
const SAMPLES: usize = 100;

/// Bytes that the edge has written to a connection and that are not acknowledged (`tx_queue` of
/// `/proc/net/tcp`), by the two ports. The client's receive window is closed, so these are the unsent ones.
fn tx_queue_bytes(edge: u16, client: u16) -> usize {
    let table = fs::read_to_string("/proc/net/tcp").expect("this is Linux");
    let port = |address: &str| u16::from_str_radix(address.split(':').next_back()?, 16).ok();
    let of_line = |line: &str| {
        let mut columns = line.split_whitespace().skip(1);
        let (local, remote) = (port(columns.next()?)?, port(columns.next()?)?);
        let queues = columns.nth(1)?;
        let tx_queue_bytes = usize::from_str_radix(queues.split(':').next()?, 16).ok()?;
        (local == edge && remote == client).then_some(tx_queue_bytes)
    };
    table.lines().find_map(of_line).expect("the connection is open")
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn unread_answers_do_not_fill_the_kernels_send_buffer() {
    let mesh = MeshClient::fixture().await;
    let traffic = Traffic::start(&mesh);
    let length = mesh.get(LARGE).await.body.len();
    let mut greedy = Connection::open_narrow(mesh.url(), 16 << 10).await.expect("the edge listens");
    let request = format!("GET {LARGE} HTTP/1.1\r\nHost: x\r\n\r\n");
    greedy.send(request.repeat(REQUESTED_BYTES / length + 1).as_bytes()).await.expect("the edge reads");
    let (head, stream) = greedy.head_then_stream().await.expect("the edge answers");
    assert_eq!(head.status, 200);
    let ports = (stream.peer_addr().expect("a port").port(), stream.local_addr().expect("a port").port());

    let waits = async || tx_queue_bytes(ports.0, ports.1) >= UNSENT_BYTES / 2;
    eventually(TIME_LIMIT, "nothing waits for the client", waits).await;
    let (mut pace, mut most) = (interval(SAMPLING_INTERVAL), 0);
    for _ in 0..SAMPLES {
        pace.tick().await;
        most = most.max(tx_queue_bytes(ports.0, ports.1));
    }
    println!("{most} bytes lie unsent for a client that reads nothing");
    assert!(most <= UNSENT_BYTES + OVERSHOOT, "{most} bytes lie unsent");
    // Other clients are answered meanwhile, and this client may still read on.
    drop(connect(mesh.url()).await);
    drop(stream);
    traffic.end().await;
}
