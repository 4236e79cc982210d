//! What the integration tests of the mesh share. They know HTTP and gRPC, the contract and the tables, and
//! nothing of the code in between.

pub mod access;
pub mod cases;
pub mod client;
pub mod fixture;
pub mod postgres_copy;
pub mod problem;
pub mod proxied;
pub mod rpc;
pub mod zip;

/// Switches the edge's answer cache off, for tests of the services behind it.
pub const NO_CACHE: (&str, &str) = ("MESH_EDGE_CACHE_BYTES", "0");

/// Prints a line also when the test passes: unlike `println!` this is not captured.
pub fn say(line: &str) {
    use std::io::Write;
    // A closed stderr is no reason to fail.
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}
