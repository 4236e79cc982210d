//! The feeder: it continues after any interruption, and does not change stores of other networks.

use std::{path::Path, time::Duration};

use futures_util::TryStreamExt;
use mesh_demo::{
    CHAIN_ID, Decision, Decisions, DemoError, Event, Feeder, Moment, Plan, run_decided, run_live,
    write_history,
};
use mesh_testbed::{Database, eventually};
use tokio::{sync::oneshot, time::timeout};

use crate::parsed::{history, rows_of};

const SECOND: Duration = Duration::from_secs(1);

fn plan() -> Plan {
    Plan { blocks: 240, markets: 3, parties: 12, ..Plan::default() }
}

/// Times of live blocks: about a second apart, long after the history.
fn live_time(number: u64) -> Moment {
    plan().block_time(plan().blocks).plus_seconds(86_400).plus_us((number * 1_003_007) as i64)
}

async fn all_rows(database: &Database) -> Vec<(&'static str, String)> {
    let client = database.connect().await;
    client.batch_execute("SET TIME ZONE 'UTC'").await.unwrap();
    let mut tables = Vec::new();
    for table in rows_of(&history(plan())).tables() {
        // Columns of jsonb and arrays sort as well; any order will do that is the same twice.
        let sql = format!("COPY (SELECT * FROM {table} ORDER BY {table}) TO STDOUT (FORMAT csv)");
        let chunks: Vec<_> = client.copy_out(&sql).await.unwrap().try_collect().await.unwrap();
        tables.push((table, String::from_utf8(chunks.concat()).unwrap()));
    }
    tables
}

async fn feed(database: &Database, state: &Path, from: u64, to: u64) -> Feeder {
    let mut feeder = Feeder::open(database.url(), &plan(), state).await.unwrap();
    assert_eq!(feeder.height(), plan().blocks + from);
    for number in from..to {
        let head = feeder.write_next(live_time(number)).await.unwrap();
        assert_eq!(head.height, plan().blocks + number + 1);
        assert_eq!(head.time, live_time(number));
    }
    feeder
}

