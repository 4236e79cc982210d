//! Opens a segment file: one read of its tail gives directory and index, one small read the metadata. Without
//! I/O: [`SegmentOpener`] requests the bytes that it needs next, so that files, object stores and fuzzers
//! share it.

use std::ops::Range;

use bytes::Bytes;
use flate2::{Decompress, FlushDecompress, Status};

use crate::{
    digest::Digest,
    error::HistoryError,
    index::{self, MemberIndex, SegmentIndex},
    metadata::{self, Metadata},
    name::SegmentName,
    segment::{Member, Segment},
    zip::{Entry, LOCAL},
    zip_read,
};

/// Length of the tail that is read first, bytes: enough for the index of some 10 GB of stored bytes.
const TAIL: u64 = 64 << 10;

/// The state machine that opens a segment file.
pub(crate) struct SegmentOpener {
    name: SegmentName,
    size: u64,
    tail: Bytes,
    head: Bytes,
}

/// The next step of a [`SegmentOpener`].
pub(crate) enum Step {
    /// Read these bytes of the file.
    Read(Range<u64>),
    /// The segment and its metadata are complete.
    Done(Box<(Segment, Metadata)>),
}

impl SegmentOpener {
    pub(crate) fn new(name: SegmentName, size: u64) -> SegmentOpener {
        SegmentOpener { name, size, tail: Bytes::new(), head: Bytes::new() }
    }

    /// Takes the bytes that [`Step::Read`] requested.
    pub(crate) fn supply(&mut self, range: &Range<u64>, bytes: Bytes) -> Result<(), HistoryError> {
        if bytes.len() as u64 != range.end - range.start {
            return Err(self.damaged(format!("{} bytes where {range:?} was asked for", bytes.len())));
        }
        if range.end == self.size {
            self.tail = bytes;
        } else {
            self.head = bytes;
        }
        Ok(())
    }

    /// The next step with the bytes supplied so far.
    pub(crate) fn step(&self) -> Result<Step, HistoryError> {
        self.try_step().map_err(|what| self.damaged(what))
    }

    fn damaged(&self, what: String) -> HistoryError {
        HistoryError::damaged(&self.name, what)
    }

    fn try_step(&self) -> Result<Step, String> {
        if self.tail.is_empty() && self.size > 0 {
            return Ok(Step::Read(self.size.saturating_sub(TAIL)..self.size));
        }
        let tail_from = self.size - self.tail.len() as u64;
        let directory_at = zip_read::locate_directory(&self.tail, self.size)?;
        if directory_at.offset < tail_from {
            return Ok(Step::Read(directory_at.offset..self.size));
        }
        let directory =
            &self.tail[(directory_at.offset - tail_from) as usize..][..directory_at.length as usize];
        let entries = zip_read::entries(directory, directory_at)?;
        let [first, members @ .., last] = &entries[..] else { return Err("too few members".to_owned()) };
        let layout_end = last.end().filter(|_| last.name == index::NAME);
        if layout_end != Some(directory_at.offset)
            || last.plain > index::MAX_BYTES
            || last.stored > index::MAX_BYTES
        {
            return Err(format!("its last member is not {}", index::NAME));
        }
        if last.offset < tail_from {
            return Ok(Step::Read(last.offset..self.size));
        }
        let head_end = first.end().filter(|_| first.name == metadata::NAME && first.offset == 0);
        let head_end = head_end.filter(|_| first.plain.max(first.stored) <= metadata::MAX_BYTES);
        let head_end = head_end.filter(|end| *end <= last.offset);
        let head_end = head_end.ok_or_else(|| format!("its first member is not {}", metadata::NAME))?;
        let head = match tail_from {
            0 => &self.tail[..head_end as usize],
            _ if self.head.len() as u64 != head_end => return Ok(Step::Read(0..head_end)),
            _ => &self.head[..],
        };
        let layout =
            &self.tail[(last.offset - tail_from) as usize..(directory_at.offset - tail_from) as usize];
        let (metadata, layout) = (inflate(head, first)?, inflate(layout, last)?);
        self.segment(&metadata, &layout, first, members, last).map(|done| Step::Done(Box::new(done)))
    }

    fn segment(
        &self,
        metadata_text: &[u8],
        layout_text: &[u8],
        first: &Entry,
        entries: &[Entry],
        last: &Entry,
    ) -> Result<(Segment, Metadata), String> {
        let metadata = Metadata::read(metadata_text)?;
        Segment::check_name(&self.name, &metadata)?;
        let index = SegmentIndex::read(layout_text, &metadata)?;
        let member = |(metadata, index): (_, MemberIndex)| Member::new(metadata, index);
        let segment = Segment {
            name: self.name.clone(),
            id: Digest::of(metadata_text),
            previous_id: metadata.previous_history_segment_id,
            chain_id: metadata.chain_id.clone(),
            database_version: metadata.database_version,
            height_from: metadata.height_from,
            height_to: metadata.height_to,
            block_time_from: metadata.block_time_from,
            block_time_to: metadata.block_time_to,
            members: metadata.members.iter().zip(index.members).map(member).collect(),
            length: self.size,
            index_digest: Digest::of(layout_text),
            metadata_entry: first.clone(),
            index_entry: last.clone(),
        };
        check_entries(&segment, entries)?;
        Ok((segment, metadata))
    }
}

/// Checks that directory and index agree and that there is no byte between the members.
fn check_entries(segment: &Segment, entries: &[Entry]) -> Result<(), String> {
    let date = segment.date();
    let (first, last) = (&segment.metadata_entry, &segment.index_entry);
    if first.date != date || last.date != date || entries.len() != segment.members.len() {
        return Err("directory and metadata differ".to_owned());
    }
    let mut free = first.end();
    for (member, entry) in segment.members.iter().zip(entries) {
        if member.entry(date) != *entry || free != Some(entry.offset) {
            return Err(format!("directory and figures differ in {}", entry.name));
        }
        free = entry.end();
    }
    if free == Some(last.offset) { Ok(()) } else { Err("bytes between the members".to_owned()) }
}

/// The plain bytes of a whole member that is in memory with its local header.
fn inflate(member: &[u8], entry: &Entry) -> Result<Vec<u8>, String> {
    let damaged = || format!("{} is damaged", entry.name);
    let stored = member.get(entry.local_length() as usize..).ok_or_else(damaged)?;
    if !member.starts_with(&LOCAL) {
        return Err(damaged());
    }
    // One byte more than stated, to detect a longer text.
    let mut plain = Vec::with_capacity(entry.plain as usize + 1);
    let mut inflate = Decompress::new(false);
    let status = inflate.decompress_vec(stored, &mut plain, FlushDecompress::Finish);
    let whole = matches!(status, Ok(Status::StreamEnd)) && inflate.total_in() == stored.len() as u64;
    if !whole || plain.len() as u64 != entry.plain || crc32fast::hash(&plain) != entry.crc32 {
        return Err(damaged());
    }
    Ok(plain)
}
