//! What the integration tests of the mesh share. They know HTTP and gRPC, the contract and the tables, and
//! nothing of the code in between. A function whose work fails panics, so that the test fails.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use mesh_launcher::services::SERVICES;
use mesh_testbed::Mesh;
pub use mesh_testbed::say;

pub mod access;
pub mod cases;
mod client;
mod difference;
mod events;
pub mod fixture;
mod postgres_copy;
pub mod problem;
pub mod programs;
mod proxied;
pub mod random_rows;
pub mod raw;
pub mod rpc;
mod shared;
mod targets;
mod traffic;
mod web_socket;
pub mod zip;

pub use access::assert_has;
pub use cases::{Case, Expected, Refusals, file_name};
pub use client::{MeshClient, unpacked};
pub use difference::{assert_same, difference, lack};
pub use events::{Event, Events};
pub use fixture::{
    ASSET, BLOCK_TIME, HEIGHT, LEDGER, MARKET, NODE, ORACLE_SPEC, ORDER, PARTY, SEALED, TableLock,
    UNKNOWN_ID, WITHDRAWAL,
};
pub use postgres_copy::{Copier, TABLE_NUMBERS, tables};
pub use problem::{Problem, assert_problem, read_body};
pub use programs::is_here;
pub use proxied::ProxiedServer;
pub use rpc::{Call, Rpc, assert_refused};
pub use shared::Shared;
pub use targets::{bases, filtered, lists};
pub use traffic::Traffic;
pub use web_socket::{HANDSHAKE, WebSocket};
pub use zip::{Member, assert_read_by_programs, members};

/// Switches the edge's answer cache off, for tests of the services behind it.
pub const NO_CACHE: (&str, &str) = ("MESH_EDGE_CACHE_BYTES", "0");

/// The number that a variable of the environment sets, or this one.
pub fn env_number<N: std::str::FromStr>(variable: &str, default: N) -> N {
    let number = |text: String| text.parse::<N>().unwrap_or_else(|_| panic!("{variable} is {text}"));
    std::env::var(variable).map_or(default, number)
}

/// The sum of a service's metrics whose lines start with `name`; 0 without one.
pub async fn metric(mesh: &Mesh, service: &str, name: &str) -> u64 {
    mesh.service(service).metric(name).await as u64
}

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

/// A program of this build, whose folder is above that of the test.
pub fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap_or_else(|error| panic!("where is the test? {error}"));
    test.ancestors().nth(2).unwrap_or(Path::new(".")).join(name)
}

/// Links the services' binaries into a folder; the edge there is started by a shell script that `run` makes of the
/// binary's path.
pub fn link_with_edge_script(folder: &Path, run: impl FnOnce(&Path) -> String) {
    let write = || {
        for service in SERVICES.iter().filter(|service| service.name != "edge") {
            std::os::unix::fs::symlink(program(service.name), folder.join(service.name))?;
        }
        let script = format!("#!/bin/sh\n{}\n", run(&program("edge")));
        // Written by a child process: if this process had the file open for writing while another test forks,
        // running it would fail with "text file busy".
        let write = "printf %s \"$1\" > \"$2\" && chmod 755 \"$2\"";
        Command::new("/bin/sh").args(["-c", write, "sh", &script]).arg(folder.join("edge")).status()
    };
    let written = write();
    assert!(written.as_ref().is_ok_and(|status| status.success()), "{}: {written:?}", folder.display());
}
