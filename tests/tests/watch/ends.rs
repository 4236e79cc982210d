//! How watches end: in order at a shutdown, and not at all when services are replaced (W8).

use std::time::{Duration, Instant};

use mesh_tests::events::Events;

use super::{LIMITS, start, withdrawal, write_block};

#[tokio::test]
async fn watches_end_one_after_the_other_when_the_edge_stops_and_none_breaks_off() {
    let (_database, mesh, client) = start(&[]).await;
    let mut open = Vec::new();
    for index in 0..60 {
        let path = if index % 3 == 0 { "/watch?read=/api/v2/info" } else { LIMITS };
        let mut events = Events::open(&client, path, &[]).await.unwrap();
        events.event().await;
        open.push(events);
    }
    let stopped_at = Instant::now();
    let ends = open.into_iter().map(|mut events| {
        tokio::spawn(async move {
            while events.block().await.is_some() {}
            stopped_at.elapsed()
        })
    });
    let ends: Vec<_> = ends.collect();
    assert!(mesh.service("edge").stop().await.success());
    let mut ended_after = Vec::new();
    for end in ends {
        ended_after.push(end.await.expect("it does not break off"));
    }
    ended_after.sort();
    let (first, last) = (ended_after[0], ended_after[59]);
    assert!(last < Duration::from_secs(5), "{last:?}");
    assert!(last - first > Duration::from_secs(1), "they are spread: {ended_after:?}");
}

#[tokio::test]
async fn a_watch_survives_that_the_services_behind_it_are_replaced() {
    let (database, mut mesh, client) = start(&[]).await;
    let writer = database.connect().await;
    let mut events = Events::open(&client, &withdrawal(), &[]).await.unwrap();
    events.event().await;
    for (height, service) in [(4, "query"), (5, "node-info"), (6, "query")] {
        mesh.service_mut(service).kill().await;
        write_block(&writer, height, Some(service)).await;
        mesh.service_mut(service).restart().await;
        loop {
            let event = events.event().await;
            if event.name == "answer" && event.id == Some(height) {
                assert_eq!(event.json()["withdrawal"]["ref"], service);
                break;
            }
            assert_eq!(event.name, "problem", "{event:?}");
        }
    }
}
