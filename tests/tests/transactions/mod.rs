//! Transactions over HTTP with a development node, and with CometBFT where that is installed.

mod encoding;
mod fields;
mod forms;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use mesh_testbed::{Answer, Database, Mesh, Node, NodeKind, NodeSetup};
use mesh_transaction::{TxHash, encode};
use proto_msgs::v2::Transaction;
use reqwest::Method;
use serde_json::{Value, json};

pub(crate) struct Environment {
    pub(crate) node: Node,
    pub(crate) mesh: Mesh,
    _database: Database,
}

impl Environment {
    pub(crate) async fn start(node: NodeSetup) -> Self {
        Self::start_with(NodeKind::Development, node).await
    }

    pub(crate) async fn start_with(kind: NodeKind, node: NodeSetup) -> Self {
        let (node, database) = tokio::join!(node.start_as(kind), Database::fresh());
        let mesh = Mesh::configure(&database).env("MESH_NODE_URL", node.url()).without(&["export"]);
        let mesh = mesh.env("MESH_RELAY_SIGNATURE_ALGO", "ed25519").start().await;
        Self { node, mesh, _database: database }
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send(path, body.to_string()).await
    }

    pub(crate) async fn send(&self, path: &str, body: String) -> Answer {
        Answer::to(self.mesh.request(Method::POST, path).body(body)).await
    }

    /// Asserts that no transaction has reached the node; CometBFT does not count them.
    pub(crate) fn nothing_was_broadcast(&self) {
        assert!(self.node.development().is_none_or(|node| node.received().is_empty()));
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.mesh.get(path).await
    }
}

/// The JSON of a valid transaction.
pub(crate) fn body(tx: &Transaction) -> Value {
    serde_json::to_value(tx).unwrap()
}

pub(crate) fn hash(tx: &Transaction) -> String {
    TxHash::of(&encode(tx)).to_string()
}

/// The same transaction, encoded.
pub(crate) fn raw(tx: &Transaction) -> Value {
    json!(STANDARD.encode(encode(tx)))
}
