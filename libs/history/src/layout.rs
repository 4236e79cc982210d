//! The layout of an export (X1, X2, X5-X9): a ZIP of any range of a table, spliced from parts of segments. A
//! pure function of their indexes; no byte of them is read.

use std::{ops::Range, sync::Arc};

use bytes::Bytes;

use crate::{
    crc::{CRC32, CRC32C},
    digest::Sha256,
    index::{BLOCK_BYTES, FINAL_BLOCK, PartIndex, PartKind},
    name::{SegmentName, csv_name, zip_name},
    segment::{Member, Segment, SegmentList},
    zip::{DosDate, Entry, directory},
};

#[cfg(test)]
mod zip64;

/// Version of the layout, a part of the fingerprint. Must be raised when the bytes around the parts change.
const FORM: u32 = 1;

/// Why a range cannot be exported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// The range ends before it begins.
    #[error("block {from} is above block {to}")]
    Inverted {
        /// First requested height.
        from: u64,
        /// Last requested height.
        to: u64,
    },
    /// A height lies inside a segment, not at its end (240012).
    #[error("{}", not_boundary(*.height, *.below, *.above))]
    NotBoundary {
        /// The requested height.
        height: u64,
        /// The next valid one below.
        below: Option<u64>,
        /// The next valid one above.
        above: Option<u64>,
    },
    /// No segment covers heights of the range (240013).
    #[error("missing blocks {from}-{to}")]
    Missing {
        /// First height without a segment.
        from: u64,
        /// Last height without a segment.
        to: u64,
    },
    /// An object of the range is no readable segment (240014).
    #[error("segment {0} is not readable")]
    Unreadable(SegmentName),
    /// Two segments contain the same heights (240014).
    #[error("segments {0} and {1} overlap")]
    Overlap(SegmentName, SegmentName),
    /// The range contains segments of two chains (240014).
    #[error("segment {name} is of chain {found}, not {expected}")]
    OtherChain {
        /// The segment.
        name: SegmentName,
        /// Its chain.
        found: String,
        /// The chain of the first segment.
        expected: String,
    },
    /// A segment does not have the table (240014).
    #[error("segment {name} has no table {table}")]
    NoTable {
        /// The segment.
        name: SegmentName,
        /// The requested table.
        table: String,
    },
    /// The lengths add up to more than 64 bits.
    #[error("the export is too large")]
    TooLarge,
}

fn not_boundary(height: u64, below: Option<u64>, above: Option<u64>) -> String {
    let nearest: Vec<String> = [below, above].iter().flatten().map(u64::to_string).collect();
    format!("block {height} is not a segment boundary; nearest: {}", nearest.join(", "))
}

/// An export, ready to be read from any offset.
#[derive(Debug)]
pub struct Layout {
    /// Name of the ZIP (X5).
    pub file_name: String,
    /// The chain's own id.
    pub chain_id: String,
    /// Length in bytes.
    pub length: u64,
    /// Rows of all members, without headers.
    pub rows: u64,
    /// CRC-32C of the whole file.
    pub crc32c: u32,
    /// Identifies the bytes: derived from segment ids, their indexes, table and range. Used as a strong
    /// entity tag, and in positions.
    pub fingerprint: String,
    segments: Vec<Arc<Segment>>,
    extents: Vec<Extent>,
}

/// Consecutive bytes of the export from one source, from `start` to the start of the next extent.
#[derive(Debug)]
struct Extent {
    start: u64,
    source: Source,
}

#[derive(Debug)]
enum Source {
    Memory(Bytes),
    /// A part of a member of a segment, by their numbers.
    Part {
        segment: usize,
        member: usize,
        kind: PartKind,
    },
}

/// A piece of an export's bytes.
#[derive(Debug, Clone, PartialEq)]
pub enum Piece<'a> {
    /// These bytes.
    Memory(Bytes),
    /// Stored bytes of a part.
    Stored {
        /// The segment that contains the part.
        segment: &'a Arc<Segment>,
        /// The part's offset in the object, and its checksums.
        part: &'a PartIndex,
        /// Which bytes, counted from the part's start.
        range: Range<u64>,
    },
}

