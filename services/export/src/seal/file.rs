//! The making of a segment file on a thread of its own: rows come in pieces, a verified file goes out.

use std::{
    io::{BufWriter, Write},
    path::{Path, PathBuf},
};

use bytes::Bytes;
use mesh_history::{
    DEFAULT_LEVEL, ReadyMember, Segment, SegmentName, Span, StagedMember, assemble, verify_file,
};
use tempfile::NamedTempFile;
use tokio::{
    sync::mpsc,
    task::{JoinHandle, spawn_blocking},
};

use super::SealError;

/// Pieces that wait to be deflated: a slow thread slows the database, not the memory.
const WAITING: usize = 4;

enum Work {
    Member(String),
    Piece(Bytes),
    Finish(Box<Span>),
}

/// The rows' way to the thread. Dropped before [`SegmentFile::finish`], nothing comes of it.
pub(super) struct SegmentFile(mpsc::Sender<Work>);

/// A verified file that only needs to be published.
pub(super) struct Made {
    pub(super) name: SegmentName,
    pub(super) segment: Segment,
    pub(super) file: NamedTempFile,
}

impl SegmentFile {
    pub(super) fn begin(scratch: PathBuf) -> (Self, JoinHandle<Result<Made, SealError>>) {
        let (sender, receiver) = mpsc::channel(WAITING);
        (Self(sender), spawn_blocking(move || make(&scratch, receiver)))
    }

    pub(super) async fn begin_member(&mut self, name: String) {
        self.give(Work::Member(name)).await;
    }

    pub(super) async fn piece(&mut self, piece: Bytes) {
        self.give(Work::Piece(piece)).await;
    }

    pub(super) async fn finish(self, span: Span) {
        self.give(Work::Finish(Box::new(span))).await;
    }

    /// A thread that has failed takes nothing any more; it says why at the end.
    async fn give(&self, work: Work) {
        let _ = self.0.send(work).await;
    }
}

fn make(scratch: &Path, mut work: mpsc::Receiver<Work>) -> Result<Made, SealError> {
    let mut ready: Vec<ReadyMember> = Vec::new();
    let mut under_way: Option<StagedMember> = None;
    let span = loop {
        match work.blocking_recv() {
            Some(Work::Member(name)) => {
                let next = StagedMember::new(&name, DEFAULT_LEVEL, scratch)?;
                if let Some(member) = under_way.replace(next) {
                    ready.push(member.finish()?);
                }
            }
            Some(Work::Piece(piece)) => {
                if let Some(member) = &mut under_way {
                    member.write(&piece)?;
                }
            }
            Some(Work::Finish(span)) => break *span,
            None => return Err(SealError::Unfit("the rows broke off".to_owned())),
        }
    };
    if let Some(member) = under_way {
        ready.push(member.finish()?);
    }
    let mut file = NamedTempFile::with_prefix_in("mesh-segment-", scratch)?;
    let mut out = BufWriter::with_capacity(256 << 10, file.as_file_mut());
    let (name, _) = assemble(&span, ready, &mut out)?;
    out.flush()?;
    drop(out);
    let segment = verify_file(&name, file.path())?;
    Ok(Made { name, segment, file })
}
