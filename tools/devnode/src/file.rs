//! The file of the blocks: one frame per block with its transactions and their results, appended and synced
//! before the block becomes visible. An incomplete last frame is cut off when the file is opened.
//!
//! A frame is the length of its message (4 bytes), the message's CRC-32 (4 bytes), both little-endian, and
//! the message. The first frame is the base of the chain.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{self, BufReader, Read as _},
    os::unix::fs::FileExt as _,
    path::Path,
    time::{Duration, Instant},
};

use bytes::Bytes;
use prost::Message;

use crate::{
    base::{Base, StoredBase},
    stored::StoredBlock,
};

const FRAME_HEAD: usize = 8;
/// Limit of a frame, bytes. Blocks are far smaller; a greater length means a corrupt file.
const LONGEST_FRAME: u32 = 256 << 20;
/// How long to wait for the file's lock, which the previous process may still have.
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// The open file, owned by one node at a time.
#[derive(Debug)]
pub(crate) struct BlockFile {
    file: File,
    length: u64,
}

impl BlockFile {
    /// Creates the file of a chain, synced, in place of any other.
    pub(crate) fn create(path: &Path, base: &Base) -> io::Result<()> {
        let fresh = path.with_extension("new");
        let mut file = Self { file: File::create(&fresh)?, length: 0 };
        file.append(&base.stored()?)?;
        std::fs::rename(&fresh, path)?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
    }

    /// Opens the file of a chain; calls a function with each block and the position of its frame. `None` when there
    /// is no file, or one of another release.
    pub(crate) fn open(
        path: &Path,
        mut each: impl FnMut(StoredBlock, u64),
    ) -> io::Result<Option<(Self, Base)>> {
        let file = match OpenOptions::new().read(true).write(true).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        lock(&file)?;
        let mut reader = BufReader::with_capacity(1 << 20, &file);
        let Some((message, mut length)) = frame(&mut reader)? else { return Ok(None) };
        let Some(base) = StoredBase::decode(message).ok().and_then(Base::read) else { return Ok(None) };
        while let Some((message, bytes)) = frame(&mut reader)? {
            let Ok(block) = StoredBlock::decode(message) else { break };
            each(block, length);
            length += bytes;
        }
        let file_length = file.metadata()?.len();
        if file_length > length {
            tracing::warn!(
                bytes = file_length - length,
                "cut off an incomplete block at the end of the chain file"
            );
            file.set_len(length)?;
        }
        Ok(Some((Self { file, length }, base)))
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
        let length = length.ok_or_else(|| io::Error::other("the block is too long for the chain file"))?;
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
        let spoilt = || io::Error::new(io::ErrorKind::InvalidData, "the chain file is damaged");
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
                return Err(io::Error::other("another node has the chain file open"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use mesh_transaction::SpamRules;

    use super::*;
    use crate::stored::StoredTx;

    fn stored(height: u64) -> StoredBlock {
        let tx =
            StoredTx { tx: Bytes::from(vec![7; height as usize * 100]), code: 89, ..StoredTx::default() };
        StoredBlock {
            height,
            time_ns: 1_700_000_000_123_456_000 + height,
            txs: vec![tx; 2],
            ..Default::default()
        }
    }

    fn open(path: &Path) -> (BlockFile, Vec<(StoredBlock, u64)>) {
        let mut blocks = Vec::new();
        let opened = BlockFile::open(path, |block, at| blocks.push((block, at))).unwrap();
        (opened.unwrap().0, blocks)
    }

    #[test]
    fn a_file_is_read_again_and_a_tail_torn_at_any_byte_is_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("blocks");
        assert!(BlockFile::open(&path, |_, _| {}).unwrap().is_none());
        BlockFile::create(&path, &Base::empty("net-1", SpamRules::default())).unwrap();
        let (mut file, blocks) = open(&path);
        assert_eq!(blocks, []);
        let positions: Vec<u64> = (1..=2).map(|height| file.push(&stored(height)).unwrap()).collect();
        let reader = file.reader().unwrap();
        assert_eq!(reader.block(positions[1]).unwrap(), stored(2));
        reader.block(positions[1] + 1).unwrap_err();
        drop((file, reader));
        assert_eq!(open(&path).1, [(stored(1), positions[0]), (stored(2), positions[1])]);

        let second = positions[1];
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
            let (mut file, blocks) = open(&path);
            assert_eq!(blocks.len(), 1);
            assert_eq!(file.push(&stored(3)).unwrap(), second);
            drop(file);
            let heights: Vec<u64> = open(&path).1.iter().map(|(block, _)| block.height).collect();
            assert_eq!(heights, [1, 3]);
        }
    }
}
