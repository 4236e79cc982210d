//! The plain text of a member, piece by piece: blocks are read, inflated and compared with the index. Needs
//! the memory of a few blocks, for members of any length.

use std::mem;

use bytes::Bytes;
use flate2::{Decompress, FlushDecompress, Status};

use crate::{
    digest::Sha256,
    error::HistoryError,
    index::{BLOCK_BYTES, PartIndex},
    name::SegmentName,
    segment::{Member, Segment},
    store::SegmentStore,
};

/// Stored bytes that are read at a time.
const READ_BYTES: u64 = 4 * BLOCK_BYTES;
/// The longest piece of plain text.
const PIECE: usize = 256 << 10;

/// The stream of a member's CSV text.
pub struct MemberText {
    store: SegmentStore,
    segment: SegmentName,
    member: Member,
    sha256: Sha256,
    /// The current part; `None` at the end and after a failure.
    part: Option<Part>,
    /// The header record. Its length is limited by the index, which was checked.
    header: Vec<u8>,
    is_behind_header: bool,
    is_whole: bool,
}

/// A part that is being read.
struct Part {
    index: PartIndex,
    inflate: Decompress,
    /// Read and not inflated yet.
    input: Bytes,
    /// Stored bytes that have been read.
    read: u64,
    plain: u64,
    crc32: crc32fast::Hasher,
}

impl Part {
    fn new(index: &PartIndex) -> Part {
        Part {
            index: index.clone(),
            inflate: Decompress::new(false),
            input: Bytes::new(),
            read: 0,
            plain: 0,
            crc32: crc32fast::Hasher::new(),
        }
    }
}

impl SegmentStore {
    /// Reads the text of a member of an open segment, header record first.
    pub fn text(&self, segment: &Segment, member: &Member) -> MemberText {
        MemberText {
            store: self.clone(),
            segment: segment.name.clone(),
            part: Some(Part::new(&member.index.header)),
            member: member.clone(),
            sha256: Sha256::default(),
            header: Vec::new(),
            is_behind_header: false,
            is_whole: false,
        }
    }
}

impl MemberText {
    /// The next piece, up to 256 KiB; `None` at the end, after the hash of the whole text was checked. Until
    /// then the earlier pieces must not be committed. Inflates on the calling thread.
    ///
    /// # Errors
    ///
    /// The segment is gone or damaged, or the object store fails. All further calls return `None`.
    pub async fn next(&mut self) -> Result<Option<Bytes>, HistoryError> {
        while let Some(mut part) = self.part.take() {
            let piece = self.piece(&mut part).await?;
            if !piece.is_empty() {
                self.sha256.update(&piece);
                if !self.is_behind_header {
                    self.header.extend_from_slice(&piece);
                }
                self.part = Some(part);
                return Ok(Some(piece));
            }
            let index = &part.index;
            if part.plain != index.plain || part.crc32.finalize() != index.crc32 {
                return Err(self.damaged("the text has changed"));
            }
            if !mem::replace(&mut self.is_behind_header, true) {
                let header = mem::take(&mut self.header);
                self.member.check_header(&header).map_err(|what| self.damaged(&what))?;
                self.part = Some(Part::new(&self.member.index.rows));
            } else if mem::take(&mut self.sha256).finish() != self.member.sha256 {
                return Err(self.damaged("its hash is not the metadata's"));
            } else {
                self.is_whole = true;
            }
        }
        if self.is_whole { Ok(None) } else { Err(self.damaged("the reading was broken off")) }
    }

    /// The next piece of a part; empty at its end.
    async fn piece(&self, part: &mut Part) -> Result<Bytes, HistoryError> {
        let mut out = Vec::with_capacity(PIECE);
        while out.len() < PIECE {
            if part.input.is_empty() && part.read < part.index.stored {
                let end = part.index.stored.min(part.read + READ_BYTES);
                part.input = self.store.read_part(&self.segment, &part.index, part.read..end).await?;
                part.read = end;
            }
            let (taken, given) = (part.inflate.total_in(), out.len());
            let status = part.inflate.decompress_vec(&part.input, &mut out, FlushDecompress::None);
            let taken = (part.inflate.total_in() - taken) as usize;
            part.input = part.input.slice(taken..);
            // The deflate stream of a part has no final block.
            if !matches!(status, Ok(Status::Ok | Status::BufError)) {
                return Err(self.damaged("the stored bytes cannot be inflated"));
            }
            if taken == 0 && out.len() == given {
                break;
            }
        }
        part.plain += out.len() as u64;
        part.crc32.update(&out);
        Ok(out.into())
    }

    fn damaged(&self, what: &str) -> HistoryError {
        HistoryError::damaged(&self.segment, format!("{}: {what}", self.member.index.name))
    }
}
