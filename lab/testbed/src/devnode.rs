//! A development node for one test: a consensus node's RPC that can be killed and restarted on the same port.

use std::{collections::HashMap, time::Duration};

use mesh_devnode::{Base, Chain, ChainFile, ReservedPort, Settings, received};
use mesh_transaction::{SpamRules, TxHash};
use proto_msgs::v2::Transaction;
use tempfile::TempDir;

use crate::node_setup::{NodeSetup, OnThreads, transaction};

/// A running node on threads of its own. Dropping it kills it.
#[derive(Debug)]
pub struct DevNode {
    settings: Settings,
    rules: SpamRules,
    every: Option<Duration>,
    port: ReservedPort,
    running: Option<OnThreads<mesh_devnode::DevNode>>,
    // Last field, so that it is dropped after everything that uses it.
    _folder: TempDir,
}

impl DevNode {
    /// Begins the configuration of a node.
    pub fn configure() -> NodeSetup {
        NodeSetup::standard()
    }

    /// Starts a node with all checks that makes blocks on request only.
    pub async fn start() -> Self {
        Self::configure().start().await
    }

    /// Starts the configured node, with one block.
    pub(crate) async fn begin(setup: NodeSetup) -> Self {
        let NodeSetup { settings, rules, every, folder } = setup;
        let port = ReservedPort::take().unwrap_or_else(|error| panic!("no port for a node: {error}"));
        let base = Base::empty(&settings.network.chain_id, rules);
        let created = ChainFile::create(&settings.file, &base);
        created.unwrap_or_else(|error| panic!("no file for a node: {error}"));
        let mut node = Self { settings, rules, every, port, running: None, _folder: folder };
        node.launch().await;
        if node.chain().newest().is_none() {
            node.block().await;
        }
        node
    }

    /// Its address, the same after each restart: `http://127.0.0.1:<port>`.
    pub fn url(&self) -> String {
        format!("http://{}", self.port.address())
    }

    /// The running node's chain. A clone must be dropped before the node is killed.
    pub fn chain(&self) -> &Chain {
        let running = self.running.as_ref().unwrap_or_else(|| panic!("the node is down"));
        running.part.chain()
    }

    /// Makes a block and returns its height.
    pub async fn block(&self) -> u64 {
        let made = self.chain().next_block().await;
        made.unwrap_or_else(|error| panic!("no block could be made: {error}")).height
    }

    /// A valid transaction of a party, with proof of work for the newest block. Different texts give
    /// different ones.
    pub fn transaction(&self, party: u8, text: &str) -> Transaction {
        let Some(newest) = self.chain().newest() else { panic!("the node has no block") };
        transaction(&self.settings.network, &self.rules, &newest.hash, party, text)
    }

    /// Number of broadcast calls for each transaction, restarts included.
    pub fn received(&self) -> HashMap<TxHash, u64> {
        let record = self.settings.broadcasts.as_deref().unwrap_or_else(|| panic!("nothing is recorded"));
        received(record).unwrap_or_else(|error| panic!("the record cannot be read: {error}"))
    }

    /// Kills it without a shutdown. Until [`restart`](Self::restart) its port refuses connections.
    pub async fn kill(&mut self) {
        if let Some(running) = self.running.take() {
            running.stop().await;
        }
    }

    /// Kills it if it still runs, and starts it again with its blocks.
    pub async fn restart(&mut self) {
        self.kill().await;
        self.launch().await;
    }

    async fn launch(&mut self) {
        let starting = mesh_devnode::DevNode::start(self.settings.clone(), self.port.address());
        let running = OnThreads::start("the node", starting).await;
        if let Some(period) = self.every {
            let chain = running.part.chain().clone();
            running.spawn(async move {
                let mut turns = tokio::time::interval(period);
                loop {
                    turns.tick().await;
                    // When blocks fail, the test fails by itself for lack of them.
                    let _ = chain.next_block().await;
                }
            });
        }
        self.running = Some(running);
    }
}

impl Drop for DevNode {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.abandon();
        }
    }
}
