//! Reads of other tables while one is locked.

use std::time::Duration;

use futures_util::future::join_all;
use mesh_store::{ReadError, StoreConfig};
use mesh_testbed::Database;
use tokio::time::timeout;

use super::{SOON, config, lock, ready};

const LOCKED: &str = "SELECT count(*) AS count FROM withdrawals";
const OTHER: &str = "SELECT count(*) AS count FROM oracle_specs";

/// More readers of the locked table than a store has connections.
const BLOCKED_READERS: usize = 100;

/// Reads of the other table during the lock, one after the other.
const READS: u32 = 50;

/// Longest time for all of them: a read that waits behind the lock takes longer.
const AT_MOST: Duration = Duration::from_secs(3);

/// Fails when one of the reads waits for the lock.
async fn assert_prompt(reads: impl Future<Output = ()>) {
    timeout(AT_MOST, reads).await.expect("a read waits behind the lock of another table");
}

#[tokio::test]
async fn a_locked_table_delays_no_point_read_of_another_one() {
    let database = Database::fresh().await;
    for connections in [1, 4] {
        let store = ready(&config(database.url(), connections)).await;
        let other = async || {
            for _ in 0..READS {
                store.point(OTHER, &[], None).await.unwrap();
            }
        };
        other().await;
        let holder = lock(&database).await;
        let blocked = join_all((0..BLOCKED_READERS).map(|_| store.point(LOCKED, &[], None)));
        let others = async {
            assert_prompt(other()).await;
            assert!(store.ready().await.is_ok());
            holder.batch_execute("ROLLBACK").await.unwrap();
        };
        let (answers, ()) = tokio::join!(timeout(AT_MOST + SOON, blocked), others);
        assert!(answers.unwrap().iter().all(Result::is_ok), "after the lock, {connections} connections");
    }
}

#[tokio::test]
async fn locked_lists_leave_connections_to_other_lists() {
    const LISTS: [&str; 5] = ["a", "b", "c", "d", "e"];
    let database = Database::fresh().await;
    // Fewer connections than locked lists.
    let store = ready(&config(database.url(), 1)).await;
    let other = async || {
        for _ in 0..READS {
            store.list("other", OTHER, &[], None).await.unwrap();
        }
    };
    other().await;
    let holder = lock(&database).await;
    let reader = |number: usize| store.list(LISTS[number % LISTS.len()], LOCKED, &[], None);
    let blocked = join_all((0..BLOCKED_READERS).map(reader));
    let others = async {
        assert_prompt(other()).await;
        holder.batch_execute("ROLLBACK").await.unwrap();
    };
    let (answers, ()) = tokio::join!(timeout(AT_MOST + SOON, blocked), others);
    assert!(answers.unwrap().iter().all(Result::is_ok), "after the lock");
}

#[tokio::test]
async fn a_list_that_stays_locked_is_late() {
    let database = Database::fresh().await;
    let config = StoreConfig { query_timeout: Duration::from_secs(1), ..config(database.url(), 1) };
    let store = ready(&config).await;
    let holder = lock(&database).await;
    let late = join_all((0..BLOCKED_READERS).map(|_| store.list("locked", LOCKED, &[], None)));
    let late = timeout(AT_MOST, late).await.expect("they wait for longer than a read may");
    assert!(late.iter().all(|read| matches!(read, Err(ReadError::Late))), "{late:?}");
    holder.batch_execute("ROLLBACK").await.unwrap();
    assert!(store.list("locked", LOCKED, &[], None).await.is_ok());
}
