//! Environment of the drills of the whole mesh: a private mesh with two replicas of every service, filled
//! tables, a block every second, a synthetic sealed history, a ledger, and a node that accepts transactions.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use mesh::{failure::Failure, processes::DEVNODE, terminal::print_line};
use mesh_devnode::ReservedPort;
use mesh_launcher::services::SERVICES;
use rand::{Rng as _, rngs::SmallRng};

use super::{
    clients::{downloaders::Choose, files::Files, node::Node, transfer::Pace},
    read_requests::{ReadRequests, fill_in},
};
use crate::{
    private::{Layout, PrivateMesh, ReplicaEnv, Servers, UNCACHED_EDGE},
    synthetic::{LargeTable, Synthetic},
};

/// Replicas of every service.
pub(crate) const REPLICAS: u32 = 2;
/// The synthetic history of the long form and of the short one.
const PLAN: Synthetic = Synthetic { table: LargeTable::Trades, segments: 32, blocks: 1000, rows: 4000 };
const PLAN_SHORT: Synthetic = Synthetic { segments: 16, rows: 1500, ..PLAN };
/// Number of ledger entries.
const ENTRIES: u32 = 20_000;
const ENTRIES_SHORT: u32 = 1_000;
/// Time between two blocks, milliseconds; less in the short form, whose clients cannot wait long for a block.
const BLOCK_MS: &str = "1000";
const BLOCK_MS_SHORT: &str = "300";

/// A running mesh with data, for drills of the whole mesh.
pub(crate) struct Environment<'a> {
    pub(crate) mesh: &'a PrivateMesh,
    pub(crate) servers: Servers,
    /// HTTP address of the edges.
    pub(crate) edge: SocketAddr,
    pub(crate) node: ReservedPort,
    pub(crate) files: Arc<Files>,
    pub(crate) read_requests: ReadRequests,
}

impl<'a> Environment<'a> {
    /// Starts servers, node and services. `wire` gets the addresses of servers and node and returns the
    /// additional variables of each replica.
    pub(crate) async fn start(
        mesh: &'a PrivateMesh,
        is_short: bool,
        seed: u64,
        replica_env_for: impl AsyncFnOnce(&Servers, SocketAddr) -> Result<ReplicaEnv, Failure>,
    ) -> Result<Self, Failure> {
        let servers = mesh.start_servers().await?;
        let database = fill_in(&servers).await?;
        let (plan, entries, block_ms) = match is_short {
            true => (PLAN_SHORT, ENTRIES_SHORT, BLOCK_MS_SHORT),
            false => (PLAN, ENTRIES, BLOCK_MS),
        };
        let mut files = Files::create(mesh.home.root(), plan, &database, entries, seed).await?;
        let read_requests = ReadRequests::find(&database).await?;
        let variables = [("MESH_DEVNODE_BLOCK_MS", block_ms)];
        let node = mesh.start_node_on_history(&servers, &variables).await?;
        print_line("starting services");
        let mut replicas: Vec<(&str, u32)> =
            SERVICES.iter().map(|service| (service.name, REPLICAS)).collect();
        replicas.push((UNCACHED_EDGE, 0));
        let layout = Layout {
            replicas: &replicas,
            node_url: Some(format!("http://{}", node.address())),
            replica_env: Some(replica_env_for(&servers, node.address()).await?),
            ..Layout::default()
        };
        let edge = mesh.start_services(&servers, &layout).await?.cached;
        files.learn_ledger(edge).await?;
        Ok(Self { mesh, servers, edge, node, files: Arc::new(files), read_requests })
    }

    /// Chooses any file; about half of the downloads are quick, the others take up to `longest`.
    pub(crate) fn any_file(&self, longest: Duration) -> Arc<Choose> {
        let files = Arc::clone(&self.files);
        Arc::new(move |random: &mut SmallRng| {
            let expected = files.any(random);
            let pace = Pace::any(expected.bytes.len(), longest, random);
            (expected, pace)
        })
    }

    /// Chooses the whole history, downloaded evenly in half of this time to one and a half of it, so that several
    /// downloads do not end together.
    pub(crate) fn largest_file(&self, time: Duration) -> Arc<Choose> {
        let files = Arc::clone(&self.files);
        Arc::new(move |random: &mut SmallRng| {
            let expected = files.largest();
            let pace = Pace::within(expected.bytes.len(), time.mul_f64(random.random_range(0.5..1.5)));
            (expected, pace)
        })
    }

    /// Waits until the node has no transaction waiting for a block; returns a direct client of the node.
    pub(crate) async fn idle_node(&self) -> Result<Node, Failure> {
        Node::idle(self.node.address()).await
    }

    /// Waits until every replica and the node are ready; returns whether they are.
    pub(crate) async fn becomes_ready(&self, within: Duration) -> bool {
        let services = SERVICES.iter().map(|service| service.name);
        self.mesh.until_serving(&services.chain([DEVNODE]).collect::<Vec<_>>(), within).await
    }
}
