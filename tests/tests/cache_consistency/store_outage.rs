//! Answers during an outage: without the store the edge shows the last answer that was read, with its
//! original height, for at most ten seconds; without the bus for at most one second.

use std::time::{Duration, Instant};

use mesh_testbed::{eventually, nats};
use mesh_tests::{PARTY, ProxiedServer, fixture};
use tokio::time::interval;

use super::{ACCOUNTS, configure, get, height, open};
use crate::watch::write_block;

/// Greatest age of an answer while the store is reachable.
const AGE: Duration = Duration::from_secs(1);

/// Greatest age of an answer while the store is unreachable.
const AGE_AWAY: Duration = Duration::from_secs(10);

/// Longest time until a read without a cached answer is refused.
const REFUSED_WITHIN: Duration = Duration::from_secs(1);

/// Longest time from the store's return to the first answer that was read from it.
const BACK_WITHIN: Duration = Duration::from_secs(2);

/// Added to every limit, for a loaded machine.
const SLACK: Duration = Duration::from_secs(1);

/// Time between two reads of a client.
const PACE: Duration = Duration::from_millis(50);

#[tokio::test]
async fn answers_without_a_store_keep_their_height_for_ten_seconds_and_then_end() {
    let database = fixture::database().await;
    let store = ProxiedServer::start(database.url()).await;
    let mesh = configure(&database).env("MESH_DATABASE_URL", store.url()).start().await;
    let mut connection = open(&mesh).await;
    let uncached = format!("{ACCOUNTS}?party={PARTY}");
    let started = Instant::now();
    let before = get(&mut connection, ACCOUNTS).await;
    let read = Instant::now();
    store.cut();
    // The store gets a block while the services cannot reach it.
    let next = height(&before) + 1;
    write_block(&database.connect().await, next, None).await;
    let (mut shown, mut last, mut pace) = (0, read, interval(PACE));
    let refused = loop {
        let sent = Instant::now();
        let answer = get(&mut connection, ACCOUNTS).await;
        if answer.status != 200 {
            break answer;
        }
        assert_eq!((height(&answer), &answer.body), (height(&before), &before.body));
        assert_eq!(answer.header("etag"), before.header("etag"));
        assert!(sent - read < AGE_AWAY, "shown {:?} after it was read", sent - read);
        (shown, last) = (shown + 1, Instant::now());
        let refused = get(&mut connection, &uncached).await;
        assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")), "{refused:?}");
        assert!(last.elapsed() < REFUSED_WITHIN + SLACK, "refused after {:?}", last.elapsed());
        pace.tick().await;
    };
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")), "{refused:?}");
    assert!(shown > 10 && last - started > AGE_AWAY - SLACK, "shown for {:?} only", last - started);

    store.restore();
    let is_back = async || get(&mut connection, ACCOUNTS).await.status == 200;
    eventually(BACK_WITHIN + SLACK, "the edge does not answer again", is_back).await;
    assert_eq!(height(&get(&mut connection, ACCOUNTS).await), next, "it is read from the store");
}

#[tokio::test]
async fn cached_answers_are_shown_for_one_second_while_only_the_bus_is_away() {
    let database = fixture::database().await;
    let bus = ProxiedServer::start(nats().await.url()).await;
    let mesh = configure(&database).env("MESH_BUS_URL", bus.url()).start().await;
    let mut connection = open(&mesh).await;
    assert_eq!(get(&mut connection, ACCOUNTS).await.status, 200);
    let (read, mut pace) = (Instant::now(), interval(PACE));
    bus.cut();
    while read.elapsed() < AGE * 3 {
        let sent = Instant::now();
        let answer = get(&mut connection, ACCOUNTS).await;
        match answer.status {
            200 => assert!(sent - read < AGE, "shown {:?} after it was read", sent - read),
            status => assert_eq!((status, answer.header("retry-after")), (503, Some("1")), "{answer:?}"),
        }
        pace.tick().await;
    }
    assert_eq!(get(&mut connection, ACCOUNTS).await.status, 503, "nothing is cached any more");
}
