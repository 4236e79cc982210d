//! When the log's pipe is not read, requests are still answered and dropped lines are counted.

use std::{process::Command, time::Duration};

use mesh_testbed::Mesh;
use mesh_tests::{MeshClient, fixture, link_with_edge_script, metric};
use tokio::time::{Instant, timeout};

/// At some 300 bytes each, these lines exceed the log queue and the pipe's buffer.
const REQUESTS: u64 = 3000;

#[tokio::test]
async fn an_unread_log_delays_no_request() {
    let (database, folder) = (fixture::database().await, tempfile::tempdir().unwrap());
    // Opened for reading as well, so that opening the pipe does not block and writing does not fail.
    let pipe = folder.path().join("log");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    link_with_edge_script(folder.path(), |edge| format!("exec {edge:?} 2<>{pipe:?}"));
    let setup = Mesh::configure(&database).binaries(folder.path());
    let mesh = setup.env("MESH_EDGE_ACCESS_LOG", "all").start().await;
    let mesh_client = MeshClient::new(&mesh);
    let started = Instant::now();
    for turn in 0..REQUESTS {
        let answer = timeout(Duration::from_secs(10), mesh_client.get("/health")).await;
        assert_eq!(answer.unwrap_or_else(|_| panic!("request {turn} waits for the log")).status, 200);
    }
    let dropped = metric(&mesh, "edge", "mesh_log_lines_dropped_total ").await;
    println!("{REQUESTS} requests in {:?}, {dropped} lines dropped", started.elapsed());
    assert!(dropped > 0 && dropped < REQUESTS, "{dropped} of {REQUESTS} lines were dropped");
    assert_eq!(mesh.service("edge").admin("/readyz").await.status, 200);
    let stopped = timeout(Duration::from_secs(10), mesh.service("edge").stop()).await;
    assert!(stopped.expect("a stop does not wait for the log").success());
}
