//! node-info announces the heads of store and node, and lag makes services unready.

#![allow(clippy::unwrap_used)] // in what the tests share

use std::time::{Duration, Instant};

use futures_util::{SinkExt, StreamExt};
use mesh_bus::{
    ANNOUNCE_INTERVAL, AnnouncementStream, Bus, Head, NodeStatus, StoreStatus, permissions::OPERATOR,
};
use mesh_testbed::{
    Database, DevNode, Service, ServiceSetup, TlsFront, eventually, nats,
    scripted_node::{Chain, Version},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    time::timeout,
};
use tokio_postgres::Client;
use tokio_tungstenite::{accept_async, tungstenite::Message};

/// Deadline for effects that are expected at once.
const SOON: Duration = Duration::from_secs(30);

/// Makes blocks until the node has reached a height.
async fn make_blocks(node: &DevNode, height: u64) {
    while node.block().await < height {}
}

/// A service with a database and its own subject prefix.
fn service(name: &str, database: &Database) -> ServiceSetup {
    Service::configure(name).database(database).env("MESH_BUS_PREFIX", database.name())
}

fn node_info(database: &Database) -> ServiceSetup {
    service("node-info", database).program(env!("CARGO_BIN_EXE_node-info"))
}

async fn bus(database: &Database) -> Bus {
    let bus = Bus::connect(nats().await.config(OPERATOR, database.name())).await.unwrap();
    timeout(SOON, bus.until_connected()).await.unwrap();
    bus
}

async fn write_block(client: &Client, height: i64) {
    let sql = "INSERT INTO blocks (height, block_time, hash) VALUES
        ($1::int8, timestamptz '2024-01-01 00:00:00+00' + $1::int8 * interval '1 s', 'ab')";
    client.execute(sql, &[&height]).await.unwrap();
}

/// Waits for an announcement that `matches`.
async fn await_announcement<N>(announcements: &mut AnnouncementStream<N>, matches: impl Fn(&N) -> bool) -> N {
    let receive = async {
        loop {
            let news = announcements.next().await.expect("the bus stays");
            if matches(&news) {
                return news;
            }
        }
    };
    timeout(SOON, receive).await.expect("the news come")
}

#[tokio::test]
async fn the_head_of_the_store_is_announced_at_each_block_and_at_an_interval() {
    let database = Database::fresh().await;
    let (writer, bus) = (database.connect().await, bus(&database).await);
    let mut announcements = bus.subscribe::<StoreStatus>().await.unwrap();
    let service = node_info(&database).start().await;
    assert_eq!(await_announcement(&mut announcements, |news| news.is_there).await.head, None);
    let started = Instant::now();
    for height in 1..=9 {
        write_block(&writer, height).await;
        let height = u64::try_from(height).unwrap();
        let news = await_announcement(&mut announcements, |news| {
            news.head.is_some_and(|head| head.height == height)
        })
        .await;
        let time_ns = (1_704_067_200 + i64::try_from(height).unwrap()) * 1_000_000_000;
        assert_eq!((news.head, news.is_there), (Some(Head { height, time_ns }), true));
    }
    assert!(started.elapsed() < 9 * ANNOUNCE_INTERVAL / 2, "not at once: {:?}", started.elapsed());
    let started = Instant::now();
    for _ in 0..2 {
        await_announcement(&mut announcements, |news| news.head.is_some_and(|head| head.height == 9)).await;
    }
    assert!(started.elapsed() < 4 * ANNOUNCE_INTERVAL, "not again and again: {:?}", started.elapsed());
    assert_eq!(service.metric("mesh_store_height ").await, 9.0);
    assert_eq!(service.metric("mesh_store_is_there ").await, 1.0);
    let page = service.admin("/metrics").await;
    assert!(!page.text().contains("mesh_node_height "), "there is no node to ask: {page:?}");

    database.drop_now().await;
    let news = await_announcement(&mut announcements, |news| !news.is_there).await;
    assert_eq!(news.head.map(|head| head.height), Some(9), "the last that was seen");
    service.await_readiness(503, SOON).await;
    assert_eq!(service.metric("mesh_store_is_there ").await, 0.0);
}

#[tokio::test]
async fn the_head_of_the_node_is_announced_and_a_store_far_behind_it_makes_services_unready() {
    let database = Database::fresh().await;
    let (writer, bus) = (database.connect().await, bus(&database).await);
    let mut announcements = bus.subscribe::<NodeStatus>().await.unwrap();
    write_block(&writer, 10).await;
    let mut node = DevNode::start().await;
    make_blocks(&node, 15).await;
    let lag = |setup: ServiceSetup| setup.env("MESH_MAX_LAG_BLOCKS", "5");
    let (node_info, query, edge, unlimited) = tokio::join!(
        lag(node_info(&database)).env("MESH_NODE_URL", node.url()).start(),
        lag(service("query", &database)).start(),
        lag(service("edge", &database)).env("MESH_EDGE_LISTEN", "127.0.0.1:0").start(),
        service("query", &database).start(),
    );
    await_announcement(&mut announcements, |news| news.height == 15).await;
    let services = [&node_info, &query, &edge];
    for service in services {
        service.await_readiness(200, SOON).await;
    }
    make_blocks(&node, 16).await;
    await_announcement(&mut announcements, |news| news.height == 16).await;
    for service in services {
        let text = service.await_readiness(503, SOON).await;
        assert!(text.contains("6 blocks behind"), "{text}");
    }
    for (name, value) in
        [("mesh_node_height ", 16.0), ("mesh_chain_lag_blocks ", 6.0), ("mesh_node_state ", 2.0)]
    {
        assert_eq!(node_info.metric(name).await, value, "{name}");
    }
    write_block(&writer, 11).await;
    for service in services {
        service.await_readiness(200, SOON).await;
    }
    make_blocks(&node, 100).await;
    for service in services {
        service.await_readiness(503, SOON).await;
    }
    assert_eq!(unlimited.admin("/readyz").await.status, 200, "any lag is fine by default");
    node.kill().await;
    for service in [&query, &edge] {
        service.await_readiness(200, Duration::from_secs(10) + SOON).await;
    }
    let text = node_info.await_readiness(503, SOON).await;
    assert!(text.contains("does not answer"), "{text}");
    assert_eq!(node_info.metric("mesh_node_state ").await, 0.0);
    let text = node_info.log();
    assert_eq!(text.matches("does not answer").count(), 1, "reported once: {text}");
}

