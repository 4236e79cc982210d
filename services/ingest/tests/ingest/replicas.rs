//! Two replicas, and what happens when one of them, the database or the node fails (N8, N10, N13).

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use mesh_ingest::node::{FetchError, Nodes};
use mesh_launcher::process::Signal;
use mesh_testbed::{
    Database, connect,
    scripted_node::{Chain, Version, trade},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    time::sleep,
};

use crate::{SOON, add_and_await, configure, started, stored, text};

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
            add_and_await(&chain, &client, vec![trade(id, "1")]).await;
        }
        let log = two.log();
        assert!(!one.has_ended() && !log.contains("halted"), "{log}");
        one.signal(signal);
        let begun = Instant::now();
        add_and_await(&chain, &client, vec![trade(3, "1")]).await;
        assert!(begun.elapsed() < Duration::from_secs(limit), "{signal:?}: {:?}", begun.elapsed());
        if signal == Signal::STOP {
            one.signal(Signal::CONT);
        }
        add_and_await(&chain, &client, vec![trade(4, "1")]).await;
        assert_eq!(text(&client, "SELECT count(*)::text FROM trades").await, "5");
    }
}

/// A replica that is frozen inside a transaction holds the head; its session is ended.
#[tokio::test]
async fn a_session_that_holds_the_head_is_ended_when_it_is_silent() {
    let (database, chain, _service, client) = started(1).await;
    let mut url = database.url_of("ingest");
    url.push_str(if url.contains('?') { "&" } else { "?" });
    url.push_str("application_name=mesh%20ingest");
    let silent = connect(&url).await;
    silent.batch_execute("BEGIN; SELECT * FROM lock_head()").await.unwrap();
    chain.add(Vec::new());
    for _ in 0..60 {
        silent.batch_execute("SELECT 1").await.expect("it is not silent");
        sleep(Duration::from_millis(50)).await;
    }
    let begun = Instant::now();
    add_and_await(&chain, &client, Vec::new()).await;
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
    add_and_await(&chain, &client, vec![trade(1, "1")]).await;
    let unready = service.await_readiness(503, SOON).await;
    assert!(unready.contains("bus"), "{unready}");
}

/// The first node hangs, the second one makes no blocks any more.
#[tokio::test]
async fn nodes_that_hang_or_stand_still_keep_no_block_back() {
    let (database, chain) = (Database::fresh().await, Chain::start(Version::V038).await);
    let (hanging, still) =
        (TcpListener::bind("127.0.0.1:0").await.unwrap(), Chain::start(Version::V038).await);
    for chain in [&chain, &still] {
        chain.add(Vec::new());
    }
    let nodes = format!("http://{}, {}, {}", hanging.local_addr().unwrap(), still.url, chain.url);
    let _service = configure(&database, &chain).env("MESH_NODE_URL", nodes).start().await;
    let client = database.connect().await;
    stored(&client, 1).await;
    let begun = Instant::now();
    for _ in 0..5 {
        add_and_await(&chain, &client, Vec::new()).await;
    }
    // A request for a block may take 10 s.
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
}

/// It is asked again when it allows that, and its error may have any form.
#[tokio::test]
async fn a_node_that_limits_its_clients_gets_no_request_meanwhile() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
    let requests = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&requests);
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let error = r#"{"error":{"message":"not persisting","data":{}}}"#;
            let answer = match counted.fetch_add(1, Ordering::SeqCst) {
                0 => format!("200 OK\r\nContent-Length: {}\r\n\r\n{error}", error.len()),
                _ => "429 No\r\nRetry-After: 30\r\nContent-Length: 0\r\n\r\n".to_owned(),
            };
            stream.read_buf(&mut Vec::with_capacity(1 << 10)).await.unwrap();
            stream.write_all(format!("HTTP/1.1 {answer}").as_bytes()).await.unwrap();
        }
    });
    mesh_chassis::install_tls_provider();
    let nodes = Nodes::new(vec![url]).unwrap();
    assert_eq!(nodes.status().await, Err(FetchError::KeepsNoResults));
    assert_eq!(nodes.status().await, Err(FetchError::Limited { after: Duration::from_secs(30) }));
    for _ in 0..20 {
        nodes.fetch(1).await.unwrap_err();
        nodes.status().await.unwrap_err();
    }
    assert_eq!(requests.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn the_user_inserts_rows_of_blocks_and_nothing_else() {
    let database = Database::fresh().await;
    let client = connect(&database.url_of("ingest")).await;
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
