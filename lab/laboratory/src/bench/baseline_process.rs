//! Starts baseline processes in a private mesh, and finds the processes to measure.

use std::net::SocketAddr;

use clap::ValueEnum as _;
use mesh::{failure::Failure, programs};
use mesh_launcher::{
    Ready, ReplicaSpec,
    process::ProcessSpec,
    supervisor::{Group, Tier},
};

use super::{args::Baseline, baseline, cost::MeasuredProcess};
use crate::{
    metrics,
    private::{PrivateMesh, Servers, sockets},
};

impl PrivateMesh {
    /// Starts a baseline process under the name of its kind; returns its address once it answers `path` with
    /// success. `source`: the server whose answer to `path` a [`Baseline::Repeated`] repeats.
    pub(super) async fn start_baseline(
        &self,
        servers: &Servers,
        kind: Baseline,
        path: &str,
        source: SocketAddr,
    ) -> Result<SocketAddr, Failure> {
        let sockets = sockets()?;
        let address = sockets.http;
        let name = kind.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
        let program = programs::beside("laboratory")?;
        let mut spec = ProcessSpec::new(format!("{name}-0"), program, self.home.log(&name, 0))
            .arg("baseline")
            .arg(&name)
            .env(baseline::DATABASE_URL, &servers.database_url)
            .env(baseline::REPEATED_URL, format!("http://{source}{path}"));
        spec.sockets = sockets.inherited;
        let (client, url) = (metrics::local_client(), format!("http://{address}{path}"));
        let ready = Ready::probe(move || {
            let asked = client.get(&url).send();
            async move { asked.await.is_ok_and(|answer| answer.status().is_success()) }
        });
        self.add(Group::single(&name, Tier::Service, ReplicaSpec { spec, ready }), 1)?;
        self.ready(&[&name]).await?;
        Ok(address)
    }

    /// The running processes of these names.
    pub(super) fn watch(&self, names: &[&str]) -> Vec<MeasuredProcess> {
        let rows = self.supervisor.rows();
        let processes = names.iter().flat_map(|name| rows.iter().filter(move |row| row.service == *name));
        processes.map(|row| MeasuredProcess { name: row.service.clone(), pid: row.pid }).collect()
    }
}