/// The first node hangs, the second one makes no blocks.
#[tokio::test]
async fn of_several_nodes_the_one_with_the_newest_block_counts() {
    let (database, mut node) = (Database::fresh().await, DevNode::start().await);
    let mut announcements = bus(&database).await.subscribe::<NodeStatus>().await.unwrap();
    let (hanging, still) =
        (TcpListener::bind("127.0.0.1:0").await.unwrap(), Chain::start(Version::V038).await);
    still.add(Vec::new());
    let urls = format!("http://{}, {}, {}", hanging.local_addr().unwrap(), still.url, node.url());
    let _service = node_info(&database).env("MESH_NODE_URL", urls).start().await;
    for height in [15, 16] {
        make_blocks(&node, height).await;
        await_announcement(&mut announcements, |news| news.height == height).await;
    }
    node.kill().await;
    await_announcement(&mut announcements, |news| news.height == 1).await;
}

#[tokio::test]
async fn a_subscription_that_the_node_ends_is_made_again() {
    let database = Database::fresh().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let _service = node_info(&database).env("MESH_NODE_URL", url).start_unready().await;
    let subscribed = async || {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let mut begun = [0; 14];
            while stream.peek(&mut begun).await.unwrap() < begun.len() {}
            if &begun == b"GET /websocket" {
                return accept_async(stream).await.unwrap();
            }
        }
    };
    let twice = async {
        let mut open = Vec::new();
        for _ in 0..2 {
            let mut socket = subscribed().await;
            let ended =
                r#"{"jsonrpc":"2.0","id":0,"error":{"code":-32000,"data":"subscription was canceled"}}"#;
            socket.send(Message::text(ended)).await.unwrap();
            open.push(socket);
        }
    };
    timeout(SOON, twice).await.expect("it does not subscribe again");
}

#[tokio::test]
async fn a_hosted_node_is_followed_over_tls_with_its_password() {
    let (database, node, folder) =
        (Database::fresh().await, DevNode::start().await, tempfile::tempdir().unwrap());
    make_blocks(&node, 3).await;
    let front = TlsFront::start(&node.url(), folder.path()).await;
    let service = node_info(&database)
        .env("MESH_NODE_URL", format!("https://reader:canary%2Fword@{}", front.address))
        .env("SSL_CERT_FILE", front.ca.to_string_lossy())
        // The node is reached directly.
        .env("https_proxy", "http://127.0.0.1:9")
        .start()
        .await;
    service.until_metric("mesh_node_height ", |height| height == 3.0).await;
    let authorization = |text: &str| text.matches(" Basic cmVhZGVyOmNhbmFyeS93b3Jk\r\n").count();
    eventually(SOON, "status and subscription do not carry the password", async || {
        let received = front.received();
        received.contains("GET /websocket ") && authorization(&received) >= 2
    })
    .await;
    assert!(!service.log().contains("canary"), "{}", service.log());
}

#[tokio::test]
async fn a_server_that_refuses_the_credentials_is_not_called_unreachable() {
    let (database, folder) = (Database::fresh().await, tempfile::tempdir().unwrap());
    let credentials = folder.path().join("bus").to_string_lossy().into_owned();
    std::fs::write(&credentials, "node-info:wrong").unwrap();
    let url = database.url_of("node-info");
    let url = format!("postgresql://node-info:wrong@{}", url.rsplit_once('@').unwrap().1);
    let proxy = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxied = format!("http://{}", proxy.local_addr().unwrap());
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = proxy.accept().await.unwrap();
            let response = b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(response).await;
        }
    });
    for (name, value, expected) in [
        ("MESH_BUS_CREDENTIALS", credentials, "the message bus refuses the credentials"),
        ("MESH_DATABASE_URL", url, "it refuses user and password"),
        ("MESH_NODE_URL", proxied, "the consensus node refuses the credentials of MESH_NODE_URL: HTTP 401"),
    ] {
        let service = node_info(&database).env(name, value).start_unready().await;
        eventually(SOON, expected, async || service.admin("/readyz").await.text().contains(expected)).await;
        assert!(!service.log().contains("async_nats"), "a line for each attempt: {}", service.log());
    }
}
