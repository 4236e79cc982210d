//! A node whose blocks and mistakes a test decides.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::net::TcpListener;

use super::{Block, NodeContent, Version, check_height, hash, reply, serve, status};

/// What the node has.
#[derive(Clone, Debug)]
pub struct State {
    /// The name of the network.
    pub chain_id: String,
    /// The release whose replies it has.
    pub version: Version,
    /// The height of the oldest block that it has not removed.
    pub lowest: u64,
    /// Whether it has results of blocks.
    pub keeps_results: bool,
    /// The blocks by height.
    pub blocks: BTreeMap<u64, Block>,
}

/// A running node.
#[derive(Clone, Debug)]
pub struct Chain {
    /// What it has, at any time to be changed.
    pub state: Arc<Mutex<State>>,
    /// Its address.
    pub url: String,
}

impl Chain {
    /// Starts a node without blocks.
    pub async fn start(version: Version) -> Self {
        let state = State {
            chain_id: "net-1".to_owned(),
            version,
            lowest: 1,
            keeps_results: true,
            blocks: BTreeMap::new(),
        };
        let state = Arc::new(Mutex::new(state));
        let listening = async {
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            Ok::<_, std::io::Error>((listener.local_addr()?, listener))
        };
        let (address, listener) =
            listening.await.unwrap_or_else(|error| panic!("no port for a node: {error}"));
        let content: Arc<dyn NodeContent> = Arc::clone(&state) as _;
        tokio::spawn(serve(listener, content));
        Self { state, url: format!("http://{address}") }
    }

    /// The same chain, which no node serves.
    #[must_use]
    pub fn hidden(&self) -> Self {
        Self { state: Arc::new(Mutex::new(self.state.lock().clone())), url: String::new() }
    }

    /// Adds a block with events at its end and returns its height.
    pub fn add(&self, end: Vec<Value>) -> u64 {
        let height = self.state.lock().blocks.last_key_value().map_or(1, |(height, _)| height + 1);
        let seconds = height % 60;
        let time = format!("2026-01-01T{:02}:{:02}:{seconds:02}.123456789Z", height / 3600, height / 60 % 60);
        let parent = if height == 1 { String::new() } else { hash(height - 1) };
        self.put(height, Block { hash: hash(height), parent, time, end, ..Block::default() });
        height
    }

    /// Puts a block at a height.
    pub fn put(&self, height: u64, block: Block) {
        self.state.lock().blocks.insert(height, block);
    }

    /// Changes a block.
    pub fn change(&self, height: u64, change: impl FnOnce(&mut Block)) {
        change(self.state.lock().blocks.get_mut(&height).unwrap_or_else(|| panic!("no block {height}")));
    }
}

impl NodeContent for Mutex<State> {
    fn reply(&self, method: &str, height: u64) -> Result<Bytes, String> {
        let state = self.lock();
        let State { chain_id, version, lowest, keeps_results, blocks } = &*state;
        let latest = blocks.last_key_value().map_or(0, |(height, _)| *height);
        if method == "status" {
            let hash = blocks.get(&latest).map_or("", |block| &block.hash);
            return Ok(reply(&status(chain_id, *lowest, (latest, hash))));
        }
        check_height(height, *lowest, latest)?;
        let block = blocks.get(&height).ok_or_else(|| format!("no block {height}"))?;
        match method {
            "block" => Ok(reply(&block.block(chain_id, height))),
            _ if !keeps_results => Err("node is not persisting finalize block responses".to_owned()),
            _ => Ok(reply(&block.results(*version, height))),
        }
    }
}
