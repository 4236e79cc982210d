//! The head of the store is known at once, also after lost notifications and connections.

use std::time::{Duration, Instant};

use mesh_loader::migrate;
use mesh_store::{Store, StoreState};
use mesh_testbed::{Database, eventually};
use tokio::time::timeout;

use super::{SOON, config, create_aborting, store, write_block};

pub(super) async fn await_head(store: &Store, height: u64) -> StoreState {
    let mut states = store.watch();
    let observed =
        timeout(SOON, states.wait_for(|state| state.head.is_some_and(|(observed, _)| observed == height)))
            .await;
    *observed.unwrap_or_else(|_| panic!("{height} is not seen: {:?}", store.state())).unwrap()
}

#[tokio::test]
async fn a_new_block_is_seen_when_the_server_tells_of_it() {
    let database = Database::fresh().await;
    let (writer, store) = (database.connect().await, store(&database, 1).await);
    assert_eq!(store.state(), StoreState { head: None, is_there: true, refusal: None });
    let started = Instant::now();
    for height in 1..=9 {
        write_block(&writer, height).await;
        let time = (1_704_067_200 + height) * 1_000_000_000;
        let height = u64::try_from(height).unwrap();
        let expected = StoreState { head: Some((height, time)), is_there: true, refusal: None };
        assert_eq!(await_head(&store, height).await, expected);
    }
    // Each block follows right behind a look, so that looking alone would take a quarter of a second for
    // each.
    assert!(started.elapsed() < Duration::from_millis(9 * 125), "after {:?}", started.elapsed());
}

#[tokio::test]
async fn a_store_closes_its_connections_when_it_is_dropped() {
    let (database, client) = Database::with_client().await;
    let count = async || {
        let sql = "SELECT count(*) FROM pg_stat_activity
            WHERE datname = current_database() AND application_name LIKE 'mesh test%'";
        client.query_one(sql, &[]).await.unwrap().get::<_, i64>(0)
    };
    let store = Store::open(&config(database.url(), 1)).unwrap();
    timeout(SOON, store.watch().wait_for(|state| state.is_there)).await.unwrap().unwrap();
    eventually(SOON, "one for the head", async || count().await == 1).await;
    store.ready().await.unwrap();
    eventually(SOON, "one for the statement", async || count().await == 2).await;
    drop(store);
    eventually(SOON, "connections stay open", async || count().await == 0).await;
}

#[tokio::test]
async fn a_block_without_a_notification_is_found_by_polling() {
    let database = Database::fresh().await;
    let (writer, store) = (database.connect().await, store(&database, 1).await);
    write_block(&writer, 1).await;
    await_head(&store, 1).await;
    let started = Instant::now();
    writer.batch_execute("UPDATE last_block SET height = 2").await.unwrap();
    await_head(&store, 2).await;
    assert!(started.elapsed() < Duration::from_secs(1), "after {:?}", started.elapsed());
}

#[tokio::test]
async fn a_broken_watch_reconnects_before_the_server_counts_as_away() {
    let database = Database::fresh().await;
    let (writer, store) = (database.connect().await, store(&database, 1).await);
    let mut states = store.watch();
    for height in 1..=3 {
        let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE datname = current_database() AND application_name = 'mesh test watch'";
        assert_eq!(writer.query(sql, &[]).await.unwrap().len(), 1, "one connection watches");
        write_block(&writer, height).await;
        let height = u64::try_from(height).unwrap();
        let observed = states.wait_for(|state| {
            assert!(state.is_there, "{state:?}");
            state.head.is_some_and(|(observed, _)| observed == height)
        });
        assert!(timeout(SOON, observed).await.unwrap().is_ok());
    }
}

#[tokio::test]
async fn a_head_that_cannot_be_read_for_the_moment_stays() {
    let (database, client) = Database::with_client().await;
    create_aborting(&client, 2).await;
    write_block(&client, 1).await;
    let store = store(&database, 1).await;
    await_head(&store, 1).await;
    let replace = "BEGIN; ALTER TABLE last_block RENAME TO head; NOTIFY mesh_head;
        CREATE VIEW last_block AS SELECT * FROM head WHERE abort_some(); GRANT SELECT ON last_block TO PUBLIC; COMMIT";
    client.batch_execute(replace).await.unwrap();
    let mut states = store.watch();
    let changes = timeout(Duration::from_secs(2), states.wait_for(|state| state.head.is_none()));
    assert!(changes.await.is_err(), "it is lost");
    client.batch_execute("UPDATE head SET height = 2").await.unwrap();
    await_head(&store, 2).await;
}

#[tokio::test]
async fn a_database_without_tables_is_available_but_not_ready() {
    let database = Database::empty().await;
    let store = Store::open(&config(database.url(), 1)).unwrap();
    timeout(SOON, store.watch().wait_for(|state| state.is_there)).await.unwrap().unwrap();
    assert_eq!(store.state().head, None);
    assert!(store.ready().await.is_err());
    migrate::migrate(database.url()).await.unwrap();
    timeout(SOON, store.until_ready()).await.unwrap();
}

#[tokio::test]
async fn tables_out_of_sight_are_an_outage_and_not_an_empty_store() {
    let (database, client) = Database::with_client().await;
    write_block(&client, 1).await;
    let store = store(&database, 1).await;
    let known = await_head(&store, 1).await;
    client.batch_execute("ALTER TABLE last_block RENAME TO hidden").await.unwrap();
    let mut states = store.watch();
    let state = *timeout(SOON, states.wait_for(|state| !state.is_there)).await.unwrap().unwrap();
    assert_eq!((state.head, state.refusal.is_some()), (known.head, true), "{state:?}");
    client.batch_execute("ALTER TABLE hidden RENAME TO last_block").await.unwrap();
    let state = *timeout(SOON, states.wait_for(|state| state.is_there)).await.unwrap().unwrap();
    assert_eq!(state, known);
}
