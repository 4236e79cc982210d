//! The tests of the bus with real servers, as one program.

#![allow(clippy::unwrap_used)] // in what the tests share

mod asking;
mod permissions;
mod streams;
mod tls;

use mesh_bus::BusConfig;

/// The configuration for a server of a test's own, at this port, without users.
fn own_server(port: u16) -> BusConfig {
    BusConfig {
        url: format!("nats://127.0.0.1:{port}"),
        credentials: None,
        prefix: "mesh".to_owned(),
        name: "test".to_owned(),
        version: "1.0.0".to_owned(),
        tls_ca: None,
    }
}
