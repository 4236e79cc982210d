//! An open segment: the contents of its `metadata.json` and `layout.json` in a form that is small enough to
//! have thousands of them in memory.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    csv::{RecordSplitter, columns},
    digest::{Digest, Sha256},
    error::HistoryError,
    index::{MemberIndex, PartIndex},
    metadata::{MemberMetadata, Metadata},
    name::SegmentName,
    zip::{DosDate, Entry},
};

/// An open segment: checked index, no bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Name of its object.
    pub name: SegmentName,
    /// SHA-256 of its metadata.
    pub id: Digest,
    /// Id of the segment before, `None` for the first.
    pub previous_id: Option<Digest>,
    /// The chain's own id.
    pub chain_id: String,
    /// Schema version.
    pub database_version: u32,
    /// First height.
    pub height_from: u64,
    /// Last height.
    pub height_to: u64,
    /// Time of the first block, nanoseconds since 1970.
    pub block_time_from: i64,
    /// Time of the last block, nanoseconds since 1970.
    pub block_time_to: i64,
    /// The CSV members in the file's order.
    pub members: Vec<Member>,
    /// Length of the object in bytes.
    pub length: u64,
    /// SHA-256 of `layout.json`.
    pub(crate) index_digest: Digest,
    pub(crate) metadata_entry: Entry,
    pub(crate) index_entry: Entry,
}

/// A CSV member of an open segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Number of rows, without the header.
    pub rows: u64,
    /// SHA-256 of the plain text.
    pub sha256: Digest,
    /// Name and parts.
    pub index: MemberIndex,
    /// Digest of the columns' names.
    pub(crate) columns: Digest,
}

impl Member {
    pub(crate) fn new(metadata: &MemberMetadata, index: MemberIndex) -> Member {
        Member {
            rows: metadata.rows,
            sha256: metadata.sha256,
            index,
            columns: columns_digest(&metadata.columns),
        }
    }

    /// Length of the plain text with its header, as in the metadata.
    pub(crate) fn plain_bytes(&self) -> u64 {
        self.index.header.plain + self.index.rows.plain
    }

    /// Whether both members have the same header.
    pub(crate) fn same_header(&self, other: &Member) -> bool {
        let record = |part: &PartIndex| (part.plain, part.crc32);
        self.columns == other.columns && record(&self.index.header) == record(&other.index.header)
    }

    /// Checks a header record: it must name the metadata's columns, and nothing may follow it, since every
    /// export would repeat it.
    pub(crate) fn check_header(&self, header: &[u8]) -> Result<(), String> {
        let columns = columns(header).map_err(|error| error.to_string())?;
        let is_one = RecordSplitter::default().end(header) == Some(header.len());
        if is_one && columns_digest(&columns) == self.columns {
            Ok(())
        } else {
            Err("the header record is not the metadata's".to_owned())
        }
    }

    /// The member in the file's directory.
    pub(crate) fn entry(&self, date: DosDate) -> Entry {
        let mut entry = self.index.entry(0, date);
        entry.offset = self.index.header.offset.saturating_sub(entry.local_length());
        entry
    }
}

fn columns_digest(columns: &[String]) -> Digest {
    let mut digest = Sha256::default();
    for column in columns {
        digest.update(&(column.len() as u64).to_le_bytes());
        digest.update(column.as_bytes());
    }
    digest.finish()
}

impl Segment {
    /// The member with a table's rows, if this segment has the table.
    pub fn history(&self, table: &str) -> Option<&Member> {
        self.member(&format!("history/{table}.csv"))
    }

    /// The member of this name.
    pub fn member(&self, name: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.index.name == name)
    }

    pub(crate) fn date(&self) -> DosDate {
        DosDate::of(self.block_time_to)
    }

    /// Checks that the name agrees with the metadata.
    pub(crate) fn check_name(name: &SegmentName, metadata: &Metadata) -> Result<(), String> {
        let right = SegmentName::new(
            &metadata.chain_id, metadata.database_version, metadata.height_from, metadata.height_to,
        );
        if right == *name { Ok(()) } else { Err(format!("it holds what {right} should")) }
    }
}

/// An object that is named as a segment and cannot be read as one.
#[derive(Debug)]
pub struct Unreadable {
    /// Name of the object.
    pub name: SegmentName,
    /// The reason.
    pub error: HistoryError,
}

/// The segments of a store at one moment, in rising order of height.
#[derive(Debug, Default)]
pub struct SegmentList {
    /// Complete and readable.
    pub segments: Vec<Arc<Segment>>,
    /// Objects that cannot be read; their spans are known from their names.
    pub unreadable: Vec<Unreadable>,
}

impl SegmentList {
    /// Sorts segments by height.
    pub fn new(mut segments: Vec<Arc<Segment>>, mut unreadable: Vec<Unreadable>) -> SegmentList {
        segments.sort_by(|a, b| a.name.cmp(&b.name));
        unreadable.sort_by(|a, b| a.name.cmp(&b.name));
        SegmentList { segments, unreadable }
    }

    /// The segments of one chain, and the names of the others: these do not count (DATA_MODEL 7).
    #[must_use]
    pub fn of_chain(self, chain_id: &str) -> (SegmentList, Vec<SegmentName>) {
        let (segments, others): (Vec<_>, Vec<_>) =
            self.segments.into_iter().partition(|segment| segment.name.is_of(chain_id));
        let (unreadable, unreadable_others): (Vec<_>, Vec<_>) =
            self.unreadable.into_iter().partition(|unreadable| unreadable.name.is_of(chain_id));
        let others = others.iter().map(|segment| segment.name.clone());
        let others = others.chain(unreadable_others.into_iter().map(|other| other.name)).collect();
        (SegmentList { segments, unreadable }, others)
    }

    /// The first object that may be a readable segment: the store failed to read it.
    pub fn unreachable(&self) -> Option<&Unreadable> {
        self.unreadable.iter().find(|other| other.error.is_unreachable())
    }

    /// The chain that has most of the readable segments, for readers without a database; of several the first
    /// by id.
    pub fn main_chain(&self) -> Option<String> {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for segment in &self.segments {
            *counts.entry(&segment.chain_id).or_default() += 1;
        }
        let most = counts.values().max()?;
        counts.iter().find(|(_, count)| *count == most).map(|(chain_id, _)| (*chain_id).to_owned())
    }
}
