//! The whole mesh, seen from outside: what its tests share. They know HTTP and gRPC, the contract and the
//! tables, and nothing of what lies between.

pub mod access;
pub mod cases;
pub mod copied;
pub mod fixture;
pub mod outside;
pub mod problem;
pub mod proxied;
pub mod rpc;
pub mod zip;

pub use mesh_testbed::http1 as raw;

/// Leaves the edge without its cache of answers: for tests of what lies behind it.
pub const NO_CACHE: (&str, &str) = ("MESH_EDGE_CACHE_BYTES", "0");

/// Tells the reader something also when the test passes: unlike `println!` this is not captured.
pub fn say(line: &str) {
    use std::io::Write;
    // A reader who has gone away needs to be told nothing.
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}
