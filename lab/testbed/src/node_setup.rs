//! The configuration of a test's consensus node, and what both kinds of nodes share.

use std::{fmt::Display, time::Duration};

use bytes::Bytes;
use mesh_devnode::{Checks, Limits, Settings};
use mesh_transaction::{ALGORITHM, Key, Network, Puzzle, SearchControl, SpamRules, TxHash, search};
use proto_msgs::v2::{ProofOfWork, Transaction, TxVersion, transaction::From as Sender};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    runtime::{Builder, Runtime},
    task::spawn_blocking,
};

use crate::http_client;

const STOP_WITHIN: Duration = Duration::from_secs(10);

/// The configuration of a node; made by [`DevNode::configure`](crate::DevNode::configure).
#[derive(Debug)]
pub struct NodeSetup {
    pub(crate) settings: Settings,
    pub(crate) rules: SpamRules,
    pub(crate) every: Option<Duration>,
    pub(crate) folder: TempDir,
}

impl NodeSetup {
    pub(crate) fn standard() -> Self {
        let folder = tempfile::tempdir().unwrap_or_else(|error| panic!("no folder for a node: {error}"));
        let network = Network {
            chain_id: "test-net".to_owned(),
            algorithm: ALGORITHM.to_owned(),
            pow_prefix: String::new(),
        };
        let mut settings = Settings::new(network, folder.path().join("blocks"));
        settings.broadcasts = Some(folder.path().join("broadcasts"));
        let rules = SpamRules { difficulty: 2, tx_per_block: 1_000_000, ..SpamRules::default() };
        Self { settings, rules, every: None, folder }
    }

    /// Makes blocks at this interval; otherwise there is one block at the start, and a development node makes
    /// more on request.
    #[must_use]
    pub fn every(mut self, period: Duration) -> Self {
        self.every = Some(period);
        self
    }

    /// Sets the id of the chain; the default is `test-net`.
    #[must_use]
    pub fn chain_id(mut self, chain_id: &str) -> Self {
        chain_id.clone_into(&mut self.settings.network.chain_id);
        self
    }

    /// Sets the spam protection rules; the default is a difficulty of 2 and a quota that no test reaches.
    #[must_use]
    pub fn rules(mut self, rules: SpamRules) -> Self {
        self.rules = rules;
        self
    }

    /// Sets the node's limits.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.settings.limits = limits;
        self
    }

    /// Accepts every transaction that decodes.
    #[must_use]
    pub fn without_checks(mut self) -> Self {
        self.settings.checks = Checks::None;
        self
    }

    /// Delays each check of a development node by this time.
    #[must_use]
    pub fn check_delay(mut self, delay: Duration) -> Self {
        self.settings.check_delay = delay;
        self
    }
}

/// Calls an RPC method; returns the whole answer. Panics when the node does not answer.
pub(crate) async fn call(url: &str, method: &str, params: Value) -> Value {
    let call = json!({"jsonrpc": "2.0", "id": 0, "method": method, "params": params});
    let asked = http_client().post(url).json(&call).send().await;
    let answer = asked.unwrap_or_else(|error| panic!("{url} does not answer {method}: {error}"));
    answer.json().await.unwrap_or_else(|error| panic!("no answer to {method}: {error}"))
}

/// A valid transaction whose proof of work refers to a block.
pub(crate) fn transaction(
    network: &Network,
    rules: &SpamRules,
    block_hash: &str,
    party: u8,
    text: &str,
) -> Transaction {
    let Network { chain_id, algorithm, pow_prefix } = network;
    let tid = TxHash::of(format!("{party} {text}").as_bytes()).to_string().to_ascii_lowercase();
    let puzzle = Puzzle::new(pow_prefix, block_hash, &tid);
    let nonce = search(&puzzle, rules.difficulty, &SearchControl::default());
    let key = Key::from_seed(&[party; 32]);
    Transaction {
        signature: key.sign(TxVersion::V3, chain_id, text.as_bytes(), algorithm),
        input_data: Bytes::from(text.to_owned()),
        version: TxVersion::V3.into(),
        from: Some(Sender::PubKey(key.public())),
        pow: nonce.map(|nonce| ProofOfWork { tid, nonce }),
    }
}

/// A part of a node on threads of its own, with the tasks that it started there.
#[derive(Debug)]
pub(crate) struct OnThreads<T> {
    pub(crate) part: T,
    runtime: Runtime,
}

impl<T: Send + 'static> OnThreads<T> {
    /// Starts a part, which `what` names in panics.
    pub(crate) async fn start<E: Display + Send + 'static>(
        what: &str,
        starting: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.unwrap_or_else(|error| panic!("no threads for {what}: {error}"));
        let started = runtime.spawn(starting).await;
        let started = started.unwrap_or_else(|error| panic!("{what} cannot be started: {error}"));
        let part = started.unwrap_or_else(|error| panic!("{what} cannot be started: {error}"));
        Self { part, runtime }
    }

    /// Runs a task until the part ends.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.runtime.spawn(task);
    }

    /// Ends the part and waits until its tasks are gone; a restarted one would otherwise find its files in
    /// use.
    pub(crate) async fn stop(self) {
        let Self { part, runtime } = self;
        drop(part);
        let stopping = spawn_blocking(move || runtime.shutdown_timeout(STOP_WITHIN)).await;
        stopping.unwrap_or_else(|error| panic!("the node cannot be stopped: {error}"));
    }

    /// Ends the part without waiting for its tasks.
    pub(crate) fn abandon(self) {
        self.runtime.shutdown_background();
    }
}
