//! Block heights never decrease on one connection, also when a shared or cached answer is older.

use std::time::{Duration, Instant};

use mesh_testbed::{Database, eventually, http1::Connection};
use mesh_tests::fixture;
use tokio::time::sleep;
use tokio_postgres::Client;

use crate::{
    environment::Environment,
    store_outage::{get, height},
};

const ACCOUNTS: &str = "/accounts";
const LIMITS: &str = "/api/v2/network/limits";

/// Deadline for events that happen without a deliberate delay.
const DEADLINE: Duration = Duration::from_secs(5);

/// Rounds of the race.
const ROUNDS: u64 = 5;

/// Makes every read of accounts wait for advisory lock 1 after its snapshot has been taken.
const BLOCKING_VIEW: &str = "
    CREATE FUNCTION waited() RETURNS bool LANGUAGE plpgsql AS
        $$ BEGIN PERFORM pg_advisory_xact_lock_shared(1); RETURN true; END $$;
    ALTER TABLE accounts RENAME TO accounts_kept;
    CREATE VIEW accounts AS SELECT * FROM accounts_kept WHERE waited();";

async fn open(environment: &Environment, edge: usize) -> Connection {
    Connection::open(&environment.edges[edge].url).await.expect("the edge listens")
}

async fn write_block(client: &Client, height: u64) {
    let at = format!("timestamptz '2023-06-20 11:00:00+00' + {height} * interval '1 second'");
    let block = format!("INSERT INTO blocks VALUES ({at}, {height}, '{height:064x}')");
    client.batch_execute(&block).await.expect("a block fits");
}

/// Waits until an answer on the connection has at least this height.
async fn await_height(connection: &mut Connection, expected: u64) {
    eventually(DEADLINE, &format!("block {expected} is not seen"), async || {
        height(&get(connection, LIMITS).await) >= expected
    })
    .await;
}

/// Waits until at least one read is blocked on the advisory lock.
async fn await_blocked_read(client: &Client, database: &Database) {
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = $1 AND wait_event = 'advisory'";
    let deadline = Instant::now() + DEADLINE;
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
async fn a_request_that_joins_an_earlier_read_never_gets_an_older_height() {
    let database = fixture::database().await;
    let client = database.connect().await;
    client.batch_execute(BLOCKING_VIEW).await.expect("a view can take the place of a table");
    let environment = Environment::start(&database, 2, 2).await;
    let (mut first, mut second, mut other) =
        (open(&environment, 0).await, open(&environment, 0).await, open(&environment, 1).await);
    // The first answer shows the edge that this operation reports its height; only then are concurrent
    // requests for it shared.
    get(&mut first, ACCOUNTS).await;
    let request = format!("GET {ACCOUNTS} HTTP/1.1\r\nHost: x\r\n\r\n");
    let (mut newest, mut old_answers) = (height(&get(&mut second, LIMITS).await), 0);
    for _ in 0..ROUNDS {
        // One block that makes cached answers stale, and one more while the read is blocked.
        let before = newest + 1;
        write_block(&client, before).await;
        await_height(&mut second, before).await;
        client.execute("SELECT pg_advisory_lock(1)", &[]).await.expect("it is free");
        first.send(request.as_bytes()).await.expect("the edge reads");
        await_blocked_read(&client, &database).await;
        newest = before + 1;
        write_block(&client, newest).await;
        // The other edge has to read the store; this edge learns of the block by announcement or a read.
        await_height(&mut other, newest).await;
        await_height(&mut second, newest).await;
        second.send(request.as_bytes()).await.expect("the edge reads");
        // Time for the edge to accept the request: it may only be answered once the lock is free.
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
async fn without_a_store_no_connection_gets_an_older_height() {
    let database = fixture::database().await;
    let client = database.connect().await;
    let environment = Environment::start(&database, 1, 1).await;
    let (mut first, mut other) = (open(&environment, 0).await, open(&environment, 0).await);
    let before = height(&get(&mut first, ACCOUNTS).await);
    write_block(&client, before + 1).await;
    await_height(&mut other, before + 1).await;
    // Answered from the cache entry that the other connection's read filled.
    assert_eq!(height(&get(&mut first, LIMITS).await), before + 1);
    environment.to_store.cut();
    let deadline = Instant::now() + DEADLINE;
    let mut stranger = open(&environment, 0).await;
    let shown = loop {
        let answer = get(&mut stranger, ACCOUNTS).await;
        if answer.status == 200 {
            break answer;
        }
        assert!(Instant::now() < deadline, "nothing is shown without a store: {answer:?}");
    };
    assert_eq!(height(&shown), before, "who knows of nothing newer may see it");
    let refused = get(&mut first, ACCOUNTS).await;
    assert_eq!(refused.status, 503, "the connection had been told {}: {refused:?}", before + 1);
}
