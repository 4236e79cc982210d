//! The workload as a process on a real database and bus, with a node whose blocks the test decides.

#![allow(clippy::unwrap_used)]

mod decoders;
mod halts;
mod replicas;
mod rows;

use std::time::Duration;

use mesh_testbed::{
    Database, Service, ServiceSetup, retry,
    scripted_node::{Chain, Version},
};
use serde_json::Value;
use tokio_postgres::Client;

/// Longest time for something that takes a moment.
const SOON: Duration = Duration::from_secs(30);

/// The service on a database and a node.
fn configure(database: &Database, chain: &Chain) -> ServiceSetup {
    Service::configure("ingest")
        .program(env!("CARGO_BIN_EXE_ingest"))
        .database(database)
        .env("MESH_NODE_URL", &chain.url)
}

/// A chain of empty blocks, and the service that has stored them.
async fn started(blocks: u64) -> (Database, Chain, Service, Client) {
    let ((database, client), chain) = (Database::with_client().await, Chain::start(Version::V038).await);
    (0..blocks).for_each(|_| _ = chain.add(Vec::new()));
    let service = configure(&database, &chain).start().await;
    stored(&client, blocks).await;
    (database, chain, service, client)
}

/// Adds a block to the chain, and waits until it is stored.
async fn add_and_await(chain: &Chain, client: &Client, events: Vec<Value>) {
    stored(client, chain.add(events)).await;
}

#[test]
fn what_cannot_be_used_ends_the_start_and_an_occupied_address_is_no_mistake() {
    let occupied = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let occupied = occupied.local_addr().unwrap().to_string();
    for (name, value, code, expected) in [
        ("MESH_LOG", "a=debgu", 64, "wrong configuration: MESH_LOG cannot be read"),
        ("MESH_BUS_TLS_CA", "Cargo.toml", 64, "MESH_BUS_TLS_CA has no certificate"),
        ("MESH_BUS_TLS_CA", "/there/is/no/such/file", 64, "MESH_BUS_TLS_CA cannot be read"),
        ("MESH_NODE_URL", ",", 64, "MESH_NODE_URL cannot be read"),
        ("MESH_NODE_URL", "tcp://node:26657", 64, "MESH_NODE_URL cannot be read"),
        ("MESH_NODE_URL", "http://999.1.1.1", 64, "MESH_NODE_URL: "),
        ("MESH_ADMIN_LISTEN", "192.0.2.1:9", 64, "MESH_ADMIN_LISTEN: cannot listen on 192.0.2.1:9"),
        ("MESH_ADMIN_LISTEN", &occupied, 1, "MESH_ADMIN_LISTEN: cannot listen on"),
    ] {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_ingest"));
        command.envs([("MESH_DATABASE_URL", "postgres://h/d"), ("MESH_NODE_URL", "http://127.0.0.1:9")]);
        let output = command.env("MESH_BUS_URL", "127.0.0.1:9").env(name, value).output().unwrap();
        let printed = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{printed}");
        assert!(printed.contains(expected), "{printed}");
    }
}

/// Waits until the newest stored block has this height.
async fn stored(client: &Client, height: u64) {
    retry(SOON, async || {
        let head = client.query_opt("SELECT height FROM last_block", &[]).await.unwrap();
        match head.map(|row| row.get::<_, i64>(0).unsigned_abs()) {
            Some(found) if found == height => Ok(()),
            found => Err(format!("the store is at {found:?}, not at {height}")),
        }
    })
    .await;
}

/// The only text that a query returns.
async fn text(client: &Client, sql: &str) -> String {
    client.query_one(sql, &[]).await.unwrap().get(0)
}
