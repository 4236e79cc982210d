//! Opening a chain: the file's blocks, or none of them when the store has others, and the store's newest. An
//! application has the file's blocks alone.

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    path::Path,
};

use mesh_transaction::{Admission, Block, Candidate, SpamFilter, SpamRules};

use crate::{
    chain::replayed,
    file::{BlockFile, StoredBlock},
    mempool::Mempool,
    settings::Settings,
    table::{BLOCKS_HELD, Places, Table, hold, note_places},
};

/// What is there when a chain begins.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) file: BlockFile,
    pub(crate) table: Table,
}

/// What a file holds: the newest of its blocks, and the places of all transactions.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) file: BlockFile,
    pub(crate) held: VecDeque<Read>,
    pub(crate) places: Places,
}

/// A block as it is read from the file, without its transactions' bytes.
#[derive(Debug)]
pub(crate) struct Read {
    frame: u64,
    block: Block,
    rules: SpamRules,
    taken: Vec<(Candidate, Admission)>,
}

impl Opened {
    pub(crate) fn open(settings: &Settings, recent: &[Block], rules: SpamRules) -> io::Result<Self> {
        let Kept { file, held, places } = match read(settings, recent)? {
            Some(kept) => kept,
            None => {
                set_aside(&settings.file)?;
                read(settings, recent)?.ok_or_else(|| io::Error::other("the file of blocks is foreign"))?
            }
        };
        let mut blocks: BTreeMap<u64, (Block, SpamRules, Vec<_>, Option<u64>)> = BTreeMap::new();
        for block in recent {
            blocks.insert(block.height, (block.clone(), rules, Vec::new(), None));
        }
        for Read { frame, block, rules, taken } in held {
            blocks.insert(block.height, (block, rules, taken, Some(frame)));
        }
        let mut standing = VecDeque::new();
        for (block, _, _, frame) in blocks.values() {
            hold(&mut standing, block.clone(), *frame);
        }
        let replay = blocks.into_values().map(|(block, rules, taken, _)| (block, rules, taken));
        let spam = replayed(&settings.network.pow_prefix, replay);
        let mempool = Mempool::new(settings.limits);
        Ok(Self { file, table: Table::new(settings.checks, mempool, spam, standing, places) })
    }
}

impl Kept {
    /// Reads a file, and shows each of its blocks with the place of its frame; nothing when it is of another
    /// chain.
    pub(crate) fn read(
        file: &Path,
        chain_id: &str,
        mut each: impl FnMut(&StoredBlock, u64),
    ) -> io::Result<Option<Self>> {
        let (mut held, mut places) = (VecDeque::new(), Places::new());
        let file = BlockFile::open(file, chain_id, |stored, frame| {
            note_places(&mut places, &stored, frame);
            each(&stored, frame);
            let (block, rules) = (stored.block(), stored.rules());
            held.push_back(Read { frame, block, rules, taken: taken(stored) });
            if held.len() > BLOCKS_HELD {
                held.pop_front();
            }
        })?;
        Ok(file.map(|file| Self { file, held, places }))
    }
}

/// The state of the rules after these blocks.
pub(crate) fn replay(prefix: &str, held: impl IntoIterator<Item = Read>) -> SpamFilter {
    replayed(prefix, held.into_iter().map(|Read { block, rules, taken, .. }| (block, rules, taken)))
}

/// Reads the file; nothing when it is of another chain, or of another history of this one.
fn read(settings: &Settings, recent: &[Block]) -> io::Result<Option<Kept>> {
    let kept = Kept::read(&settings.file, &settings.network.chain_id, |_, _| {})?;
    let fits = |held: &VecDeque<Read>| match (recent.last(), held.back()) {
        (Some(newest), Some(last)) => last.block.height <= newest.height && agrees(held, recent),
        _ => true,
    };
    Ok(kept.filter(|kept| fits(&kept.held)))
}

/// Whether blocks that both have are the same.
fn agrees(held: &VecDeque<Read>, recent: &[Block]) -> bool {
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

fn set_aside(file: &Path) -> io::Result<()> {
    let aside = file.with_extension("other");
    tracing::warn!(to = %aside.display(), "the file of blocks is of another chain, it is set aside");
    std::fs::rename(file, aside)
}
