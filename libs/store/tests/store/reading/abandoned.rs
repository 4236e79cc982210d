//! Point reads whose callers go away, or whose connections do.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use mesh_store::Store;
use mesh_testbed::{Database, eventually, retry};
use tokio::{
    task::JoinHandle,
    time::{interval, timeout},
};
use tokio_postgres::{Client, Row};

use super::{SOON, config, lock, ready, store};

const SLOW: &str = "SELECT count(*) AS count FROM withdrawals";
const FAST: &str = "SELECT count(*) AS count FROM last_block";

/// Reads in its own task, which can be aborted and returns the answer.
fn read(store: &Store, sql: &'static str) -> JoinHandle<i64> {
    let store = store.clone();
    tokio::spawn(async move {
        let row = store.point(sql, &[], None).await.unwrap_or_else(|error| panic!("{error:?}"));
        row.get("count")
    })
}

/// The connections of point reads, by process id, and those of them that run a statement.
async fn sessions(watcher: &Client) -> (Vec<i32>, Vec<i32>) {
    let sql = "SELECT pid, state = 'active' AS is_active FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = 'mesh test' ORDER BY pid";
    let rows = watcher.query(sql, &[]).await.unwrap();
    let pid = |row: &Row| row.get::<_, i32>("pid");
    let active = rows.iter().filter(|row| row.get::<_, Option<bool>>("is_active") == Some(true));
    (rows.iter().map(pid).collect(), active.map(pid).collect())
}

async fn await_active(watcher: &Client, count: usize, at_most: Duration) -> Vec<i32> {
    retry(at_most, async || {
        let (_, active) = sessions(watcher).await;
        if active.len() == count { Ok(active) } else { Err(format!("{active:?} are active, not {count}")) }
    })
    .await
}

/// Waits until a statement runs, and on other connections than these.
async fn until_elsewhere(watcher: &Client, connections: &[i32]) {
    let is_elsewhere = async || {
        let active = sessions(watcher).await.1;
        !active.is_empty() && active != connections
    };
    eventually(SOON, "no statement runs on another connection", is_elsewhere).await;
}

#[tokio::test]
async fn a_hundred_reads_that_were_left_run_no_longer_than_a_second_and_others_go_on() {
    let database = Database::fresh().await;
    let (store, watcher) = (store(&database, 4).await, database.connect().await);
    // One connection at first, then as many as overlapping reads need.
    for connections in [1, 4] {
        let holder = lock(&database).await;
        let reads: Vec<_> = (0..100).map(|_| read(&store, SLOW)).collect();
        await_active(&watcher, connections, SOON).await;
        reads.iter().for_each(JoinHandle::abort);
        join_all(reads).await;
        let left = Instant::now();
        let others = join_all((0..20).map(|_| read(&store, FAST)));
        let others = timeout(SOON, others).await.unwrap_or_else(|_| panic!("others wait, {connections}"));
        assert!(others.into_iter().all(|count| count.unwrap() == 0));
        await_active(&watcher, 0, Duration::from_secs(1).saturating_sub(left.elapsed())).await;
        holder.batch_execute("ROLLBACK").await.unwrap();
        eventually(SOON, "not all connections are opened", async || {
            let counts = join_all((0..20).map(|_| read(&store, SLOW))).await;
            assert!(counts.into_iter().all(|count| count.unwrap() == 0));
            let all = "SELECT count(*) FROM pg_stat_activity
                WHERE datname = current_database() AND application_name = 'mesh test' AND query = $1";
            watcher.query_one(all, &[&SLOW]).await.unwrap().get::<_, i64>(0) == 4
        })
        .await;
    }
}

#[tokio::test]
async fn a_read_whose_connection_breaks_or_is_replaced_is_answered_over_another_one() {
    for breaks in [true, false] {
        let database = Database::fresh().await;
        let (store, watcher) = (store(&database, 1).await, database.connect().await);
        let holder = lock(&database).await;
        let (left, waiting) = (read(&store, SLOW), read(&store, SLOW));
        let active = await_active(&watcher, 1, SOON).await;
        if breaks {
            watcher.execute("SELECT pg_terminate_backend($1)", &[&active[0]]).await.unwrap();
        } else {
            left.abort();
        }
        until_elsewhere(&watcher, &active).await;
        assert!(!waiting.is_finished(), "breaks: {breaks}: it is answered before the table is free");
        assert!(!breaks || !left.is_finished(), "the other read is answered before the table is free");
        holder.batch_execute("ROLLBACK").await.unwrap();
        for read in [waiting, left].into_iter().take(if breaks { 2 } else { 1 }) {
            let answer = timeout(SOON, read).await;
            let count = answer.unwrap_or_else(|_| panic!("breaks: {breaks}: a read gets no answer"));
            assert_eq!(count.unwrap(), 0, "breaks: {breaks}");
        }
    }
}

#[tokio::test]
async fn a_connection_with_abandoned_fast_reads_is_not_retired() {
    let database = Database::fresh().await;
    let (store, watcher) = (store(&database, 1).await, database.connect().await);
    read(&store, FAST).await.unwrap();
    let (before, _) = sessions(&watcher).await;
    // Long enough for the watchdog to retire a connection after each round.
    let mut pace = interval(Duration::from_millis(600));
    for _ in 0..3 {
        pace.tick().await;
        let reads: Vec<_> = (0..20).map(|_| read(&store, FAST)).collect();
        tokio::task::yield_now().await;
        reads.iter().for_each(JoinHandle::abort);
    }
    pace.tick().await;
    assert_eq!(sessions(&watcher).await.0, before);
}

#[tokio::test]
async fn a_process_that_dies_leaves_no_statement_running() {
    let database = Database::fresh().await;
    let (watcher, holder) = (database.connect().await, lock(&database).await);
    let process = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let config = config(database.url(), 1);
    let store = process.spawn(async move { ready(&config).await }).await.unwrap();
    for is_list in [true, false] {
        let store = store.clone();
        process.spawn(async move {
            match is_list {
                true => store.list("slow", SLOW, &[], None).await.map(drop),
                false => store.point(SLOW, &[], None).await.map(drop),
            }
        });
    }
    await_active(&watcher, 2, SOON).await;
    // As when a process is killed, connections are closed without cancelling statements.
    process.shutdown_background();
    await_active(&watcher, 0, Duration::from_secs(3)).await;
    holder.batch_execute("ROLLBACK").await.unwrap();
}
