//! What the integration tests of the mesh share. They know HTTP and gRPC, the contract and the tables, and
//! nothing of the code in between.

use std::path::{Path, PathBuf};

pub mod access;
pub mod cases;
pub mod client;
pub mod fixture;
pub mod postgres_copy;
pub mod problem;
pub mod proxied;
pub mod raw;
pub mod rpc;
pub mod shared;
pub mod zip;

/// Switches the edge's answer cache off, for tests of the services behind it.
pub const NO_CACHE: (&str, &str) = ("MESH_EDGE_CACHE_BYTES", "0");

/// The folder of a recorded run of a real test network, `../shared/data/smoketest-5000` next to the workspace;
/// `None`, with a message that a test is skipped, without it.
pub fn recording() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/smoketest-5000");
    if folder.is_dir() {
        return Some(folder);
    }
    say("skipped: there is no ../shared/data/smoketest-5000 beside the workspace");
    None
}

/// Prints a line also when the test passes: unlike `println!` this is not captured.
pub fn say(line: &str) {
    use std::io::Write;
    // A closed stderr is no reason to fail.
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}
