//! The in-memory state of a chain: the positions of blocks and transactions in the file, the mempool and the state
//! of the spam rules.

use std::collections::HashMap;

use mesh_transaction::{Admission, Candidate, Refusal, SpamFilter, TxHash};

use crate::{mempool::Mempool, open::Blocks, settings::Checks, stored::StoredBlock};

/// The in-memory state. It has the positions of all transactions, some 60 bytes each.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) mempool: Mempool,
    pub(crate) spam: SpamFilter,
    pub(crate) blocks: Blocks,
    pub(crate) positions: TxPositions,
    pub(crate) checks: Checks,
    pub(crate) catching_up: bool,
}

/// The position of each transaction: its block's frame, and its index in the block.
pub(crate) type TxPositions = HashMap<TxHash, TxPosition>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TxPosition {
    pub(crate) frame: u64,
    pub(crate) index: u32,
    pub(crate) has_succeeded: bool,
}

impl Table {
    /// The position of the frame with a transaction's block, and its position in the block.
    pub(crate) fn position_of(&self, hash: &TxHash) -> Option<(u64, u32)> {
        self.positions.get(hash).map(|position| (position.frame, position.index))
    }

    /// Checks a transaction.
    pub(crate) fn judge(&self, candidate: &Candidate) -> Result<(), Refusal> {
        if self.checks == Checks::None {
            return Ok(());
        }
        refuse_replay(&self.positions, candidate)?;
        self.spam.check(candidate).map(|_| ())
    }

    /// Checks a transaction and counts it as admitted.
    pub(crate) fn admit(&mut self, candidate: &Candidate) -> Result<(), Refusal> {
        if self.checks == Checks::None {
            return Ok(());
        }
        refuse_replay(&self.positions, candidate)?;
        self.spam.admit(candidate).map(|_| ())
    }

    /// Checks a waiting transaction again: the block of its work (0 without checks), or the refusal.
    pub(crate) fn admission(&self, hash: &TxHash) -> Result<Admission, Refusal> {
        match self.checks {
            Checks::All => self.spam.admission(hash),
            Checks::None => Ok(Admission { height: 0, bits: 0 }),
        }
    }

    /// Updates the state after a block was written to the file.
    pub(crate) fn committed(&mut self, stored: &StoredBlock, frame: u64) {
        record_positions(&mut self.positions, stored, frame);
        self.blocks.push(stored, frame);
        self.spam.amend_rules(stored.height, stored.rules());
        let (checks, spam) = (self.checks, &self.spam);
        let is_valid = |hash: &TxHash| checks == Checks::None || spam.admission(hash).is_ok();
        self.mempool.settle(&stored.outcomes(), is_valid);
    }
}

/// Refuses a transaction that has succeeded in a block.
pub(crate) fn refuse_replay(positions: &TxPositions, candidate: &Candidate) -> Result<(), Refusal> {
    match positions.get(&candidate.hash) {
        Some(TxPosition { has_succeeded: true, .. }) => Err(Refusal::replay()),
        _ => Ok(()),
    }
}

/// Stores the positions of a block's transactions. A transaction that has succeeded once keeps that position
/// when a proposer includes it again.
pub(crate) fn record_positions(positions: &mut TxPositions, stored: &StoredBlock, frame: u64) {
    for (tx, index) in stored.txs.iter().zip(0..) {
        let position = TxPosition { frame, index, has_succeeded: tx.code == 0 };
        let known = positions.entry(TxHash::of(&tx.tx)).or_insert(position);
        if !known.has_succeeded {
            *known = position;
        }
    }
}
