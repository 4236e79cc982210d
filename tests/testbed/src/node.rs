//! A consensus node for one test: what it is started with, and either of the two that there are.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use mesh_devnode::{Checks, Limits, Settings};
use mesh_transaction::{ALGORITHM, Key, Network, Puzzle, SearchControl, SpamRules, TxHash, search};
use proto_msgs::v2::{ProofOfWork, Transaction, TxVersion, transaction::From as Sender};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};

use crate::cometbft::Cometbft;
use crate::devnode::DevNode;
use crate::http_client;

const STOP_WITHIN: Duration = Duration::from_secs(10);
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(10);

/// What a node is to be started with; made by [`DevNode::configure`].
#[derive(Debug)]
pub struct NodeSetup {
    pub(crate) settings: Settings,
    pub(crate) rules: SpamRules,
    pub(crate) every: Option<Duration>,
    pub(crate) folder: TempDir,
}

impl NodeSetup {
    pub(crate) fn usual() -> Self {
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

    /// Makes a block again and again; otherwise there is one at the start, and a development node makes others when
    /// it is asked for them.
    #[must_use]
    pub fn every(mut self, period: Duration) -> Self {
        self.every = Some(period);
        self
    }

    /// The rules against spam; usually a difficulty of 2 and a quota that no test reaches.
    #[must_use]
    pub fn rules(mut self, rules: SpamRules) -> Self {
        self.rules = rules;
        self
    }

    /// The node's bounds.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.settings.limits = limits;
        self
    }

    /// Takes whatever decodes.
    #[must_use]
    pub fn without_checks(mut self) -> Self {
        self.settings.checks = Checks::None;
        self
    }

    /// Lets each check take so much longer, by a development node.
    #[must_use]
    pub fn check_delay(mut self, delay: Duration) -> Self {
        self.settings.check_delay = delay;
        self
    }

    /// Starts a development node, with one block.
    pub async fn start(self) -> DevNode {
        DevNode::begin(self).await
    }

    /// Starts a node of this kind, with one block.
    pub async fn start_as(self, kind: NodeKind) -> Node {
        match kind {
            NodeKind::Development => Node::Development(self.start().await),
            NodeKind::Cometbft => Node::Cometbft(Cometbft::begin(self).await),
        }
    }
}

/// Which consensus node it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// The development node.
    Development,
    /// CometBFT with our application.
    Cometbft,
}

impl NodeKind {
    /// CometBFT, where it is on this machine. Otherwise says that the test is skipped.
    pub fn cometbft() -> Option<Self> {
        if mesh_launcher::servers::find_cometbft().is_some() {
            return Some(Self::Cometbft);
        }
        let how = mesh_launcher::servers::how_to_get_cometbft();
        eprintln!("skipped, CometBFT is not on the PATH; {how}");
        None
    }
}

/// A running node of either kind. Dropping it kills it.
#[derive(Debug)]
pub enum Node {
    /// The development node.
    Development(DevNode),
    /// CometBFT with our application.
    Cometbft(Cometbft),
}

impl Node {
    /// Where it answers, in every life: `http://127.0.0.1:<port>`.
    pub fn url(&self) -> String {
        match self {
            Self::Development(node) => node.url(),
            Self::Cometbft(node) => node.url(),
        }
    }

    /// The development node, for what only that can do or tell.
    pub fn development(&self) -> Option<&DevNode> {
        match self {
            Self::Development(node) => Some(node),
            Self::Cometbft(_) => None,
        }
    }

    /// A good transaction of a party, with its work on the newest block. Different texts make different ones.
    pub async fn transaction(&self, party: u8, text: &str) -> Transaction {
        match self {
            Self::Development(node) => node.transaction(party, text),
            Self::Cometbft(node) => node.transaction(party, text).await,
        }
    }

    /// Waits until a block has what waits now: a development node makes one, CometBFT has to be told to make them
    /// again and again.
    pub async fn block(&self) {
        match self {
            Self::Development(node) => {
                node.block().await;
            }
            Self::Cometbft(node) => node.block().await,
        }
    }

    /// Kills it, in the middle of whatever it does. Until [`restart`](Self::restart) nobody listens on its port.
    pub async fn kill(&mut self) {
        match self {
            Self::Development(node) => node.kill().await,
            Self::Cometbft(node) => node.kill().await,
        }
    }

    /// Kills it if it still runs, and starts it anew with its blocks.
    pub async fn restart(&mut self) {
        match self {
            Self::Development(node) => node.restart().await,
            Self::Cometbft(node) => node.restart().await,
        }
    }

    /// Calls a method of its RPC and gives the whole answer.
    pub async fn call(&self, method: &str, params: Value) -> Value {
        call(&self.url(), method, params).await
    }

    /// The bytes of a transaction as a block has them; waits for it.
    pub async fn included(&self, hash: &TxHash) -> Vec<u8> {
        let wanted = json!({"hash": STANDARD.encode(hash.bytes())});
        let found = async {
            loop {
                if let Some(tx) = self.call("tx", wanted.clone()).await["result"]["tx"].as_str() {
                    return STANDARD.decode(tx).unwrap_or_else(|error| panic!("{tx}: {error}"));
                }
                sleep(PAUSE).await;
            }
        };
        timeout(PATIENCE, found).await.unwrap_or_else(|_| panic!("no block has {hash}"))
    }
}

/// Calls a method of an RPC that answers.
pub(crate) async fn call(url: &str, method: &str, params: Value) -> Value {
    let call = json!({"jsonrpc": "2.0", "id": 0, "method": method, "params": params});
    let asked = http_client().post(url).json(&call).send().await;
    let answer = asked.unwrap_or_else(|error| panic!("{url} does not answer {method}: {error}"));
    answer.json().await.unwrap_or_else(|error| panic!("no answer to {method}: {error}"))
}

/// A good transaction with its work on a block.
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

/// Threads for one life of a node.
pub(crate) fn threads() -> Runtime {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
    runtime.unwrap_or_else(|error| panic!("no threads for a node: {error}"))
}

/// Ends a life: all of it is gone when this returns, or the next one would find the file in use.
pub(crate) async fn stop(runtime: Runtime) {
    let stopping = spawn_blocking(move || runtime.shutdown_timeout(STOP_WITHIN)).await;
    stopping.unwrap_or_else(|error| panic!("the node cannot be stopped: {error}"));
}

/// Makes two tests of each row, an asynchronous function of a [`NodeKind`]: one before the development node, one before
/// CometBFT, which is skipped where that is not.
#[macro_export]
macro_rules! on_both_nodes {
    ($($row:ident),* $(,)?) => {
        mod on_the_development_node {
            $(#[tokio::test]
            async fn $row() {
                super::$row($crate::NodeKind::Development).await;
            })*
        }

        mod on_cometbft {
            $(#[tokio::test]
            async fn $row() {
                if let Some(kind) = $crate::NodeKind::cometbft() {
                    super::$row(kind).await;
                }
            })*
        }
    };
}
