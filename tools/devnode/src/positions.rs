//! The positions of transactions in the chain file.

use std::collections::HashMap;

use mesh_transaction::{Candidate, Refusal, TxHash};

use crate::stored::StoredBlock;

/// The position of each transaction: its block's frame, and its index in the block; some 60 bytes each.
#[derive(Debug, Default)]
pub(crate) struct TxPositions(HashMap<TxHash, TxPosition>);

#[derive(Clone, Copy, Debug)]
struct TxPosition {
    frame: u64,
    index: u32,
    has_succeeded: bool,
}

impl TxPositions {
    /// The position of the frame with a transaction's block, and its position in the block.
    pub(crate) fn of(&self, hash: &TxHash) -> Option<(u64, u32)> {
        self.0.get(hash).map(|position| (position.frame, position.index))
    }

    /// Refuses a transaction that has succeeded in a block.
    pub(crate) fn refuse_replay(&self, candidate: &Candidate) -> Result<(), Refusal> {
        match self.0.get(&candidate.hash) {
            Some(TxPosition { has_succeeded: true, .. }) => Err(Refusal::replay()),
            _ => Ok(()),
        }
    }

    /// Adds the transactions of a block. A transaction that has succeeded once keeps that position when a proposer
    /// includes it again.
    pub(crate) fn add(&mut self, stored: &StoredBlock, frame: u64) {
        for (tx, index) in stored.txs.iter().zip(0..) {
            let position = TxPosition { frame, index, has_succeeded: tx.has_succeeded };
            let known = self.0.entry(TxHash::of(&tx.tx)).or_insert(position);
            if !known.has_succeeded {
                *known = position;
            }
        }
    }
}
