//! Opening a chain: the file's blocks, or none of them when the store has others, and the store's newest. An
//! application has the file's blocks alone.

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
    table::{BLOCK_WINDOW, Table, TxPositions, hold, record_positions},
};

/// A chain that was opened: its file, and what is known of its blocks.
#[derive(Debug)]
pub(crate) struct OpenChain {
    pub(crate) file: BlockFile,
    pub(crate) table: Table,
}

/// What a file holds: the newest of its blocks, and the positions of all transactions.
#[derive(Debug)]
pub(crate) struct StoredChain {
    pub(crate) file: BlockFile,
    pub(crate) newest: VecDeque<FileBlock>,
    pub(crate) positions: TxPositions,
}

/// A block as it is read from the file, without its transactions' bytes.
#[derive(Debug)]
pub(crate) struct FileBlock {
    /// The position of its frame, when the file has it.
    frame: Option<u64>,
    block: Block,
    rules: SpamRules,
    taken: Vec<(Candidate, Admission)>,
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
            taken: Vec::new(),
        });
        // Of a block that both have, the file knows the transactions.
        let by_height = |block: FileBlock| (block.block.height, block);
        let blocks: BTreeMap<u64, FileBlock> = stored.chain(newest).map(by_height).collect();
        let mut held = VecDeque::new();
        for FileBlock { block, frame, .. } in blocks.values() {
            hold(&mut held, block.clone(), *frame);
        }
        let spam = replay(&settings.network.pow_prefix, blocks.into_values());
        let mempool = Mempool::new(settings.limits);
        Ok(Self { file, table: Table::new(settings.checks, mempool, spam, held, positions) })
    }
}

impl StoredChain {
    /// Reads a file, and shows each of its blocks with the position of its frame; nothing when it is of
    /// another chain.
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
            newest.push_back(FileBlock { frame: Some(frame), block, rules, taken: taken(stored) });
            if newest.len() > BLOCK_WINDOW {
                newest.pop_front();
            }
        })?;
        Ok(file.map(|file| Self { file, newest, positions }))
    }
}

/// The state of the rules after these blocks.
pub(crate) fn replay(prefix: &str, blocks: impl IntoIterator<Item = FileBlock>) -> SpamFilter {
    let mut spam = SpamFilter::new(prefix);
    let mut taken = Vec::new();
    for block in blocks {
        spam.begin(block.block, block.rules);
        taken.extend(block.taken);
    }
    for (candidate, admission) in taken {
        spam.restore(&candidate, admission);
    }
    spam
}

/// Reads the file; nothing when it is of another chain, or of another history of this one.
fn read(settings: &Settings, recent: &[Block]) -> io::Result<Option<StoredChain>> {
    let stored = StoredChain::read(&settings.file, &settings.network.chain_id, |_, _| {})?;
    let fits = |held: &VecDeque<FileBlock>| match (recent.last(), held.back()) {
        (Some(newest), Some(last)) => last.block.height <= newest.height && agrees(held, recent),
        _ => true,
    };
    Ok(stored.filter(|stored| fits(&stored.newest)))
}

/// Whether blocks that both have are the same.
fn agrees(held: &VecDeque<FileBlock>, recent: &[Block]) -> bool {
    recent.iter().all(|block| match held.binary_search_by_key(&block.height, |read| read.block.height) {
        Ok(at) => held.get(at).is_some_and(|read| read.block.hash == block.hash),
        Err(_) => true,
    })
}

/// What the rules have to remember of a block.
fn taken(stored: StoredBlock) -> Vec<(Candidate, Admission)> {
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
