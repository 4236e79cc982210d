//! A cluster of three bus servers: each is lost once, under load.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use mesh_testbed::{Mesh, Network, Service, Signal, eventually};
use mesh_tests::{MeshClient, NO_CACHE};

use crate::bus::checks::{answers_everything, database, download};

const READERS: u64 = 6;
/// Reads that must be answered before and after each kill.
const READS: u64 = 200;
const TIME_LIMIT: Duration = Duration::from_secs(30);

/// Reads until `stop` is set, counts the reads in `read` and returns the answers other than 200.
async fn read_until_stopped(
    mesh_client: MeshClient,
    stop: Arc<AtomicBool>,
    read: Arc<AtomicU64>,
) -> Vec<String> {
    let mut failed = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        for path in ["/accounts", "/api/v2/delegations"] {
            let answer = mesh_client.get(path).await;
            if answer.status != 200 {
                failed.push(format!("{answer:?}"));
            }
            read.fetch_add(1, Ordering::Relaxed);
        }
    }
    failed
}

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

    let (stop, read) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let readers = (0..READERS).map(|_| {
        tokio::spawn(read_until_stopped(MeshClient::new(&mesh), Arc::clone(&stop), Arc::clone(&read)))
    });
    let readers: Vec<_> = readers.collect();
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
        let enough = read.load(Ordering::Relaxed) + READS;
        eventually(TIME_LIMIT, "no reads are answered", async || read.load(Ordering::Relaxed) >= enough)
            .await;
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
    let mut failed = Vec::new();
    for reader in readers {
        failed.extend(reader.await.expect("a client does not panic"));
    }
    let read = read.load(Ordering::Relaxed);
    assert!(failed.is_empty(), "{} of {read} reads failed: {}", failed.len(), failed[0]);
    assert!(read > READERS * 6, "{read} reads");
}
