//! The base of a chain file: the block that the chain continues, and the state after it.

use std::io;

use bytes::Bytes;
use mesh_demo::Simulator;
use mesh_transaction::{Block, SpamRules};
use prost::Message;

use crate::stored::{StoredBlock, StoredRules, deflate, inflate};

/// Version of the file. A release that cannot read it, or makes other blocks from it, has another one.
const FORMAT: u32 = 3;

/// What a chain begins with, read once from the store that it continues.
#[derive(Clone, Debug)]
pub struct Base {
    /// Id of the chain.
    pub chain_id: String,
    /// The newest block of the store, which the chain continues; without one it begins at height 1.
    pub newest: Option<Block>,
    /// The rules against spam since that block.
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
    #[prost(message, optional, tag = "3")]
    newest: Option<StoredBlock>,
    #[prost(message, optional, tag = "4")]
    rules: Option<StoredRules>,
    /// The demo network's state, compressed; empty without one.
    #[prost(bytes = "bytes", tag = "5")]
    demo: Bytes,
}

impl Base {
    /// A chain that begins at height 1.
    pub fn empty(chain_id: impl Into<String>, rules: SpamRules) -> Self {
        Self { chain_id: chain_id.into(), newest: None, rules, demo: None }
    }

    /// The height of the block that the chain continues; 0 when it begins at height 1.
    pub fn height(&self) -> u64 {
        self.newest.as_ref().map_or(0, |block| block.height)
    }

    /// The hash of that block; empty when the chain begins at height 1.
    pub fn hash(&self) -> &str {
        self.newest.as_ref().map_or("", |block| &block.hash)
    }

    pub(crate) fn stored(&self) -> io::Result<StoredBase> {
        Ok(StoredBase {
            format: FORMAT,
            chain_id: self.chain_id.clone(),
            newest: self.newest.as_ref().map(StoredBlock::new),
            rules: Some(StoredRules::new(&self.rules)),
            demo: self.demo.as_ref().map(save).transpose()?.unwrap_or_default(),
        })
    }

    /// `None` when another release has written it.
    pub(crate) fn read(stored: StoredBase) -> Option<Self> {
        if stored.format != FORMAT {
            return None;
        }
        Some(Self {
            chain_id: stored.chain_id,
            newest: stored.newest.as_ref().map(StoredBlock::block),
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
