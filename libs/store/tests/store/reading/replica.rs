//! Reads that use a replica are never behind the primary. A second database with other data is used as the
//! replica, so that a row shows which of them was read.

use mesh_store::{Past, Store, StoreConfig, TimeUs};
use mesh_testbed::{Database, retry};
use tokio_postgres::Client;

use super::{SOON, config, head_watch::await_head, is_away, ready, write_block};

const WHO: &str = "SELECT head.height AS head_height, head.block_time AS head_time, place.name AS name
    FROM place LEFT JOIN last_block AS head ON true";
const WHO_WITHOUT_HEAD: &str = "SELECT name FROM place";

/// A database with its name as the only row, and with a head if `height` is set.
async fn named_database(name: &str, height: Option<i64>) -> (Database, Client) {
    let (database, client) = Database::with_client().await;
    client.batch_execute(&format!("CREATE TABLE place AS SELECT '{name}' AS name")).await.unwrap();
    if let Some(height) = height {
        write_block(&client, height).await;
    }
    (database, client)
}

fn with_replica(primary: &Database, replica: &str) -> StoreConfig {
    StoreConfig { replica_url: Some(replica.to_owned()), ..config(primary.url(), 2) }
}

/// The names of the databases that answer a point read and a list read.
async fn answered_by(store: &Store) -> [String; 2] {
    let point = store.point(WHO, &[], None).await.unwrap_or_else(|error| panic!("{error:?}"));
    let list = store.list("who", WHO, &[], None).await.unwrap_or_else(|error| panic!("{error:?}"));
    [point.get("name"), list[0].get("name")]
}

async fn await_answers(store: &Store, name: &str) {
    retry(SOON, async || {
        let answered = answered_by(store).await;
        if answered.iter().all(|by| by == name) { Ok(()) } else { Err(format!("{answered:?}, not {name}")) }
    })
    .await;
}

#[tokio::test]
async fn a_replica_that_lags_is_never_shown_and_one_that_has_caught_up_is_used() {
    let (primary, on_primary) = named_database("primary", Some(10)).await;
    let (replica, on_replica) = named_database("replica", None).await;
    let store = ready(&with_replica(&primary, replica.url())).await;
    await_head(&store, 10).await;
    assert_eq!(answered_by(&store).await, ["primary"; 2], "the replica has no block");
    write_block(&on_replica, 9).await;
    for _ in 0..50 {
        assert_eq!(answered_by(&store).await, ["primary"; 2], "the replica has block 9");
    }
    write_block(&on_replica, 10).await;
    await_answers(&store, "replica").await;
    for _ in 0..50 {
        assert_eq!(answered_by(&store).await, ["replica"; 2]);
    }
    let row = store.point(WHO_WITHOUT_HEAD, &[], None).await.unwrap();
    assert_eq!(row.get::<_, &str>("name"), "primary", "an answer without a head has an unknown age");
    write_block(&on_primary, 11).await;
    await_head(&store, 11).await;
    assert_eq!(answered_by(&store).await, ["primary"; 2], "the replica lags again");
    write_block(&on_replica, 12).await;
    await_answers(&store, "replica").await;
}

#[tokio::test]
async fn without_its_replica_a_store_reads_from_the_primary() {
    let (primary, _on_primary) = named_database("primary", Some(10)).await;
    // No server listens on port 1.
    let store = ready(&with_replica(&primary, "postgres://mesh@127.0.0.1:1/mesh")).await;
    assert_eq!(answered_by(&store).await, ["primary"; 2]);
}

#[tokio::test]
async fn a_replica_that_goes_away_or_fails_is_survived() {
    let (primary, _) = named_database("primary", Some(10)).await;
    let (replica, on_replica) = named_database("replica", Some(10)).await;
    let store = ready(&with_replica(&primary, replica.url())).await;
    await_answers(&store, "replica").await;
    on_replica.batch_execute("ALTER TABLE place RENAME TO elsewhere").await.unwrap();
    assert_eq!(answered_by(&store).await, ["primary"; 2], "the statement fails on the replica");
    on_replica.batch_execute("ALTER TABLE elsewhere RENAME TO place").await.unwrap();
    await_answers(&store, "replica").await;
    tokio::join!(replica.drop_now(), async {
        for _ in 0..100 {
            answered_by(&store).await;
        }
    });
    assert_eq!(answered_by(&store).await, ["primary"; 2]);
}

/// It may follow the primary no longer, and have blocks that were replaced there.
#[tokio::test]
async fn a_replica_far_behind_the_primary_is_not_read_as_of_a_block_that_it_has() {
    let (primary, on_primary) = named_database("primary", Some(260)).await;
    let (replica, _on_replica) = named_database("replica", Some(10)).await;
    let store = ready(&with_replica(&primary, replica.url())).await;
    await_head(&store, 260).await;
    let past = Past { height: 10, time: TimeUs(0), is_sealed: true, delegation_epoch: 0, reward_epoch: 0 };
    let answered_by = async || -> [String; 2] {
        let point = store.point(WHO, &[], Some(&past)).await.unwrap();
        let list = store.list("who", WHO, &[], Some(&past)).await.unwrap();
        [point.get("name"), list[0].get("name")]
    };
    retry(SOON, async || {
        let answered = answered_by().await;
        if answered == ["replica"; 2] { Ok(()) } else { Err(format!("{answered:?}")) }
    })
    .await;
    write_block(&on_primary, 261).await;
    await_head(&store, 261).await;
    assert_eq!(answered_by().await, ["primary"; 2]);
}

/// A server that lacks blocks may take the primary's place between the question for a block and that for its rows.
#[tokio::test]
async fn a_read_as_of_a_block_that_the_primary_has_no_longer_fails() {
    let (primary, _client) = named_database("primary", Some(10)).await;
    let store = ready(&config(primary.url(), 2)).await;
    for (height, is_gone) in [(10, false), (11, true)] {
        let (time, is_sealed) = (TimeUs(0), true);
        let past = Some(&Past { height, time, is_sealed, delegation_epoch: 0, reward_epoch: 0 });
        let (point, list) = tokio::join!(store.point(WHO, &[], past), store.list("who", WHO, &[], past));
        assert_eq!([is_away(&point), is_away(&list)], [is_gone; 2], "{height}: {point:?} {list:?}");
    }
}
