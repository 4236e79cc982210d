//! Faults that drills inject into a private mesh (kills, restarts, stopped servers), and functions that wait for
//! recovery.

pub(crate) mod explanation;
pub(crate) mod injector;
pub(crate) mod links;
pub(crate) mod schedule;

use std::time::Duration;

use mesh::failure::{Failure, cannot};
use mesh_launcher::{
    control::{Answer, Request},
    services::SERVICES,
};
use mesh_testbed::poll;
use rustix::process::{Pid, Signal, kill_process};

use crate::private::{PrivateMesh, Servers};

/// Deadline for what a process does immediately after its start.
const SOON: Duration = Duration::from_secs(30);

impl PrivateMesh {
    /// Sends a request to the supervisor, as the command line does.
    pub(crate) async fn order(&self, request: Request) -> Result<(), Failure> {
        match self.supervisor.answer(request).await {
            Answer::Refused { reason } => Err(Failure::failed(reason)),
            Answer::Done { .. } | Answer::Rows { .. } | Answer::Environment { .. } => Ok(()),
        }
    }

    /// The process ids of a name, in order of replicas.
    pub(super) fn pids(&self, name: &str) -> Vec<u32> {
        let rows = self.supervisor.rows();
        rows.iter().filter(|row| row.service == name).map(|row| row.pid).collect()
    }

    pub(super) fn service_pids(&self) -> Vec<u32> {
        SERVICES.iter().flat_map(|service| self.pids(service.name)).collect()
    }

    /// Replaces the replicas of a name in turn; returns how many are new, and whether all are.
    pub(super) async fn restart(&self, name: &str) -> Result<(usize, bool), Failure> {
        let before = self.pids(name);
        self.order(Request::Restart { name: name.to_owned() }).await?;
        let after = self.pids(name);
        let is_new = |pid: &&u32| !before.contains(pid);
        let new = after.iter().filter(is_new).count();
        Ok((new, new == after.len() && after.len() == before.len()))
    }

    /// Stops all processes of a name gracefully.
    pub(crate) async fn stop_all(&self, name: &str) -> Result<(), Failure> {
        self.order(Request::Stop { name: name.to_owned(), replica: None }).await
    }

    /// Starts the processes of a name again.
    pub(super) async fn start_all(&self, name: &str) -> Result<(), Failure> {
        self.order(Request::Start { name: name.to_owned(), replica: None }).await
    }

    /// Whether a name has at least one replica and all of them are ready.
    pub(super) fn serves(&self, name: &str) -> bool {
        let readiness = self.supervisor.standing();
        readiness.iter().any(|(other, ready, all)| other == name && ready == all && *all > 0)
    }

    /// Waits until every replica of these names is ready, restarts included; returns whether they are.
    pub(super) async fn until_serving(&self, names: &[&str], within: Duration) -> bool {
        let is_serving = async || if names.iter().all(|name| self.serves(name)) { Ok(()) } else { Err(()) };
        poll(within, is_serving).await.is_ok()
    }
}

impl Servers {
    /// Waits until the database takes connections.
    pub(super) async fn database_is_back(&self) -> Result<(), Failure> {
        let query = async || {
            let client = self.connect().await?;
            client.simple_query("SELECT 1").await.map_err(|error| cannot("query the database", &error))
        };
        poll(SOON, query).await.map(drop)
    }
}

/// Sends a signal to a process of the mesh.
pub(super) fn send(pid: u32, signal: Signal) -> Result<(), Failure> {
    let pid = Pid::from_raw(pid.cast_signed()).ok_or_else(|| Failure::failed("there is no such process"))?;
    kill_process(pid, signal).map_err(|error| cannot("send a signal", &error))
}
