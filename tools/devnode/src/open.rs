//! Opens a chain file: its blocks, and the state after them.

use std::{collections::VecDeque, io, path::Path};

use mesh_transaction::{Admission, Block, Candidate, SpamFilter, SpamRules};

use crate::{
    base::{Base, load},
    execution::Execution,
    file::BlockFile,
    stored::StoredBlock,
    table::{TxPositions, record_positions},
};

/// Number of blocks that the longest window of the spam rules has.
const BLOCK_WINDOW: usize = 500;

/// An opened chain file.
#[derive(Debug)]
pub(crate) struct OpenChain {
    pub(crate) file: BlockFile,
    pub(crate) base: Base,
    pub(crate) blocks: Blocks,
    pub(crate) positions: TxPositions,
    pub(crate) spam: SpamFilter,
    pub(crate) execution: Execution,
}

/// The blocks of a chain file by height, with the positions of their frames, 8 bytes each.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    frames: Vec<u64>,
    oldest: Option<Block>,
    /// The newest block, or the base.
    newest: Option<Block>,
    newest_txs: usize,
}

/// What the spam rules need of a block of the file.
struct WindowBlock {
    block: Block,
    rules: SpamRules,
    admissions: Vec<(Candidate, Admission)>,
}

impl OpenChain {
    /// Opens a file; calls `each` with every block. `prefix` is that of the network's proof of work. `None` when
    /// there is no file, or one of another release.
    pub(crate) fn read(
        path: &Path,
        prefix: &str,
        mut each: impl FnMut(&StoredBlock),
    ) -> io::Result<Option<Self>> {
        let (mut positions, mut blocks, mut window) =
            (TxPositions::new(), Blocks::default(), VecDeque::new());
        let (mut state, mut unsaved) = (None, Vec::new());
        let opened = BlockFile::open(path, |stored, frame| {
            record_positions(&mut positions, &stored, frame);
            each(&stored);
            blocks.push(&stored, frame);
            window.push_back(WindowBlock {
                block: stored.block(),
                rules: stored.rules(),
                admissions: admissions_of(&stored),
            });
            if window.len() > BLOCK_WINDOW {
                window.pop_front();
            }
            if stored.demo.is_empty() {
                unsaved.push(StoredBlock { events: Default::default(), ..stored });
            } else {
                unsaved.clear();
                state = Some((stored.rules(), stored.demo));
            }
        })?;
        let Some((file, base)) = opened else { return Ok(None) };
        let mut execution = Execution { rules: base.rules, demo: base.demo.clone() };
        if let Some((rules, demo)) = state {
            let Some(demo) = load(&demo) else { return Ok(None) };
            execution = Execution { rules, demo: Some(demo) };
        }
        match execution.demo {
            Some(_) => unsaved.iter().for_each(|stored| execution.replay(stored)),
            None => execution.rules = unsaved.last().map_or(execution.rules, StoredBlock::rules),
        }
        if blocks.frames.is_empty() {
            blocks.newest = base.recent.last().cloned();
        }
        let spam = replay(prefix, &base, window);
        Ok(Some(Self { file, base, blocks, positions, spam, execution }))
    }

    /// Like [`read`](Self::read), for a node: a file has to be there.
    pub(crate) fn open(path: &Path, prefix: &str, each: impl FnMut(&StoredBlock)) -> io::Result<Self> {
        Self::read(path, prefix, each)?.ok_or_else(|| {
            let path = path.display();
            io::Error::other(format!(
                "there is no chain file {path} of this release; start the node with `mesh up`"
            ))
        })
    }
}

impl Blocks {
    pub(crate) fn push(&mut self, stored: &StoredBlock, frame: u64) {
        let block = stored.block();
        if self.frames.is_empty() {
            self.oldest = Some(block.clone());
        }
        self.frames.push(frame);
        self.newest = Some(block);
        self.newest_txs = stored.txs.len();
    }

    /// The newest block of the file; without any, the block that the chain continues.
    pub(crate) fn newest(&self) -> Option<&Block> {
        self.newest.as_ref()
    }

    /// Height and hash of [`newest`](Self::newest); 0 and empty without one.
    pub(crate) fn head(&self) -> (u64, &str) {
        self.newest.as_ref().map_or((0, ""), |block| (block.height, &block.hash))
    }

    /// The number of the newest block's transactions.
    pub(crate) fn newest_txs(&self) -> usize {
        self.newest_txs
    }

    /// The first block of the file.
    pub(crate) fn oldest(&self) -> Option<&Block> {
        self.oldest.as_ref()
    }

    /// The position of a block's frame.
    pub(crate) fn frame(&self, height: u64) -> Option<u64> {
        let at = usize::try_from(height.checked_sub(self.oldest.as_ref()?.height)?).ok()?;
        self.frames.get(at).copied()
    }
}

/// The state of the spam rules after the newest block.
fn replay(prefix: &str, base: &Base, window: VecDeque<WindowBlock>) -> SpamFilter {
    let mut spam = SpamFilter::new(prefix);
    for block in &base.recent {
        spam.begin(block.clone(), base.rules);
    }
    // A chain without blocks has rules, too.
    spam.amend_rules(base.height(), base.rules);
    let mut admissions = Vec::new();
    for block in window {
        spam.begin(block.block, block.rules);
        admissions.extend(block.admissions);
    }
    for (candidate, admission) in admissions {
        spam.restore(&candidate, admission);
    }
    spam
}

/// The admissions of a block's transactions, which the spam rules count.
fn admissions_of(stored: &StoredBlock) -> Vec<(Candidate, Admission)> {
    let admitted = stored.txs.iter().filter(|tx| tx.is_admitted());
    admitted
        .filter_map(|tx| {
            let admission = Admission { height: tx.work_height, bits: tx.work_bits };
            Some((Candidate::trusted(&tx.tx).ok()?, admission))
        })
        .collect()
}
