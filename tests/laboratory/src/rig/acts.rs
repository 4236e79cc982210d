//! What a drill does to the processes of its mesh, and how it sees that they are back.

use std::time::Duration;

use mesh_launcher::control::{Answer, Request};
use mesh_launcher::services::SERVICES;
use rand::Rng as _;
use rand::rngs::SmallRng;
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::{sleep, timeout};
use tokio_postgres::Client;

use crate::private::{PrivateMesh, Servers};
use mesh::failure::{Failure, cannot};

/// How long something may take that a process does as soon as it runs.
const SOON: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(5);

impl PrivateMesh {
    /// Gives an order as the command line does.
    pub(super) async fn order(&self, request: Request) -> Result<(), Failure> {
        match self.supervisor.answer(request).await {
            Answer::Refused { reason } => Err(Failure::failed(reason)),
            Answer::Done { .. } | Answer::Rows { .. } | Answer::Environment { .. } => Ok(()),
        }
    }

    /// The processes of a name, by replica.
    pub(super) fn pids(&self, name: &str) -> Vec<u32> {
        let rows = self.supervisor.rows();
        rows.iter().filter(|row| row.service == name).map(|row| row.pid).collect()
    }

    /// The processes of all services.
    pub(super) fn service_pids(&self) -> Vec<u32> {
        SERVICES.iter().flat_map(|service| self.pids(service.name)).collect()
    }

    /// One replica of a service, by chance.
    pub(super) fn one_of(&self, name: &str, random: &mut SmallRng) -> Result<u32, Failure> {
        let pids = self.pids(name);
        let nobody = || Failure::failed(format!("no {name} runs"));
        if pids.is_empty() { Err(nobody()) } else { Ok(pids[random.random_range(0..pids.len())]) }
    }

    /// Waits until a name has as many processes as before and this one is not among them.
    pub(super) async fn replaced(&self, name: &str, pid: u32, count: usize) -> Result<(), Failure> {
        let waited = timeout(SOON, async {
            while self.pids(name).contains(&pid) || self.pids(name).len() < count {
                sleep(LOOK).await;
            }
        });
        waited.await.map_err(|_| Failure::failed(format!("{name} was not started again")))
    }
}

impl Servers {
    /// Waits until the database takes connections.
    pub(super) async fn database_is_back(&self) -> Result<(), Failure> {
        let waited = timeout(SOON, async {
            while self.answering_database().await.is_none() {
                sleep(LOOK).await;
            }
        });
        waited.await.map_err(|_| Failure::failed("the database did not come back"))
    }

    async fn answering_database(&self) -> Option<Client> {
        let client = self.connect("").await.ok()?;
        client.simple_query("SELECT 1").await.ok()?;
        Some(client)
    }

    /// Waits until the bus takes connections.
    pub(super) async fn bus_is_back(&self) -> Result<(), Failure> {
        let address = self.bus.url.trim_start_matches("nats://");
        let waited = timeout(SOON, async {
            while tokio::net::TcpStream::connect(address).await.is_err() {
                sleep(LOOK).await;
            }
        });
        waited.await.map_err(|_| Failure::failed("the bus did not come back"))
    }
}

/// Sends a signal to a process of the mesh.
pub(super) fn send(pid: u32, signal: Signal) -> Result<(), Failure> {
    let pid = Pid::from_raw(pid.cast_signed()).ok_or_else(|| Failure::failed("there is no such process"))?;
    kill_process(pid, signal).map_err(|error| cannot("send a signal", &error))
}
