//! While the store is away: what was read last is shown, with the height that it was read at, for ten
//! seconds.

use std::time::{Duration, Instant};

use mesh_tests::{
    fixture::{self, PARTY},
    raw::{Connection, RawAnswer},
};
use tokio::time::sleep;

use crate::stage::Stage;

/// How old an answer may be.
const AGE: Duration = Duration::from_secs(1);

/// How old an answer may be while the store is away.
const AGE_AWAY: Duration = Duration::from_secs(10);

/// How soon a client learns that nothing can be shown.
const REFUSED_WITHIN: Duration = Duration::from_secs(1);

/// How soon the store is read again once it is back.
const BACK_WITHIN: Duration = Duration::from_secs(2);

/// For a loaded machine.
const SLACK: Duration = Duration::from_secs(1);

const BLOCK: &str = "INSERT INTO blocks VALUES ('2023-06-20 11:00:00+00', 4, repeat('0b', 32))";

/// Gets a path over a connection that stays.
pub(crate) async fn get(connection: &mut Connection, path: &str) -> RawAnswer {
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
    connection.send(request.as_bytes()).await.expect("the edge reads");
    connection.answer(false).await.expect("the edge answers HTTP").expect("the edge answers")
}

/// The height that an answer tells.
pub(crate) fn height(answer: &RawAnswer) -> u64 {
    let told = answer.header("x-block-height").and_then(|value| value.parse().ok());
    told.unwrap_or_else(|| panic!("no height: {answer:?}"))
}

#[tokio::test]
async fn answers_without_a_store_keep_their_height_for_ten_seconds_and_then_end() {
    let database = fixture::database().await;
    let stage = Stage::start(&database, 1, 1).await;
    let mut connection = Connection::open(&stage.edges[0].url).await.expect("the edge listens");
    let (known, unknown) = ("/accounts".to_owned(), format!("/accounts?party={PARTY}"));
    let asked = Instant::now();
    let before = get(&mut connection, &known).await;
    let read = Instant::now();
    stage.to_store.cut();
    // The store goes on without anybody here to see it.
    database.connect().await.batch_execute(BLOCK).await.expect("a block fits");
    let (mut shown, mut last) = (0, read);
    let refused = loop {
        let sent = Instant::now();
        let answer = get(&mut connection, &known).await;
        if answer.status != 200 {
            break answer;
        }
        assert_eq!((height(&answer), &answer.body), (height(&before), &before.body));
        assert_eq!(answer.header("etag"), before.header("etag"));
        assert!(sent - read < AGE_AWAY, "shown {:?} after it was read", sent - read);
        (shown, last) = (shown + 1, Instant::now());
        let refused = get(&mut connection, &unknown).await;
        assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")), "{refused:?}");
        assert!(last.elapsed() < REFUSED_WITHIN + SLACK, "refused after {:?}", last.elapsed());
        sleep(Duration::from_millis(100)).await;
    };
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")), "{refused:?}");
    assert!(shown > 10 && last - asked > AGE_AWAY - SLACK, "shown for {:?} only", last - asked);

    stage.to_store.restore();
    let mended = Instant::now();
    while get(&mut connection, &known).await.status != 200 {
        assert!(mended.elapsed() < BACK_WITHIN + SLACK, "still away");
        sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(height(&get(&mut connection, &known).await), 4, "it is read anew");
}

#[tokio::test]
async fn what_was_read_last_is_shown_for_a_second_only_where_the_bus_is_away_and_not_the_store() {
    let database = fixture::database().await;
    let stage = Stage::start(&database, 1, 1).await;
    let mut connection = Connection::open(&stage.edges[0].url).await.expect("the edge listens");
    assert_eq!(get(&mut connection, "/accounts").await.status, 200);
    let read = Instant::now();
    stage.edges[0].to_bus.cut();
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