impl Layout {
    /// Lays out the export of a table (its lower-case name) over whole segments `from` to `to`.
    ///
    /// # Errors
    ///
    /// See [`LayoutError`]; the first that applies, in its order.
    pub fn of(list: &SegmentList, table: &str, from: u64, to: u64) -> Result<Layout, LayoutError> {
        let segments = select(list, from, to)?;
        let chain_id = segments.first().map(|segment| segment.chain_id.clone()).unwrap_or_default();
        let mut builder = LayoutBuilder::default();
        let mut numbers = Vec::with_capacity(segments.len());
        let name = format!("history/{table}.csv");
        for segment in &segments {
            if segment.chain_id != chain_id {
                return Err(LayoutError::OtherChain {
                    name: segment.name.clone(),
                    found: segment.chain_id.clone(),
                    expected: chain_id,
                });
            }
            let number = segment.members.iter().position(|member| member.index.name == name);
            let none = || LayoutError::NoTable { name: segment.name.clone(), table: table.to_owned() };
            numbers.push(number.ok_or_else(none)?);
        }
        let member = |at: usize| &segments[at].members[numbers[at]];
        let mut start = 0;
        while start < segments.len() {
            let continues = |at: &usize| {
                segments[*at].database_version == segments[start].database_version
                    && member(*at).same_header(member(start))
            };
            let end = (start + 1..segments.len()).find(|at| !continues(at)).unwrap_or(segments.len());
            let run = &segments[start..end];
            let csv = csv_name(
                &chain_id,
                table,
                run[0].database_version,
                run[0].height_from,
                run[run.len() - 1].height_to,
            );
            builder.member(csv, start..end, &segments, &numbers).ok_or(LayoutError::TooLarge)?;
            start = end;
        }
        builder.directory().ok_or(LayoutError::TooLarge)?;
        Ok(Layout {
            file_name: zip_name(&chain_id, table, from, to),
            fingerprint: fingerprint(&segments, table, from, to),
            chain_id,
            length: builder.length,
            rows: builder.rows,
            crc32c: builder.crc32c,
            segments,
            extents: builder.extents,
        })
    }

    /// The pieces that make up a range of the export's bytes, in order, cut at the export's end.
    pub fn pieces(&self, range: Range<u64>) -> impl Iterator<Item = Piece<'_>> {
        let end = range.end.min(self.length);
        let first = self.extents.partition_point(|extent| extent.start <= range.start).saturating_sub(1);
        (first..self.extents.len()).take_while(move |at| self.extents[*at].start < end).filter_map(
            move |at| {
                let Extent { start, source } = &self.extents[at];
                let (from, to) = (range.start.max(*start) - start, self.extent_end(at).min(end) - start);
                if from >= to {
                    return None;
                }
                Some(match source {
                    Source::Memory(bytes) => Piece::Memory(bytes.slice(from as usize..to as usize)),
                    Source::Part { segment, member, kind } => {
                        let segment = &self.segments[*segment];
                        let part = segment.members[*member].index.part(*kind);
                        Piece::Stored { segment, part, range: from..to }
                    }
                })
            },
        )
    }

    /// The range of a read from `offset`: cut at the end of its last whole block when more than half of `max`
    /// is left.
    pub(crate) fn window(&self, offset: u64, max: u64) -> Range<u64> {
        let start = offset.min(self.length);
        let end = start.saturating_add(max).min(self.length);
        if end == self.length {
            return start..end;
        }
        let last = self.extents.partition_point(|extent| extent.start < end).saturating_sub(1);
        let Extent { start: from, source } = &self.extents[last];
        let cut = match source {
            Source::Memory(_) => end,
            Source::Part { .. } if self.extent_end(last) == end => end,
            Source::Part { .. } => from + (end - from) / BLOCK_BYTES * BLOCK_BYTES,
        };
        if cut > start && cut - start > max / 2 { start..cut } else { start..end }
    }

    /// Where the extent of this number ends.
    fn extent_end(&self, at: usize) -> u64 {
        self.extents.get(at + 1).map_or(self.length, |next| next.start)
    }
}

