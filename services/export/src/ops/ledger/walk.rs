//! The walk that pulls are answered from: reads entries behind a place, the next ones while these are being written,
//! and cuts their records into pieces.

use std::sync::Arc;

use bytes::Bytes;
use mesh_bus::{Piece, Totals};
use mesh_problem::Problem;
use mesh_store::{Parameter, ReadError, Row, Store, TimeUs, head_of};
use proto_msgs::numbers::export_ledger_entries::LEDGER;
use tokio::task::{JoinSet, yield_now};

use super::{
    accounts::{Accounts, Met},
    merge::{Key, Merge, Wanted},
    position::Place,
    record,
};

/// Rows to read at a time: few for a reader that takes little, and not so many at first, because nothing can be written
/// meanwhile.
const ROWS_AT_LEAST: usize = 64;
const ROWS_AT_FIRST: usize = 1024;
const ROWS_AT_MOST: usize = 2048;

/// Reads at the same time, when they are of that many rows together: one process of the database cannot keep up with
/// the writing.
const READS_AT_ONCE: usize = 2;
const ROWS_TO_PART: usize = 512;

/// Records that are written before everybody else on this thread has a turn: among them is the read ahead, which would
/// not leave before a whole piece is written, and the database would idle meanwhile.
const RECORDS_A_TURN: u64 = 64;

/// What a record is reckoned to be long before there is one.
const BYTES_PER_ROW: u64 = 300;

/// Whose entries, up to when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Filter {
    pub(crate) party: String,
    pub(crate) asset: String,
    /// The last block time wanted; nothing is when this is none.
    pub(crate) until: Option<TimeUs>,
}

/// A walk under way, for one pull after the other.
pub(crate) struct Walk {
    store: Store,
    pub(crate) filter: Filter,
    place: Place,
    chunk: usize,
    /// Bytes that the pull may still give.
    room: usize,
    /// Bytes that the next pull may be expected to take.
    room_behind: usize,
    /// Absent until the first read.
    entries: Option<Entries>,
    /// What is being read. Dropped, it is given up.
    reading: JoinSet<Result<Reading, Problem>>,
    accounts: Met,
    writer: record::Writer,
    /// The record under way, empty when there is none, and its key, which the header has not.
    record: Vec<u8>,
    key: Option<Key>,
    has_ended: bool,
}

/// What was wanted, and the rows that came.
type Reading = (Vec<Wanted>, Vec<Row>);

/// The entries of every account of the party, as one walk.
struct Entries {
    /// Account, and whether it is the sender, of each walk.
    walks: Vec<(Arc<str>, bool)>,
    merge: Merge<Row>,
}

impl Walk {
    /// Walks on from `place`, in pieces of at most `chunk` bytes, at most `room` bytes in all.
    pub(crate) fn from(
        (store, accounts): (Store, Arc<Accounts>),
        filter: Filter,
        place: Place,
        chunk: usize,
        room: usize,
    ) -> Self {
        Self {
            store,
            filter,
            place,
            chunk,
            room,
            room_behind: 0,
            entries: None,
            reading: JoinSet::new(),
            accounts: Met::none(accounts),
            writer: record::Writer::default(),
            record: if place.has_header { Vec::new() } else { record::HEADER.to_vec() },
            key: None,
            has_ended: false,
        }
    }

    /// Goes on for the next pull. It will be followed by one more, as likely as this one came here.
    pub(crate) fn go_on(&mut self, chunk: usize, room: usize) {
        (self.chunk, self.room, self.room_behind) = (chunk, room, room);
    }

