//! A client of a WebSocket that answers no ping. In a file whose name comes first: tests begin in the order of their
//! names, and this one waits for more than a minute while others run.

use std::time::{Duration, Instant};

use mesh_tests::{HANDSHAKE, raw};

use crate::watch::start;

#[tokio::test]
async fn a_client_that_answers_no_ping_is_closed_after_a_minute() {
    let (_database, mesh, _client) = start(&[]).await;
    let mut connection = raw::begin(&mesh.url(), HANDSHAKE).await;
    assert_eq!(connection.head().await.unwrap().unwrap().0.status, 101);
    let opened = Instant::now();
    let rest = tokio::time::timeout(Duration::from_secs(100), connection.rest()).await;
    let rest = rest.expect("it stays open").unwrap();
    assert!(rest.starts_with(b"\x89\0\x89\0\x89\0"), "{rest:?}");
    assert_eq!(rest.windows(2).filter(|two| two == b"\x03\xf3").count(), 1, "1011: {rest:?}");
    let elapsed = opened.elapsed().as_secs();
    assert!((70..90).contains(&elapsed), "{elapsed} s");
}
