//! The walk over ledger entries that answers pulls: reads entries after a position, the next batch while the
//! current one is written, and cuts their records into pieces.

use std::sync::Arc;

use bytes::Bytes;
use mesh_bus::{Piece, Totals};
use mesh_problem::Problem;
use mesh_store::{Parameter, ReadError, Row, Store, TimeUs};
use proto_msgs::numbers::export_ledger_entries::LEDGER;
use tokio::task::{JoinSet, yield_now};

use super::{
    accounts::{AccountCache, AccountLookup},
    entries::{Accounts, Entries, Entry},
    merge::Key,
    position::LedgerPosition,
    read::{Batch, Read, Source},
    record::{self, column},
};

/// Bounds of the rows of one read. The first read is smaller, because nothing can be written while it runs.
const MIN_ROWS: usize = 64;
const MAX_FIRST_ROWS: usize = 1024;
const MAX_ROWS: usize = 2048;

/// Records written before the task yields, so that the read ahead is sent while a piece is still being
/// written.
const RECORDS_PER_YIELD: u64 = 64;

/// Estimated length of a record before the first one is written, bytes.
const ESTIMATED_RECORD_BYTES: u64 = 300;

/// Which entries are exported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Filter {
    pub(crate) party: String,
    pub(crate) asset: String,
    /// The last block time; no entries are exported when it is `None`.
    pub(crate) until: Option<TimeUs>,
}

/// A walk over the entries of an export, for one pull after the other.
pub(crate) struct Walk {
    store: Store,
    pub(crate) filter: Filter,
    position: LedgerPosition,
    budget: ByteBudget,
    /// `None` until the party's accounts are read.
    entries: Option<Entries>,
    /// Reads under way; cancelled when dropped.
    reads: JoinSet<Result<Batch, Problem>>,
    accounts: AccountLookup,
    writer: record::Writer,
    next: NextRecord,
    has_ended: bool,
}

/// The bytes that pulls may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ByteBudget {
    /// Most bytes of one piece.
    pub(crate) piece: usize,
    /// Bytes that the current pull may still take.
    pub(crate) pull: usize,
    /// Bytes that the next pull is expected to take; read ahead, not sent.
    pub(crate) next_pull: usize,
}

/// The record to send next.
#[derive(Default)]
struct NextRecord {
    /// Empty when none is written.
    bytes: Vec<u8>,
    /// `None` for the header.
    key: Option<Key>,
}

impl Walk {
    /// A walk over the entries after `position`, for a first pull of this budget.
    pub(crate) fn new(
        store: Store,
        accounts: Arc<AccountCache>,
        filter: Filter,
        position: LedgerPosition,
        budget: ByteBudget,
    ) -> Self {
        let header = if position.has_header { Vec::new() } else { record::HEADER.to_vec() };
        Self {
            store,
            filter,
            position,
            budget,
            entries: None,
            reads: JoinSet::new(),
            accounts: AccountLookup::new(accounts),
            writer: record::Writer::default(),
            next: NextRecord { bytes: header, key: None },
            has_ended: false,
        }
    }

    /// Continues for the next pull.
    pub(crate) fn resume(&mut self, budget: ByteBudget) {
        self.budget = budget;
    }

    /// Whether it may be cached for the next pull: it has not ended, and its lookup of accounts is not too
    /// large.
    pub(crate) fn can_resume(&self) -> bool {
        !self.has_ended && !self.accounts.is_large()
    }

    /// The next piece; `None` after the end or when the pull's budget is spent.
    ///
    /// # Errors
    /// The database is unreachable, too slow, or behind the bound.
    pub(crate) async fn next(&mut self) -> Result<Option<Piece>, Problem> {
        if self.has_ended || self.budget.pull == 0 {
            return Ok(None);
        }
        let most = self.budget.piece.min(self.budget.pull);
        let mut bytes = Vec::with_capacity(most);
        while !self.next.bytes.is_empty() || self.write_next().await? {
            let skip = usize::try_from(self.position.skip).unwrap_or(usize::MAX);
            let rest =
                self.next.bytes.get(skip..).ok_or_else(|| failed("the position is inside no record"))?;
            if rest.len() > most - bytes.len() {
                // Only a record that is longer than a piece is cut.
                if bytes.is_empty() {
                    bytes.extend_from_slice(&rest[..most]);
                    self.position.skip += most as u64;
                    self.position.bytes += most as u64;
                    self.budget.pull -= most;
                }
                break;
            }
            bytes.extend_from_slice(rest);
            self.position.bytes += rest.len() as u64;
            self.budget.pull -= rest.len();
            self.position.skip = 0;
            match self.next.key {
                Some(key) => {
                    self.position.after = key;
                    self.position.rows += 1;
                }
                None => self.position.has_header = true,
            }
            self.next.bytes.clear();
            if self.position.rows.is_multiple_of(RECORDS_PER_YIELD) {
                yield_now().await;
            }
        }
        self.has_ended = self.next.bytes.is_empty() && self.has_no_more();
        let totals = Totals { bytes: self.position.bytes, rows: Some(self.position.rows) };
        let end = self.has_ended.then_some(totals);
        Ok(Some(Piece { bytes: Bytes::from(bytes), after: self.position.write()?, end }))
    }

