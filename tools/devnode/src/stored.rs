//! A block as it is stored: its transactions, and their results with the events, which are compressed.

use std::{
    collections::HashMap,
    io::{self, Read as _, Write as _},
    time::Duration,
};

use bytes::Bytes;
use flate2::{Compression, read::DeflateDecoder, write::DeflateEncoder};
use mesh_transaction::{Block, SpamRules, TxHash};
use prost::Message;
use tendermint_proto::v0_38::abci::ResponseFinalizeBlock;

/// Limit of what a stored member expands to, bytes; more means a corrupt file.
const LONGEST_EXPANDED: u64 = 1 << 30;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct StoredBlock {
    #[prost(uint64, tag = "1")]
    pub(crate) height: u64,
    #[prost(string, tag = "2")]
    pub(crate) hash: String,
    #[prost(uint64, tag = "3")]
    pub(crate) time_ns: u64,
    /// The rules since this block.
    #[prost(message, optional, tag = "4")]
    pub(crate) rules: Option<StoredRules>,
    #[prost(message, repeated, tag = "5")]
    pub(crate) txs: Vec<StoredTx>,
    #[prost(string, tag = "6")]
    pub(crate) previous_hash: String,
    /// The results of its transactions and its events: a [`ResponseFinalizeBlock`], compressed; empty without any.
    #[prost(bytes = "bytes", tag = "7")]
    pub(crate) results: Bytes,
    /// The state of the demo network after some blocks, compressed; empty after the others.
    #[prost(bytes = "bytes", tag = "8")]
    pub(crate) demo: Bytes,
}

/// The spam rules that hold since a block.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct StoredRules {
    #[prost(uint32, tag = "1")]
    difficulty: u32,
    #[prost(uint32, tag = "2")]
    past_blocks: u32,
    #[prost(uint32, tag = "3")]
    tx_per_block: u32,
    #[prost(bool, tag = "4")]
    increasing: bool,
    #[prost(uint64, tag = "5")]
    bar_ms: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct StoredTx {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) tx: Bytes,
    /// Whether it was executed without an error.
    #[prost(bool, tag = "2")]
    pub(crate) has_succeeded: bool,
    /// Its proof of work; none when the rules against spam refused it.
    #[prost(message, optional, tag = "3")]
    pub(crate) work: Option<StoredWork>,
}

/// A proof of work, 0 without checks.
#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct StoredWork {
    /// Height of the block that it was done on.
    #[prost(uint64, tag = "1")]
    pub(crate) height: u64,
    #[prost(uint32, tag = "2")]
    pub(crate) bits: u32,
}

impl StoredBlock {
    pub(crate) fn new(block: &Block) -> Self {
        let time_ns = u64::try_from(block.time.as_nanos()).unwrap_or(u64::MAX);
        Self { height: block.height, hash: block.hash.clone(), time_ns, ..Self::default() }
    }

    /// Whether each of its transactions succeeded.
    pub(crate) fn outcomes(&self) -> HashMap<TxHash, bool> {
        self.txs.iter().map(|tx| (TxHash::of(&tx.tx), tx.has_succeeded)).collect()
    }

    pub(crate) fn block(&self) -> Block {
        Block { height: self.height, hash: self.hash.clone(), time: Duration::from_nanos(self.time_ns) }
    }

    pub(crate) fn rules(&self) -> SpamRules {
        self.rules.clone().unwrap_or_default().rules()
    }

    /// The transactions that the rules against spam admitted; their execution may have failed.
    pub(crate) fn admitted(&self) -> impl Iterator<Item = &StoredTx> {
        self.txs.iter().filter(|tx| tx.work.is_some())
    }

    /// The results of its transactions in order, and the events of the block itself.
    pub(crate) fn results(&self) -> io::Result<ResponseFinalizeBlock> {
        Ok(ResponseFinalizeBlock::decode(inflate(&self.results)?.as_slice())?)
    }
}

impl StoredRules {
    pub(crate) fn new(rules: &SpamRules) -> Self {
        Self {
            difficulty: rules.difficulty,
            past_blocks: rules.past_blocks,
            tx_per_block: rules.tx_per_block,
            increasing: rules.increasing,
            bar_ms: u64::try_from(rules.bar.as_millis()).unwrap_or(u64::MAX),
        }
    }

    pub(crate) fn rules(&self) -> SpamRules {
        SpamRules {
            difficulty: self.difficulty,
            past_blocks: self.past_blocks,
            tx_per_block: self.tx_per_block,
            increasing: self.increasing,
            bar: Duration::from_millis(self.bar_ms),
        }
    }
}

/// Compresses a member of a frame; nothing stays nothing.
pub(crate) fn deflate(bytes: &[u8]) -> io::Result<Bytes> {
    if bytes.is_empty() {
        return Ok(Bytes::new());
    }
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes)?;
    encoder.finish().map(Bytes::from)
}

/// Expands what [`deflate`] compressed.
pub(crate) fn inflate(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut expanded = Vec::new();
    if !bytes.is_empty() {
        DeflateDecoder::new(bytes).take(LONGEST_EXPANDED).read_to_end(&mut expanded)?;
    }
    Ok(expanded)
}
