//! The file of the blocks: one frame per block with its transactions and their results, appended and synced
//! before the block becomes visible. An incomplete last frame is cut off when the file is opened.
//!
//! A frame is the length of its message (4 bytes), the message's CRC-32 (4 bytes), both little-endian, and
//! the message. The first frame is the base of the chain.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io,
    os::unix::fs::FileExt as _,
    path::Path,
    time::{Duration, Instant},
};

use bytes::Bytes;
use parking_lot::Mutex;
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
    length: Mutex<u64>,
}

impl BlockFile {
    /// Creates the file of a chain, synced, in place of any other.
    pub(crate) fn create(path: &Path, base: &Base) -> io::Result<()> {
        let fresh = path.with_extension("new");
        Self { file: File::create(&fresh)?, length: Mutex::new(0) }.push(&base.stored()?)?;
        std::fs::rename(&fresh, path)?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
    }

    /// Opens the file of a chain and reads its base. `None` when there is no file, or one of another release.
    pub(crate) fn open(path: &Path) -> io::Result<Option<(Self, Base)>> {
        let file = match OpenOptions::new().read(true).write(true).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        lock(&file)?;
        let Some(message) = frame(&file, 0)? else { return Ok(None) };
        let length = Mutex::new(end_of(0, &message));
        let base = StoredBase::decode(message).ok().and_then(Base::read);
        Ok(base.map(|base| (Self { file, length }, base)))
    }

    /// Calls a function with each block and the position of its frame; cuts off an incomplete last one.
    pub(crate) fn read(&self, mut each: impl FnMut(StoredBlock, u64)) -> io::Result<()> {
        let mut length = self.length.lock();
        while let Some(message) = frame(&self.file, *length)? {
            let end = end_of(*length, &message);
            let Ok(block) = StoredBlock::decode(message) else { break };
            each(block, *length);
            *length = end;
        }
        let file_length = self.file.metadata()?.len();
        if file_length > *length {
            let bytes = file_length - *length;
            tracing::warn!(bytes, "cut off an incomplete block at the end of the chain file");
            self.file.set_len(*length)?;
        }
        Ok(())
    }

    /// Appends a block, syncs it and returns the position of its frame. After an error the file is unchanged.
    pub(crate) fn push(&self, message: &impl Message) -> io::Result<u64> {
        let message = message.encode_to_vec();
        let length = u32::try_from(message.len()).ok().filter(|length| *length <= LONGEST_FRAME);
        let length = length.ok_or_else(|| io::Error::other("the block is too long for the chain file"))?;
        let crc = crc32fast::hash(&message);
        let frame = [&length.to_le_bytes()[..], &crc.to_le_bytes(), &message].concat();
        let mut end = self.length.lock();
        let at = *end;
        let written = self.file.write_all_at(&frame, at).and_then(|()| self.file.sync_data());
        if let Err(error) = written {
            // A rest that cannot be cut off now is cut off when the file is opened, or overwritten by the
            // next block.
            let _ = self.file.set_len(at);
            return Err(error);
        }
        *end += frame.len() as u64;
        Ok(at)
    }

    pub(crate) fn block(&self, at: u64) -> io::Result<StoredBlock> {
        let block = frame(&self.file, at)?.and_then(|message| StoredBlock::decode(message).ok());
        block.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the chain file is damaged"))
    }
}

/// The message of the frame at a position; `None` when there is no complete frame.
fn frame(file: &File, at: u64) -> io::Result<Option<Bytes>> {
    let fill = |buffer: &mut [u8], at| match file.read_exact_at(buffer, at) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    };
    let mut head = [0; FRAME_HEAD];
    if !fill(&mut head, at)? {
        return Ok(None);
    }
    let [a, b, c, d, crc @ ..] = head;
    let length = u32::from_le_bytes([a, b, c, d]);
    if length > LONGEST_FRAME {
        return Ok(None);
    }
    let mut message = vec![0; length as usize];
    let is_read = fill(&mut message, at + FRAME_HEAD as u64)?;
    let is_complete = is_read && crc32fast::hash(&message) == u32::from_le_bytes(crc);
    Ok(is_complete.then(|| Bytes::from(message)))
}

/// The position after the frame of a message.
fn end_of(at: u64, message: &Bytes) -> u64 {
    at + (FRAME_HEAD + message.len()) as u64
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
        let tx = StoredTx { tx: Bytes::from(vec![7; height as usize * 100]), ..StoredTx::default() };
        StoredBlock {
            height,
            time_ns: 1_700_000_000_123_456_000 + height,
            txs: vec![tx; 2],
            ..Default::default()
        }
    }

    fn open(path: &Path) -> (BlockFile, Vec<(StoredBlock, u64)>) {
        let (mut blocks, file) = (Vec::new(), BlockFile::open(path).unwrap().unwrap().0);
        file.read(|block, at| blocks.push((block, at))).unwrap();
        (file, blocks)
    }

    #[test]
    fn a_file_is_read_again_and_a_tail_torn_at_any_byte_is_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("blocks");
        assert!(BlockFile::open(&path).unwrap().is_none());
        BlockFile::create(&path, &Base::empty("net-1", SpamRules::default())).unwrap();
        let (file, blocks) = open(&path);
        assert_eq!(blocks, []);
        let positions: Vec<u64> = (1..=2).map(|height| file.push(&stored(height)).unwrap()).collect();
        assert_eq!(file.block(positions[1]).unwrap(), stored(2));
        file.block(positions[1] + 1).unwrap_err();
        drop(file);
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
            let (file, blocks) = open(&path);
            assert_eq!(blocks.len(), 1);
            assert_eq!(file.push(&stored(3)).unwrap(), second);
            drop(file);
            let heights: Vec<u64> = open(&path).1.iter().map(|(block, _)| block.height).collect();
            assert_eq!(heights, [1, 3]);
        }
    }
}
