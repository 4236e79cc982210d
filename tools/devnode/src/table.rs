//! The in-memory state of a chain: the newest blocks, the positions of transactions in the file, the mempool
//! and the state of the spam rules.

use std::collections::{HashMap, VecDeque};

use mesh_transaction::{Admission, Block, Candidate, Refusal, SpamFilter, TxHash};

use crate::{file::StoredBlock, mempool::Mempool, settings::Checks};

/// Number of blocks in memory: the longest window of the spam rules.
pub(crate) const BLOCK_WINDOW: usize = 500;

/// The in-memory state. It has the positions of all transactions, some 60 bytes each.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) mempool: Mempool,
    pub(crate) spam: SpamFilter,
    pub(crate) catching_up: bool,
    checks: Checks,
    /// In rising height, each with the position of its frame; `None` when the file has not the block.
    blocks: VecDeque<(Block, Option<u64>)>,
    positions: TxPositions,
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
    pub(crate) fn new(
        checks: Checks,
        mempool: Mempool,
        spam: SpamFilter,
        blocks: VecDeque<(Block, Option<u64>)>,
        positions: TxPositions,
    ) -> Self {
        Self { mempool, spam, catching_up: false, checks, blocks, positions }
    }

    pub(crate) fn newest(&self) -> Option<&Block> {
        self.blocks.back().map(|(block, _)| block)
    }

    pub(crate) fn oldest(&self) -> Option<&Block> {
        self.blocks.front().map(|(block, _)| block)
    }

    /// A block of the window, the one before it, and the position of its frame.
    pub(crate) fn block_at(&self, height: u64) -> Option<(Block, Option<Block>, Option<u64>)> {
        let at = self.blocks.binary_search_by_key(&height, |(block, _)| block.height).ok()?;
        let (block, position) = self.blocks.get(at)?;
        let previous = at.checked_sub(1).and_then(|at| self.blocks.get(at));
        Some((block.clone(), previous.map(|(block, _)| block.clone()), *position))
    }

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
    pub(crate) fn committed(&mut self, block: Block, stored: &StoredBlock, frame: u64) {
        record_positions(&mut self.positions, stored, frame);
        push_block(&mut self.blocks, block, Some(frame));
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

/// Appends a block and removes the oldest above [`BLOCK_WINDOW`].
pub(crate) fn push_block(blocks: &mut VecDeque<(Block, Option<u64>)>, block: Block, frame: Option<u64>) {
    blocks.push_back((block, frame));
    if blocks.len() > BLOCK_WINDOW {
        blocks.pop_front();
    }
}
