//! Reading against real servers: heads, frozen and stopped servers, replicas, callers that go away.

mod abandoned;
mod head_watch;
mod locked;
mod outages;
mod replica;

use std::time::Duration;

use mesh_store::{ReadError, Store, StoreConfig};
use mesh_testbed::Database;
use tokio_postgres::Client;

/// Deadline for effects that are expected at once.
const SOON: Duration = Duration::from_secs(5);

/// The configuration of a store with so many connections for point reads.
fn config(url: &str, points: usize) -> StoreConfig {
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

fn is_away<T>(result: &Result<T, ReadError>) -> bool {
    matches!(result, Err(ReadError::Away(_)))
}

/// As in an address of several servers, of which one is the primary.
#[tokio::test]
async fn a_server_that_takes_writes_may_be_required() {
    let database = Database::fresh().await;
    let separator = if database.url().contains('?') { '&' } else { '?' };
    ready(&config(&format!("{}{separator}target_session_attrs=read-write", database.url()), 1)).await;
}