    /// Whether it may wait for the next pull: it has not ended, and does not grow without bound.
    pub(crate) fn may_go_on(&self) -> bool {
        !self.has_ended && !self.accounts.are_many()
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
        let mut bytes = Vec::with_capacity(most);
        while !self.record.is_empty() || self.write_next().await? {
            let skip = usize::try_from(self.place.skip).unwrap_or(usize::MAX);
            let rest = self.record.get(skip..).ok_or_else(|| failed("the position is inside no record"))?;
            if rest.len() > most - bytes.len() {
                // Only a record that is longer than a piece is cut.
                if bytes.is_empty() {
                    bytes.extend_from_slice(&rest[..most]);
                    self.place.skip += most as u64;
                    self.place.bytes += most as u64;
                    self.room -= most;
                }
                break;
            }
            bytes.extend_from_slice(rest);
            self.place.bytes += rest.len() as u64;
            self.room -= rest.len();
            self.place.skip = 0;
            match self.key {
                Some(key) => {
                    self.place.after = key;
                    self.place.rows += 1;
                }
                None => self.place.has_header = true,
            }
            self.record.clear();
            if self.place.rows.is_multiple_of(RECORDS_A_TURN) {
                yield_now().await;
            }
        }
        self.has_ended = self.record.is_empty() && self.is_all_given();
        let totals = Totals { bytes: self.place.bytes, rows: Some(self.place.rows) };
        let end = self.has_ended.then_some(totals);
        Ok(Some(Piece { bytes: Bytes::from(bytes), after: self.place.write()?, end }))
    }

    fn is_all_given(&self) -> bool {
        match &self.entries {
            Some(entries) => entries.merge.has_ended(),
            None => self.filter.until.is_none(),
        }
    }

