//! The file of the blocks: one frame per block with its transactions and their results, appended and synced
//! before the block becomes visible. An incomplete last frame is cut off when the file is opened.
//!
//! A frame is the length of its message (4 bytes), the message's CRC-32 (4 bytes), both little-endian, and
//! the message. The first frame names the chain.

use std::{
    collections::HashMap,
    fs::{File, OpenOptions, TryLockError},
    io::{self, BufReader, Read as _},
    os::unix::fs::FileExt as _,
    path::Path,
    time::{Duration, Instant},
};

use bytes::Bytes;
use mesh_transaction::{Admission, Block, Refusal, SpamRules, TxHash};
use prost::Message;

const FORMAT: u32 = 1;
const FRAME_HEAD: usize = 8;
/// Limit of a frame, bytes. Blocks are far smaller; a greater length means a corrupt file.
const LONGEST_FRAME: u32 = 256 << 20;
/// How long to wait for the file's lock, which the previous process may still have.
const LOCK_WAIT: Duration = Duration::from_secs(5);

#[derive(Clone, PartialEq, Message)]
struct FileHeader {
    #[prost(uint32, tag = "1")]
    format: u32,
    #[prost(string, tag = "2")]
    chain_id: String,
}

/// A block as it is stored.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct StoredBlock {
    #[prost(uint64, tag = "1")]
    pub(crate) height: u64,
    #[prost(string, tag = "2")]
    pub(crate) hash: String,
    #[prost(uint64, tag = "3")]
    pub(crate) time_ns: u64,
    #[prost(message, optional, tag = "4")]
    pub(crate) rules: Option<StoredRules>,
    #[prost(message, repeated, tag = "5")]
    pub(crate) txs: Vec<StoredTx>,
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
    #[prost(string, tag = "3")]
    pub(crate) reason: String,
    /// Height of the block of its proof of work, 0 without one.
    #[prost(uint64, tag = "4")]
    pub(crate) work_height: u64,
    #[prost(uint32, tag = "5")]
    pub(crate) work_bits: u32,
}

impl StoredBlock {
    pub(crate) fn new(block: &Block, rules: &SpamRules, txs: Vec<StoredTx>) -> Self {
        let time_ns = u64::try_from(block.time.as_nanos()).unwrap_or(u64::MAX);
        let rules = StoredRules {
            difficulty: rules.difficulty,
            past_blocks: rules.past_blocks,
            tx_per_block: rules.tx_per_block,
            increasing: rules.increasing,
            bar_ms: u64::try_from(rules.bar.as_millis()).unwrap_or(u64::MAX),
        };
        Self { height: block.height, hash: block.hash.clone(), time_ns, rules: Some(rules), txs }
    }

    /// Whether each of its transactions succeeded.
    pub(crate) fn outcomes(&self) -> HashMap<TxHash, bool> {
        self.txs.iter().map(|tx| (TxHash::of(&tx.tx), tx.code == 0)).collect()
    }

    pub(crate) fn block(&self) -> Block {
        Block { height: self.height, hash: self.hash.clone(), time: Duration::from_nanos(self.time_ns) }
    }

    pub(crate) fn rules(&self) -> SpamRules {
        self.rules.as_ref().map_or_else(SpamRules::default, |rules| SpamRules {
            difficulty: rules.difficulty,
            past_blocks: rules.past_blocks,
            tx_per_block: rules.tx_per_block,
            increasing: rules.increasing,
            bar: Duration::from_millis(rules.bar_ms),
        })
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
}

/// The open file, owned by one node at a time.
#[derive(Debug)]
pub(crate) struct BlockFile {
    file: File,
    length: u64,
}

impl BlockFile {
    /// Opens or creates the file of a chain; calls a function with each block and the position of its frame.
    /// `None` when it is the file of another chain.
    pub(crate) fn open(
        path: &Path,
        chain_id: &str,
        mut each: impl FnMut(StoredBlock, u64),
    ) -> io::Result<Option<Self>> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        lock(&file)?;
        let header = FileHeader { format: FORMAT, chain_id: chain_id.to_owned() };
        let mut reader = BufReader::with_capacity(1 << 20, &file);
        let mut length = 0;
        match frame(&mut reader)? {
            None => {}
            Some((message, bytes)) => {
                if FileHeader::decode(message).ok().as_ref() != Some(&header) {
                    return Ok(None);
                }
                length = bytes;
                while let Some((message, bytes)) = frame(&mut reader)? {
                    let Ok(block) = StoredBlock::decode(message) else { break };
                    each(block, length);
                    length += bytes;
                }
            }
        }
        let file_length = file.metadata()?.len();
        if file_length > length {
            tracing::warn!(bytes = file_length - length, "cut off a torn tail of the file of blocks");
            file.set_len(length)?;
        }
        let mut open = Self { file, length };
        if length == 0 {
            open.append(&header)?;
        }
        Ok(Some(open))
    }

    /// Appends a block, syncs it and returns the position of its frame. After an error the file is unchanged.
    pub(crate) fn push(&mut self, block: &StoredBlock) -> io::Result<u64> {
        self.append(block)
    }

    /// A second handle, read-only.
    pub(crate) fn reader(&self) -> io::Result<BlockReader> {
        Ok(BlockReader { file: self.file.try_clone()? })
    }

