//! Inputs and outputs of the puller.

use std::time::Duration;

use bytes::Bytes;
use mesh_problem::Problem;

use crate::stream::{
    position::{Position, Totals},
    wire::{Chunk, PullBudget},
};

/// Bounds of pulling.
#[derive(Debug, Clone, Copy)]
pub struct PullLimits {
    /// Window at the beginning, and least length of a chunk, bytes.
    pub first_bytes: u32,
    /// Greatest length of a chunk, bytes, at most 512 KiB.
    pub chunk_bytes: u32,
    /// Greatest window, in chunks of the greatest length: bytes asked for, or received and not yet read.
    pub window_chunks: u32,
    /// The window does not grow until its reader has read this many bytes: more than fit into the buffers on
    /// the way to it, so that thousands of clients that do not read get small windows.
    pub unproven_bytes: u64,
    /// After that, the window grows by the bytes that its reader had to wait for, divided by this.
    pub growth: u32,
    /// The stream breaks when its reader has waited this long for the next chunk.
    pub idle: Duration,
}

impl Default for PullLimits {
    fn default() -> Self {
        let chunk_bytes = 512 << 10;
        let idle = Duration::from_secs(30);
        Self {
            first_bytes: 64 << 10,
            chunk_bytes,
            window_chunks: 8,
            unproven_bytes: 8 << 20,
            growth: 4,
            idle,
        }
    }
}

impl PullLimits {
    pub(super) fn max_window(&self) -> u64 {
        u64::from(self.chunk_bytes) * u64::from(self.window_chunks)
    }
}

/// The part of a stream to be read.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Id of the stream.
    pub stream: u64,
    /// The position to begin at.
    pub first: Position,
    /// The byte of the file that `first` is at.
    pub from_byte: u64,
    /// The byte of the file at which reading stops; `None` = the end, whose totals are then checked.
    pub to_byte: Option<u64>,
    /// Length of the file, when it is known in advance.
    pub total_bytes: Option<u64>,
    /// Rows of the file, when they are known in advance.
    pub total_rows: Option<u64>,
}

/// An input of the puller.
#[derive(Debug)]
pub enum Event {
    /// A chunk in answer to a pull.
    Chunk(u32, Chunk),
    /// A message in answer to a pull that was changed in transit.
    Damaged(u32),
    /// A pull failed.
    Failed(u32, Problem),
}

/// An action that the puller requests.
#[derive(Debug)]
pub enum Action {
    /// Send a pull.
    Pull(PullRequest),
    /// Send a cancellation of this pull to the replicas.
    Cancel(u32),
    /// Pass these bytes to the reader.
    Deliver(Bytes),
    /// Wait for an event, or until this time.
    Wait(Duration),
    /// The stream has ended and is whole.
    Finished,
    /// The stream cannot be continued.
    Broken(Problem),
}

/// A pull to be sent.
#[derive(Debug)]
pub struct PullRequest {
    /// Number of the pull in its stream.
    pub pull: u32,
    /// The position it begins at.
    pub position: Position,
    /// The most that its answer may contain.
    pub budget: PullBudget,
    /// Whether an earlier pull for these bytes failed or was late: another replica should answer.
    pub is_retry: bool,
}

impl Plan {
    pub(super) fn agrees_with(&self, totals: Totals, ends_at: u64) -> bool {
        let rows_agree =
            self.total_rows.zip(totals.rows).is_none_or(|(expected, counted)| expected == counted);
        totals.bytes == ends_at && self.total_bytes.is_none_or(|expected| expected == ends_at) && rows_agree
    }
}