    /// Writes the record of the next entry; says whether there was one.
    async fn write_next(&mut self) -> Result<bool, Problem> {
        while !self.is_all_given() {
            let Some((key, row)) = self.entries.as_mut().and_then(|entries| entries.merge.next()) else {
                self.read().await?;
                continue;
            };
            if self.write(key, &row).map_err(|error| error.problem(LEDGER))? {
                self.key = Some(key);
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Writes the record of an entry, if it is one of the export's (L2).
    fn write(&mut self, key: Key, row: &Row) -> Result<bool, ReadError> {
        let Self { accounts, filter, writer, record, .. } = self;
        let (from, to) =
            (accounts.get(row.try_get("account_from_id")?), accounts.get(row.try_get("account_to_id")?));
        let (Some(from), Some(to)) = (from, to) else { return Ok(false) };
        if from.asset.as_deref() != Some(filter.asset.as_str()) {
            return Ok(false);
        }
        writer.write(record, row, &filter.party, (key.0, from, to))?;
        Ok(true)
    }

    /// Reads on: first the party's accounts, then entries, and more of them beside the writing of these.
    async fn read(&mut self) -> Result<(), Problem> {
        let Some(mut entries) = self.entries.take() else {
            let sql = include_str!("../../../sql/ledger_accounts_of.sql");
            let parameters: &[Parameter<'_>] = &[&self.filter.party, &self.filter.asset];
            let rows = list(&self.store, self.place.bound, sql, parameters).await?;
            let ids = self.accounts.learn(&rows).map_err(|error| error.problem(LEDGER))?;
            self.entries = Some(Entries::along(ids, self.place.after));
            return Ok(());
        };
        if self.reading.is_empty() {
            let rows = self.rows_that_fit().clamp(ROWS_AT_LEAST, ROWS_AT_FIRST);
            self.begin_to_read(&entries, &entries.merge.wanted(rows));
        }
        let Some(read) = self.reading.join_next().await else {
            return Err(failed("there is nothing to wait for"));
        };
        let (wanted, rows) = read.map_err(|error| failed(&error.to_string()))??;
        self.meet(&rows).await?;
        entries.take(&wanted, rows).map_err(|error| error.problem(LEDGER))?;
        let lacking = self.rows_that_fit().saturating_sub(entries.merge.held());
        if self.reading.is_empty() && lacking >= ROWS_AT_LEAST {
            self.begin_to_read(&entries, &entries.merge.wanted_ahead(lacking.min(ROWS_AT_MOST)));
        }
        self.entries = Some(entries);
        Ok(())
    }

    /// How many records may still be given, about: what is read beyond them is read in vain.
    fn rows_that_fit(&self) -> usize {
        let a_row = match self.place.rows {
            0 => BYTES_PER_ROW,
            rows => self.place.bytes / rows,
        };
        (self.room + self.room_behind) / usize::try_from(a_row.max(1)).unwrap_or(usize::MAX)
    }

    fn begin_to_read(&mut self, entries: &Entries, wanted: &[Wanted]) {
        if wanted.is_empty() {
            return;
        }
        let rows: usize = wanted.iter().map(|wanted| wanted.rows).sum();
        let reads = if rows < ROWS_TO_PART { 1 } else { READS_AT_ONCE };
        for wanted in wanted.chunks(wanted.len().div_ceil(reads)) {
            let wanted = wanted.to_vec();
            let (store, bound, until) = (self.store.clone(), self.place.bound, self.filter.until);
            let walks = || wanted.iter().filter_map(|wanted| entries.walks.get(wanted.walk));
            let accounts: Vec<Arc<str>> = walks().map(|(account, _)| Arc::clone(account)).collect();
            let sends: Vec<bool> = walks().map(|(_, sends)| *sends).collect();
            self.reading.spawn(async move {
                let accounts: Vec<&str> = accounts.iter().map(|account| &**account).collect();
                let (blocks, times): (Vec<TimeUs>, Vec<TimeUs>) =
                    wanted.iter().map(|wanted| wanted.behind).unzip();
                let most: Vec<i64> = wanted.iter().map(|wanted| wanted.rows as i64).collect();
                let sql = include_str!("../../../sql/ledger_entries.sql");
                let rows =
                    list(&store, bound, sql, &[&accounts, &sends, &blocks, &times, &most, &until]).await?;
                Ok((wanted, rows))
            });
        }
    }

    /// Reads the accounts that entries name and nobody knows yet.
    async fn meet(&mut self, rows: &[Row]) -> Result<(), Problem> {
        let mut lacking = Vec::new();
        for row in rows {
            for column in ["account_from_id", "account_to_id"] {
                let id: Option<&str> =
                    row.try_get(column).map_err(|error| ReadError::from(error).problem(LEDGER))?;
                if let Some(id) = id.filter(|id| self.accounts.lacks(id)) {
                    lacking.push(id.to_owned());
                }
            }
        }
        if lacking.is_empty() {
            return Ok(());
        }
        lacking.sort_unstable();
        lacking.dedup();
        let sql = include_str!("../../../sql/ledger_accounts_named.sql");
        let rows = list(&self.store, self.place.bound, sql, &[&lacking]).await?;
        self.accounts.learn(&rows).map_err(|error| error.problem(LEDGER))?;
        self.accounts.are_absent(lacking);
        Ok(())
    }
}

/// Rows of a statement that says its head, from a database that has reached the bound of the export (L7).
async fn list(
    store: &Store,
    bound: Option<TimeUs>,
    sql: &'static str,
    parameters: &[Parameter<'_>],
) -> Result<Vec<Row>, Problem> {
    let rows = store.list(sql, parameters).await.map_err(|error| error.problem(LEDGER))?;
    let head = rows.first().map(head_of).transpose().map_err(|error| error.problem(LEDGER))?;
    let head = head.flatten().map(|(_, time_ns)| TimeUs::at_or_before_ns(time_ns));
    if head < bound {
        return Err(Problem::unavailable("the database is behind this export"));
    }
    Ok(rows)
}

impl Entries {
    /// What these accounts sent and received behind a key.
    fn along(accounts: Vec<String>, behind: Key) -> Self {
        let accounts = accounts.into_iter().map(Arc::from);
        let walks: Vec<_> =
            accounts.flat_map(|account: Arc<str>| [(Arc::clone(&account), true), (account, false)]).collect();
        Self { merge: Merge::new(walks.len(), behind), walks }
    }

    /// Takes rows that were read as wanted.
    fn take(&mut self, wanted: &[Wanted], rows: Vec<Row>) -> Result<(), ReadError> {
        let mut read: Vec<Vec<(Key, Row)>> = wanted.iter().map(|_| Vec::new()).collect();
        for row in rows {
            let Some(number) = row.try_get::<_, Option<i64>>("walk")? else { continue };
            let key = (row.try_get("block_time")?, row.try_get("ledger_entry_time")?);
            let walk = usize::try_from(number - 1).ok().and_then(|number| read.get_mut(number));
            walk.ok_or_else(|| ReadError::Unreadable(format!("walk {number}")))?.push((key, row));
        }
        for (wanted, read) in wanted.iter().zip(read) {
            self.merge.take(*wanted, read);
        }
        Ok(())
    }
}

fn failed(cause: &str) -> Problem {
    Problem::internal(LEDGER, "the ledger export failed").caused_by(cause.to_owned())
}
