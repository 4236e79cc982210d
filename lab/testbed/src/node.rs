//! A consensus node of either kind for one test.

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use mesh_transaction::TxHash;
use proto_msgs::v2::Transaction;
use serde_json::{Value, json};

use crate::{
    cometbft::Cometbft,
    devnode::DevNode,
    node_setup::{NodeSetup, call},
    retry,
};

const TIME_LIMIT: Duration = Duration::from_secs(30);

impl NodeSetup {
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
    /// CometBFT, if it is installed. Otherwise prints that the test is skipped.
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
    /// Its address, the same after each restart: `http://127.0.0.1:<port>`.
    pub fn url(&self) -> String {
        match self {
            Self::Development(node) => node.url(),
            Self::Cometbft(node) => node.url(),
        }
    }

    /// The development node, for tests that need its own features.
    pub fn development(&self) -> Option<&DevNode> {
        match self {
            Self::Development(node) => Some(node),
            Self::Cometbft(_) => None,
        }
    }

    /// A valid transaction of a party, with proof of work for the newest block. Different texts give
    /// different ones.
    pub async fn transaction(&self, party: u8, text: &str) -> Transaction {
        match self {
            Self::Development(node) => node.transaction(party, text),
            Self::Cometbft(node) => node.transaction(party, text).await,
        }
    }

    /// Waits until a block includes all pending transactions: a development node makes one now, CometBFT must
    /// be configured to make blocks at an interval.
    pub async fn block(&self) {
        match self {
            Self::Development(node) => {
                node.block().await;
            }
            Self::Cometbft(node) => node.block().await,
        }
    }

    /// Kills it without a shutdown. Until [`restart`](Self::restart) its port refuses connections.
    pub async fn kill(&mut self) {
        match self {
            Self::Development(node) => node.kill().await,
            Self::Cometbft(node) => node.kill().await,
        }
    }

    /// Kills it if it still runs, and starts it again with its blocks.
    pub async fn restart(&mut self) {
        match self {
            Self::Development(node) => node.restart().await,
            Self::Cometbft(node) => node.restart().await,
        }
    }

    /// Calls an RPC method and returns the whole answer.
    pub async fn call(&self, method: &str, params: Value) -> Value {
        call(&self.url(), method, params).await
    }

    /// Waits until a block includes a transaction; returns its bytes from there.
    pub async fn included(&self, hash: &TxHash) -> Vec<u8> {
        let tx_params = json!({"hash": STANDARD.encode(hash.bytes())});
        retry(TIME_LIMIT, async || {
            let reply = self.call("tx", tx_params.clone()).await;
            let tx = reply["result"]["tx"].as_str().ok_or_else(|| format!("no block has {hash}"))?;
            STANDARD.decode(tx).map_err(|error| format!("{tx}: {error}"))
        })
        .await
    }
}

/// Makes two tests of each row, an async function that takes a [`NodeKind`]: one with the development node,
/// one with CometBFT, which is skipped where that is not installed.
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
