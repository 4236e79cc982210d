//! What a chain knows at a moment: the blocks held, where transactions are, what waits, what the rules
//! remember.

use std::collections::{HashMap, VecDeque};

use mesh_transaction::{Admission, Block, Candidate, Refusal, SpamFilter, TxHash};

use crate::{file::StoredBlock, mempool::Mempool, settings::Checks};

/// As many blocks are held as the window of the rules can be long.
pub(crate) const BLOCK_WINDOW: usize = 500;

/// The table. Positions are kept for all transactions: some 60 bytes each, a small part of the file.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) mempool: Mempool,
    pub(crate) spam: SpamFilter,
    pub(crate) catching_up: bool,
    checks: Checks,
    /// In rising height, each with the position of its frame when the file has it.
    blocks: VecDeque<(Block, Option<u64>)>,
    positions: TxPositions,
}

/// Where transactions are: the position of their block's frame, and which of its transactions it is.
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

    /// A block held, the one before it, and the position of its frame.
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

    /// Judges a transaction.
    pub(crate) fn judge(&self, candidate: &Candidate) -> Result<(), Refusal> {
        if self.checks == Checks::None {
            return Ok(());
        }
        refuse_replay(&self.positions, candidate)?;
        self.spam.check(candidate).map(|_| ())
    }

    /// Judges a transaction and remembers that it is taken.
    pub(crate) fn admit(&mut self, candidate: &Candidate) -> Result<(), Refusal> {
        if self.checks == Checks::None {
            return Ok(());
        }
        refuse_replay(&self.positions, candidate)?;
        self.spam.admit(candidate).map(|_| ())
    }

    /// Why a transaction that waits does not succeed any more, or the block of its work (0 without checks).
    pub(crate) fn admission(&self, hash: &TxHash) -> Result<Admission, Refusal> {
        match self.checks {
            Checks::All => self.spam.admission(hash),
            Checks::None => Ok(Admission { height: 0, bits: 0 }),
        }
    }

    /// A block is written.
    pub(crate) fn committed(&mut self, block: Block, stored: &StoredBlock, frame: u64) {
        record_positions(&mut self.positions, stored, frame);
        hold(&mut self.blocks, block, Some(frame));
        let (checks, spam) = (self.checks, &self.spam);
        let stands = |hash: &TxHash| checks == Checks::None || spam.admission(hash).is_ok();
        self.mempool.settle(&stored.outcomes(), stands);
    }
}

/// Refuses what has succeeded in a block.
pub(crate) fn refuse_replay(positions: &TxPositions, candidate: &Candidate) -> Result<(), Refusal> {
    match positions.get(&candidate.hash) {
        Some(TxPosition { has_succeeded: true, .. }) => Err(Refusal::replay()),
        _ => Ok(()),
    }
}

/// Remembers where the transactions of a block are. One that has succeeded stays so, whatever comes of it
/// when a proposer puts it into a block again.
pub(crate) fn record_positions(positions: &mut TxPositions, stored: &StoredBlock, frame: u64) {
    for (tx, index) in stored.txs.iter().zip(0..) {
        let position = TxPosition { frame, index, has_succeeded: tx.code == 0 };
        let known = positions.entry(TxHash::of(&tx.tx)).or_insert(position);
        if !known.has_succeeded {
            *known = position;
        }
    }
}

/// Holds one block more, and lets the oldest go when there are too many.
pub(crate) fn hold(blocks: &mut VecDeque<(Block, Option<u64>)>, block: Block, frame: Option<u64>) {
    blocks.push_back((block, frame));
    if blocks.len() > BLOCK_WINDOW {
        blocks.pop_front();
    }
}