    fn has_no_more(&self) -> bool {
        match &self.entries {
            Some(entries) => entries.has_ended(),
            None => self.filter.until.is_none(),
        }
    }

    /// Writes the record of the next entry; returns whether there was one.
    async fn write_next(&mut self) -> Result<bool, Problem> {
        while !self.has_no_more() {
            let Some((key, entry)) = self.entries.as_mut().and_then(Entries::next) else {
                self.read().await?;
                continue;
            };
            if self.write(key, &entry).map_err(|error| error.problem(LEDGER))? {
                self.next.key = Some(key);
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Writes the record of an entry, if it is one of the export's (L2).
    fn write(&mut self, key: Key, entry: &Entry) -> Result<bool, ReadError> {
        let Self { filter, writer, next, .. } = self;
        let [Some(from), Some(to)] = &entry.accounts else { return Ok(false) };
        if from.asset.as_deref() != Some(filter.asset.as_str()) {
            return Ok(false);
        }
        writer.write(&mut next.bytes, &entry.row, &filter.party, (key.0, from, to))?;
        Ok(true)
    }

    /// Reads the party's accounts the first time, then a batch of entries, and starts to read the batch after
    /// it.
    async fn read(&mut self) -> Result<(), Problem> {
        let Some(mut entries) = self.entries.take() else {
            let sql = include_str!("../../../sql/ledger_accounts_of.sql");
            let parameters: &[Parameter<'_>] = &[&self.filter.party, &self.filter.asset];
            let rows = self.source().list(sql, parameters).await?;
            let ids = self
                .accounts
                .add_rows(&rows, self.store.unreadable())
                .map_err(|error| error.problem(LEDGER))?;
            self.entries = Some(Entries::new(ids, self.position.after));
            return Ok(());
        };
        if self.reads.is_empty() {
            let rows = self.rows_that_fit().clamp(MIN_ROWS, MAX_FIRST_ROWS);
            self.start(entries.reads(rows));
        }
        let Some(read) = self.reads.join_next().await else {
            return Err(failed("no read is under way"));
        };
        let batch = read.map_err(|error| failed(&error.to_string()))??;
        let accounts = self.read_accounts(&batch.rows).await?;
        entries.add(batch, accounts).map_err(|error| error.problem(LEDGER))?;
        let missing = self.rows_that_fit().saturating_sub(entries.buffered());
        if self.reads.is_empty() && missing >= MIN_ROWS {
            self.start(entries.reads_ahead(missing.min(MAX_ROWS)));
        }
        self.entries = Some(entries);
        Ok(())
    }

    /// Estimated number of records that this pull and the next one will take.
    fn rows_that_fit(&self) -> usize {
        let a_row = match self.position.rows {
            0 => ESTIMATED_RECORD_BYTES,
            rows => self.position.bytes / rows,
        };
        (self.budget.pull + self.budget.next_pull) / usize::try_from(a_row.max(1)).unwrap_or(usize::MAX)
    }

    /// Starts these reads.
    fn start(&mut self, reads: Vec<Read>) {
        for read in reads {
            self.reads.spawn(self.source().read(read));
        }
    }

    fn source(&self) -> Source {
        Source { store: self.store.clone(), bound: self.position.bound, until: self.filter.until }
    }

    /// The sender and the receiver of each of these entries; those that are not known are read.
    async fn read_accounts(&mut self, rows: &[Row]) -> Result<Vec<Accounts>, Problem> {
        let unreadable = |error: ReadError| error.problem(LEDGER);
        let (found, mut missing) = self.find_accounts(rows).map_err(unreadable)?;
        if missing.is_empty() {
            return Ok(found);
        }
        missing.sort_unstable();
        missing.dedup();
        let sql = include_str!("../../../sql/ledger_accounts_named.sql");
        let stored = self.source().list(sql, &[&missing]).await?;
        self.accounts.add_rows(&stored, self.store.unreadable()).map_err(unreadable)?;
        self.accounts.mark_absent(missing);
        Ok(self.find_accounts(rows).map_err(unreadable)?.0)
    }

    /// The same, as far as they are known, and the ids of the others.
    fn find_accounts(&mut self, rows: &[Row]) -> Result<(Vec<Accounts>, Vec<String>), ReadError> {
        let (mut found, mut missing) = (Vec::with_capacity(rows.len()), Vec::new());
        for row in rows {
            let mut accounts = Accounts::default();
            for (account, column) in accounts.iter_mut().zip([column::FROM, column::TO]) {
                let Some(id) = row.try_get::<_, Option<&str>>(column)? else { continue };
                match self.accounts.find(id) {
                    Some(known) => *account = known,
                    None => missing.push(id.to_owned()),
                }
            }
            found.push(accounts);
        }
        Ok((found, missing))
    }
}

fn failed(cause: &str) -> Problem {
    Problem::internal(LEDGER, "the ledger export failed").caused_by(cause.to_owned())
}
