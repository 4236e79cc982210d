//! A consensus node whose blocks and mistakes the test decides; it replies in the forms of CometBFT.

use std::{collections::BTreeMap, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use parking_lot::Mutex;
use serde_json::{Value, json};
use warp::{Filter, http::StatusCode};

/// The release whose replies it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    V037,
    V038,
}

/// One block of the node.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) hash: String,
    pub(crate) parent: String,
    pub(crate) time: String,
    pub(crate) txs: Vec<(Vec<u8>, u32, Vec<Value>)>,
    pub(crate) begin: Vec<Value>,
    pub(crate) end: Vec<Value>,
}

#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) chain_id: String,
    pub(crate) version: Version,
    pub(crate) lowest: u64,
    pub(crate) keeps_results: bool,
    pub(crate) blocks: BTreeMap<u64, Block>,
}

/// A running node.
#[derive(Clone)]
pub(crate) struct Chain {
    pub(crate) state: Arc<Mutex<State>>,
    pub(crate) url: String,
}

/// The hash of a block of the chain without forks.
pub(crate) fn hash(height: u64) -> String {
    format!("{height:064x}")
}

/// An event.
pub(crate) fn event(kind: &str, attributes: &[(&str, &str)]) -> Value {
    let attributes: Vec<_> =
        attributes.iter().map(|(key, value)| json!({"key": key, "value": value, "index": true})).collect();
    json!({"type": kind, "attributes": attributes})
}

/// A trade as an event.
pub(crate) fn trade(id: u64, price: &str) -> Value {
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

impl Chain {
    /// Starts a node without blocks.
    pub(crate) async fn start(version: Version) -> Self {
        let state = State {
            chain_id: "net-1".to_owned(),
            version,
            lowest: 1,
            keeps_results: true,
            blocks: BTreeMap::new(),
        };
        let state = Arc::new(Mutex::new(state));
        let shared = Arc::clone(&state);
        let query = warp::query::raw().or(warp::any().map(String::new)).unify();
        let routes = warp::path::param::<String>().and(query).map(move |method: String, query: String| {
            let height = query.strip_prefix("height=").and_then(|height| height.parse().ok());
            let (status, body) = match shared.lock().answer(&method, height.unwrap_or(0)) {
                Ok(result) => (StatusCode::OK, json!({"jsonrpc": "2.0", "id": -1, "result": result})),
                Err(data) => {
                    let error = json!({"code": -32603, "message": "Internal error", "data": data});
                    (StatusCode::INTERNAL_SERVER_ERROR, json!({"jsonrpc": "2.0", "id": -1, "error": error}))
                }
            };
            warp::reply::with_status(warp::reply::json(&body), status)
        });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(warp::serve(routes).incoming(listener).run());
        Self { state, url }
    }

    /// The same chain, which no node serves.
    pub(crate) fn hidden(&self) -> Self {
        Self { state: Arc::new(Mutex::new(self.state.lock().clone())), url: String::new() }
    }

    /// Adds a block with events at its end and returns its height.
    pub(crate) fn add(&self, end: Vec<Value>) -> u64 {
        let height = self.state.lock().blocks.last_key_value().map_or(1, |(height, _)| height + 1);
        let seconds = height % 60;
        let time = format!("2026-01-01T{:02}:{:02}:{seconds:02}.123456789Z", height / 3600, height / 60 % 60);
        let parent = if height == 1 { String::new() } else { hash(height - 1) };
        let (txs, begin) = (Vec::new(), Vec::new());
        self.put(height, Block { hash: hash(height), parent, time, txs, begin, end });
        height
    }

    /// Puts a block at a height.
    pub(crate) fn put(&self, height: u64, block: Block) {
        self.state.lock().blocks.insert(height, block);
    }

    /// Changes a block.
    pub(crate) fn change(&self, height: u64, change: impl FnOnce(&mut Block)) {
        change(self.state.lock().blocks.get_mut(&height).unwrap());
    }
}

impl State {
    fn answer(&self, method: &str, height: u64) -> Result<Value, String> {
        let latest = self.blocks.last_key_value().map_or(0, |(height, _)| *height);
        if method == "status" {
            let sync = json!({
                "latest_block_height": latest.to_string(), "earliest_block_height": self.lowest.to_string(),
            });
            return Ok(json!({"node_info": {"network": self.chain_id}, "sync_info": sync}));
        }
        if height > latest {
            return Err(format!(
                "height {height} must be less than or equal to the current blockchain height {latest}"
            ));
        }
        if height < self.lowest {
            return Err(format!("height {height} is not available, lowest height is {}", self.lowest));
        }
        let block = &self.blocks[&height];
        if method == "block" {
            let txs: Vec<_> = block.txs.iter().map(|(tx, ..)| STANDARD.encode(tx)).collect();
            let header = json!({
                "chain_id": self.chain_id, "height": height.to_string(), "time": block.time,
                "last_block_id": {"hash": block.parent.to_uppercase()},
            });
            let content = json!({"header": header, "data": {"txs": txs}});
            return Ok(json!({"block_id": {"hash": block.hash.to_uppercase()}, "block": content}));
        }
        if !self.keeps_results {
            return Err("node is not persisting finalize block responses".to_owned());
        }
        let results: Vec<_> =
            block.txs.iter().map(|(_, code, events)| json!({"code": code, "events": events})).collect();
        let results = (!results.is_empty()).then_some(results);
        let mut result = json!({"height": height.to_string(), "txs_results": results});
        match self.version {
            Version::V037 => {
                result["begin_block_events"] = json!(block.begin);
                result["end_block_events"] = json!(block.end);
            }
            Version::V038 => {
                let with_mode = |events: &[Value], mode: &str| -> Vec<Value> {
                    let mode = json!({"key": "mode", "value": mode, "index": false});
                    let mut events = events.to_vec();
                    for event in &mut events {
                        event["attributes"].as_array_mut().unwrap().push(mode.clone());
                    }
                    events
                };
                let all = [with_mode(&block.end, "EndBlock"), with_mode(&block.begin, "BeginBlock")];
                result["finalize_block_events"] = json!(all.concat());
            }
        }
        Ok(result)
    }
}
