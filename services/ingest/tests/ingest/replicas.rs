//! Two replicas, and what happens when one of them, the database or the node fails (N8, N10, N13).

use std::time::{Duration, Instant};

use mesh_launcher::process::Signal;
use mesh_testbed::{
    Database,
    scripted_node::{Chain, Version, trade},
};

use crate::{SOON, configure, stored, text};

#[tokio::test]
async fn the_other_replica_continues_when_one_is_killed_or_frozen() {
    for (signal, limit) in [(Signal::KILL, 2), (Signal::STOP, 5)] {
        let (database, chain) = (Database::fresh().await, Chain::start(Version::V038).await);
        chain.add(vec![trade(0, "1")]);
        let one = configure(&database, &chain).start().await;
        let client = database.connect().await;
        stored(&client, 1).await;
        let two = configure(&database, &chain).start().await;
        two.await_readiness(200, SOON).await;
        // The first one stores what comes.
        for id in 1..=2 {
            let height = chain.add(vec![trade(id, "1")]);
            stored(&client, height).await;
        }
        let log = two.log();
        assert!(!one.has_ended() && !log.contains("halted"), "{log}");
        one.signal(signal);
        let begun = Instant::now();
        let height = chain.add(vec![trade(3, "1")]);
        stored(&client, height).await;
        assert!(begun.elapsed() < Duration::from_secs(limit), "{signal:?}: {:?}", begun.elapsed());
        if signal == Signal::STOP {
            one.signal(Signal::CONT);
        }
        let height = chain.add(vec![trade(4, "1")]);
        stored(&client, height).await;
        assert_eq!(text(&client, "SELECT count(*)::text FROM trades").await, "5");
    }
}

/// A replica that is frozen inside a transaction holds the head; its session is ended.
#[tokio::test]
async fn a_session_that_holds_the_head_and_is_silent_is_ended() {
    let (database, chain) = (Database::fresh().await, Chain::start(Version::V038).await);
    chain.add(Vec::new());
    let _service = configure(&database, &chain).start().await;
    let client = database.connect().await;
    stored(&client, 1).await;
    let mut url = database.url_of("ingest");
    url.push_str(if url.contains('?') { "&" } else { "?" });
    url.push_str("application_name=mesh%20ingest");
    let (silent, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    silent.batch_execute("BEGIN; SELECT * FROM lock_head()").await.unwrap();
    let begun = Instant::now();
    let height = chain.add(Vec::new());
    stored(&client, height).await;
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

/// Of several nodes the first one that answers serves; without a bus blocks are stored, too.
#[tokio::test]
async fn a_node_that_is_gone_and_a_bus_that_is_gone_keep_no_block_back() {
    let (database, chain) = (Database::fresh().await, Chain::start(Version::V038).await);
    chain.add(vec![trade(0, "1")]);
    let nodes = format!("http://127.0.0.1:1, {}", chain.url);
    let setup = configure(&database, &chain).env("MESH_NODE_URL", nodes);
    let service = setup.env("MESH_BUS_URL", "nats://127.0.0.1:1").start_unready().await;
    let client = database.connect().await;
    stored(&client, 1).await;
    let height = chain.add(vec![trade(1, "1")]);
    stored(&client, height).await;
    let unready = service.await_readiness(503, SOON).await;
    assert!(unready.contains("bus"), "{unready}");
}

#[tokio::test]
async fn the_user_inserts_rows_of_blocks_and_nothing_else() {
    let database = Database::fresh().await;
    let (client, connection) =
        tokio_postgres::connect(&database.url_of("ingest"), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    for (sql, is_allowed) in [
        ("INSERT INTO blocks VALUES (now(), 1, 'a')", true),
        ("SELECT * FROM last_block", true),
        ("INSERT INTO network_parameters VALUES ('a', 'b', '', now())", true),
        ("INSERT INTO current_balances VALUES ('a', '', now(), 1)", false),
        ("UPDATE last_block SET height = 5", false),
        ("DELETE FROM blocks", false),
        ("TRUNCATE trades", false),
        ("INSERT INTO node_state (upgrade_ready, updated_at) VALUES (true, now())", false),
        ("CREATE TABLE mine (a int)", false),
    ] {
        let outcome = client.batch_execute(sql).await;
        assert_eq!(outcome.is_ok(), is_allowed, "{sql}: {outcome:?}");
    }
    let derived = "SELECT count(*) FROM last_block JOIN network_parameters_current ON key = 'a'";
    assert_eq!(client.query_one(derived, &[]).await.unwrap().get::<_, i64>(0), 1);
}
