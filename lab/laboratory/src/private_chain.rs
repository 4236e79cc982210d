//! The chain of a private mesh: a generated chain as its node with `ingest`, decoders, and databases for several of
//! them; the development node, on a chain without proof of work, with valid transactions for it; or empty blocks in
//! a store that no node writes into.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use bytes::Bytes;
use mesh::{
    failure::{Failure, cannot},
    processes::DEVNODE,
    programs,
};
use mesh_devnode::ReservedPort;
use mesh_launcher::{
    Ready, ReplicaSpec,
    database::Database,
    process::ProcessSpec,
    services::INGEST,
    supervisor::{Group, Tier},
};
use mesh_node::{devnode_group, prepare_devnode};
use mesh_problem::error_chain;
use mesh_testbed::poll;
use mesh_transaction::{ALGORITHM, Key, encode};
use proto_msgs::v2::{ProofOfWork, Transaction, TxVersion, transaction::From as Sender};
use tokio::time::sleep;
use tokio_postgres::Client;

use crate::{
    generated_chain::ChainArgs,
    metrics,
    private::{Layout, PrivateMesh, Servers, variables},
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
    pub(crate) database: &'a Database,
    pub(crate) chain: &'a ChainArgs,
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
        let json = serde_json::to_string(args).map_err(|error| cannot("write the chain", &error))?;
        let spec = self.own_program(name)?.arg("chain").arg(json);
        self.start_program(name, Tier::Node, spec, format!("{}/status", args.url())).await
    }

    /// A process with the program of the laboratory.
    pub(crate) fn own_program(&self, name: &str) -> Result<ProcessSpec, Failure> {
        let program = programs::beside("laboratory")?;
        Ok(ProcessSpec::new(format!("{name}-0"), program, self.home.log(name, 0)))
    }

    /// Starts a process and waits until requests to `url` succeed.
    pub(crate) async fn start_program(
        &self,
        name: &str,
        tier: Tier,
        spec: ProcessSpec,
        url: String,
    ) -> Result<(), Failure> {
        let client = metrics::local_client();
        let ready = Ready::probe(move || {
            let request = client.get(&url).send();
            async move { request.await.is_ok_and(|answer| answer.status().is_success()) }
        });
        self.add(Group::single(name, tier, ReplicaSpec { spec, ready }), 1)?;
        self.ready(&[name]).await
    }

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

    pub(crate) fn ingest_group(&self, servers: &Servers, ingest: &Ingest<'_>) -> Result<Group, Failure> {
        let Ingest { name, database, chain, env } = ingest;
        let layout = Layout { node_url: Some(chain.url()), env: variables(env), ..Layout::default() };
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
        let migrated = mesh_loader::migrate::migrate(database.url()).await;
        migrated.map_err(|error| Failure::failed(error_chain(&error)))?;
        Ok(database)
    }

    /// The addresses of another database of the server.
    pub(crate) fn database_named(&self, name: &str) -> Database {
        let url = self.database.url();
        let server = url.rsplit_once('/').map_or(url, |(server, _)| server);
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

/// The chain's id, which signatures cover.
pub(crate) const CHAIN_ID: &str = "private-1";

/// Defines the chain: no proof of work, and no limit on the transactions of one party per block.
const NEW_CHAIN: &str = include_str!("../sql/new_chain.sql");
/// Turns an existing chain into this one.
const OTHER_CHAIN: &str = include_str!("../sql/other_chain.sql");

/// Bytes of a command, about those of an order.
const COMMAND_BYTES: usize = 160;

impl PrivateMesh {
    /// Creates the chain in the store and starts its node with additional variables. Returns its port.
    /// `has_rows`: whether the store has the rows of another chain, which becomes this one.
    pub(crate) async fn start_node(
        &self,
        servers: &Servers,
        has_rows: bool,
        env: &[(&str, &str)],
    ) -> Result<ReservedPort, Failure> {
        let statements: &[&str] = if has_rows { &[OTHER_CHAIN] } else { &[NEW_CHAIN, NEXT_BLOCK] };
        servers.execute("begin a chain", statements).await?;
        prepare_devnode(&self.home, servers.database.url(), None).await?;
        let port = ReservedPort::take().map_err(|error| cannot("find a port for the node", &error))?;
        let (program, listen) = (programs::beside("mesh")?, Some(port.address()));
        self.add(devnode_group(program, &self.home, listen, variables(env)), 1)?;
        self.ready(&[DEVNODE]).await?;
        Ok(port)
    }
}

/// Creates distinct signed transactions.
pub(crate) struct TransactionFactory {
    key: Key,
    /// Distinguishes the transactions of several factories.
    series: u64,
    made: AtomicU64,
}

impl TransactionFactory {
    /// Creates a factory whose transactions have this series number.
    pub(crate) fn new(series: u64) -> Self {
        Self { key: Key::from_seed(&[7; 32]), series, made: AtomicU64::new(0) }
    }

    /// The next transaction, which the node accepts.
    pub(crate) fn transaction(&self) -> Transaction {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let command = format!("{:016x}{number:0>1$}", self.series, COMMAND_BYTES - 16).into_bytes();
        let tid = format!("{:032x}{number:032x}", self.series);
        Transaction {
            signature: self.key.sign(TxVersion::V3, CHAIN_ID, &command, ALGORITHM),
            input_data: Bytes::from(command),
            version: TxVersion::V3.into(),
            pow: Some(ProofOfWork { tid, nonce: number }),
            from: Some(Sender::PubKey(self.key.public())),
        }
    }

    /// The next transaction, encoded as the node takes it.
    pub(crate) fn encoded(&self) -> Bytes {
        encode(&self.transaction()).into()
    }
}

/// The statement that writes an empty block after the newest one and returns its height.
pub(crate) const NEXT_BLOCK: &str = include_str!("next_block.sql");

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use mesh_transaction::{Candidate, Network};

    use super::*;

    #[test]
    fn every_transaction_is_another_one_that_a_node_takes() {
        let algorithm = ALGORITHM.to_owned();
        let network = Network { chain_id: CHAIN_ID.to_owned(), algorithm, pow_prefix: String::new() };
        let factories = [TransactionFactory::new(0), TransactionFactory::new(u64::MAX)];
        let made = || factories.iter().map(|factory| Candidate::read(&factory.encoded(), &network).unwrap());
        let made: Vec<Candidate> = made().chain(made()).collect();
        let tids: HashSet<String> = made.iter().map(|made| made.proof.clone().unwrap().tid).collect();
        let hashes: HashSet<_> = made.iter().map(|made| made.hash).collect();
        assert_eq!((hashes.len(), tids.len()), (4, 4));
        assert_eq!(factories[0].transaction().input_data.len(), COMMAND_BYTES);
    }
}
