//! One connection never sees a height go back, whoever has read what before.

use std::time::{Duration, Instant};

use mesh_testbed::{Database, eventually};
use mesh_tests::{fixture, raw::Connection};
use tokio::time::sleep;
use tokio_postgres::Client;

use crate::{
    away::{get, height},
    stage::Stage,
};

const ACCOUNTS: &str = "/accounts";
const LIMITS: &str = "/api/v2/network/limits";

/// How soon something must be seen that happens at once.
const SOON: Duration = Duration::from_secs(5);

/// How often a race is run.
const ROUNDS: u64 = 5;

/// Makes reads of accounts wait in the middle, with what they see settled already: for whoever holds lock 1.
const WAITING: &str = "
    CREATE FUNCTION waited() RETURNS bool LANGUAGE plpgsql AS
        $$ BEGIN PERFORM pg_advisory_xact_lock_shared(1); RETURN true; END $$;
    ALTER TABLE accounts RENAME TO accounts_kept;
    CREATE VIEW accounts AS SELECT * FROM accounts_kept WHERE waited();";

async fn open(stage: &Stage, edge: usize) -> Connection {
    Connection::open(&stage.edges[edge].url).await.expect("the edge listens")
}

async fn write_block(client: &Client, height: u64) {
    let at = format!("timestamptz '2023-06-20 11:00:00+00' + {height} * interval '1 second'");
    let block = format!("INSERT INTO blocks VALUES ({at}, {height}, '{height:064x}')");
    client.batch_execute(&block).await.expect("a block fits");
}

/// Waits until a connection has been told of a block.
async fn await_height(connection: &mut Connection, wanted: u64) {
    eventually(SOON, &format!("block {wanted} is not seen"), async || {
        height(&get(connection, LIMITS).await) >= wanted
    })
    .await;
}

/// Waits until reads wait in the middle.
async fn await_waiting(client: &Client, database: &Database) {
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = $1 AND wait_event = 'advisory'";
    let deadline = Instant::now() + SOON;
    loop {
        let count: i64 =
            client.query_one(waiting, &[&database.name()]).await.expect("it can be asked").get(0);
        if count > 0 {
            return;
        }
        assert!(Instant::now() < deadline, "no read waits");
        sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_read_that_joins_one_begun_before_is_not_answered_from_before() {
    let database = fixture::database().await;
    let client = database.connect().await;
    client.batch_execute(WAITING).await.expect("a view can take the place of a table");
    let stage = Stage::start(&database, 2, 2).await;
    let (mut first, mut second, mut other) =
        (open(&stage, 0).await, open(&stage, 0).await, open(&stage, 1).await);
    // From this the edge knows that such answers tell their height, so that asks for them are shared.
    get(&mut first, ACCOUNTS).await;
    let request = format!("GET {ACCOUNTS} HTTP/1.1\r\nHost: x\r\n\r\n");
    let (mut newest, mut old_answers) = (height(&get(&mut second, LIMITS).await), 0);
    for _ in 0..ROUNDS {
        // One block so that nothing kept is true any more, one while the read waits.
        let before = newest + 1;
        write_block(&client, before).await;
        await_height(&mut second, before).await;
        client.execute("SELECT pg_advisory_lock(1)", &[]).await.expect("it is free");
        first.send(request.as_bytes()).await.expect("the edge reads");
        await_waiting(&client, &database).await;
        newest = before + 1;
        write_block(&client, newest).await;
        // Another edge sees it at first hand, this one by the news or a read of its own.
        await_height(&mut other, newest).await;
        await_height(&mut second, newest).await;
        second.send(request.as_bytes()).await.expect("the edge reads");
        // Time for the edge to have taken it: it may only be answered once the lock is free.
        get(&mut other, LIMITS).await;
        sleep(Duration::from_millis(20)).await;
        client.execute("SELECT pg_advisory_unlock(1)", &[]).await.expect("it is held");
        let (old, new) = tokio::join!(first.answer(false), second.answer(false));
        let height_of =
            |answer: std::io::Result<Option<_>>| height(&answer.expect("HTTP").expect("an answer"));
        let (old, new) = (height_of(old), height_of(new));
        old_answers += u64::from(old == before);
        assert!(new >= newest, "the connection had been told {newest}, then {new}");
    }
    assert!(old_answers > 0, "no read saw the store as it was: the race was never run");
}

#[tokio::test]
async fn what_a_connection_was_told_bounds_what_it_is_told_without_a_store() {
    let database = fixture::database().await;
    let client = database.connect().await;
    let stage = Stage::start(&database, 1, 1).await;
    let (mut mine, mut other) = (open(&stage, 0).await, open(&stage, 0).await);
    let before = height(&get(&mut mine, ACCOUNTS).await);
    write_block(&client, before + 1).await;
    await_height(&mut other, before + 1).await;
    // Answered from what the other connection has read.
    assert_eq!(height(&get(&mut mine, LIMITS).await), before + 1);
    stage.to_store.cut();
    let deadline = Instant::now() + SOON;
    let mut stranger = open(&stage, 0).await;
    let shown = loop {
        let answer = get(&mut stranger, ACCOUNTS).await;
        if answer.status == 200 {
            break answer;
        }
        assert!(Instant::now() < deadline, "nothing is shown without a store: {answer:?}");
    };
    assert_eq!(height(&shown), before, "who knows of nothing newer may see it");
    let refused = get(&mut mine, ACCOUNTS).await;
    assert_eq!(refused.status, 503, "the connection had been told {}: {refused:?}", before + 1);
}
