//! The base of a chain file: the block that the chain continues, and what the node needs to know of the blocks
//! up to it.

use std::{io, time::Duration};

use bytes::Bytes;
use mesh_demo::Simulator;
use mesh_transaction::{Block, SpamRules};
use prost::Message;

use crate::stored::{StoredRules, deflate, inflate};

/// Version of the file. A release that cannot read it, or makes other blocks from it, has another one.
const FORMAT: u32 = 2;

/// What a chain begins with, read once from the store that it continues.
#[derive(Clone, Debug)]
pub struct Base {
    /// Id of the chain.
    pub chain_id: String,
    /// The newest blocks of the store in rising height, as many as the rules against spam need. The chain continues
    /// the last one; without any it begins at height 1.
    pub recent: Vec<Block>,
    /// The rules since the last of them.
    pub rules: SpamRules,
    /// The demo network at that block; without one, blocks have no events.
    pub demo: Option<Simulator>,
}

/// The first frame of a file.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct StoredBase {
    #[prost(uint32, tag = "1")]
    format: u32,
    #[prost(string, tag = "2")]
    chain_id: String,
    #[prost(message, repeated, tag = "3")]
    recent: Vec<RecentBlock>,
    #[prost(message, optional, tag = "4")]
    rules: Option<StoredRules>,
    /// The demo network's state, compressed; empty without one.
    #[prost(bytes = "bytes", tag = "5")]
    demo: Bytes,
}

#[derive(Clone, PartialEq, Message)]
struct RecentBlock {
    #[prost(uint64, tag = "1")]
    height: u64,
    #[prost(string, tag = "2")]
    hash: String,
    #[prost(uint64, tag = "3")]
    time_ns: u64,
}

impl Base {
    /// A chain that begins at height 1.
    pub fn empty(chain_id: impl Into<String>, rules: SpamRules) -> Self {
        Self { chain_id: chain_id.into(), recent: Vec::new(), rules, demo: None }
    }

    /// The height of the block that the chain continues; 0 when it begins at height 1.
    pub fn height(&self) -> u64 {
        self.recent.last().map_or(0, |block| block.height)
    }

    /// The hash of that block; empty when the chain begins at height 1.
    pub fn hash(&self) -> &str {
        self.recent.last().map_or("", |block| &block.hash)
    }

    pub(crate) fn stored(&self) -> io::Result<StoredBase> {
        let recent = self.recent.iter().map(|block| RecentBlock {
            height: block.height,
            hash: block.hash.clone(),
            time_ns: u64::try_from(block.time.as_nanos()).unwrap_or(u64::MAX),
        });
        Ok(StoredBase {
            format: FORMAT,
            chain_id: self.chain_id.clone(),
            recent: recent.collect(),
            rules: Some(StoredRules::new(&self.rules)),
            demo: self.demo.as_ref().map(save).transpose()?.unwrap_or_default(),
        })
    }

    /// `None` when another release has written it.
    pub(crate) fn read(stored: StoredBase) -> Option<Self> {
        if stored.format != FORMAT {
            return None;
        }
        let recent = stored.recent.into_iter().map(|RecentBlock { height, hash, time_ns }| Block {
            height,
            hash,
            time: Duration::from_nanos(time_ns),
        });
        Some(Self {
            chain_id: stored.chain_id,
            recent: recent.collect(),
            rules: stored.rules.unwrap_or_default().rules(),
            demo: match stored.demo.is_empty() {
                true => None,
                false => Some(load(&stored.demo)?),
            },
        })
    }
}

/// The demo network as it is stored.
pub(crate) fn save(demo: &Simulator) -> io::Result<Bytes> {
    deflate(&demo.save()?)
}

/// Reads what [`save`] wrote; `None` when another release did.
pub(crate) fn load(stored: &[u8]) -> Option<Simulator> {
    Simulator::load(&inflate(stored).ok()?)
}
