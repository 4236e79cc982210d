//! A chain file: its blocks, and the state after them.

use std::{io, path::Path};

use mesh_transaction::{Admission, Block, Candidate, SpamFilter};

use crate::{
    application::{AppHash, digest},
    base::{Base, load},
    execution::Execution,
    file::BlockFile,
    positions::TxPositions,
    stored::{StoredBlock, StoredWork},
};

/// An opened chain file. A node can open it once this is dropped.
#[derive(Debug)]
pub struct ChainFile {
    pub(crate) file: BlockFile,
    pub(crate) base: Base,
    pub(crate) blocks: Blocks,
    pub(crate) positions: TxPositions,
    pub(crate) spam: SpamFilter,
    pub(crate) execution: Execution,
    pub(crate) hash: AppHash,
}

/// The blocks of a chain file by height, with the positions of their frames, 8 bytes each.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    frames: Vec<u64>,
    pub(crate) oldest: Option<Block>,
    /// The newest block, or the base.
    pub(crate) newest: Option<Block>,
    pub(crate) newest_txs: usize,
}

impl ChainFile {
    /// Creates the file of a chain without blocks, in place of any other.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn create(path: &Path, base: &Base) -> io::Result<()> {
        BlockFile::create(path, base)
    }

    /// Opens a file; `None` when there is none, or one of another release.
    ///
    /// # Errors
    /// The file cannot be read, or a node has it open.
    pub fn open(path: &Path) -> io::Result<Option<Self>> {
        Self::of_network(path, "")
    }

    /// Like [`open`](Self::open), with the prefix of the network's proof of work.
    pub(crate) fn of_network(path: &Path, prefix: &str) -> io::Result<Option<Self>> {
        let Some((file, base)) = BlockFile::open(path)? else { return Ok(None) };
        let mut blocks = Blocks { newest: base.newest.clone(), ..Blocks::default() };
        let (mut positions, mut hash) = (TxPositions::default(), AppHash::new());
        let mut spam = SpamFilter::new(prefix);
        if let Some(block) = &base.newest {
            spam.begin(block.clone(), base.rules);
        }
        // A chain without blocks has rules, too.
        spam.amend_rules(base.height(), base.rules);
        // The newest block with the demo network's state, and the blocks after it.
        let (mut saved, mut unsaved) = (None, Vec::new());
        file.read(|stored, frame| {
            positions.add(&stored, frame);
            blocks.push(&stored, frame);
            hash = digest(&hash, &stored);
            spam.begin(stored.block(), stored.rules());
            restore_admissions(&mut spam, &stored);
            if stored.demo.is_empty() {
                unsaved.push(StoredBlock { results: Default::default(), ..stored });
            } else {
                unsaved.clear();
                saved = Some(stored);
            }
        })?;
        let mut execution = Execution { rules: base.rules, demo: base.demo.clone() };
        if let Some(stored) = saved {
            let Some(demo) = load(&stored.demo) else { return Ok(None) };
            execution = Execution { rules: stored.rules(), demo: Some(demo) };
        }
        unsaved.iter().for_each(|stored| execution.replay(stored));
        Ok(Some(Self { file, base, blocks, positions, spam, execution, hash }))
    }

    /// What the chain began with.
    pub fn base(&self) -> &Base {
        &self.base
    }

    /// The height of the newest block, or of the base.
    pub fn height(&self) -> u64 {
        self.blocks.head().0
    }

    /// The hash of a block of the file, or of the base.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn hash_at(&self, height: u64) -> io::Result<Option<String>> {
        if height == self.base.height() {
            return Ok(Some(self.base.hash().to_owned()));
        }
        let Some(frame) = self.blocks.frame(height) else { return Ok(None) };
        Ok(Some(self.file.block(frame)?.hash))
    }
}

impl Blocks {
    pub(crate) fn push(&mut self, stored: &StoredBlock, frame: u64) {
        let block = stored.block();
        self.oldest.get_or_insert_with(|| block.clone());
        self.frames.push(frame);
        (self.newest, self.newest_txs) = (Some(block), stored.txs.len());
    }

    /// Height and hash of the newest block, or of the base; 0 and empty without one.
    pub(crate) fn head(&self) -> (u64, &str) {
        self.newest.as_ref().map_or((0, ""), |block| (block.height, &block.hash))
    }

    pub(crate) fn frame(&self, height: u64) -> Option<u64> {
        let at = usize::try_from(height.checked_sub(self.oldest.as_ref()?.height)?).ok()?;
        self.frames.get(at).copied()
    }
}

/// Counts the transactions of a block again that the rules against spam admitted.
fn restore_admissions(spam: &mut SpamFilter, stored: &StoredBlock) {
    for tx in &stored.txs {
        if let (Some(StoredWork { height, bits }), Ok(candidate)) = (tx.work, Candidate::trusted(&tx.tx)) {
            spam.restore(&candidate, Admission { height, bits });
        }
    }
}
