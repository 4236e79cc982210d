//! Block heights never decrease on one connection, also when a shared or cached answer is older.

use std::time::Duration;

use mesh_testbed::{Database, eventually, http1::Connection, retry};
use mesh_tests::{ProxiedServer, fixture, raw};
use tokio::time::timeout;
use tokio_postgres::Client;

use super::{ACCOUNTS, configure, get, height, open, send};
use crate::watch::write_block;

const LIMITS: &str = "/api/v2/network/limits";

/// Deadline for events that happen without a deliberate delay.
const DEADLINE: Duration = Duration::from_secs(5);

/// How long a request must stay unanswered, so that the edge has surely accepted it.
const UNANSWERED: Duration = Duration::from_millis(20);

const ROUNDS: u64 = 5;

/// Makes every read of accounts wait for advisory lock 1 after its snapshot has been taken. It asks again and again:
/// a list that waits for a lock itself is soon read over another connection.
const BLOCKING_VIEW: &str = include_str!("blocking_view.sql");

/// Waits until an answer on the connection has at least this height.
async fn await_height(connection: &mut Connection, expected: u64) {
    let is_seen = async || height(&get(connection, LIMITS).await) >= expected;
    eventually(DEADLINE, &format!("block {expected} is not seen"), is_seen).await;
}

/// Waits until at least one read waits for the advisory lock.
async fn await_blocked_read(client: &Client, database: &Database) {
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = $1 AND wait_event = 'PgSleep'";
    eventually(DEADLINE, "no read waits", async || {
        let row = client.query_one(waiting, &[&database.name()]).await.expect("the count is readable");
        row.get::<_, i64>(0) > 0
    })
    .await;
}

#[tokio::test]
async fn a_request_that_joins_an_earlier_read_never_gets_an_older_height() {
    let database = fixture::database().await;
    let client = database.connect().await;
    client.batch_execute(BLOCKING_VIEW).await.expect("a view can take the place of a table");
    // The services of one mesh, twice: two edges, each with its own cache.
    let prefix = format!("heights{:x}", rand::random::<u64>());
    let start = async || configure(&database).env("MESH_BUS_PREFIX", &prefix).start().await;
    let (mesh, other_mesh) = tokio::join!(start(), start());
    let (mut first, mut second, mut other) = (open(&mesh).await, open(&mesh).await, open(&other_mesh).await);
    // The first answer shows the edge that this operation reports its height; only then are concurrent
    // requests for it shared.
    get(&mut first, ACCOUNTS).await;
    let (mut newest, mut old_answers) = (height(&get(&mut second, LIMITS).await), 0);
    for _ in 0..ROUNDS {
        // One block that makes cached answers stale, and one more while the read is blocked.
        let before = newest + 1;
        write_block(&client, before, None).await;
        await_height(&mut second, before).await;
        client.execute("SELECT pg_advisory_lock(1)", &[]).await.expect("it is free");
        send(&mut first, ACCOUNTS).await;
        await_blocked_read(&client, &database).await;
        newest = before + 1;
        write_block(&client, newest, None).await;
        // The other edge has to read the store; this edge learns of the block by announcement or a read.
        await_height(&mut other, newest).await;
        await_height(&mut second, newest).await;
        send(&mut second, ACCOUNTS).await;
        let early = timeout(UNANSWERED, second.answer(false)).await;
        assert!(early.is_err(), "answered although every read is blocked: {early:?}");
        client.execute("SELECT pg_advisory_unlock(1)", &[]).await.expect("it is held");
        let (old, new) = tokio::join!(raw::answer(&mut first), raw::answer(&mut second));
        let (old, new) = (height(&old), height(&new));
        old_answers += u64::from(old == before);
        assert!(new >= newest, "the connection had got {newest}, then {new}");
    }
    assert!(old_answers > 0, "no read saw the store as it was: the race was never run");
}

#[tokio::test]
async fn without_a_store_no_connection_gets_an_older_height() {
    let database = fixture::database().await;
    let client = database.connect().await;
    let store = ProxiedServer::start(database.url()).await;
    let mesh = configure(&database).env("MESH_DATABASE_URL", store.url()).start().await;
    let (mut first, mut other) = (open(&mesh).await, open(&mesh).await);
    let before = height(&get(&mut first, ACCOUNTS).await);
    write_block(&client, before + 1, None).await;
    await_height(&mut other, before + 1).await;
    // Answered from the cache entry that the other connection's read filled.
    assert_eq!(height(&get(&mut first, LIMITS).await), before + 1);
    store.cut();
    let mut stranger = open(&mesh).await;
    let shown = retry(DEADLINE, async || {
        let answer = get(&mut stranger, ACCOUNTS).await;
        if answer.status == 200 { Ok(answer) } else { Err(format!("without a store: {answer:?}")) }
    })
    .await;
    assert_eq!(height(&shown), before, "a connection that got nothing newer may get it");
    let refused = get(&mut first, ACCOUNTS).await;
    assert_eq!(refused.status, 503, "the connection had got {}: {refused:?}", before + 1);
}
