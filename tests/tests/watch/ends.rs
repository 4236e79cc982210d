//! How watches end: in order at a shutdown, and not at all when services are replaced (W8).

use std::time::Instant;

use futures_util::future::join_all;
use mesh_testbed::{DevNode, Mesh, Service};
use mesh_tests::{Events, MeshClient, WebSocket, fixture};

use super::{LIMITS, assert_spread, start, web_socket::refusal, withdrawal, write_block};

/// A read that follows the node.
const INFO: &str = "/api/v2/info";

#[tokio::test]
async fn watches_end_one_after_the_other_when_the_edge_stops_and_none_breaks_off() {
    let (_database, mesh, client) = start(&[]).await;
    let mut open = Vec::new();
    for index in 0..60 {
        let path = if index % 3 == 0 { "/watch?read=/api/v2/info" } else { LIMITS };
        let mut events = Events::open(&client, path, &[]).await.unwrap();
        events.event().await;
        open.push(events);
    }
    let stopped_at = Instant::now();
    let ends = join_all(open.into_iter().map(async |mut events: Events| {
        while events.block().await.is_some() {}
        stopped_at.elapsed()
    }));
    let (status, ended_after) = tokio::join!(mesh.service("edge").stop(), ends);
    assert!(status.success(), "{status}");
    assert_spread(ended_after);
}

#[tokio::test]
async fn a_watch_survives_that_the_services_behind_it_are_replaced() {
    let (database, mut mesh, client) = start(&[]).await;
    let writer = database.connect().await;
    let mut events = Events::open(&client, &withdrawal(), &[]).await.unwrap();
    events.event().await;
    for (height, service) in [(4, "query"), (5, "node-info"), (6, "query")] {
        mesh.service_mut(service).kill().await;
        write_block(&writer, height, Some(service)).await;
        mesh.service_mut(service).restart().await;
        loop {
            let event = events.event().await;
            if event.name == "answer" && event.id == Some(height) {
                assert_eq!(event.json()["withdrawal"]["ref"], service);
                break;
            }
            assert_eq!(event.name, "problem", "{event:?}");
        }
    }
}

/// The node of a test network that was reset is at a lower block. The answer has no height of its own: it is the node's,
/// which is announced once a second.
#[tokio::test]
async fn a_new_edge_gives_no_lower_height_and_a_node_that_was_set_back_ends_watches() {
    let (before, after, database) = tokio::join!(DevNode::start(), DevNode::start(), fixture::database());
    for _ in 0..5 {
        before.block().await;
    }
    let prefix = format!("set-back-{:x}", rand::random::<u64>());
    let mesh = Mesh::configure(&database).without(&["export", "query", "tx-relay"]);
    let mut mesh = mesh.env("MESH_BUS_PREFIX", &prefix).env("MESH_NODE_URL", before.url()).start().await;
    for _ in 0..3 {
        mesh.service_mut("edge").restart().await;
        let client = MeshClient::new(&mesh);
        let mut events = Events::open(&client, INFO, &[("last-event-id", "6")]).await.unwrap();
        let first = events.block().await.expect("a sign of life");
        assert_eq!(first.comment.as_deref(), Some("6"), "{first:?}");
    }

    let client = MeshClient::new(&mesh);
    let mut events = Events::open(&client, INFO, &[]).await.unwrap();
    while events.event().await.id != Some(6) {
        events = Events::open(&client, INFO, &[]).await.unwrap();
    }
    let mut ahead = Events::open(&client, INFO, &[("last-event-id", "7")]).await.unwrap();
    assert_eq!(ahead.event().await.id, Some(6), "it counts as none");
    let mut socket = WebSocket::open(client.url(), &[]).await.unwrap();
    socket.watch("a", INFO).await;
    assert_eq!(socket.news().await["height"], "6");

    mesh.service("node-info").kill().await;
    let other = Service::configure("node-info").database(&database).env("MESH_BUS_PREFIX", &prefix);
    let _other = other.env("MESH_NODE_URL", after.url()).start().await;
    loop {
        let block = events.block().await.expect("the id is cleared before the end");
        if block.clears_id {
            break;
        }
        assert!(block.comment.is_some() || block.name == "problem", "{block:?}");
    }
    assert_eq!(events.block().await, None);
    let mut back = Events::open(&client, INFO, &[("last-event-id", "6")]).await.unwrap();
    assert_eq!(back.event().await.id, Some(1), "the current state");
    let end = loop {
        let frame = socket.news().await;
        if frame["problem"].is_null() && frame["answer"].is_null() {
            break frame;
        }
    };
    assert_eq!(refusal(&end, "a").0, 14);
    socket.watch("a", INFO).await;
    let frame = socket.news().await;
    assert!(frame["answer"].is_object() && frame["height"] == "1", "{frame}");
}
