//! The values of a row as they are stored: those that it states, which must fit its block, and those that are filled in
//! (N7).

use std::borrow::Cow;

use mesh_store::{
    TimeUs,
    append::{Column, RowFault},
};

use crate::block::{Cell, NO_TX_HASH, Row};

/// The values that a block gives to one of its rows.
pub(crate) struct RowFiller<'a> {
    pub(crate) row: &'a Row,
    /// The time of the block.
    pub(crate) block_time: TimeUs,
    /// The same as it is stored.
    pub(crate) block_time_text: &'a str,
    /// The sequence number of the row in the block.
    pub(crate) sequence: i64,
    /// The number of the block's rows before it in its table.
    pub(crate) position: i64,
    /// The column with the row's own time, in tables that have one.
    pub(crate) timed: Option<&'static str>,
}

impl<'a> RowFiller<'a> {
    /// The value of a column; `None` is NULL.
    ///
    /// # Errors
    /// It would be stored as another value or never be found, or is another block time than the block's.
    pub(crate) fn value(&self, cell: &'a Cell, column: &'a Column) -> Result<Option<Cow<'a, str>>, RowFault> {
        let value = self.stated_or_filled(cell, column);
        if let Some(text) = value.as_deref()
            && let Some(message) = column.kind.fault(text)
        {
            return Err(self.fault(column, Some(text), message));
        }
        if column.name == "block_time" && value.as_deref() != Some(self.block_time_text) {
            let message = format!("the block's time is {}; leave it out", self.block_time_text);
            return Err(self.fault(column, value.as_deref(), &message));
        }
        Ok(value)
    }

    fn stated_or_filled(&self, cell: &'a Cell, column: &'a Column) -> Option<Cow<'a, str>> {
        match cell {
            // A header has nanoseconds, which PostgreSQL would round to another block's time.
            Cell::Text(text) if column.name == "block_time" && parse_time(text) == Some(self.block_time) => {
                Some(Cow::Borrowed(self.block_time_text))
            }
            Cell::Null => None,
            Cell::Text(text) => Some(Cow::Borrowed(text.as_str())),
            Cell::Absent => match column.name.as_str() {
                "block_time" => Some(Cow::Borrowed(self.block_time_text)),
                "tx_hash" => Some(Cow::Borrowed(self.row.tx_hash.as_deref().unwrap_or(NO_TX_HASH))),
                "seq_num" => Some(Cow::Owned(self.sequence.to_string())),
                name if self.timed == Some(name) => {
                    Some(Cow::Owned(TimeUs(self.block_time.0 + self.position).to_string()))
                }
                _ => column.default.as_deref().map(Cow::Borrowed),
            },
        }
    }

    /// The row's own time, if this column has it.
    ///
    /// # Errors
    /// It is not less than a second after the block's.
    pub(crate) fn row_time(&self, column: &Column, value: Option<&str>) -> Result<Option<TimeUs>, RowFault> {
        if self.timed != Some(column.name.as_str()) {
            return Ok(None);
        }
        // Reads as of the block read rows up to then, and those of later blocks must not be among them.
        let times = self.block_time..self.block_time.second_later();
        let row_time = value.and_then(parse_time).filter(|row_time| times.contains(row_time));
        row_time.map(Some).ok_or_else(|| {
            let after = self.block_time_text;
            let message = format!("the time must be less than a second after {after}; leave it out");
            self.fault(column, value, &message)
        })
    }

    fn fault(&self, column: &Column, value: Option<&str>, message: &str) -> RowFault {
        let value = value.unwrap_or("NULL");
        RowFault::new(self.row.table.name, Some(column.name.as_str()), Some(value), message)
    }
}

/// Reads a time as PostgreSQL writes it.
fn parse_time(text: &str) -> Option<TimeUs> {
    let time: jiff::Timestamp = text.trim().parse().ok()?;
    Some(TimeUs(time.as_microsecond()))
}
