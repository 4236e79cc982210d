//! The workload as a process on a real database and bus, with a node whose blocks the test decides.

#![allow(clippy::unwrap_used)]

mod decoders;
mod halts;
mod replicas;
mod rows;

use std::time::Duration;

use mesh_testbed::{Database, Service, ServiceSetup, retry, scripted_node::Chain};
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

#[test]
fn a_filter_of_the_log_that_cannot_be_read_is_refused() {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_ingest"));
    let variables =
        [("MESH_DATABASE_URL", "postgres://h/d"), ("MESH_NODE_URL", "http://h"), ("MESH_LOG", "a=debgu")];
    let output = command.envs(variables).output().unwrap();
    let printed = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(64), "{printed}");
    assert!(printed.contains("wrong configuration: MESH_LOG cannot be read"), "{printed}");
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