/// The segments that cover a range exactly.
fn select(list: &SegmentList, from: u64, to: u64) -> Result<Vec<Arc<Segment>>, LayoutError> {
    if from > to {
        return Err(LayoutError::Inverted { from, to });
    }
    let mut names: Vec<&SegmentName> = list.segments.iter().map(|segment| &segment.name).collect();
    names.extend(list.unreadable.iter().map(|unreadable| &unreadable.name));
    names.sort_unstable();
    for (height, ends) in [(from, false), (to, true)] {
        let valid = |name: &&SegmentName| if ends { name.height_to } else { name.height_from };
        let inside = |name: &&&SegmentName| (name.height_from..=name.height_to).contains(&height);
        let mut around = names.iter().filter(inside).peekable();
        if around.peek().is_some() && around.all(|name| valid(name) != height) {
            let below = names.iter().map(valid).filter(|valid| *valid < height).max();
            let above = names.iter().map(valid).filter(|valid| *valid > height).min();
            return Err(LayoutError::NotBoundary { height, below, above });
        }
    }
    names.retain(|name| name.height_from <= to && name.height_to >= from);
    let (mut next, mut missing) = (from, None);
    for pair in names.windows(2) {
        if pair[1].height_from <= pair[0].height_to {
            return Err(LayoutError::Overlap(pair[0].clone(), pair[1].clone()));
        }
    }
    for name in &names {
        if name.height_from > next {
            missing = Some((missing.map_or(next, |(first, _)| first), name.height_from - 1));
        }
        next = name.height_to.saturating_add(1);
    }
    if next <= to {
        missing = Some((missing.map_or(next, |(first, _)| first), to));
    }
    if let Some((from, to)) = missing {
        return Err(LayoutError::Missing { from, to });
    }
    let within = |name: &SegmentName| name.height_from >= from && name.height_to <= to;
    if let Some(unreadable) = list.unreadable.iter().find(|unreadable| within(&unreadable.name)) {
        return Err(LayoutError::Unreadable(unreadable.name.clone()));
    }
    Ok(list.segments.iter().filter(|segment| within(&segment.name)).cloned().collect())
}

fn fingerprint(segments: &[Arc<Segment>], table: &str, from: u64, to: u64) -> String {
    let mut digest = Sha256::default();
    digest.update(&FORM.to_le_bytes());
    digest.update(&from.to_le_bytes());
    digest.update(&to.to_le_bytes());
    for segment in segments {
        digest.update(&segment.id.0);
        digest.update(&segment.index_digest.0);
    }
    digest.update(table.as_bytes());
    hex::encode(&digest.finish().0[..16])
}

/// Builds a layout.
#[derive(Default)]
struct LayoutBuilder {
    extents: Vec<Extent>,
    entries: Vec<Entry>,
    length: u64,
    rows: u64,
    crc32c: u32,
}

impl LayoutBuilder {
    /// One member of the run of segments `run`; `None` when a sum is too large.
    fn member(
        &mut self,
        name: String,
        run: Range<usize>,
        segments: &[Arc<Segment>],
        numbers: &[usize],
    ) -> Option<()> {
        let member = |at: usize| -> &Member { &segments[at].members[numbers[at]] };
        let header = &member(run.start).index.header;
        let mut entry = Entry {
            name,
            crc32: header.crc32,
            stored: header.stored.checked_add(FINAL_BLOCK.len() as u64)?,
            plain: header.plain,
            offset: self.length,
            date: DosDate::of(segments[run.end - 1].block_time_to),
        };
        for at in run.clone() {
            let Member { rows, index, .. } = member(at);
            entry.crc32 = CRC32.join(entry.crc32, index.rows.crc32, index.rows.plain);
            entry.stored = entry.stored.checked_add(index.rows.stored)?;
            entry.plain = entry.plain.checked_add(index.rows.plain)?;
            self.rows = self.rows.checked_add(*rows)?;
        }
        self.memory(entry.local_header())?;
        self.part(header, run.start, numbers[run.start], PartKind::Header)?;
        for at in run {
            self.part(&member(at).index.rows, at, numbers[at], PartKind::Rows)?;
        }
        self.memory(FINAL_BLOCK.to_vec())?;
        self.entries.push(entry);
        Some(())
    }

    fn directory(&mut self) -> Option<()> {
        self.memory(directory(&self.entries, self.length))
    }

    fn part(&mut self, part: &PartIndex, segment: usize, member: usize, kind: PartKind) -> Option<()> {
        self.push(Source::Part { segment, member, kind }, part.stored, part.crc32c)
    }

    fn memory(&mut self, bytes: Vec<u8>) -> Option<()> {
        let (length, crc32c) = (bytes.len() as u64, crc32c::crc32c(&bytes));
        self.push(Source::Memory(bytes.into()), length, crc32c)
    }

    fn push(&mut self, source: Source, length: u64, crc32c: u32) -> Option<()> {
        if length > 0 {
            self.extents.push(Extent { start: self.length, source });
            self.crc32c = CRC32C.join(self.crc32c, crc32c, length);
            self.length = self.length.checked_add(length)?;
        }
        Some(())
    }
}
