//! A node with ten blocks, and a client for it.

use std::{net::SocketAddr, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use mesh_devnode::{Base, ChainFile, DevNode, Settings};
use mesh_testbed::{eventually, http_client};
use mesh_transaction::{SpamRules, TxHash, encode};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::transactions::{CHAIN, network, rules, signed, work};

pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
pub(crate) struct Fixture {
    pub(crate) folder: TempDir,
    pub(crate) node: DevNode,
    settings: Settings,
    /// Bits of the proof of work of transactions.
    bits: u32,
}

impl Fixture {
    /// A node with 10 blocks.
    pub(crate) async fn new() -> Self {
        Self::with(rules(), |_| {}).await
    }

    /// A node with 10 blocks under these rules.
    pub(crate) async fn with(rules: SpamRules, change: impl FnOnce(&mut Settings)) -> Self {
        let fixture = Self::after(Base::empty(CHAIN, rules), change).await;
        fixture.blocks(10).await;
        fixture
    }

    /// A node without blocks that continues a chain.
    pub(crate) async fn after(base: Base, change: impl FnOnce(&mut Settings)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = Settings::new(network(), folder.path().join("blocks"));
        change(&mut settings);
        let anywhere = SocketAddr::from(([127, 0, 0, 1], 0));
        ChainFile::create(&settings.file, &base).unwrap();
        let bits = base.rules.difficulty;
        let node = DevNode::start(settings.clone(), anywhere).await.unwrap();
        Self { folder, node, settings, bits }
    }

    /// Kills the node and starts it again on its port.
    pub(crate) async fn restart(self) -> Self {
        let Self { folder, node, settings, bits } = self;
        let address = node.address();
        drop(node);
        let node = DevNode::start(settings.clone(), address).await.unwrap();
        Self { folder, node, settings, bits }
    }

    /// Waits until a transaction waits for a block.
    pub(crate) async fn until_waiting(&self) {
        let is_waiting = async || self.node.chain().waiting(0).0 > 0;
        eventually(PATIENCE, "no transaction waits for a block", is_waiting).await;
    }

    /// Makes blocks; returns the height of the last one.
    pub(crate) async fn blocks(&self, count: usize) -> u64 {
        let mut height = 0;
        for _ in 0..count {
            height = self.node.chain().next_block().await.unwrap().height;
        }
        height
    }

    /// A valid transaction of a party with its proof of work on the newest block.
    pub(crate) fn transaction(&self, party: u8, input: &str) -> Bytes {
        let pow = work(self.bits, &self.node.chain().newest().unwrap().hash, party, input);
        encode(&signed(party, input, Some(pow))).into()
    }

    pub(crate) async fn get(&self, target: &str) -> (u16, Value) {
        let response = http_client().get(format!("{}{target}", self.node.url())).send().await.unwrap();
        (response.status().as_u16(), response.json().await.unwrap())
    }

    pub(crate) async fn post(&self, body: &str) -> (u16, Value) {
        let response = http_client().post(self.node.url()).body(body.to_owned()).send().await.unwrap();
        (response.status().as_u16(), response.json().await.unwrap())
    }

    /// Calls a method and returns the whole answer, whose id must be that of the call.
    pub(crate) async fn call(&self, method: &str, params: Value) -> Value {
        let call = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        let (status, answer) = self.post(&call.to_string()).await;
        let found = (status, &answer["jsonrpc"], &answer["id"]);
        assert_eq!(found, (200, &json!("2.0"), &json!(7)), "{answer}");
        answer
    }

    /// The result of a call that takes a transaction.
    pub(crate) async fn send(&self, method: &str, tx: &Bytes) -> Value {
        let answer = self.call(method, json!({"tx": STANDARD.encode(tx)})).await;
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].clone()
    }

    /// The text of a call's error, which is CometBFT's "Internal error".
    pub(crate) async fn error_text(&self, method: &str, tx: &Bytes) -> String {
        let answer = self.call(method, json!({"tx": STANDARD.encode(tx)})).await;
        assert!(answer.get("result").is_none(), "{answer}");
        let error = &answer["error"];
        assert_eq!((&error["code"], &error["message"]), (&json!(-32603), &json!("Internal error")));
        error["data"].as_str().unwrap().to_owned()
    }

    /// The height of the block of a transaction, when it is in one.
    pub(crate) async fn height_of(&self, tx: &Bytes) -> Option<u64> {
        let hash = STANDARD.encode(TxHash::of(tx).bytes());
        let answer = self.call("tx", json!({"hash": hash})).await;
        answer["result"]["height"].as_str().map(|height| height.parse().unwrap())
    }
}

/// The reason of a refusal at the top of a broadcast's answer.
pub(crate) fn reason(result: &Value) -> String {
    let data = result["data"].as_str().unwrap();
    assert_eq!(data, data.to_ascii_uppercase());
    String::from_utf8(hex::decode(data).unwrap()).unwrap()
}

/// The same inside the answer of a check or delivery.
pub(crate) fn inner_reason(result: &Value) -> String {
    String::from_utf8(STANDARD.decode(result["data"].as_str().unwrap()).unwrap()).unwrap()
}