/// Waits until the server has released the lock of a dropped feeder, when it sees the connection end.
async fn until_free(database: &Database) {
    let client = database.connect().await;
    let held = "SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database \
                WHERE locktype = 'advisory' AND datname = current_database()";
    let is_free = async || client.query_one(held, &[]).await.unwrap().get::<_, i64>(0) == 0;
    eventually(10 * SECOND, "the lock is never free", is_free).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feeder_that_was_interrupted_writes_what_an_uninterrupted_one_writes() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, broken) = (Database::fresh().await, Database::fresh().await);
    write_history(whole.url(), &plan(), |_, _| {}).await.unwrap();
    write_history(broken.url(), &plan(), |_, _| {}).await.unwrap();
    drop(feed(&whole, &folder.path().join("whole"), 0, 170).await);

    let state = folder.path().join("broken");
    // Ends without having saved anything since block 50: the state file is older than the store.
    drop(feed(&broken, &state, 0, 60).await);
    until_free(&broken).await;
    let old_state = std::fs::read(&state).unwrap();
    drop(feed(&broken, &state, 60, 110).await);
    until_free(&broken).await;
    // The state file is lost.
    std::fs::remove_file(&state).unwrap();
    drop(feed(&broken, &state, 110, 120).await);
    until_free(&broken).await;
    // The state file is an old one, then one that cannot be read.
    std::fs::write(&state, old_state).unwrap();
    drop(feed(&broken, &state, 120, 130).await);
    until_free(&broken).await;
    std::fs::write(&state, b"{ not a state").unwrap();
    drop(feed(&broken, &state, 130, 170).await);

    for (expected, found) in all_rows(&whole).await.into_iter().zip(all_rows(&broken).await) {
        assert!(expected == found, "{} differs", expected.0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_connection_loses_no_block_and_repeats_none() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, broken) = (Database::fresh().await, Database::fresh().await);
    drop(feed(&whole, &folder.path().join("whole"), 0, 30).await);

    let client = broken.connect().await;
    let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
               WHERE datname = current_database() AND pid <> pg_backend_pid()";
    let mut feeder = feed(&broken, &folder.path().join("broken"), 0, 10).await;
    for number in 10..30 {
        if number % 4 == 0 {
            client.execute(cut, &[]).await.unwrap();
        }
        let goal = plan().blocks + number + 1;
        // A caller that drops the future in the middle of a block, at different times, and calls again.
        let patience = Duration::from_micros(number * 150);
        let mut asked = timeout(patience, feeder.write_next(live_time(number))).await.ok();
        while feeder.height() < goal {
            if let Some(Err(error)) = &asked {
                assert!(error.is_passing(), "{error:?}");
            }
            until_free(&broken).await;
            asked = Some(feeder.write_next(live_time(number)).await);
        }
        assert_eq!(feeder.height(), goal);
    }
    drop(feeder);
    let (expected, found) = (all_rows(&whole).await, all_rows(&broken).await);
    assert!(expected == found);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_living_network_waits_for_a_database_that_is_away() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("deep/in/here/state.json");
    let database = Database::fresh().await;
    let client = database.connect().await;
    let (stop, stopped) = oneshot::channel::<()>();
    let (url, name) = (database.url().to_owned(), database.name().to_owned());
    let (events, mut received) = tokio::sync::mpsc::unbounded_channel();
    let running = tokio::spawn({
        let state = state.clone();
        async move {
            let on_event = |event: Event<'_>| {
                let _ = events.send(match event {
                    Event::Block(head) => Ok(head.height),
                    Event::Trouble { error, .. } => Err(error.to_string()),
                });
            };
            let stop = async {
                let _ = stopped.await;
            };
            run_live(&url, &plan(), &state, Duration::from_millis(20), on_event, stop).await
        }
    });
    let first = timeout(60 * SECOND, received.recv()).await.unwrap().unwrap();
    assert_eq!(first, Ok(plan().blocks + 1), "an empty store gets its history first");

    // A database can be closed to connections only from another database.
    let (server, connection) =
        tokio_postgres::connect(mesh_testbed::postgres().await.url(), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let away = format!("ALTER DATABASE \"{name}\" ALLOW_CONNECTIONS false");
    server.batch_execute(&away).await.unwrap();
    let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
               WHERE datname = current_database() AND pid <> pg_backend_pid()";
    client.execute(cut, &[]).await.unwrap();
    let trouble = async { while received.recv().await.unwrap().is_ok() {} };
    timeout(10 * SECOND, trouble).await.expect("the feeder tells of trouble");
    let back = format!("ALTER DATABASE \"{name}\" ALLOW_CONNECTIONS true");
    server.batch_execute(&back).await.unwrap();
    let growing = async { while received.recv().await.unwrap().is_err() {} };
    timeout(20 * SECOND, growing).await.expect("the feeder goes on");

    stop.send(()).unwrap();
    timeout(10 * SECOND, running).await.unwrap().unwrap().unwrap();
    assert!(state.exists());
    let gaps = "SELECT count(*), max(height), count(DISTINCT height) FROM blocks";
    let row = client.query_one(gaps, &[]).await.unwrap();
    assert_eq!(row.get::<_, i64>(0), row.get::<_, i64>(1));
    assert!(row.get::<_, i64>(1) > plan().blocks as i64 + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_of_another_network_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let refused = |outcome: Result<Feeder, DemoError>| match outcome {
        Err(DemoError::Foreign(_)) => {}
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("the store was taken"),
    };

    let database = Database::fresh().await;
    let client = database.connect().await;
    let hash = "ab".repeat(32);
    let block = format!("INSERT INTO blocks VALUES ('2023-01-18 01:06:44+00', 1, '{hash}')");
    client.batch_execute(&block).await.unwrap();
    refused(Feeder::open(database.url(), &plan(), &state).await);
    client.batch_execute("INSERT INTO chain VALUES ('testnet-001', true)").await.unwrap();
    refused(Feeder::open(database.url(), &plan(), &state).await);
    let rename = format!("UPDATE chain SET id = '{CHAIN_ID}'");
    client.batch_execute(&rename).await.unwrap();
    refused(Feeder::open(database.url(), &plan(), &state).await);
    let outcome = write_history(database.url(), &plan(), |_, _| {}).await;
    assert!(matches!(outcome, Err(DemoError::Foreign(_))), "{outcome:?}");
    let never = std::future::pending::<()>();
    let outcome = run_live(database.url(), &plan(), &state, SECOND, |_| {}, never).await;
    assert!(matches!(outcome, Err(DemoError::Foreign(_))), "{outcome:?}");
    let count = client.query_one("SELECT count(*) FROM blocks", &[]).await.unwrap();
    assert_eq!(count.get::<_, i64>(0), 1);
    assert!(!state.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn two_feeders_do_not_share_a_store() {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::fresh().await;
    let first = Feeder::open(database.url(), &plan(), &folder.path().join("a")).await.unwrap();
    let second = Feeder::open(database.url(), &plan(), &folder.path().join("b")).await;
    assert!(matches!(second, Err(DemoError::Busy)));
    drop(first);
    until_free(&database).await;
    Feeder::open(database.url(), &plan(), &folder.path().join("b")).await.unwrap();
}

#[tokio::test]
async fn a_wrong_address_is_no_passing_trouble() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let wrong = Feeder::open("not an address at all", &plan(), &state).await.err().unwrap();
    assert!(!wrong.is_passing(), "{wrong:?}");
    let away = Feeder::open("postgres://nobody@127.0.0.1:1/none", &plan(), &state).await.err().unwrap();
    assert!(away.is_passing(), "{away:?}");
    let empty = Database::empty().await;
    let bare = Feeder::open(empty.url(), &plan(), &state).await.err().unwrap();
    assert!(!bare.is_passing(), "{bare:?}");
}

/// A consensus node that has decided a fixed number of blocks.
struct Node {
    newest: u64,
}

fn decided_hash(height: u64) -> String {
    format!("{height:064x}")
}

impl Decisions for Node {
    async fn decide(&mut self, height: u64) -> Decision {
        if height > self.newest {
            std::future::pending::<()>().await;
        }
        let time = live_time(height - plan().blocks);
        Decision { height, time, hash: Some(decided_hash(height)) }
    }
}

/// Runs the network until the store has the blocks that the node has decided.
async fn follow(database: &Database, state: &Path, newest: u64) {
    let (events, mut received) = tokio::sync::watch::channel(0);
    let on_event = |event: Event<'_>| {
        if let Event::Block(head) = event {
            events.send_replace(head.height);
        }
    };
    let stop = async {
        received.wait_for(|height| *height >= newest).await.unwrap();
    };
    run_decided(database.url(), &plan(), state, Node { newest }, on_event, stop).await.unwrap();
    until_free(database).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn blocks_that_a_node_has_decided_are_written_once_with_its_hashes() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let database = Database::fresh().await;
    write_history(database.url(), &plan(), |_, _| {}).await.unwrap();
    let begun = plan().blocks;
    follow(&database, &state, begun + 60).await;
    // The node has decided more blocks, and the state file is lost: the simulator is built again from the
    // stored blocks.
    std::fs::remove_file(&state).unwrap();
    follow(&database, &state, begun + 80).await;
    // From here on the blocks have the simulator's own hashes again.
    let mut feeder = Feeder::open(database.url(), &plan(), &state).await.unwrap();
    assert_eq!(feeder.height(), begun + 80);
    feeder.write_next(live_time(81)).await.unwrap();
    let client = database.connect().await;
    let sql = "SELECT height, hash, (extract(epoch FROM block_time) * 1000000)::int8 FROM blocks \
               WHERE height > $1 ORDER BY height";
    let rows = client.query(sql, &[&begun.cast_signed()]).await.unwrap();
    assert_eq!(rows.len(), 81);
    for (row, height) in rows[..80].iter().zip(begun + 1..) {
        let found: (i64, String, i64) = (row.get(0), row.get(1), row.get(2));
        let wanted = (height.cast_signed(), decided_hash(height), live_time(height - begun).us());
        assert_eq!(found, wanted);
    }
    assert_ne!(rows[80].get::<_, String>(1), decided_hash(begun + 81));
}
