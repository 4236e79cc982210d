//! Sealing: complete spans of blocks become segments (DATA_MODEL 7), by one writer at a time.
//!
//! The writer that has the advisory lock of the database lists the store, reads the next span's tables in one
//! snapshot, makes and verifies the file on a blocking thread, and publishes it. A crash before the
//! publication leaves no segment.

mod file;
mod members;
mod next_span;

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use file::SegmentFile;
pub use members::history_statement;
use mesh_history::{HistoryError, Segment, SegmentList, SegmentName, SegmentStore};
use mesh_store::{ReadError, SealSession, Snapshot, Store, TimeUs, error::StoreError};
use next_span::{NEXT_SPAN, NextSpan};
use tokio::time::timeout;

use crate::metrics::Metrics;

/// Key of the advisory lock of the only writer: "meshseal" in ASCII.
const SEAL_LOCK: i64 = 0x6d65_7368_7365_616c;

/// Longest time for releasing it.
const UNLOCK_TIMEOUT: Duration = Duration::from_secs(1);

/// When segments end and when they are removed.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// Segments end at heights that are multiples of this (H7).
    pub interval_blocks: i64,
    /// Segments that end at least this many blocks below the newest end are removed; 0 = none is (H9).
    pub retention_blocks: u64,
}

impl Rules {
    /// The longest interval.
    pub const INTERVAL_AT_MOST: i64 = 1_000_000_000;
}

/// Up to where blocks are sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// Only spans that are complete by the rules.
    Complete,
    /// Also the stored part of the incomplete span, before a migration that changes an exportable table (H7).
    Newest,
}

