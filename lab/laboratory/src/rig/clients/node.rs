//! Queries the consensus node directly, without the mesh.

use std::{net::SocketAddr, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use mesh::failure::{Failure, cannot};
use mesh_testbed::poll;
use mesh_transaction::TxHash;
use reqwest::Client;
use serde_json::{Value, json};

const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// How long waiting transactions may take to get into blocks.
const EMPTY_WITHIN: Duration = Duration::from_secs(30);

/// An RPC client of one node.
pub(crate) struct Node {
    client: Client,
    url: String,
}

impl Node {
    /// Waits until a node answers and no transaction waits for a block.
    ///
    /// # Errors
    /// When transactions still wait after half a minute.
    pub(crate) async fn idle(address: SocketAddr) -> Result<Self, Failure> {
        let client = Client::builder().no_proxy().timeout(ANSWER_WITHIN).build();
        let client = client.map_err(|error| cannot("make an HTTP client", &error))?;
        let node = Self { client, url: format!("http://{address}") };
        let is_idle = async || match node.call("num_unconfirmed_txs", &json!({})).await {
            Ok(waiting) if waiting["result"]["total"] == "0" => Ok(()),
            _ => Err(Failure::failed("transactions wait at the node and come into no block")),
        };
        poll(EMPTY_WITHIN, is_idle).await?;
        Ok(node)
    }

    /// Whether a block has a transaction.
    pub(crate) async fn has(&self, hash: &TxHash) -> Result<bool, Failure> {
        let answer = self.call("tx", &json!({"hash": STANDARD.encode(hash.bytes())})).await?;
        let message = answer["error"]["data"].as_str().unwrap_or_default();
        match (answer["result"].is_object(), message.ends_with("not found")) {
            (true, _) => Ok(true),
            (false, true) => Ok(false),
            (false, false) => Err(Failure::failed(format!("the node answers {answer}"))),
        }
    }

    async fn call(&self, method: &str, parameters: &Value) -> Result<Value, Failure> {
        let call = json!({"jsonrpc": "2.0", "id": 0, "method": method, "params": parameters});
        let called = async { self.client.post(&self.url).json(&call).send().await?.json().await };
        called.await.map_err(|error: reqwest::Error| cannot("ask the node", &error))
    }
}
