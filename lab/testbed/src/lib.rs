//! Servers and services for one test: a bus, a database, a whole mesh.
//!
//! Tests run against real servers: [`Database::fresh`] is a migrated database on a PostgreSQL shared by the
//! tests of one process, [`Service`] a service running as its own process, [`Mesh`] the services behind an
//! edge, [`DevNode`] a consensus node's RPC, [`Cometbft`] a real one, [`Collector`] a receiver of telemetry,
//! [`Proxy`] a fault proxy between any two of them, [`Network`] a bus of several servers. Everything ends
//! when its value is dropped, and at the latest with the test process. A function whose work fails panics with
//! the reason, so that the test fails.

mod answer;
mod collector;
mod cometbft;
mod database;
mod devnode;
pub mod events;
mod eventually;
mod generated;
pub mod grpc;
pub mod http1;
pub mod http2;
mod janitor;
mod mesh;
mod network;
mod node;
mod node_setup;
pub mod scripted_node;
mod secrets;
mod servers;
mod service;
mod tls;

pub use answer::{Answer, http_client};
pub use collector::{Collector, Manner, Taken, TakenSpan};
pub use cometbft::Cometbft;
pub use database::{Database, connect, primary_key};
pub use devnode::DevNode;
pub use eventually::{eventually, poll, retry};
pub use generated::{assert_generated, assert_generated_part};
pub use mesh::{EdgeTls, Mesh, MeshSetup};
pub use mesh_launcher::{bus::Bus, process::Signal};
pub use mesh_proxy::{Cut, Line, Proxy};
pub use network::Network;
pub use node::{Node, NodeKind};
pub use node_setup::NodeSetup;
pub use secrets::keep_secret;
pub use servers::{NatsServer, PostgresServer, enterable_folder, nats, postgres};
pub use service::{Service, ServiceSetup};
pub use tls::{Authority, TlsClient, TlsFront, certify, tls_tunnel};

/// Prints a line also when the test passes: unlike `println!` this is not captured.
pub fn say(line: &str) {
    use std::io::Write;
    // A closed stderr is no reason to fail.
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// A short text of letters and digits that no other test has.
fn unique() -> String {
    nuid::next().to_string()
}
