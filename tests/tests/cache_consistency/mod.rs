//! Consistency of the edge's cache: how old its answers may be, and that block heights never decrease on one
//! connection. `mesh rig truth` compares answers under faults with the content of the store.

mod height_order;
mod store_outage;

use mesh_testbed::{Answer, Database, Mesh, MeshSetup, http1::Connection};
use mesh_tests::raw;

const ACCOUNTS: &str = "/accounts";

/// Opens a connection to the edge of a mesh.
async fn open(mesh: &Mesh) -> Connection {
    raw::connect(&mesh.url()).await
}

/// Sends a GET request over a persistent connection.
async fn send(connection: &mut Connection, path: &str) {
    raw::send(connection, &format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n")).await;
}

/// Sends a GET request and returns its answer.
async fn get(connection: &mut Connection, path: &str) -> Answer {
    send(connection, path).await;
    raw::answer(connection).await
}

/// The block height in an answer's `X-Block-Height` header.
fn height(answer: &Answer) -> u64 {
    let parsed = answer.header("x-block-height").and_then(|value| value.parse().ok());
    parsed.unwrap_or_else(|| panic!("no height: {answer:?}"))
}

/// Configures a mesh of the services that these tests need.
fn configure(database: &Database) -> MeshSetup<'_> {
    Mesh::configure(database).without(&["export"])
}
