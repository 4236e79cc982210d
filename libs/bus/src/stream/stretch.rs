//! One stretch of a stream: what was asked of it by one pull, or by several when the first came to nothing.

use std::{collections::VecDeque, time::Duration};

use bytes::Bytes;
use mesh_problem::Problem;

use super::{
    Position, Totals,
    wire::{Chunk, Mark, PullBudget},
};

/// Pulls of one stretch that may be unanswered at the same time: the one that is late, and the one that goes around it.
const ATTEMPTS_AT_MOST: usize = 2;

/// One stretch of a stream.
#[derive(Debug)]
pub(super) struct Stretch {
    /// Where it begins.
    pub(super) from: Position,
    /// Where the next chunk of it must begin.
    pub(super) next: Position,
    /// What was asked for at first.
    pub(super) budget: PullBudget,
    /// What is still to come.
    left: PullBudget,
    /// Where the stretches behind it begin, as a chunk said; those behind the first of them, if each is as long.
    then: Vec<Position>,
    /// What has come and was not delivered.
    pub(super) held: VecDeque<Bytes>,
    /// Whether nothing more of it is to come.
    pub(super) is_complete: bool,
    /// Set when it ends the stream.
    pub(super) end: Option<Totals>,
    /// A problem that asking again does not mend.
    pub(super) broken: Option<Problem>,
    attempts: Vec<Attempt>,
    /// When it was last asked for, or a chunk of it came.
    pub(super) heard: Duration,
    /// When to ask for it, while nobody is being asked.
    pub(super) ask_at: Duration,
}

/// One pull that is being answered.
#[derive(Debug)]
struct Attempt {
    pull: u32,
    sent: Duration,
    /// How many chunks it gave.
    index: u32,
    /// Whether it asked for all of the stretch.
    is_whole: bool,
}

/// What came of a chunk.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Came {
    /// It is the next one.
    Next {
        /// Time from its pull to it, when it is the first of its pull.
        took: Option<Duration>,
        /// Pulls that need not be answered any more.
        given_up: Vec<u32>,
    },
    /// It has been there before.
    Repeat,
    /// It does not follow what its pull has given so far, or cannot be what it says: the pull is worth nothing more.
    Torn,
}

impl Stretch {
    pub(super) fn new(from: Position, budget: PullBudget, now: Duration) -> Self {
        Self {
            next: from.clone(),
            from,
            budget,
            left: budget,
            then: Vec::new(),
            held: VecDeque::new(),
            is_complete: false,
            end: None,
            broken: None,
            attempts: Vec::new(),
            heard: now,
            ask_at: now,
        }
    }

    /// Whether this pull is one of its.
    pub(super) fn has(&self, pull: u32) -> bool {
        self.attempts.iter().any(|attempt| attempt.pull == pull)
    }

    /// Whether nobody is being asked for what is missing.
    pub(super) fn is_forsaken(&self) -> bool {
        self.is_waiting() && self.attempts.is_empty()
    }

    /// Whether more of it is to come.
    pub(super) fn is_waiting(&self) -> bool {
        !self.is_complete && self.broken.is_none()
    }

    /// Bytes that are still to come, at most.
    pub(super) fn outstanding(&self) -> u64 {
        if self.is_waiting() { u64::from(self.left.bytes) } else { 0 }
    }

    /// Bytes that have come and were not delivered.
    pub(super) fn held_bytes(&self) -> u64 {
        self.held.iter().map(|bytes| bytes.len() as u64).sum()
    }

    /// Where the stretch behind it begins, or one that comes this many later, as far as that is known.
    pub(super) fn behind(&self, later: usize) -> Option<&Position> {
        if self.is_complete && later == 0 { Some(&self.next) } else { self.then.get(later) }
    }

    /// Asks for what is missing; gives what to ask for, and the pull that is given up for it.
    pub(super) fn ask(&mut self, pull: u32, now: Duration) -> (Position, PullBudget, Option<u32>) {
        let is_full = self.attempts.len() >= ATTEMPTS_AT_MOST;
        let given_up = is_full.then(|| self.attempts.remove(0).pull);
        self.attempts.push(Attempt { pull, sent: now, index: 0, is_whole: self.left == self.budget });
        self.heard = now;
        (self.next.clone(), self.left, given_up)
    }

    /// Gives a pull up.
    pub(super) fn give_up(&mut self, pull: u32) {
        self.attempts.retain(|attempt| attempt.pull != pull);
    }

    /// Gives all pulls up.
    pub(super) fn give_all_up(&mut self) -> Vec<u32> {
        self.attempts.drain(..).map(|attempt| attempt.pull).collect()
    }

    /// Takes a chunk of one of its pulls.
    pub(super) fn take(&mut self, pull: u32, chunk: Chunk, now: Duration) -> Came {
        let Some(attempt) = self.attempts.iter_mut().find(|attempt| attempt.pull == pull) else {
            return Came::Repeat;
        };
        if chunk.index < attempt.index {
            return Came::Repeat;
        }
        let makes_sense = match chunk.mark {
            Mark::More => !chunk.bytes.is_empty() && chunk.after != chunk.position,
            // One that stops before it gave anything has failed.
            Mark::Stop => chunk.bytes.is_empty() && chunk.after == chunk.position && chunk.index > 0,
            Mark::End(_) => true,
        };
        let fits = chunk.bytes.len() <= self.left.chunk_bytes();
        // Pulls of one stretch begin at the same place, and the first chunk of one gives up the others: so the next
        // chunk of a pull is the next of the stretch, or there is a gap.
        if chunk.position != self.next || !makes_sense || !fits {
            return Came::Torn;
        }
        attempt.index += 1;
        let is_whole = attempt.is_whole;
        let took = (chunk.index == 0).then(|| now.saturating_sub(attempt.sent));
        self.heard = now;
        self.next = chunk.after;
        if !chunk.then.is_empty() {
            self.then = chunk.then;
            if !is_whole {
                // Those further on are behind pulls as short as this one.
                self.then.truncate(1);
            }
        }
        if !chunk.bytes.is_empty() {
            let chunk_bytes = self.left.chunk_bytes();
            self.left.chunks = self.left.chunks.saturating_sub(1);
            self.left.bytes = self.left.bytes.saturating_sub(u32::try_from(chunk_bytes).unwrap_or(u32::MAX));
            self.held.push_back(chunk.bytes);
        }
        if let Mark::End(totals) = chunk.mark {
            self.end = Some(totals);
        }
        self.is_complete = chunk.mark != Mark::More || self.left.chunks == 0;
        let is_complete = self.is_complete;
        if is_complete && self.then.first() != Some(&self.next) {
            self.then.clear();
        }
        // Who answers now is kept, unless that was all; the others are not needed any more.
        let mut given_up = Vec::new();
        self.attempts.retain(|attempt| {
            if attempt.pull != pull {
                given_up.push(attempt.pull);
            }
            attempt.pull == pull && !is_complete
        });
        Came::Next { took, given_up }
    }
}
