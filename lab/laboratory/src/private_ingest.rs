//! What follows a chain in a private mesh: a generated chain as its node, `ingest`, decoders, and databases for
//! several of them.

use std::time::Duration;

use mesh::{
    failure::{Failure, cannot},
    programs,
};
use mesh_launcher::{
    Ready, ReplicaSpec,
    database::Database,
    process::ProcessSpec,
    services::INGEST,
    supervisor::{Group, Tier},
};
use mesh_problem::error_chain;
use mesh_testbed::poll;
use tokio::time::sleep;
use tokio_postgres::Client;

use crate::{
    generated_chain::ChainArgs,
    metrics,
    private::{Layout, PrivateMesh, Servers},
};

/// Process name of the generated chain.
pub(crate) const CHAIN: &str = "chain";
/// Process name of the decoders.
pub(crate) const DECODER: &str = "decoder";
/// Pause between two reads of a store's head.
const LOOK_PAUSE: Duration = Duration::from_millis(10);

/// Which `ingest` runs.
pub(crate) struct Ingest<'a> {
    /// Its process name.
    pub(crate) name: &'a str,
    /// Where it writes.
    pub(crate) database: &'a Database,
    /// The chain that it follows.
    pub(crate) chain: &'a ChainArgs,
    /// Further variables.
    pub(crate) env: &'a [(&'a str, &'a str)],
}

impl ChainArgs {
    /// The address of its node.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.listen)
    }
}

impl PrivateMesh {
    /// Starts the node of a generated chain and waits until it answers.
    pub(crate) async fn start_chain(&self, name: &str, args: &ChainArgs) -> Result<(), Failure> {
        let log = self.home.log(name, 0);
        let json = serde_json::to_string(args).map_err(|error| cannot("write the chain", &error))?;
        let program = programs::beside("laboratory")?;
        let spec = ProcessSpec::new(format!("{name}-0"), program, log).arg("chain").arg(json);
        let (client, url) = (metrics::local_client(), format!("{}/status", args.url()));
        let ready = Ready::probe(move || {
            let request = client.get(&url).send();
            async move { request.await.is_ok_and(|answer| answer.status().is_success()) }
        });
        self.add(Group::single(name, Tier::Node, ReplicaSpec { spec, ready }), 1)?;
        self.ready(&[name]).await
    }

    /// Starts decoders on the bus.
    pub(crate) fn start_decoders(&self, servers: &Servers, replicas: u32) -> Result<(), Failure> {
        let (program, bus, home) = (programs::beside("laboratory")?, servers.bus.clone(), self.home.clone());
        let replica_spec = move |replica, _| {
            let name = format!("{DECODER}-{replica}");
            let mut spec = ProcessSpec::new(name, program.clone(), home.log(DECODER, replica)).arg("decoder");
            spec.env.extend(bus.variables(DECODER));
            ReplicaSpec { spec, ready: Ready::probe(|| std::future::ready(true)) }
        };
        let replica_spec = Box::new(replica_spec);
        self.add(
            Group { name: DECODER.to_owned(), tier: Tier::Service, scalable: true, replica_spec },
            replicas,
        )
    }

    /// Starts replicas of `ingest`; does not wait until they are ready.
    pub(crate) fn start_ingest(
        &self,
        servers: &Servers,
        ingest: &Ingest<'_>,
        replicas: u32,
    ) -> Result<(), Failure> {
        self.add(self.ingest_group(servers, ingest)?, replicas)
    }

    /// The processes of an `ingest`.
    pub(crate) fn ingest_group(&self, servers: &Servers, ingest: &Ingest<'_>) -> Result<Group, Failure> {
        let Ingest { name, database, chain, env } = ingest;
        let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let layout = Layout { node_url: Some(chain.url()), env, ..Layout::default() };
        let mut environment = self.service_environment(servers, &layout)?;
        environment.database = (*database).clone();
        Ok(self.service_named(environment, INGEST, name)?.0)
    }
}

impl Servers {
    /// Creates another database with the newest schema on the same server.
    pub(crate) async fn another_database(&self, name: &str) -> Result<Database, Failure> {
        self.execute("create a database", &[&format!("CREATE DATABASE {name}")]).await?;
        let database = self.database_named(name);
        let migrated = mesh_store::migrate::migrate(database.url()).await;
        migrated.map_err(|error| Failure::failed(error_chain(&error)))?;
        Ok(database)
    }

    /// The addresses of another database of the server.
    pub(crate) fn database_named(&self, name: &str) -> Database {
        let server = self.database_url.rsplit_once('/').map_or(&*self.database_url, |(server, _)| server);
        Database::new(&format!("{server}/{name}"), self.database.passwords().to_vec())
    }
}

/// The height of the newest stored block; 0 without one.
pub(crate) async fn head(client: &Client) -> Result<u64, Failure> {
    let row = client.query_opt("SELECT height FROM last_block", &[]).await;
    let row = row.map_err(|error| cannot("read the newest block", &error))?;
    Ok(row.map_or(0, |row| row.get::<_, i64>(0).unsigned_abs()))
}

/// Waits until a store has a block of this height.
pub(crate) async fn stored(client: &Client, height: u64, within: Duration) -> Result<(), Failure> {
    poll(within, async || match head(client).await {
        Ok(found) if found >= height => Ok(()),
        outcome => {
            sleep(LOOK_PAUSE).await;
            let found = outcome?;
            Err(Failure::failed(format!("the store is at {found}, not at {height}, after {within:?}")))
        }
    })
    .await
}
