//! Checks that a segment's rows are those of its span (H6, W1): `blocks.csv` holds exactly its heights with
//! rising times, and no row of another table is from before or after them.

use jiff::Timestamp;

use crate::{
    csv::fields,
    segment::{Member, Segment},
};

/// Bytes of a field that are read; heights and times are shorter.
const MAX_FIELD_BYTES: usize = 64;

/// Checks the rows of one history table, field by field.
#[derive(Debug)]
pub(crate) struct BlockRows {
    /// The numbers of the columns that are read.
    time_column: u64,
    height_column: Option<u64>,
    time: Vec<u8>,
    height: Vec<u8>,
    /// Times of the first and the last block. Such texts sort like their times.
    from: String,
    to: String,
    /// The next height of `blocks.csv`, its last, and the time of the block before.
    next: u64,
    last: u64,
    before: Vec<u8>,
    fault: Option<String>,
}

impl BlockRows {
    /// The check of a member with this header record; `None` when it is no history table, or has no times of
    /// blocks.
    pub(crate) fn of(segment: &Segment, member: &Member, header: &[u8]) -> Option<BlockRows> {
        let table = member.index.name.strip_prefix("history/")?;
        let columns: Vec<_> = fields(header).map_while(Result::ok).collect();
        let column = |name: &str| {
            let number = columns.iter().position(|column| column.as_deref() == Some(name.as_bytes()))?;
            u64::try_from(number).ok()
        };
        Some(BlockRows {
            time_column: column("block_time")?,
            height_column: if table == "blocks.csv" { Some(column("height")?) } else { None },
            time: Vec::new(),
            height: Vec::new(),
            from: time_text(segment.block_time_from)?,
            to: time_text(segment.block_time_to)?,
            next: segment.height_from,
            last: segment.height_to,
            before: Vec::new(),
            fault: None,
        })
    }

    /// Takes a piece of the value of a field of the current row.
    pub(crate) fn take(&mut self, column: u64, piece: &[u8]) {
        let value = if column == self.time_column {
            &mut self.time
        } else if Some(column) == self.height_column {
            &mut self.height
        } else {
            return;
        };
        let most = MAX_FIELD_BYTES.saturating_sub(value.len());
        value.extend_from_slice(&piece[..piece.len().min(most)]);
    }

    /// Ends a row.
    pub(crate) fn end_row(&mut self) {
        if self.fault.is_none() {
            self.fault = self.check_row().err();
        }
        self.time.clear();
        self.height.clear();
    }

    fn check_row(&mut self) -> Result<(), String> {
        let time = || String::from_utf8_lossy(&self.time);
        if self.time[..] < *self.from.as_bytes() || self.time[..] > *self.to.as_bytes() {
            return Err(format!("a row of {} is outside of the span, {} to {}", time(), self.from, self.to));
        }
        if self.height_column.is_none() {
            return Ok(());
        }
        let height = String::from_utf8_lossy(&self.height);
        if height != self.next.to_string() {
            return Err(format!("height {} is missing, {height} comes in its place", self.next));
        }
        if self.next == self.last + 1 {
            return Err(format!("height {height} is outside of the span"));
        }
        let is_later =
            if self.before.is_empty() { self.time == self.from.as_bytes() } else { self.time > self.before };
        if !is_later {
            return Err(format!("the time of height {height} is wrong, {}", time()));
        }
        self.next += 1;
        self.before.clone_from(&self.time);
        Ok(())
    }

    /// Ends the table.
    pub(crate) fn finish(self) -> Result<(), String> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        if self.height_column.is_some() && self.next <= self.last {
            return Err(format!("height {} is missing, the rows end before it", self.next));
        }
        if self.height_column.is_some() && self.before != self.to.as_bytes() {
            return Err(format!("the last block is not of {}", self.to));
        }
        Ok(())
    }
}

/// Nanoseconds as PostgreSQL prints the time in UTC; `None` for times that have no such text.
fn time_text(ns: i64) -> Option<String> {
    let time = Timestamp::from_nanosecond(i128::from(ns)).ok()?;
    Some(format!("{}+00", time.strftime("%Y-%m-%d %H:%M:%S%.f")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_the_text_that_postgresql_prints() {
        let text = |ns| time_text(ns).unwrap();
        assert_eq!(text(0), "1970-01-01 00:00:00+00");
        assert_eq!(text(1_687_257_080_120_400_000), "2023-06-20 10:31:20.1204+00");
        assert!(text(1_687_257_080_000_000_000) < text(1_687_257_080_000_001_000));
        assert!(text(1_687_257_080_120_000_000) < text(1_687_257_080_120_400_000));
    }
}
