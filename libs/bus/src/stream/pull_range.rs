//! One range of a stream: the bytes of one pull, or of several when the first one fails.

use std::{collections::VecDeque, time::Duration};

use bytes::Bytes;
use mesh_problem::Problem;

use super::{
    position::{Position, Totals},
    wire::{Chunk, Mark, PullBudget},
};

/// Most unanswered pulls of one range: the first, which a slow replica may still answer, and the two newest.
const MAX_ATTEMPTS: usize = 3;

/// One range of a stream.
#[derive(Debug)]
pub(super) struct PullRange {
    /// Where it begins.
    pub(super) from: Position,
    /// Where the next chunk of it must begin.
    pub(super) next: Position,
    /// The budget of the first pull.
    pub(super) budget: PullBudget,
    /// The budget of what is missing.
    left: PullBudget,
    /// The positions of the next ranges from the header of a chunk; those after the first are valid if each
    /// range has the same budget.
    next_ranges: Vec<Position>,
    /// Bytes received and not delivered.
    pub(super) buffered: VecDeque<Bytes>,
    /// Whether all of it has arrived.
    pub(super) is_complete: bool,
    /// The totals, when the range ends the stream.
    pub(super) end: Option<Totals>,
    /// A problem that a repetition does not solve.
    pub(super) broken: Option<Problem>,
    attempts: Vec<Attempt>,
    /// When a pull of it was last sent, or a chunk of it arrived.
    pub(super) last_activity: Duration,
    /// When to repeat its pull, while none is unanswered.
    pub(super) retry_at: Duration,
}

/// A pull that is being answered.
#[derive(Debug)]
struct Attempt {
    pull: u32,
    sent: Duration,
    /// Chunks received from it.
    index: u32,
    /// Whether it is for the whole range.
    is_whole: bool,
}

/// The effect of a chunk on its range.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ChunkOutcome {
    /// The next chunk.
    Next {
        /// Time from its pull to this chunk, when it is the first of the pull.
        took: Option<Duration>,
        /// Pulls to be canceled.
        canceled: Vec<u32>,
    },
    /// A chunk that arrived before.
    Repeat,
    /// It does not follow the earlier chunks of its pull, or is inconsistent: the pull is discarded.
    Torn,
}

impl PullRange {
    pub(super) fn new(from: Position, budget: PullBudget, now: Duration) -> Self {
        Self {
            next: from.clone(),
            from,
            budget,
            left: budget,
            next_ranges: Vec::new(),
            buffered: VecDeque::new(),
            is_complete: false,
            end: None,
            broken: None,
            attempts: Vec::new(),
            last_activity: now,
            retry_at: now,
        }
    }

    /// Whether this pull is one of its attempts.
    pub(super) fn has(&self, pull: u32) -> bool {
        self.attempts.iter().any(|attempt| attempt.pull == pull)
    }

    /// Whether bytes are missing and no pull for them is unanswered.
    pub(super) fn needs_pull(&self) -> bool {
        self.is_incomplete() && self.attempts.is_empty()
    }

    /// Whether bytes of it are missing.
    pub(super) fn is_incomplete(&self) -> bool {
        !self.is_complete && self.broken.is_none()
    }

    /// Most bytes that are missing.
    pub(super) fn outstanding(&self) -> u64 {
        if self.is_incomplete() { u64::from(self.left.bytes) } else { 0 }
    }

    /// Bytes received and not delivered.
    pub(super) fn buffered_bytes(&self) -> u64 {
        self.buffered.iter().map(|bytes| bytes.len() as u64).sum()
    }

    /// The position of the next range, or of the one this many later, when it is known.
    pub(super) fn next_range(&self, later: usize) -> Option<&Position> {
        if self.is_complete && later == 0 { Some(&self.next) } else { self.next_ranges.get(later) }
    }

    /// Adds a pull for what is missing; returns its position and budget, and the pull that it replaces.
    pub(super) fn add_attempt(&mut self, pull: u32, now: Duration) -> (Position, PullBudget, Option<u32>) {
        let is_full = self.attempts.len() >= MAX_ATTEMPTS;
        let canceled = is_full.then(|| self.attempts.remove(1).pull);
        self.attempts.push(Attempt { pull, sent: now, index: 0, is_whole: self.left == self.budget });
        self.last_activity = now;
        (self.next.clone(), self.left, canceled)
    }

    /// Removes a pull.
    pub(super) fn remove_attempt(&mut self, pull: u32) {
        self.attempts.retain(|attempt| attempt.pull != pull);
    }

    /// Removes all pulls and returns them.
    pub(super) fn remove_all_attempts(&mut self) -> Vec<u32> {
        self.attempts.drain(..).map(|attempt| attempt.pull).collect()
    }

    /// Adds a chunk of one of its pulls.
    pub(super) fn add_chunk(&mut self, pull: u32, chunk: Chunk, now: Duration) -> ChunkOutcome {
        let Some(attempt) = self.attempts.iter_mut().find(|attempt| attempt.pull == pull) else {
            return ChunkOutcome::Repeat;
        };
        if chunk.index < attempt.index {
            return ChunkOutcome::Repeat;
        }
        let fits = chunk.bytes.len() <= self.left.chunk_bytes();
        // Pulls of one range begin at the same position, and the first chunk of one cancels the others: so
        // the next chunk of a pull is the next of the range, or there is a gap.
        if chunk.position != self.next || !is_consistent(&chunk) || !fits {
            return ChunkOutcome::Torn;
        }
        attempt.index += 1;
        let is_whole = attempt.is_whole;
        let took = (chunk.index == 0).then(|| now.saturating_sub(attempt.sent));
        self.last_activity = now;
        self.next = chunk.after;
        if !chunk.next_positions.is_empty() {
            self.next_ranges = chunk.next_positions;
            if !is_whole {
                // The later positions hold for pulls as short as this one.
                self.next_ranges.truncate(1);
            }
        }
        if !chunk.bytes.is_empty() {
            let chunk_bytes = self.left.chunk_bytes();
            self.left.chunks = self.left.chunks.saturating_sub(1);
            self.left.bytes = self.left.bytes.saturating_sub(u32::try_from(chunk_bytes).unwrap_or(u32::MAX));
            self.buffered.push_back(chunk.bytes);
        }
        if let Mark::End(totals) = chunk.mark {
            self.end = Some(totals);
        }
        self.is_complete = chunk.mark != Mark::More || self.left.chunks == 0;
        let is_complete = self.is_complete;
        if is_complete && self.next_ranges.first() != Some(&self.next) {
            self.next_ranges.clear();
        }
        // The pull that answers stays until the range is complete; the others are canceled.
        let mut canceled = Vec::new();
        self.attempts.retain(|attempt| {
            if attempt.pull != pull {
                canceled.push(attempt.pull);
            }
            attempt.pull == pull && !is_complete
        });
        ChunkOutcome::Next { took, canceled }
    }
}

/// Whether a chunk has bytes where its mark says so, and moves by them.
fn is_consistent(chunk: &Chunk) -> bool {
    match chunk.mark {
        Mark::More => !chunk.bytes.is_empty() && chunk.after != chunk.position,
        // A pull that stops before its first chunk has failed.
        Mark::Stop => chunk.bytes.is_empty() && chunk.after == chunk.position && chunk.index > 0,
        Mark::End(_) => true,
    }
}
