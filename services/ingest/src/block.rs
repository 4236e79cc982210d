//! A block on its way: as it was fetched, as rows, and as what is stored.

use std::{collections::BTreeMap, ops::RangeInclusive, sync::Arc};

use jiff::tz::TimeZone;
use mesh_store::{
    TimeUs,
    append::{CopyText, NewBlock, RowFault, StoredHead, TIMED, Table},
};
use serde_json::value::RawValue;

use crate::row_filler::RowFiller;

/// The transaction hash of rows that no transaction has caused.
pub const NO_TX_HASH: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// Longest part of a time that cannot be stored that is shown, characters.
const MAX_TIME: usize = 64;

/// The years of times that can be stored.
const YEARS: RangeInclusive<i16> = 1678..=2261;

/// Reads the time of a block, RFC 3339, and cuts it to microseconds.
///
/// # Errors
/// It cannot be stored; the text begins with `time "…"`.
pub fn read_time(text: &str) -> Result<TimeUs, String> {
    let time = text.parse::<jiff::Timestamp>().ok();
    let time = time.filter(|time| YEARS.contains(&TimeZone::UTC.to_datetime(*time).year()));
    let time = time.ok_or_else(|| {
        let shown: String = text.chars().take(MAX_TIME).collect();
        format!("time {shown:?} cannot be stored: it is not RFC 3339 of the years 1678 to 2261")
    })?;
    Ok(TimeUs(time.as_nanosecond().div_euclid(1000) as i64))
}

/// A block as the node serves it.
#[derive(Debug)]
pub struct FetchedBlock {
    /// Its height.
    pub height: u64,
    /// Its hash, lower-case hex.
    pub hash: String,
    /// The hash of the block before it; empty in the first block of a chain.
    pub parent: String,
    /// The name of its chain.
    pub chain_id: String,
    /// The time of its header, as the node writes it.
    pub time_text: String,
    /// The same, cut to microseconds.
    pub time: TimeUs,
    /// The result of `block`.
    pub block: Box<RawValue>,
    /// The result of `block_results`.
    pub results: Box<RawValue>,
}

impl FetchedBlock {
    /// The bytes that it occupies.
    pub fn bytes(&self) -> usize {
        self.block.get().len() + self.results.get().len()
    }
}

/// A row as a decoder states it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Its table.
    pub table: &'static Table,
    /// A cell for each column of the table.
    pub cells: Vec<Cell>,
    /// The hash of its transaction where the row states none; absent for a block's own rows.
    pub tx_hash: Option<Arc<str>>,
}

/// The value of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cell {
    /// Not stated: the column's default, or what is filled in.
    Absent,
    /// NULL.
    Null,
    /// A text in PostgreSQL's form.
    Text(String),
}

impl Row {
    /// A row without values.
    pub fn new(table: &'static Table) -> Self {
        Self { table, cells: vec![Cell::Absent; table.columns.len()], tx_hash: None }
    }
}

/// A block whose rows are known.
#[derive(Debug, Clone)]
pub struct DecodedBlock {
    /// The name of its chain.
    pub chain_id: String,
    /// Its height.
    pub height: u64,
    /// Its hash, lower-case hex.
    pub hash: String,
    /// The time of its header, cut to microseconds.
    pub time: TimeUs,
    /// Its rows in order.
    pub rows: Vec<Row>,
}

impl DecodedBlock {
    /// A block with the rows that a decoder made of it.
    pub fn new(block: &FetchedBlock, rows: Vec<Row>) -> Self {
        let FetchedBlock { chain_id, height, hash, time, .. } = block;
        Self { chain_id: chain_id.clone(), height: *height, hash: hash.clone(), time: *time, rows }
    }

    /// Fills in what the rows do not state (N7) and returns the block as it is stored behind `before`, and
    /// the head that it makes. The time is later than every time of the block before (N4).
    ///
    /// A row's time counts as filled in when it has that form, also when the row states it. So the rule can be
    /// applied to stored rows, and a writer that starts again gives the same times.
    ///
    /// # Errors
    /// A row states another block time than the block's, a time of its own outside of the second after it, or a
    /// value that would be stored as another one or never be found.
    pub fn prepare(&self, before: Option<&StoredHead>) -> Result<(NewBlock, StoredHead), RowFault> {
        let earliest = before.map_or(self.time, |before| TimeUs(before.latest_time.0 + 1));
        let time = self.time.max(earliest);
        let time_text = time.to_string();
        let mut latest_time = time;
        let mut rows = BTreeMap::<&'static str, CopyText>::new();
        let mut totals = BTreeMap::<&'static str, i64>::new();
        for row in &self.rows {
            *totals.entry(row.table.name).or_default() += 1;
        }
        let mut sequence = 0_i64;
        for row in &self.rows {
            let text = rows.entry(row.table.name).or_default();
            let filler = RowFiller {
                row,
                block_time: time,
                block_time_text: &time_text,
                sequence,
                position: text.rows().cast_signed(),
                timed: TIMED.iter().find(|(table, _)| *table == row.table.name).map(|(_, column)| *column),
            };
            for (cell, column) in row.cells.iter().zip(&row.table.columns) {
                let value = filler.value(cell, column)?;
                if let Some(row_time) = filler.row_time(column, value.as_deref())?
                    && row_time.0 < time.0 + totals[row.table.name]
                {
                    latest_time = latest_time.max(row_time);
                }
                text.cell(value.as_deref());
            }
            sequence += i64::from(row.table.columns.iter().any(|column| column.name == "seq_num"));
            text.end_row();
        }
        let (height, hash) = (self.height, self.hash.clone());
        let head = StoredHead { height, hash: hash.clone(), time, latest_time };
        Ok((NewBlock { height, hash, time, rows }, head))
    }
}
