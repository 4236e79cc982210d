//! Clients that send requests in the background, beside misbehaving clients or failing servers: none of their requests may
//! fail.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use tokio::task::JoinHandle;

use crate::MeshClient;

const READS: [&str; 3] = ["/accounts", "/api/v2/delegations", "/blockchain/height"];

/// Normal clients that send requests in the background.
#[derive(Debug)]
pub struct Traffic {
    stop: Arc<AtomicBool>,
    /// Requests answered so far, of all clients.
    answered: Arc<AtomicU64>,
    clients: Vec<JoinHandle<(usize, Vec<String>)>>,
}

impl Traffic {
    /// Starts a client for each of three reads.
    pub fn start(mesh_client: &MeshClient) -> Self {
        Self::of(READS.map(|path| (mesh_client.clone(), path)))
    }

    /// Starts these clients, each of which requests its path repeatedly.
    pub fn of(clients: impl IntoIterator<Item = (MeshClient, &'static str)>) -> Self {
        let (stop, all) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let client = |(mesh_client, path): (MeshClient, &'static str)| {
            let (stop, all) = (Arc::clone(&stop), Arc::clone(&all));
            tokio::spawn(async move {
                let (mut answered, mut faults) = (0, Vec::new());
                while !stop.load(Ordering::Relaxed) {
                    match mesh_client.request(reqwest::Method::GET, path).send().await {
                        Ok(answer) if answer.status() == 200 => match answer.bytes().await {
                            Ok(_) => {
                                answered += 1;
                                all.fetch_add(1, Ordering::Relaxed);
                            }
                            Err(error) => faults.push(format!("{path}: {error}")),
                        },
                        Ok(answer) => faults.push(format!("{path}: {}", answer.status())),
                        Err(error) => faults.push(format!("{path}: {error:?}")),
                    }
                }
                (answered, faults)
            })
        };
        Self { clients: clients.into_iter().map(client).collect(), stop, answered: all }
    }

    /// Number of requests answered so far.
    pub fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    /// Stops the clients.
    ///
    /// # Panics
    /// When one of their requests failed.
    pub async fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        for client in self.clients {
            let (answered, faults) = client.await.expect("a client does not panic");
            assert_eq!(faults, [""; 0], "of {} requests", answered + faults.len());
            assert!(answered > 0, "no request was answered");
        }
    }
}
