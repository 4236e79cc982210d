//! Reads byte ranges of exports and parts: whole blocks are read and compared with their checksums before any
//! of their bytes are returned (H10).

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt, TryStreamExt, stream};

use crate::{
    error::HistoryError,
    index::{BLOCK_BYTES, PartIndex},
    layout::{Layout, Piece},
    name::SegmentName,
    store::SegmentStore,
};

/// Most bytes of one read.
pub const MAX_READ_BYTES: usize = 8 << 20;
/// Most parts that one read reads at the same time: a bucket may take 50 ms for each, and a read has hundreds of a table with
/// few rows. Together they have no more bytes than the read, but for the ends of its first and last block.
const READ_AT_ONCE: usize = 32;

impl Layout {
    /// The offset at which [`SegmentStore::read`] with these arguments ends.
    pub fn read_end(&self, offset: u64, max: usize) -> u64 {
        self.read_window(offset, max).end
    }

    fn read_window(&self, offset: u64, max: usize) -> Range<u64> {
        self.window(offset, max.min(MAX_READ_BYTES) as u64)
    }
}

impl SegmentStore {
    /// The bytes of an export from `offset` on, at most `max` and [`MAX_READ_BYTES`] of them; none at its
    /// end. The same offset and `max` always give the same bytes. A read may return less than `max`, but more
    /// than half of it, to end at the end of a block, which the next read would otherwise read again.
    ///
    /// # Errors
    ///
    /// A segment is gone or damaged, or the object store fails.
    pub async fn read(&self, layout: &Layout, offset: u64, max: usize) -> Result<Bytes, HistoryError> {
        let range = layout.read_window(offset, max);
        let length = (range.end - range.start) as usize;
        let mut pieces = stream::iter(layout.pieces(range))
            .map(async |piece| match piece {
                Piece::Memory(bytes) => Ok(bytes),
                Piece::Stored { segment, part, range } => self.read_part(&segment.name, part, range).await,
            })
            .buffered(READ_AT_ONCE);
        let first = pieces.try_next().await?.unwrap_or_default();
        if first.len() == length {
            return Ok(first);
        }
        let mut bytes = BytesMut::with_capacity(length);
        bytes.extend_from_slice(&first);
        while let Some(piece) = pieces.try_next().await? {
            bytes.extend_from_slice(&piece);
        }
        Ok(bytes.freeze())
    }

    /// Stored bytes of a part; `range` counts from the part's start.
    ///
    /// # Errors
    ///
    /// The bytes do not have their checksum, the segment is gone, or the object store fails.
    pub async fn read_part(
        &self,
        name: &SegmentName,
        part: &PartIndex,
        range: Range<u64>,
    ) -> Result<Bytes, HistoryError> {
        if range.start >= range.end || range.end > part.stored {
            return Ok(Bytes::new());
        }
        let first = range.start / BLOCK_BYTES;
        let start = first * BLOCK_BYTES;
        let end = range.end.next_multiple_of(BLOCK_BYTES).min(part.stored);
        let blocks = self.get(name, part.offset + start..part.offset + end).await?;
        for (number, block) in (first..).zip(blocks.chunks(BLOCK_BYTES as usize)) {
            if part.blocks.get(number as usize) != Some(&crc32c::crc32c(block)) {
                let at = part.offset + number * BLOCK_BYTES;
                return Err(HistoryError::damaged(name, format!("the block at byte {at} is damaged")));
            }
        }
        Ok(blocks.slice((range.start - start) as usize..(range.end - start) as usize))
    }
}
