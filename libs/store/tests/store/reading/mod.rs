//! Reading against real servers: heads, frozen and stopped servers, replicas, callers that go away.

mod abandoned;
mod head_watch;
mod locked;
mod outages;
mod replica;

use std::time::Duration;

use futures_util::future::join_all;
use mesh_problem::Code;
use mesh_store::{ReadError, Store, StoreConfig};
use mesh_testbed::{Database, retry};
use tokio_postgres::Client;

/// Deadline for effects that are expected at once.
const SOON: Duration = Duration::from_secs(5);

/// The configuration of a store with so many connections for point reads.
pub(crate) fn config(url: &str, points: usize) -> StoreConfig {
    StoreConfig {
        url: url.to_owned(),
        replica_url: None,
        query_timeout: Duration::from_secs(10),
        point_connections: points,
        list_connections: 4,
        name: "mesh test".to_owned(),
    }
}

async fn ready(config: &StoreConfig) -> Store {
    let store = Store::open(config).unwrap();
    tokio::time::timeout(SOON, store.until_ready()).await.unwrap();
    store
}

async fn store(database: &Database, points: usize) -> Store {
    ready(&config(database.url(), points)).await
}

/// A connection that locks a table against reads until it rolls back.
async fn lock(database: &Database) -> Client {
    let holder = database.connect().await;
    holder.batch_execute("BEGIN; LOCK TABLE withdrawals IN ACCESS EXCLUSIVE MODE").await.unwrap();
    holder
}

/// Writes a block, as a writer does.
async fn write_block(client: &Client, height: i64) {
    let sql = "INSERT INTO blocks (height, block_time, hash) VALUES
        ($1::int8, timestamptz '2024-01-01 00:00:00+00' + $1::int8 * interval '1 s', 'ab')";
    client.execute(sql, &[&height]).await.unwrap();
}

/// A function that fails in `failures` of its calls like a statement in conflict with replication.
async fn create_aborting(client: &Client, failures: u32) {
    let sql = include_str!("abort_some.sql").replace("{failures}", &failures.to_string());
    client.batch_execute(&sql).await.unwrap();
}

fn is_away<T>(result: &Result<T, ReadError>) -> bool {
    matches!(result, Err(ReadError::Away(_)))
}

#[tokio::test]
async fn a_read_that_the_server_aborts_is_repeated_once() {
    for (failures, code) in [(1, None), (u32::MAX >> 1, Some(Code::Unavailable))] {
        for lists in [false, true] {
            let (database, client) = Database::with_client().await;
            create_aborting(&client, failures).await;
            let (store, sql) = (store(&database, 1).await, "SELECT abort_some()");
            let read = match lists {
                true => store.list("aborted", sql, &[], None).await.map(drop),
                false => store.point(sql, &[], None).await.map(drop),
            };
            assert_eq!(read.as_ref().err().map(|error| error.problem(1).code), code, "{lists}: {read:?}");
        }
    }
}

#[tokio::test]
async fn lists_share_the_connections_that_a_full_database_has_given() {
    let (database, client) = Database::with_client().await;
    // Limits do not hold for superusers.
    let store = ready(&config(&database.url_of("query"), 1)).await;
    let limit = async |connections: u8| {
        let name = database.name();
        client
            .batch_execute(&format!("ALTER DATABASE \"{name}\" CONNECTION LIMIT {connections}"))
            .await
            .unwrap();
    };
    let read = || store.list("slow", "SELECT pg_sleep(0.1)", &[], None);
    // Those of this client, the head, and readiness.
    limit(3).await;
    let refused = read().await;
    assert!(matches!(refused, Err(ReadError::Full(_))), "{refused:?}");
    let problem = refused.unwrap_err().problem(1);
    assert!(problem.is_local && problem.to_string().contains("no free connection"), "{problem}");
    let unready = store.ready().await;
    assert!(matches!(unready, Err(ReadError::Full(_))), "{unready:?}");

    limit(4).await;
    retry(SOON, async || store.ready().await.map_err(|error| format!("{error:?}"))).await;
    let reads = join_all((0..8).map(|_| read())).await;
    assert!(reads.iter().all(Result::is_ok), "one connection serves all: {reads:?}");
}

#[tokio::test]
async fn role_and_database_do_not_choose_what_a_session_reads() {
    let database = Database::fresh().await;
    let set = "DO $$ BEGIN EXECUTE format(
        'ALTER DATABASE %I SET default_transaction_isolation = serializable', current_database()); END $$";
    database.connect().await.batch_execute(set).await.unwrap();
    // A policy would leave rows out.
    let sql = "SELECT current_setting('row_security') || ', ' || current_setting('transaction_isolation')";
    let read = store(&database, 1).await.point(sql, &[], None).await.unwrap();
    let other = mesh_store::connect(database.url(), "mesh test").await.unwrap();
    for row in [read, other.query_one(sql, &[]).await.unwrap()] {
        assert_eq!(row.get::<_, String>(0), "off, read committed");
    }
}

/// As in an address of several servers, of which one is the primary. The first one hangs.
#[tokio::test]
async fn a_server_that_takes_writes_may_be_required() {
    let database = Database::fresh().await;
    let (user, server) = database.url().rsplit_once('@').unwrap();
    let (server, rest) = server.split_once('/').unwrap();
    let hanging = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let hosts = format!("{},{server},{server},{server}", hanging.local_addr().unwrap());
    let separator = if rest.contains('?') { '&' } else { '?' };
    let url = format!("{user}@{hosts}/{rest}{separator}target_session_attrs=read-write");
    let store = Store::open(&config(&url, 1)).unwrap();
    tokio::time::timeout(SOON * 6, store.until_ready()).await.unwrap();
}
