//! Makes a segment file on a blocking thread: takes rows in pieces, returns a verified file.

use std::{
    io::{BufWriter, Write},
    path::{Path, PathBuf},
};

use bytes::Bytes;
use mesh_history::{
    DEFAULT_LEVEL, ReadyMember, Segment, SegmentName, SegmentStore, Span, StagedMember, assemble, verify_file,
};
use tempfile::NamedTempFile;
use tokio::{
    sync::mpsc,
    task::{JoinHandle, spawn_blocking},
};

use super::SealError;

/// Most pieces that wait to be deflated, so that a slow thread slows the database down instead of filling
/// memory.
const MAX_QUEUED: usize = 4;

enum Message {
    Member(String),
    Piece(Bytes),
    Finish(Box<Span>),
}

/// The sender of rows to the thread. When it is dropped before [`SegmentFile::finish`], no file is made.
pub(super) struct SegmentFile(mpsc::Sender<Message>);

/// A verified file that only needs to be published.
pub(super) struct VerifiedFile {
    pub(super) name: SegmentName,
    pub(super) segment: Segment,
    pub(super) file: NamedTempFile,
}

impl SegmentFile {
    pub(super) fn begin(
        segments: SegmentStore,
        scratch: PathBuf,
    ) -> (Self, JoinHandle<Result<VerifiedFile, SealError>>) {
        let (sender, receiver) = mpsc::channel(MAX_QUEUED);
        (Self(sender), spawn_blocking(move || make(&segments, &scratch, receiver)))
    }

    pub(super) async fn begin_member(&mut self, name: String) {
        self.send(Message::Member(name)).await;
    }

    pub(super) async fn piece(&mut self, piece: Bytes) {
        self.send(Message::Piece(piece)).await;
    }

    pub(super) async fn finish(self, span: Span) {
        self.send(Message::Finish(Box::new(span))).await;
    }

    /// Ignores that the thread has failed: its join handle returns the error.
    async fn send(&self, message: Message) {
        let _ = self.0.send(message).await;
    }
}

fn make(
    segments: &SegmentStore,
    scratch: &Path,
    mut messages: mpsc::Receiver<Message>,
) -> Result<VerifiedFile, SealError> {
    let mut ready: Vec<ReadyMember> = Vec::new();
    let mut current: Option<StagedMember> = None;
    let span = loop {
        match messages.blocking_recv() {
            Some(Message::Member(name)) => {
                let next = StagedMember::new(&name, DEFAULT_LEVEL, scratch)?;
                if let Some(member) = current.replace(next) {
                    ready.push(member.finish()?);
                }
            }
            Some(Message::Piece(piece)) => {
                if let Some(member) = &mut current {
                    member.write(&piece)?;
                }
            }
            Some(Message::Finish(span)) => break *span,
            None => return Err(SealError::Unfit("the rows broke off".to_owned())),
        }
    };
    if let Some(member) = current {
        ready.push(member.finish()?);
    }
    let mut file = segments.new_file(scratch)?;
    let mut out = BufWriter::with_capacity(256 << 10, file.as_file_mut());
    let (name, _) = assemble(&span, ready, &mut out)?;
    out.flush()?;
    drop(out);
    let segment = verify_file(&name, file.path())?;
    Ok(VerifiedFile { name, segment, file })
}
