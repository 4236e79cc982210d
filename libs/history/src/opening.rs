//! Opening a segment file: one read of its tail gives directory and figures, one small read the metadata.
//! No I/O here: [`Opening`] says which bytes it needs next, so files, object stores and fuzzers share it.

use std::ops::Range;

use bytes::Bytes;
use flate2::{Decompress, FlushDecompress, Status};

use crate::{
    digest::Digest,
    error::HistoryError,
    figures::{self, Figures, MemberFigures},
    metadata::{self, Metadata},
    name::SegmentName,
    segment::{Member, Segment},
    zip::{Entry, LOCAL},
    zip_read,
};

/// How much of the tail is asked for first: enough for the figures of some 10 GB of stored bytes.
const TAIL: u64 = 64 << 10;

/// A segment file on its way to being open.
pub(crate) struct Opening {
    name: SegmentName,
    size: u64,
    tail: Bytes,
    head: Bytes,
}

/// What an [`Opening`] wants next.
pub(crate) enum Step {
    /// These bytes of the file.
    Read(Range<u64>),
    /// Nothing: here is the segment, with its metadata.
    Done(Box<(Segment, Metadata)>),
}

impl Opening {
    pub(crate) fn new(name: SegmentName, size: u64) -> Opening {
        Opening { name, size, tail: Bytes::new(), head: Bytes::new() }
    }

    /// Takes the bytes that [`Step::Read`] asked for.
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

    /// Goes as far as the bytes at hand allow.
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
        let place = zip_read::place(&self.tail, self.size)?;
        if place.offset < tail_from {
            return Ok(Step::Read(place.offset..self.size));
        }
        let directory = &self.tail[(place.offset - tail_from) as usize..][..place.length as usize];
        let entries = zip_read::entries(directory, place)?;
        let [first, members @ .., last] = &entries[..] else { return Err("too few members".to_owned()) };
        let layout_end = last.end().filter(|_| last.name == figures::NAME);
        if layout_end != Some(place.offset)
            || last.plain > figures::MAX_BYTES
            || last.stored > figures::MAX_BYTES
        {
            return Err(format!("its last member is not {}", figures::NAME));
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
        let layout = &self.tail[(last.offset - tail_from) as usize..(place.offset - tail_from) as usize];
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
        let figures = Figures::read(layout_text, &metadata)?;
        let member = |(metadata, figures): (_, MemberFigures)| Member::new(metadata, figures);
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
            members: metadata.members.iter().zip(figures.members).map(member).collect(),
            length: self.size,
            figures_digest: Digest::of(layout_text),
            metadata_entry: first.clone(),
            figures_entry: last.clone(),
        };
        check_entries(&segment, entries)?;
        Ok((segment, metadata))
    }
}

/// Directory and figures must tell the same, without a byte between the members.
fn check_entries(segment: &Segment, entries: &[Entry]) -> Result<(), String> {
    let date = segment.date();
    let (first, last) = (&segment.metadata_entry, &segment.figures_entry);
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
    // One byte more than stated, so that a longer text shows.
    let mut plain = Vec::with_capacity(entry.plain as usize + 1);
    let mut inflate = Decompress::new(false);
    let status = inflate.decompress_vec(stored, &mut plain, FlushDecompress::Finish);
    let whole = matches!(status, Ok(Status::StreamEnd)) && inflate.total_in() == stored.len() as u64;
    if !whole || plain.len() as u64 != entry.plain || crc32fast::hash(&plain) != entry.crc32 {
        return Err(damaged());
    }
    Ok(plain)
}
