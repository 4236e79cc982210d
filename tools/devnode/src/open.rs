//! Opens a chain from the file's blocks and the store's newest. The file is set aside when the store has
//! other blocks. An application uses the file only.

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    path::Path,
};

use mesh_transaction::{Admission, Block, Candidate, SpamFilter, SpamRules};

use crate::{
    file::{BlockFile, StoredBlock},
    mempool::Mempool,
    settings::Settings,
    table::{BLOCK_WINDOW, Table, TxPositions, push_block, record_positions},
};

/// An opened chain: its file and the table of its blocks.
#[derive(Debug)]
pub(crate) struct OpenChain {
    pub(crate) file: BlockFile,
    pub(crate) table: Table,
}

/// The content of a file: its newest blocks, and the positions of all transactions.
#[derive(Debug)]
pub(crate) struct StoredChain {
    pub(crate) file: BlockFile,
    pub(crate) newest: VecDeque<FileBlock>,
    pub(crate) positions: TxPositions,
}

/// A block read from the file, without its transactions' bytes.
#[derive(Debug)]
pub(crate) struct FileBlock {
    /// The position of its frame; `None` for a block of the store only.
    frame: Option<u64>,
    block: Block,
    rules: SpamRules,
    admissions: Vec<(Candidate, Admission)>,
}

impl OpenChain {
    pub(crate) fn open(settings: &Settings, recent: &[Block], rules: SpamRules) -> io::Result<Self> {
        let StoredChain { file, newest, positions } = match read(settings, recent)? {
            Some(stored) => stored,
            None => {
                move_aside(&settings.file)?;
                read(settings, recent)?.ok_or_else(|| io::Error::other("the file of blocks is foreign"))?
            }
        };
        let stored = recent.iter().map(|block| FileBlock {
            frame: None,
            block: block.clone(),
            rules,
            admissions: Vec::new(),
        });
        // The file's blocks replace the store's of the same height, because they have the transactions.
        let by_height = |block: FileBlock| (block.block.height, block);
        let blocks: BTreeMap<u64, FileBlock> = stored.chain(newest).map(by_height).collect();
        let mut window = VecDeque::new();
        for FileBlock { block, frame, .. } in blocks.values() {
            push_block(&mut window, block.clone(), *frame);
        }
        let spam = replay(&settings.network.pow_prefix, blocks.into_values());
        let mempool = Mempool::new(settings.limits);
        Ok(Self { file, table: Table::new(settings.checks, mempool, spam, window, positions) })
    }
}

impl StoredChain {
    /// Reads a file; calls `each` with each block and the position of its frame. `None` when it is of another
    /// chain.
    pub(crate) fn read(
        file: &Path,
        chain_id: &str,
        mut each: impl FnMut(&StoredBlock, u64),
    ) -> io::Result<Option<Self>> {
        let (mut newest, mut positions) = (VecDeque::new(), TxPositions::new());
        let file = BlockFile::open(file, chain_id, |stored, frame| {
            record_positions(&mut positions, &stored, frame);
            each(&stored, frame);
            let (block, rules) = (stored.block(), stored.rules());
            let admissions = admissions_of(stored);
            newest.push_back(FileBlock { frame: Some(frame), block, rules, admissions });
            if newest.len() > BLOCK_WINDOW {
                newest.pop_front();
            }
        })?;
        Ok(file.map(|file| Self { file, newest, positions }))
    }
}

/// The state of the spam rules after these blocks.
pub(crate) fn replay(prefix: &str, blocks: impl IntoIterator<Item = FileBlock>) -> SpamFilter {
    let mut spam = SpamFilter::new(prefix);
    let mut admissions = Vec::new();
    for block in blocks {
        spam.begin(block.block, block.rules);
        admissions.extend(block.admissions);
    }
    for (candidate, admission) in admissions {
        spam.restore(&candidate, admission);
    }
    spam
}

/// Reads the file; `None` when it is of another chain or contradicts the store's blocks.
fn read(settings: &Settings, recent: &[Block]) -> io::Result<Option<StoredChain>> {
    let stored = StoredChain::read(&settings.file, &settings.network.chain_id, |_, _| {})?;
    let fits = |blocks: &VecDeque<FileBlock>| match (recent.last(), blocks.back()) {
        (Some(newest), Some(last)) => last.block.height <= newest.height && agrees(blocks, recent),
        _ => true,
    };
    Ok(stored.filter(|stored| fits(&stored.newest)))
}

/// Whether blocks of the same height have the same hash.
fn agrees(blocks: &VecDeque<FileBlock>, recent: &[Block]) -> bool {
    recent.iter().all(|block| match blocks.binary_search_by_key(&block.height, |read| read.block.height) {
        Ok(at) => blocks.get(at).is_some_and(|read| read.block.hash == block.hash),
        Err(_) => true,
    })
}

/// The admissions of a block's successful transactions, which the spam rules count.
fn admissions_of(stored: StoredBlock) -> Vec<(Candidate, Admission)> {
    let succeeded = stored.txs.into_iter().filter(|tx| tx.code == 0);
    succeeded
        .filter_map(|tx| {
            let admission = Admission { height: tx.work_height, bits: tx.work_bits };
            Some((Candidate::trusted(&tx.tx).ok()?, admission))
        })
        .collect()
}

fn move_aside(file: &Path) -> io::Result<()> {
    let aside = file.with_extension("other");
    tracing::warn!(to = %aside.display(), "the file of blocks is of another chain, it is set aside");
    std::fs::rename(file, aside)
}
