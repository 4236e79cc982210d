//! What the segments of a list have of each table, added up from their indexes.

use std::collections::{BTreeMap, BTreeSet};

use crate::segment::{Member, Segment, SegmentList};

/// What the segments that have a table have of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableTotals {
    /// First height.
    pub height_from: u64,
    /// Last height; between the two there may be gaps.
    pub height_to: u64,
    /// Time of the first block, nanoseconds since 1970.
    pub block_time_from: i64,
    /// Time of the last block, nanoseconds since 1970.
    pub block_time_to: i64,
    /// Rows.
    pub rows: u64,
    /// Length of the plain CSV text, with the header of each segment.
    pub bytes: u64,
    /// Number of segments.
    pub segments: usize,
    /// Their schema versions.
    pub database_versions: BTreeSet<u32>,
}

impl TableTotals {
    fn of_no_segment(first: &Segment) -> Self {
        Self {
            height_from: first.height_from,
            height_to: first.height_to,
            block_time_from: first.block_time_from,
            block_time_to: first.block_time_to,
            rows: 0,
            bytes: 0,
            segments: 0,
            database_versions: BTreeSet::new(),
        }
    }

    fn add(&mut self, segment: &Segment, member: &Member) {
        self.height_from = self.height_from.min(segment.height_from);
        self.height_to = self.height_to.max(segment.height_to);
        self.block_time_from = self.block_time_from.min(segment.block_time_from);
        self.block_time_to = self.block_time_to.max(segment.block_time_to);
        self.rows = self.rows.saturating_add(member.rows);
        self.bytes = self.bytes.saturating_add(member.plain_bytes());
        self.segments += 1;
        self.database_versions.insert(segment.database_version);
    }
}

impl SegmentList {
    /// The totals of each table that a readable segment has, by the table's name.
    pub fn totals(&self) -> BTreeMap<&str, TableTotals> {
        let mut totals = BTreeMap::new();
        for segment in &self.segments {
            for member in &segment.members {
                let table =
                    member.index.name.strip_prefix("history/").and_then(|name| name.strip_suffix(".csv"));
                let Some(table) = table else { continue };
                totals
                    .entry(table)
                    .or_insert_with(|| TableTotals::of_no_segment(segment))
                    .add(segment, member);
            }
        }
        totals
    }
}
