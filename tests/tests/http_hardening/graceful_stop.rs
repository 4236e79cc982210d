//! A stopping edge loses no request of clients with keep-alive connections.

use std::time::{Duration, Instant};

use mesh_tests::fixture;
use tokio::time::interval;

use crate::http_hardening::{VALID_REQUEST, answer, begin, connect, rest, send};

#[test]
fn a_keep_alive_connection_gets_connection_close_with_its_next_answer_after_a_stop() {
    fixture::exclusively(async |_, mesh| {
        let mut connections = Vec::new();
        for _ in 0..20 {
            let mut connection = begin(&mesh.url(), VALID_REQUEST).await;
            let answer = answer(&mut connection).await;
            assert_eq!((answer.status, answer.closes()), (200, false));
            connections.push(connection);
        }
        let (status, ()) = tokio::join!(mesh.service("edge").stop(), async {
            // Requests are spread over the time in which clients learn of the stop.
            let mut pace = interval(Duration::from_millis(50));
            pace.tick().await;
            for (at, connection) in connections.iter_mut().enumerate() {
                pace.tick().await;
                let requests = if at % 2 == 0 { 1 } else { 3 };
                send(connection, &VALID_REQUEST.repeat(requests)).await;
                for left in (0..requests).rev() {
                    let answer = answer(connection).await;
                    assert_eq!(answer.status, 200, "{at}: {answer:?}");
                    assert_eq!(answer.closes(), left == 0, "{at}, {left} behind it: {answer:?}");
                }
                assert_eq!(rest(connection).await, b"");
            }
        });
        assert!(status.success(), "{status}");
    });
}

#[test]
fn an_edge_stops_at_once_without_connections_and_soon_with_idle_ones() {
    fixture::exclusively(async |_, mesh| {
        let mut silent = connect(&mesh.url()).await;
        let started = Instant::now();
        assert!(mesh.service("edge").stop().await.success());
        let took = started.elapsed();
        assert!(took > Duration::from_secs(1) && took < Duration::from_secs(3), "after {took:?}");
        assert_eq!(rest(&mut silent).await, b"");

        mesh.restart_ended().await;
        let started = Instant::now();
        assert!(mesh.service("edge").stop().await.success());
        assert!(started.elapsed() < Duration::from_secs(1), "after {:?}", started.elapsed());
    });
}