/// Why sealing failed.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// The database.
    #[error("reading what to seal failed")]
    Store(#[from] StoreError),
    /// The database is unreachable, or a column does not have the type of its statement.
    #[error("reading what to seal failed")]
    Read(#[from] ReadError),
    /// The segment store failed, or the file could not be made.
    #[error("the segment cannot be made")]
    History(#[from] HistoryError),
    /// The scratch folder, or the folder of the segment store.
    #[error("no file can be created for the segment")]
    Scratch(#[from] std::io::Error),
    /// The stored rows cannot be sealed.
    #[error("{0}")]
    Unfit(String),
    /// The blocks of the next span have a gap, or their times do not rise. Writers must repair them.
    #[error("blocks {from} to {to} cannot be sealed: {fault}")]
    Refused {
        /// First height of the span.
        from: i64,
        /// Last height of the span.
        to: i64,
        /// What is wrong.
        fault: String,
    },
}

/// The result of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sealed {
    /// Another writer is sealing.
    Elsewhere,
    /// These segments were published, none when there was nothing to do.
    Here(Vec<SegmentName>),
}

/// Seals the history of one database into one segment store. Cloning shares nothing but the configuration.
#[derive(Clone)]
pub struct Sealing {
    /// URL of the primary database.
    pub database_url: String,
    /// The store that segments are published to.
    pub segments: SegmentStore,
    /// When segments end and when they are removed.
    pub rules: Rules,
    /// Folder for temporary files of members, and for segment files before their upload.
    pub scratch: PathBuf,
    /// Metrics of the workload.
    pub metrics: Metrics,
}

impl Sealing {
    /// Whether [`Sealing::run`] may have something to do, by one quick read.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub async fn is_due(&self, store: &Store, list: &SegmentList) -> Result<bool, ReadError> {
        let last = newest_end(list);
        let row = store.point(NEXT_SPAN, &[&last, &self.rules.interval_blocks, &None::<i64>], None).await?;
        if NextSpan::read(&row)?.is_complete {
            return Ok(true);
        }
        let row = store.point(include_str!("../../sql/is_due.sql"), &[&last], None).await?;
        Ok(row.try_get("is_due")? || row.try_get("is_over")? || row.try_get("is_unnoted")?)
    }

    /// Seals every span that is complete, updates the upgrade flag (4.11) and the noted span, and removes segments below the
    /// retention.
    ///
    /// # Errors
    /// See [`SealError`]. Segments published before the failure stay.
    pub async fn run(&self, until: Until) -> Result<Sealed, SealError> {
        self.run_telling(until, &mut |_| {}).await
    }

    /// Like [`Sealing::run`]; calls `published` with each segment as soon as it is published.
    ///
    /// # Errors
    /// See [`SealError`]. Segments published before the failure stay.
    pub async fn run_telling(
        &self,
        until: Until,
        published: &mut (dyn FnMut(&Segment) + Send),
    ) -> Result<Sealed, SealError> {
        let mut session = SealSession::open(&self.database_url, "mesh seal").await?;
        if !session.try_lock(SEAL_LOCK).await? {
            return Ok(Sealed::Elsewhere);
        }
        let sealed = self.run_locked(&mut session, until, published).await;
        // Otherwise the end of the session releases it a moment after this.
        let _ = timeout(UNLOCK_TIMEOUT, session.unlock(SEAL_LOCK)).await;
        sealed
    }

    /// What is wrong with the segments of the database's chain: the first one that cannot be read or does not continue the one
    /// before it.
    ///
    /// # Errors
    /// The database cannot be read, or the store cannot be listed.
    pub async fn fault(&self) -> Result<Option<String>, SealError> {
        let chain_id = SealSession::open(&self.database_url, "mesh seal").await?.chain_id().await?;
        let (list, _) = self.segments.list().await?.of_chain(chain_id.as_deref().unwrap_or_default());
        let unreadable = list.unreadable.first().map(|other| format!("{} cannot be read", other.name));
        Ok(unreadable.or_else(|| list.chain_faults().first().map(ToString::to_string)))
    }

    async fn run_locked(
        &self,
        session: &mut SealSession,
        until: Until,
        published: &mut (dyn FnMut(&Segment) + Send),
    ) -> Result<Sealed, SealError> {
        // First, because it does not depend on what can be sealed.
        session.execute(include_str!("../../sql/clear_upgrade_flag.sql"), &[]).await?;
        let chain_id = session.chain_id().await?;
        // Later blocks belong to the next segment.
        let ends_at = if until == Until::Newest { session.newest_block().await? } else { None };
        let mut sealed = Vec::new();
        loop {
            // Listed under the lock, so that the list contains the segments of other writers.
            let list = self.segments.list().await?;
            // A database without a chain has no segments: all of the store are another's.
            let (list, _) = list.of_chain(chain_id.as_deref().unwrap_or_default());
            // Before the removal, which must not touch the segments of another history.
            check_newest(&session.snapshot().await?, &list).await?;
            // Before sealing, which may need the disk space. A failed removal does not prevent sealing.
            let removed = self.remove_old(&list).await;
            let Some(name) = self.seal_next(session, &list, ends_at, published).await? else {
                let last = newest_end(&list);
                session.execute(include_str!("../../sql/set_upgrade_flag.sql"), &[&last]).await?;
                note_span(session, &list).await?;
                removed?;
                return Ok(Sealed::Here(sealed));
            };
            if sealed.last() == Some(&name) {
                return Err(SealError::Unfit(format!("{name} is in the store and cannot be listed")));
            }
            sealed.push(name);
        }
    }

    async fn seal_next(
        &self,
        session: &mut SealSession,
        list: &SegmentList,
        ends_at: Option<i64>,
        published: &mut (dyn FnMut(&Segment) + Send),
    ) -> Result<Option<SegmentName>, SealError> {
        let started = Instant::now();
        let last = newest_end(list);
        let snapshot = session.snapshot().await?;
        let row = snapshot.one(NEXT_SPAN, &[&last, &self.rules.interval_blocks, &ends_at]).await?;
        let NextSpan { blocks: Some(blocks), is_complete: true, chain_id } = NextSpan::read(&row)? else {
            return Ok(None);
        };
        let chain_id = chain_id.filter(|id| !id.is_empty());
        let chain_id = chain_id.ok_or_else(|| SealError::Unfit("the database names no chain".to_owned()))?;
        blocks.check(&snapshot, last).await?;
        let version = snapshot.schema().await?.exportable;
        let span = blocks.describe(chain_id, version, list)?;

        let statements = members::all(&snapshot.primary_keys().await?)?;
        let (mut file, making) = SegmentFile::begin(self.segments.clone(), self.scratch.clone());
        for (member, statement) in statements {
            file.begin_member(member).await;
            let mut rows = snapshot.copy(&statement).await?;
            while let Some(piece) = rows.next().await? {
                file.piece(piece).await;
            }
        }
        drop(snapshot);
        file.finish(span).await;
        let verified =
            making.await.map_err(|error| SealError::Unfit(format!("the maker of the file: {error}")))??;
        match self.segments.publish(&verified.name, verified.file).await {
            Ok(()) => {}
            // Another writer has published the same rows; the next listing has it.
            Err(HistoryError::Exists { .. }) => return Ok(Some(verified.name)),
            Err(error) => return Err(error.into()),
        }
        self.metrics.sealing.observe(started.elapsed().as_secs_f64());
        let (segment, rows) =
            (&verified.segment, verified.segment.members.iter().map(|member| member.rows).sum::<u64>());
        tracing::info!(
            segment = %verified.name, id = %segment.id, rows, bytes = segment.length,
            seconds = started.elapsed().as_secs_f64(), "sealed"
        );
        published(segment);
        Ok(Some(verified.name))
    }

    /// Removes segments that lie wholly more than the retention below the newest end (H9), oldest first.
    async fn remove_old(&self, list: &SegmentList) -> Result<(), SealError> {
        let Some(newest) = list.segments.last() else { return Ok(()) };
        if self.rules.retention_blocks == 0 {
            return Ok(());
        }
        let retained_from = newest.height_to.saturating_sub(self.rules.retention_blocks);
        for segment in list.segments.iter().filter(|segment| segment.height_to <= retained_from) {
            tracing::info!(segment = %segment.name, "removed, as the retention says");
            self.segments.delete(&segment.name).await?;
        }
        Ok(())
    }
}

/// Notes the span of the newest segment in the database, where readers look for it.
async fn note_span(session: &SealSession, list: &SegmentList) -> Result<(), SealError> {
    let Some(newest) = newest(list) else { return Ok(()) };
    let [from, to] = [newest.height_from, newest.height_to].map(u64::cast_signed);
    session.execute(include_str!("../../sql/set_sealed_span.sql"), &[&from, &to]).await?;
    Ok(())
}

/// The newest segment, readable or not.
fn newest(list: &SegmentList) -> Option<&SegmentName> {
    let readable = list.segments.iter().map(|segment| &segment.name);
    readable.chain(list.unreadable.iter().map(|other| &other.name)).max_by_key(|name| name.height_to)
}

/// The last height of the newest segment; -1 when there is none.
fn newest_end(list: &SegmentList) -> i64 {
    newest(list).and_then(|name| i64::try_from(name.height_to).ok()).unwrap_or(-1)
}

/// Refuses a store of another history than the database's: they would become one chain. Compares the end of the newest segment
/// and the begin of the newest one that the database has begun, where it has these blocks: a chain that was reset under
/// its name is below the end for long.
async fn check_newest(snapshot: &Snapshot<'_>, list: &SegmentList) -> Result<(), SealError> {
    let row = snapshot.one("SELECT (SELECT height FROM last_block)", &[]).await?;
    let head: Option<i64> = row.try_get(0).map_err(ReadError::from)?;
    let newest = list.segments.iter().max_by_key(|segment| segment.height_to);
    let begun = list.segments.iter().filter(|segment| Some(segment.height_from.cast_signed()) <= head);
    let begun = begun.max_by_key(|segment| segment.height_to);
    let ends = newest.map(|newest| (newest, newest.height_to, newest.block_time_to));
    let begins = begun.map(|begun| (begun, begun.height_from, begun.block_time_from));
    for (segment, height, sealed) in ends.into_iter().chain(begins) {
        let statement = "SELECT (SELECT block_time FROM blocks WHERE height = $1)";
        let row = snapshot.one(statement, &[&height.cast_signed()]).await?;
        let stored: Option<TimeUs> = row.try_get(0).map_err(ReadError::from)?;
        if stored.is_some_and(|stored| stored.ns() != sealed) {
            let name = &segment.name;
            let fault = format!(
                "{name} has other blocks of these heights than the database; use an empty folder or bucket"
            );
            let [from, to] = [segment.height_from, segment.height_to].map(u64::cast_signed);
            return Err(SealError::Refused { from, to, fault });
        }
    }
    Ok(())
}
