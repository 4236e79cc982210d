//! Answers during a store outage: the edge shows the last answer that was read, with its original height, for
//! at most ten seconds.

use std::time::{Duration, Instant};

use mesh_testbed::http1::{Connection, RawAnswer};
use mesh_tests::fixture::{self, PARTY};
use tokio::time::sleep;

use crate::environment::Environment;

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

const BLOCK: &str = "INSERT INTO blocks VALUES ('2023-06-20 11:00:00+00', 4, repeat('0b', 32))";

/// Sends a GET request over a persistent connection and returns the answer.
pub(crate) async fn get(connection: &mut Connection, path: &str) -> RawAnswer {
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
    connection.send(request.as_bytes()).await.expect("the edge reads");
    connection.answer(false).await.expect("the edge answers HTTP").expect("the edge answers")
}

/// The block height in an answer's `X-Block-Height` header.
pub(crate) fn height(answer: &RawAnswer) -> u64 {
    let parsed = answer.header("x-block-height").and_then(|value| value.parse().ok());
    parsed.unwrap_or_else(|| panic!("no height: {answer:?}"))
}

#[tokio::test]
async fn answers_without_a_store_keep_their_height_for_ten_seconds_and_then_end() {
    let database = fixture::database().await;
    let environment = Environment::start(&database, 1, 1).await;
    let mut connection = Connection::open(&environment.edges[0].url).await.expect("the edge listens");
    let (cached, uncached) = ("/accounts".to_owned(), format!("/accounts?party={PARTY}"));
    let started = Instant::now();
    let before = get(&mut connection, &cached).await;
    let read = Instant::now();
    environment.to_store.cut();
    // The store gets a block while the edge cannot reach it.
    database.connect().await.batch_execute(BLOCK).await.expect("a block fits");
    let (mut shown, mut last) = (0, read);
    let refused = loop {
        let sent = Instant::now();
        let answer = get(&mut connection, &cached).await;
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
        sleep(Duration::from_millis(100)).await;
    };
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")), "{refused:?}");
    assert!(shown > 10 && last - started > AGE_AWAY - SLACK, "shown for {:?} only", last - started);

    environment.to_store.restore();
    let restored = Instant::now();
    while get(&mut connection, &cached).await.status != 200 {
        assert!(restored.elapsed() < BACK_WITHIN + SLACK, "still away");
        sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(height(&get(&mut connection, &cached).await), 4, "it is read anew");
}

#[tokio::test]
async fn cached_answers_are_shown_for_one_second_while_only_the_bus_is_away() {
    let database = fixture::database().await;
    let environment = Environment::start(&database, 1, 1).await;
    let mut connection = Connection::open(&environment.edges[0].url).await.expect("the edge listens");
    assert_eq!(get(&mut connection, "/accounts").await.status, 200);
    let read = Instant::now();
    environment.edges[0].to_bus.cut();
    while read.elapsed() < AGE * 3 {
        let sent = Instant::now();
        let answer = get(&mut connection, "/accounts").await;
        match answer.status {
            200 => assert!(sent - read < AGE, "shown {:?} after it was read", sent - read),
            status => assert_eq!((status, answer.header("retry-after")), (503, Some("1")), "{answer:?}"),
        }
        sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(get(&mut connection, "/accounts").await.status, 503, "nothing is known any more");
}
