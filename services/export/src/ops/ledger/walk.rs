//! The walk of one pull: reads entries behind a place in batches, and cuts their records into pieces.

use std::collections::VecDeque;

use bytes::Bytes;
use mesh_bus::{Piece, Totals};
use mesh_problem::Problem;
use mesh_store::{ReadError, Row, Store, TimeUs};

use super::{position::Place, record};

/// The export failed.
pub(crate) const FAILED: u32 = 260_002;

/// Rows of one read; few for a reader that takes little.
const ROWS_AT_LEAST: usize = 64;
const ROWS_AT_MOST: usize = 2048;

/// What a record is reckoned to be long.
const BYTES_PER_ROW: usize = 300;

/// Whose entries, up to when.
#[derive(Debug, Clone)]
pub(crate) struct Filter {
    pub(crate) party: String,
    pub(crate) asset: String,
    /// The last block time wanted; nothing is when this is none.
    pub(crate) until: Option<TimeUs>,
}

/// What entries are ordered by: block time, entry time.
type Key = (TimeUs, TimeUs);

/// One pull under way.
pub(crate) struct Walk {
    store: Store,
    filter: Filter,
    place: Place,
    chunk: usize,
    /// Bytes that the pull may still give.
    room: usize,
    /// Records behind the place, with the key of each; the header has none.
    pending: VecDeque<(Vec<u8>, Option<Key>)>,
    /// Behind which key to read on.
    read_to: Key,
    /// Whether there is nothing behind that.
    is_all_read: bool,
    has_ended: bool,
}

impl Walk {
    /// Walks on from `place`, in pieces of at most `chunk` bytes, at most `room` bytes in all.
    pub(crate) fn from(store: Store, filter: Filter, place: Place, chunk: usize, room: usize) -> Self {
        let mut pending = VecDeque::new();
        if !place.has_header {
            pending.push_back((record::HEADER.to_vec(), None));
        }
        let is_all_read = filter.until.is_none();
        let read_to = place.after;
        Self { store, filter, place, chunk, room, pending, read_to, is_all_read, has_ended: false }
    }

    /// The next piece; nothing behind the end or when the pull has given all it may.
    ///
    /// # Errors
    /// The database is away, late or behind the bound.
    pub(crate) async fn next(&mut self) -> Result<Option<Piece>, Problem> {
        if self.has_ended || self.room == 0 {
            return Ok(None);
        }
        let most = self.chunk.min(self.room);
        let mut bytes = Vec::with_capacity(most.min(64 << 10));
        loop {
            let Some((record, key)) = self.pending.front() else {
                if self.is_all_read {
                    break;
                }
                self.read().await?;
                continue;
            };
            let skip = usize::try_from(self.place.skip).unwrap_or(usize::MAX);
            let rest = record.get(skip..).ok_or_else(|| failed("the position is inside no record"))?;
            if rest.len() > most - bytes.len() {
                // Only a record that is longer than a piece is cut.
                if bytes.is_empty() {
                    bytes.extend_from_slice(&rest[..most]);
                    self.place.skip += most as u64;
                }
                break;
            }
            bytes.extend_from_slice(rest);
            self.place.skip = 0;
            match key {
                Some(key) => {
                    self.place.after = *key;
                    self.place.rows += 1;
                }
                None => self.place.has_header = true,
            }
            self.pending.pop_front();
        }
        self.place.bytes += bytes.len() as u64;
        self.room -= bytes.len();
        self.has_ended = self.pending.is_empty() && self.is_all_read;
        let totals = Totals { bytes: self.place.bytes, rows: Some(self.place.rows) };
        let end = self.has_ended.then_some(totals);
        Ok(Some(Piece { bytes: Bytes::from(bytes), after: self.place.write()?, end }))
    }

    /// Reads the next batch, which may be empty although more follows.
    async fn read(&mut self) -> Result<(), Problem> {
        let Filter { party, asset, until: Some(until) } = &self.filter else {
            self.is_all_read = true;
            return Ok(());
        };
        let rows = (self.room / BYTES_PER_ROW).clamp(ROWS_AT_LEAST, ROWS_AT_MOST) as i64;
        let sql = include_str!("../../../sql/export_ledger_entries.sql");
        let (block, entry) = self.read_to;
        let rows = self.store.list(sql, &[party, asset, &block, &entry, until, &rows]).await;
        let rows = rows.map_err(|error| error.problem(FAILED))?;
        self.take(&rows).map_err(|error| error.problem(FAILED))?;
        let head =
            rows.first().map(mesh_store::head_of).transpose().map_err(|error| error.problem(FAILED))?;
        let head = head.flatten().map(|(_, time_ns)| TimeUs::at_or_before_ns(time_ns));
        if head < self.place.bound {
            return Err(Problem::unavailable("the database is behind this export"));
        }
        Ok(())
    }

    fn take(&mut self, rows: &[Row]) -> Result<(), ReadError> {
        for row in rows {
            let Some(block_time) = row.try_get::<_, Option<TimeUs>>("block_time")? else { continue };
            let mut record = Vec::with_capacity(BYTES_PER_ROW);
            record::write(&mut record, row, block_time)?;
            self.pending.push_back((record, Some((block_time, row.try_get("ledger_entry_time")?))));
        }
        let Some(first) = rows.first() else { return Err(ReadError::Unreadable("no row".to_owned())) };
        let reached: (Option<TimeUs>, Option<TimeUs>) =
            (first.try_get("reached_block_time")?, first.try_get("reached_entry_time")?);
        match reached {
            (Some(block), Some(entry)) => self.read_to = (block, entry),
            _ => self.is_all_read = true,
        }
        Ok(())
    }
}

fn failed(cause: &str) -> Problem {
    Problem::internal(FAILED, "the ledger export failed").caused_by(cause.to_owned())
}
