//! A block as it is stored: its transactions, their results, and the events, which are compressed.

use std::{
    collections::HashMap,
    io::{self, Read as _, Write as _},
    time::Duration,
};

use bytes::Bytes;
use flate2::{Compression, read::DeflateDecoder, write::DeflateEncoder};
use mesh_transaction::{Admission, Block, Refusal, SpamRules, TxHash};
use prost::Message;
use tendermint_proto::v0_38::abci::{Event, ExecTxResult};

/// Limit of what a stored member expands to, bytes; more means a corrupt file.
const LONGEST_EXPANDED: u64 = 1 << 30;

/// A block as it is stored.
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
    /// The hash of the block before it.
    #[prost(string, tag = "6")]
    pub(crate) previous_hash: String,
    /// [`Events`], compressed; empty without any.
    #[prost(bytes = "bytes", tag = "7")]
    pub(crate) events: Bytes,
    /// The state of the demo network after some blocks, compressed; empty after the others.
    #[prost(bytes = "bytes", tag = "8")]
    pub(crate) demo: Bytes,
}

/// The events of a block.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Events {
    /// Those of the block itself.
    #[prost(message, repeated, tag = "1")]
    pub(crate) block: Vec<Event>,
    /// Those of each transaction.
    #[prost(message, repeated, tag = "2")]
    pub(crate) txs: Vec<TxEvents>,
}

/// The events of a transaction.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct TxEvents {
    #[prost(message, repeated, tag = "1")]
    pub(crate) events: Vec<Event>,
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

/// A transaction in a block.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct StoredTx {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) tx: Bytes,
    #[prost(uint32, tag = "2")]
    pub(crate) code: u32,
    /// Why it was not admitted; empty when it was.
    #[prost(string, tag = "3")]
    pub(crate) reason: String,
    /// Height of the block of its proof of work, 0 without one.
    #[prost(uint64, tag = "4")]
    pub(crate) work_height: u64,
    #[prost(uint32, tag = "5")]
    pub(crate) work_bits: u32,
    /// Why its execution failed; empty when it did not.
    #[prost(string, tag = "6")]
    pub(crate) log: String,
}

impl StoredBlock {
    /// Whether each of its transactions succeeded.
    pub(crate) fn outcomes(&self) -> HashMap<TxHash, bool> {
        self.txs.iter().map(|tx| (TxHash::of(&tx.tx), tx.code == 0)).collect()
    }

    pub(crate) fn block(&self) -> Block {
        Block { height: self.height, hash: self.hash.clone(), time: Duration::from_nanos(self.time_ns) }
    }

    pub(crate) fn rules(&self) -> SpamRules {
        self.rules.clone().unwrap_or_default().rules()
    }

    /// The results of its transactions in order, and the events of the block itself.
    pub(crate) fn results(&self) -> io::Result<(Vec<ExecTxResult>, Vec<Event>)> {
        let Events { block, mut txs } = Events::decode(inflate(&self.events)?.as_slice())?;
        txs.resize(self.txs.len(), TxEvents::default());
        let results = self.txs.iter().zip(txs).map(|(tx, events)| ExecTxResult {
            code: tx.code,
            data: tx.reason.clone().into(),
            log: tx.log.clone(),
            events: events.events,
            ..ExecTxResult::default()
        });
        Ok((results.collect(), block))
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

impl StoredTx {
    pub(crate) fn new(tx: Bytes, outcome: Result<Admission, Refusal>) -> Self {
        let mut stored = Self { tx, ..Self::default() };
        match outcome {
            Ok(Admission { height, bits }) => (stored.work_height, stored.work_bits) = (height, bits),
            Err(refusal) => (stored.code, stored.reason) = (refusal.code, refusal.reason),
        }
        stored
    }

    /// Whether the rules against spam admitted it; its execution may have failed nevertheless.
    pub(crate) fn is_admitted(&self) -> bool {
        self.reason.is_empty()
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
