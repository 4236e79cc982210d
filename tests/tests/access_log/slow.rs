//! When the log's pipe is not read, requests are still answered and dropped lines are counted.

use std::{fs, path::Path, process::Command, time::Duration};

use mesh_launcher::services::SERVICES;
use mesh_testbed::Mesh;
use mesh_tests::{client::MeshClient, fixture};
use tokio::time::{Instant, timeout};

/// At some 300 bytes each, these lines exceed the log queue and the pipe's buffer.
const REQUESTS: usize = 4000;

/// Links the services' binaries into a folder; the edge there writes its log into a pipe that is never read.
fn link_with_unread_log(folder: &Path) {
    let built = std::env::current_exe().unwrap().ancestors().nth(2).map(Path::to_path_buf).unwrap();
    for service in SERVICES {
        std::os::unix::fs::symlink(built.join(service.name), folder.join(service.name)).unwrap();
    }
    let (edge, pipe) = (folder.join("edge"), folder.join("log"));
    fs::remove_file(&edge).unwrap();
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    // Opened for reading as well, so that opening the pipe does not block and writing does not fail.
    let run = format!("#!/bin/sh\nexec {:?} 2<>{pipe:?}\n", built.join("edge"));
    // Written by a child process: if this process had the file open for writing while another test forks,
    // running it would fail with "text file busy".
    let write = "printf %s \"$1\" > \"$2\" && chmod 755 \"$2\"";
    assert!(Command::new("/bin/sh").args(["-c", write, "sh", &run]).arg(edge).status().unwrap().success());
}

#[tokio::test]
async fn an_unread_log_delays_no_request() {
    let (database, folder) = (fixture::database().await, tempfile::tempdir().unwrap());
    link_with_unread_log(folder.path());
    let setup = Mesh::configure(&database).binaries(folder.path());
    let mesh = setup.env("MESH_EDGE_ACCESS_LOG", "all").start().await;
    let mesh_client = MeshClient::new(&mesh);
    let started = Instant::now();
    for turn in 0..REQUESTS {
        let answer = timeout(Duration::from_secs(10), mesh_client.get("/health")).await;
        assert_eq!(answer.unwrap_or_else(|_| panic!("request {turn} waits for the log")).status, 200);
    }
    let page = mesh.service("edge").admin("/metrics").await;
    let dropped = page.text().lines().find_map(|line| line.strip_prefix("mesh_log_lines_dropped_total "));
    let dropped: usize = dropped.and_then(|count| count.parse().ok()).unwrap();
    println!("{REQUESTS} requests in {:?}, {dropped} lines dropped", started.elapsed());
    assert!(dropped > 0 && dropped < REQUESTS, "{dropped} of {REQUESTS} lines were dropped");
    assert_eq!(mesh.service("edge").admin("/readyz").await.status, 200);
    let stopped = timeout(Duration::from_secs(10), mesh.service("edge").stop()).await;
    assert!(stopped.expect("a stop does not wait for the log").success());
}
