//! A cluster of three bus servers: each is lost once, under load.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use mesh_testbed::{Mesh, Network, Service, Signal, eventually};
use mesh_tests::{MeshClient, NO_CACHE, Traffic};

use crate::bus::checks::{answers_everything, database, download};

/// What the clients read.
const PATHS: [&str; 2] = ["/accounts", "/api/v2/delegations"];
/// Clients of each path.
const READERS: usize = 3;
/// Reads that must be answered before and after each kill.
const READS: u64 = 200;
const TIME_LIMIT: Duration = Duration::from_secs(30);

#[tokio::test]
async fn every_server_of_a_cluster_may_be_lost_under_load_and_no_read_fails_nor_a_download() {
    let (database, mut network) = (database().await, Network::cluster().await);
    let prefix = ("MESH_BUS_PREFIX", format!("cluster{:x}", rand::random::<u64>()));
    let setup = Mesh::configure(&database).bus(&network.bus()).env(prefix.0, &prefix.1);
    let mesh = setup.env(NO_CACHE.0, NO_CACHE.1).start().await;
    let (mut extra_services, history) = (Vec::new(), tempfile::tempdir().expect("a folder"));
    let history = history.path().to_str().expect("its path is text");
    for name in ["query", "export"] {
        let service = Service::configure(name).database(&database).bus(&network.bus());
        let service = service.env(prefix.0, &prefix.1).env("MESH_HISTORY_URL", history);
        extra_services.push(service.start().await);
    }
    answers_everything(&mesh).await;
    let mesh_client = MeshClient::new(&mesh);
    let whole = download(&mesh_client).await;

    let readers = PATHS.repeat(READERS).into_iter().map(|path| (MeshClient::new(&mesh), path));
    let (traffic, stop) = (Traffic::of(readers), Arc::new(AtomicBool::new(false)));
    let downloads = {
        let (mesh_client, stop, whole) = (MeshClient::new(&mesh), Arc::clone(&stop), whole.clone());
        tokio::spawn(async move {
            let mut downloads = 0;
            while !stop.load(Ordering::Relaxed) {
                assert!(download(&mesh_client).await == whole, "a download differs");
                downloads += 1;
            }
            downloads
        })
    };
    let more_reads = async || {
        let enough = traffic.answered() + READS;
        eventually(TIME_LIMIT, "no reads are answered", async || traffic.answered() >= enough).await;
    };
    for server in 0..3 {
        more_reads().await;
        // A frozen one is as silent as a lost machine.
        network.signal(server, Signal::STOP);
        more_reads().await;
        network.kill(server).await;
        more_reads().await;
        network.restart(server).await;
        network.until_whole(server).await;
    }
    stop.store(true, Ordering::Relaxed);
    assert!(downloads.await.expect("no download fails") > 0);
    traffic.end().await;
}
