//! Normal clients next to misbehaving ones: none of their requests may fail.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use mesh_tests::MeshClient;
use tokio::task::JoinHandle;

const READS: [&str; 3] = ["/accounts", "/api/v2/delegations", "/blockchain/height"];

/// Normal clients that send requests in the background.
pub(crate) struct Traffic {
    stop: Arc<AtomicBool>,
    clients: Vec<JoinHandle<(usize, Vec<String>)>>,
}

impl Traffic {
    pub(crate) fn start(mesh_client: &MeshClient) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let client = |path: &'static str| {
            let (mesh_client, stop) = (mesh_client.clone(), Arc::clone(&stop));
            tokio::spawn(async move {
                let (mut answered, mut faults) = (0, Vec::new());
                while !stop.load(Ordering::Relaxed) {
                    match mesh_client.request(reqwest::Method::GET, path).send().await {
                        Ok(answer) if answer.status() == 200 => match answer.bytes().await {
                            Ok(_) => answered += 1,
                            Err(error) => faults.push(format!("{path}: {error}")),
                        },
                        Ok(answer) => faults.push(format!("{path}: {}", answer.status())),
                        Err(error) => faults.push(format!("{path}: {error:?}")),
                    }
                }
                (answered, faults)
            })
        };
        Self { clients: READS.into_iter().map(client).collect(), stop }
    }

    /// Stops the clients; asserts that all their requests succeeded.
    pub(crate) async fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        for client in self.clients {
            let (answered, faults) = client.await.expect("a client does not panic");
            assert_eq!(faults, [""; 0], "of {} requests", answered + faults.len());
            assert!(answered > 0, "no request was answered");
        }
    }
}