    fn append(&mut self, message: &impl Message) -> io::Result<u64> {
        let message = message.encode_to_vec();
        let length = u32::try_from(message.len()).ok().filter(|length| *length <= LONGEST_FRAME);
        let length = length.ok_or_else(|| io::Error::other("the block is too long for the file"))?;
        let crc = crc32fast::hash(&message);
        let frame = [&length.to_le_bytes()[..], &crc.to_le_bytes(), &message].concat();
        let at = self.length;
        let written = self.file.write_all_at(&frame, at).and_then(|()| self.file.sync_data());
        if let Err(error) = written {
            // A rest that cannot be cut off now is cut off when the file is opened, or overwritten by the
            // next block.
            let _ = self.file.set_len(at);
            return Err(error);
        }
        self.length += frame.len() as u64;
        Ok(at)
    }
}

/// Reads single blocks.
#[derive(Debug)]
pub(crate) struct BlockReader {
    file: File,
}

impl BlockReader {
    /// The block of a frame.
    pub(crate) fn block(&self, at: u64) -> io::Result<StoredBlock> {
        let mut head = [0; FRAME_HEAD];
        self.file.read_exact_at(&mut head, at)?;
        let spoilt = || io::Error::new(io::ErrorKind::InvalidData, "the file of blocks is spoilt");
        let (length, crc) = head_of(head).ok_or_else(spoilt)?;
        let mut message = vec![0; length];
        self.file.read_exact_at(&mut message, at + FRAME_HEAD as u64)?;
        if crc32fast::hash(&message) != crc {
            return Err(spoilt());
        }
        StoredBlock::decode(Bytes::from(message)).map_err(|_| spoilt())
    }
}

/// The next complete frame and its length; `None` at the end or at an incomplete frame.
fn frame(reader: &mut impl io::Read) -> io::Result<Option<(Bytes, u64)>> {
    let mut head = [0; FRAME_HEAD];
    if !fill(reader, &mut head)? {
        return Ok(None);
    }
    let Some((length, crc)) = head_of(head) else { return Ok(None) };
    let mut message = Vec::new();
    reader.take(length as u64).read_to_end(&mut message)?;
    if message.len() < length || crc32fast::hash(&message) != crc {
        return Ok(None);
    }
    Ok(Some((Bytes::from(message), (FRAME_HEAD + length) as u64)))
}

fn head_of(head: [u8; FRAME_HEAD]) -> Option<(usize, u32)> {
    let [a, b, c, d, crc @ ..] = head;
    let length = u32::from_le_bytes([a, b, c, d]);
    (length <= LONGEST_FRAME).then_some((length as usize, u32::from_le_bytes(crc)))
}

fn fill(reader: &mut impl io::Read, buffer: &mut [u8]) -> io::Result<bool> {
    match reader.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

fn lock(file: &File) -> io::Result<()> {
    let deadline = Instant::now() + LOCK_WAIT;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(TryLockError::WouldBlock) => {
                return Err(io::Error::other("another node has the file of blocks open"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(height: u64) -> StoredBlock {
        let block = Block {
            height,
            hash: format!("{height:064x}"),
            time: Duration::from_nanos(1_700_000_000_123_456_000 + height),
        };
        let tx = StoredTx {
            tx: Bytes::from(vec![7; height as usize * 100]),
            code: 89,
            reason: "because".into(),
            work_height: height - 1,
            work_bits: 15,
        };
        StoredBlock::new(&block, &SpamRules { increasing: true, ..SpamRules::default() }, vec![tx; 2])
    }

    fn open(path: &Path) -> (Option<BlockFile>, Vec<(StoredBlock, u64)>) {
        let mut blocks = Vec::new();
        let file = BlockFile::open(path, "net-1", |block, at| blocks.push((block, at))).unwrap();
        (file, blocks)
    }

    #[test]
    fn blocks_are_there_when_the_file_is_opened_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("blocks");
        let (file, blocks) = open(&path);
        let mut file = file.unwrap();
        assert_eq!(blocks, []);
        let positions: Vec<u64> = (1..=3).map(|height| file.push(&stored(height)).unwrap()).collect();
        let reader = file.reader().unwrap();
        assert_eq!(reader.block(positions[1]).unwrap(), stored(2));
        reader.block(positions[1] + 1).unwrap_err();
        drop((file, reader));
        let (_, blocks) = open(&path);
        assert_eq!(
            blocks,
            (1..=3).zip(positions).map(|(height, at)| (stored(height), at)).collect::<Vec<_>>()
        );
        assert_eq!(blocks[0].0.rules(), SpamRules { increasing: true, ..SpamRules::default() });
        assert_eq!(blocks[0].0.block().time.subsec_nanos(), 123_456_001);
    }

    #[test]
    fn a_tail_torn_at_any_byte_is_cut_off_and_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("blocks");
        let mut file = open(&path).0.unwrap();
        file.push(&stored(1)).unwrap();
        let second = file.push(&stored(2)).unwrap();
        drop(file);
        let whole = std::fs::read(&path).unwrap();
        let mut damaged: Vec<Vec<u8>> =
            (second as usize..whole.len()).step_by(7).map(|length| whole[..length].to_vec()).collect();
        for at in (second as usize..whole.len()).step_by(13) {
            let mut flipped = whole.clone();
            flipped[at] ^= 1;
            damaged.push(flipped);
        }
        for bytes in damaged {
            std::fs::write(&path, bytes).unwrap();
            let (file, blocks) = open(&path);
            assert_eq!(blocks.len(), 1);
            assert_eq!(file.unwrap().push(&stored(3)).unwrap(), second);
            let heights: Vec<u64> = open(&path).1.iter().map(|(block, _)| block.height).collect();
            assert_eq!(heights, [1, 3]);
        }
    }

    #[test]
    fn the_file_of_another_chain_is_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("blocks");
        drop(BlockFile::open(&path, "net-2", |_, _| {}).unwrap().unwrap());
        assert!(open(&path).0.is_none());
        assert!(BlockFile::open(&path, "net-2", |_, _| {}).unwrap().is_some());
    }
}
