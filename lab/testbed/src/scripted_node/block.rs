//! Blocks and their results in the forms of CometBFT.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

/// The release whose replies a node has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// CometBFT 0.37.
    V037,
    /// CometBFT 0.38 and later.
    V038,
}

/// One block of the node.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// Its hash, hex.
    pub hash: String,
    /// The hash of the block before it; empty in the first block of a chain.
    pub parent: String,
    /// The time of its header.
    pub time: String,
    /// Its transactions with code and events.
    pub txs: Vec<(Vec<u8>, u32, Vec<Value>)>,
    /// The events before those of its transactions.
    pub begin: Vec<Value>,
    /// The events after those of its transactions.
    pub end: Vec<Value>,
}

/// The hash of a block of the chain without forks.
pub fn hash(height: u64) -> String {
    format!("{height:064x}")
}

/// An event.
pub fn event(kind: &str, attributes: &[(&str, &str)]) -> Value {
    let attributes: Vec<_> =
        attributes.iter().map(|(key, value)| json!({"key": key, "value": value, "index": true})).collect();
    json!({"type": kind, "attributes": attributes})
}

/// A trade as an event.
pub fn trade(id: u64, price: &str) -> Value {
    let (id, side) = (format!("{id:064x}"), "ab".repeat(32));
    event(
        "mesh.trades",
        &[
            ("id", &id),
            ("market_id", &side),
            ("price", price),
            ("size", "5"),
            ("buyer", &side),
            ("seller", &side),
            ("buy_order", &side),
            ("sell_order", &side),
            ("type", "1"),
        ],
    )
}

/// The result of `status`.
pub fn status(chain_id: &str, lowest: u64, (latest, hash): (u64, &str)) -> Value {
    let sync = json!({
        "latest_block_height": latest.to_string(), "latest_block_hash": hash.to_uppercase(),
        "earliest_block_height": lowest.to_string(), "catching_up": false,
    });
    json!({"node_info": {"network": chain_id}, "sync_info": sync})
}

impl Block {
    /// The result of `block`.
    pub fn block(&self, chain_id: &str, height: u64) -> Value {
        let txs: Vec<_> = self.txs.iter().map(|(tx, ..)| STANDARD.encode(tx)).collect();
        let header = json!({
            "chain_id": chain_id, "height": height.to_string(), "time": self.time,
            "last_block_id": {"hash": self.parent.to_uppercase()},
        });
        let content = json!({"header": header, "data": {"txs": txs}});
        json!({"block_id": {"hash": self.hash.to_uppercase()}, "block": content})
    }

    /// The result of `block_results`.
    pub fn results(&self, version: Version, height: u64) -> Value {
        let results: Vec<_> =
            self.txs.iter().map(|(_, code, events)| json!({"code": code, "events": events})).collect();
        let results = (!results.is_empty()).then_some(results);
        let mut result = json!({"height": height.to_string(), "txs_results": results});
        match version {
            Version::V037 => {
                result["begin_block_events"] = json!(self.begin);
                result["end_block_events"] = json!(self.end);
            }
            Version::V038 => {
                let all = [with_mode(&self.end, "EndBlock"), with_mode(&self.begin, "BeginBlock")];
                result["finalize_block_events"] = json!(all.concat());
            }
        }
        result
    }
}

/// Events with the attribute that says when in the block they came.
fn with_mode(events: &[Value], mode: &str) -> Vec<Value> {
    let mut events = events.to_vec();
    for attributes in events.iter_mut().filter_map(|event| event["attributes"].as_array_mut()) {
        attributes.push(json!({"key": "mode", "value": mode, "index": false}));
    }
    events
}
