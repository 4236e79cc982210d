//! The entries of a party in order. Where few entries are the party's, they are read along the indexes of its
//! accounts, from which one that lies between two of them comes twice. Where many are, the entries of
//! everybody are scanned and the party's kept, which costs less.

use std::sync::Arc;

use mesh_store::{ReadError, Row};

use super::{
    accounts::Account,
    merge::{Key, Merge, ReadRequest},
    read::{Batch, Read},
    record::column,
};

/// Reads along accounts of at least so many rows are split in two that run in parallel: one database process
/// is slower than the writing of records.
const PARALLEL_READS: usize = 2;
const MIN_ROWS_TO_SPLIT: usize = 512;

/// Entries of everybody in one read of the scan. It continues while one in `SCANNED_PER_ENTRY` is the party's.
const SCANNED: usize = 4096;
const SCANNED_PER_ENTRY: usize = 4;

/// Entries read along accounts before the first scan is tried; twice as many after each that has found too few.
const ENTRIES_BEFORE_SCAN: usize = 1024;

/// The walk of the merge that is the scan. The accounts' walks follow, two of each account.
const SCAN: usize = 0;

/// The sender and the receiver of an entry, as far as they are stored.
pub(super) type Accounts = [Option<Arc<Account>>; 2];

/// An entry that was read.
pub(super) struct Entry {
    pub(super) row: Row,
    pub(super) accounts: Accounts,
}

/// The entries of all accounts of a party, merged in order.
pub(super) struct Entries {
    accounts: Arc<[Arc<str>]>,
    merge: Merge<Entry>,
    is_scanning: bool,
    /// Entries to take along accounts before the next scan.
    until_scan: usize,
    /// What `until_scan` was when it was set last.
    pause: usize,
}

impl Entries {
    /// The entries of these accounts after a key.
    pub(super) fn new(accounts: Vec<String>, after: Key) -> Self {
        let mut merge = Merge::new(1 + 2 * accounts.len(), after);
        merge.pause(SCAN);
        Self {
            accounts: accounts.into_iter().map(Arc::from).collect(),
            merge,
            is_scanning: false,
            until_scan: ENTRIES_BEFORE_SCAN,
            pause: ENTRIES_BEFORE_SCAN,
        }
    }

    /// The next entry; `None` while entries must be read first, and after the end.
    pub(super) fn next(&mut self) -> Option<(Key, Entry)> {
        let next = self.merge.next()?;
        self.until_scan = self.until_scan.saturating_sub(1);
        Some(next)
    }

    /// Whether there are no more.
    pub(super) fn has_ended(&self) -> bool {
        self.merge.has_ended()
    }

    /// Number of entries that were read and not taken; those between two of the accounts may count twice.
    pub(super) fn buffered(&self) -> usize {
        self.merge.buffered()
    }

    /// The reads for about `rows` more entries.
    pub(super) fn reads(&mut self, rows: usize) -> Vec<Read> {
        if !self.is_scanning && self.until_scan == 0 {
            self.scan(true, self.merge.taken_to());
        }
        self.reads_of(&self.merge.requests(rows))
    }

    /// The reads for about `rows` entries beyond the buffered ones.
    pub(super) fn reads_ahead(&self, rows: usize) -> Vec<Read> {
        // What is buffered when a scan begins is read by it again.
        if !self.is_scanning && self.until_scan == 0 {
            return Vec::new();
        }
        self.reads_of(&self.merge.requests_ahead(rows))
    }

    fn reads_of(&self, requests: &[ReadRequest]) -> Vec<Read> {
        if let &[mut request] = requests
            && request.walk == SCAN
        {
            request.rows = SCANNED;
            return vec![Read::Scan { request, accounts: Arc::clone(&self.accounts) }];
        }
        let rows: usize = requests.iter().map(|request| request.rows).sum();
        let reads = if rows < MIN_ROWS_TO_SPLIT { 1 } else { PARALLEL_READS };
        let account = |request: &ReadRequest| {
            let number = request.walk - 1;
            Some((Arc::clone(self.accounts.get(number / 2)?), number.is_multiple_of(2)))
        };
        let read = |requests: &[ReadRequest]| Read::OfAccounts {
            accounts: requests.iter().filter_map(account).collect(),
            requests: requests.to_vec(),
        };
        requests.chunks(requests.len().div_ceil(reads).max(1)).map(read).collect()
    }

    /// Adds the rows of a read, each with its sender and receiver.
    ///
    /// # Errors
    /// When the rows do not hold what their statement promises.
    pub(super) fn add(&mut self, batch: Batch, accounts: Vec<Accounts>) -> Result<(), ReadError> {
        let mut read: Vec<Vec<(Key, Entry)>> = batch.requests.iter().map(|_| Vec::new()).collect();
        for (row, accounts) in batch.rows.into_iter().zip(accounts) {
            let Some(number) = row.try_get::<_, Option<i64>>(column::WALK)? else { continue };
            let key = (row.try_get(column::BLOCK_TIME)?, row.try_get(column::ENTRY_TIME)?);
            let walk = usize::try_from(number - 1).ok().and_then(|number| read.get_mut(number));
            let walk = walk.ok_or_else(|| ReadError::Unreadable(format!("walk {number}")))?;
            walk.push((key, Entry { row, accounts }));
        }
        for (request, mut read) in batch.requests.into_iter().zip(read) {
            if request.walk != SCAN {
                let has_ended = read.len() < request.rows;
                self.merge.add(request.walk, read, has_ended);
                continue;
            }
            let has_found_few = read.len() * SCANNED_PER_ENTRY < request.rows;
            // Within a block they come as they are stored.
            read.sort_by_key(|(key, _)| *key);
            self.merge.add(SCAN, read, false);
            if has_found_few {
                self.scan(false, self.merge.read_to(SCAN));
            } else {
                self.pause = ENTRIES_BEFORE_SCAN;
            }
        }
        Ok(())
    }

    /// Begins to scan after a key, or to read along the accounts.
    fn scan(&mut self, is_scanning: bool, after: Key) {
        self.is_scanning = is_scanning;
        for walk in 0..=2 * self.accounts.len() {
            match (walk == SCAN) == is_scanning {
                true => self.merge.resume(walk, after),
                false => self.merge.pause(walk),
            }
        }
        if !is_scanning {
            self.until_scan = self.pause;
            self.pause = self.pause.saturating_mul(2);
        }
    }
}
