//! The files that drills download, with their expected content: the history is read directly from the segment
//! store, the ledger is downloaded once before any fault.

use std::{net::SocketAddr, ops::Range, path::Path};

use bytes::{Bytes, BytesMut};
use mesh::{
    failure::{Failure, cannot},
    terminal::print_line,
};
use mesh_history::{Layout, SegmentStore};
use rand::{Rng as _, SeedableRng as _, rngs::SmallRng};
use tokio_postgres::Client;

use super::download::Download;
use crate::synthetic::{LARGE, Synthetic};

const READ_BYTES: usize = 4 << 20;
/// Percentage of downloads of the ledger.
const LEDGER_PERCENT: u32 = 10;
/// Percentage of range requests among the downloads of the history.
const PART_PERCENT: u32 = 20;

pub(crate) const LEDGER: &str = "/api/v2/ledgerentry/export?partyId=network&assetId=RIG";
/// Fills the ledger with entries between two accounts of the network in their own asset; `ROWS` is replaced
/// by the number of entries.
const LEDGER_ROWS: &str = include_str!("../../../sql/network_ledger.sql");

/// A request for a file and the expected answer.
#[derive(Clone, Debug)]
pub(crate) struct ExpectedFile {
    pub(crate) path: String,
    /// The requested byte range; `None` for the whole file.
    pub(crate) range: Option<Range<u64>>,
    pub(crate) bytes: Bytes,
    pub(crate) etag: Option<String>,
}

impl ExpectedFile {
    /// The request for the rest after `bytes` bytes. Without an entity tag it is the whole file again, since
    /// a changed file could not be detected.
    pub(crate) fn after(&self, bytes: u64) -> Self {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX).min(self.bytes.len().saturating_sub(1));
        if self.etag.is_none() || bytes == 0 {
            return self.clone();
        }
        self.part(bytes, self.bytes.len())
    }

    /// The request for the bytes from `first` to before `end`.
    fn part(&self, first: usize, end: usize) -> Self {
        let offset = self.range.as_ref().map_or(0, |range| range.start);
        let range = Some(offset + first as u64..offset + end as u64);
        Self { range, bytes: self.bytes.slice(first..end), ..self.clone() }
    }
}

/// All files; none by default.
#[derive(Default)]
pub(crate) struct Files {
    /// Exports of ranges of blocks, in rising order of size; the last is the whole history.
    history: Vec<ExpectedFile>,
    ledger: Bytes,
}

impl Files {
    /// Writes a synthetic history into a folder, and a ledger of that many entries into the database. The files
    /// are two of one segment, two of two, four, eight … segments each, and one of all segments.
    pub(crate) async fn create(
        folder: &Path,
        plan: Synthetic,
        database: &Client,
        entries: u32,
        seed: u64,
    ) -> Result<Self, Failure> {
        print_line("writing segments");
        let store_folder = folder.to_owned();
        let written = tokio::task::spawn_blocking(move || plan.write(&store_folder)).await;
        written.map_err(|error| cannot("write segments", &error))??;
        for statement in [&LEDGER_ROWS.replace("ROWS", &entries.to_string()), "VACUUM ANALYZE"] {
            database.batch_execute(statement).await.map_err(|error| cannot("fill in a ledger", &error))?;
        }
        let mut random = SmallRng::seed_from_u64(seed);
        let root = folder.to_string_lossy();
        let unreadable = |error| cannot("read the segments", &error);
        let store = SegmentStore::open(&root).map_err(unreadable)?;
        let held = store.list().await.map_err(unreadable)?;
        let mut spans = Vec::new();
        for count in (0..).map(|power| 1 << power).take_while(|count| *count < plan.segments) {
            for _ in 0..2 {
                let first = random.random_range(0..=plan.segments - count);
                spans.push((first * plan.blocks + 1, (first + count) * plan.blocks));
            }
        }
        spans.push((1, plan.segments * plan.blocks));
        let mut history = Vec::new();
        for (from, to) in spans {
            let layout = Layout::of(&held, &LARGE.relation(), from, to);
            let layout = layout.map_err(|error| cannot("lay an export out", &error))?;
            let mut bytes = BytesMut::with_capacity(usize::try_from(layout.length).unwrap_or_default());
            while (bytes.len() as u64) < layout.length {
                let piece = store.read(&layout, bytes.len() as u64, READ_BYTES).await.map_err(unreadable)?;
                bytes.extend_from_slice(&piece);
            }
            let (path, etag) = (export_of(from, to), format!("\"{}\"", layout.fingerprint));
            let etag = Some(etag);
            history.push(ExpectedFile { path, range: None, bytes: bytes.freeze(), etag });
        }
        Ok(Self { history, ledger: Bytes::new() })
    }

    /// Downloads the ledger; its content is expected from all later downloads.
    pub(crate) async fn learn_ledger(&mut self, edge: SocketAddr) -> Result<(), Failure> {
        let learned = async {
            let mut download = Download::open(edge, LEDGER, None, None).await?;
            let text = download.text().await?;
            match download.head.status {
                200 => Ok(Bytes::from(text)),
                status => Err(format!("{status}: {text}")),
            }
        };
        let unlearned = |why: String| Failure::failed(format!("the ledger cannot be downloaded: {why}"));
        self.ledger = learned.await.map_err(unlearned)?;
        Ok(())
    }

    /// A random file or part of a file, the ledger included.
    pub(crate) fn any(&self, random: &mut SmallRng) -> ExpectedFile {
        if random.random_range(0..100) < LEDGER_PERCENT {
            return ExpectedFile {
                path: LEDGER.to_owned(),
                range: None,
                bytes: self.ledger.clone(),
                etag: None,
            };
        }
        let file = &self.history[random.random_range(0..self.history.len())];
        if random.random_range(0..100) >= PART_PERCENT {
            return file.clone();
        }
        let first = random.random_range(0..file.bytes.len());
        let end = random.random_range(first + 1..=file.bytes.len());
        file.part(first, end)
    }

    /// The whole history.
    pub(crate) fn largest(&self) -> ExpectedFile {
        // `create` always adds the whole history.
        self.history[self.history.len() - 1].clone()
    }

    /// `bytes` bytes of the whole history from a random offset.
    pub(crate) fn part(&self, bytes: usize, random: &mut SmallRng) -> ExpectedFile {
        let whole = self.largest();
        let bytes = bytes.min(whole.bytes.len());
        let first = random.random_range(0..=whole.bytes.len() - bytes);
        whole.part(first, first + bytes)
    }
}

/// Path of the export of the large table for a range of blocks.
pub(crate) fn export_of(from: u64, to: u64) -> String {
    let table = LARGE.as_str_name();
    format!("/api/v2/networkhistory/export?fromBlock={from}&toBlock={to}&table={table}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_begins_where_it_broke_off() {
        let (path, etag) = ("/".to_owned(), Some("x".to_owned()));
        let whole = ExpectedFile { path, range: None, bytes: Bytes::from_static(b"0123456789"), etag };
        let left = whole.after(3);
        assert_eq!((left.range.clone(), &left.bytes[..]), (Some(3..10), &b"3456789"[..]));
        let left = left.after(4);
        assert_eq!((left.range.clone(), &left.bytes[..]), (Some(7..10), &b"789"[..]));
        assert_eq!(whole.after(0).range, None);
        let untagged = ExpectedFile { etag: None, ..whole };
        assert_eq!((untagged.after(3).range, untagged.after(3).bytes.len()), (None, 10));
    }
}
