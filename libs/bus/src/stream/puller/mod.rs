//! The reader's side of a stream as a state machine without I/O: events go in by [`Puller::on`], actions come
//! out of [`Puller::next`]. It has no clock: times are arguments, counted from the beginning of the stream.
//!
//! It pulls ranges of a quarter of its window, each beginning at the end of the one before. (With halves, the
//! replica would be idle while the reader reads the end of one.) Invalid chunks (a gap, a repetition, another
//! stream's chunk, a wrong position, a flipped bit) are dropped and pulled again from the last good position.
//! Timeouts do not count time in which the reader does not read.

mod backoff;
mod types;

use std::{collections::VecDeque, mem, time::Duration};

use bytes::Bytes;
use mesh_problem::{NOT_MAPPED, Problem};

use self::backoff::{is_transient, pause};
pub use self::types::{Action, Event, Plan, PullLimits, PullRequest};
use super::{
    position::{MAX_CHUNK_BYTES, Position},
    pull_range::{ChunkOutcome, PullRange},
    wire::{Chunk, PullBudget},
};

/// A pull is repeated after this many times the smoothed reply time without a chunk …
const TIMEOUT_FACTOR: u32 = 4;
/// … but not before this …
const MIN_TIMEOUT: Duration = Duration::from_millis(150);
/// … and not later than this.
const MAX_TIMEOUT: Duration = Duration::from_secs(1);
/// Weight of the newest reply in the smoothed time: one in so many.
const SMOOTHING: u32 = 8;

/// Ranges of a window.
const RANGES_PER_WINDOW: u64 = 4;

/// When a reader does not read for this long, its window is halved.
const SLOW_READER: Duration = Duration::from_secs(1);

/// What the reader gets next.
enum Delivery {
    Bytes(Bytes),
    /// The stream has ended, whole or not.
    End(Result<(), Problem>),
}

/// The state machine of one reader.
#[derive(Debug)]
pub struct Puller {
    plan: Plan,
    limits: PullLimits,
    /// Ranges that were pulled and not delivered whole, in order.
    ranges: VecDeque<PullRange>,
    /// The position of the next pull when there is no range.
    resume: Position,
    /// The byte of the file that is delivered next.
    at_byte: u64,
    window: u64,
    next_pull: u32,
    /// Pulls to be canceled.
    canceled: VecDeque<u32>,
    /// Smoothed time from a pull to its first chunk.
    reply_time: Option<Duration>,
    /// Failures since the last good chunk.
    failures: u32,
    last_failure: Option<Problem>,
    last_progress: Duration,
    /// Whether the reader waits because no bytes are buffered.
    is_dry: bool,
    /// When the reader got its latest bytes; `None` while it waits for more.
    left_at: Option<Duration>,
    /// Total time in which the reader did not read; it does not count for any timeout.
    away: Duration,
    end: Option<Result<(), Problem>>,
}

impl Puller {
    /// A puller at the beginning of a plan.
    pub fn new(plan: Plan, limits: PullLimits) -> Self {
        let chunk_bytes = limits.chunk_bytes.clamp(1, MAX_CHUNK_BYTES as u32);
        let first_bytes = limits.first_bytes.clamp(1, chunk_bytes);
        let (window_chunks, growth) = (limits.window_chunks.max(1), limits.growth.max(1));
        let limits = PullLimits { first_bytes, chunk_bytes, window_chunks, growth, ..limits };
        Self {
            resume: plan.first.clone(),
            at_byte: plan.from_byte,
            window: u64::from(first_bytes),
            plan,
            limits,
            ranges: VecDeque::new(),
            next_pull: 0,
            canceled: VecDeque::new(),
            reply_time: None,
            failures: 0,
            last_failure: None,
            last_progress: Duration::ZERO,
            is_dry: false,
            left_at: Some(Duration::ZERO),
            away: Duration::ZERO,
            end: None,
        }
    }

    /// Most bytes that were requested and not received.
    pub fn outstanding(&self) -> u64 {
        self.ranges.iter().map(PullRange::outstanding).sum()
    }

    /// Ends all pulls; returns those to be canceled at the replicas.
    pub fn abandon(&mut self) -> Vec<u32> {
        let mut pulls: Vec<u32> = self.canceled.drain(..).collect();
        pulls.extend(self.ranges.drain(..).flat_map(|mut range| range.remove_all_attempts()));
        pulls
    }

    /// Handles an event.
    pub fn on(&mut self, event: Event, now: Duration) {
        let now = self.left_at.unwrap_or(now).saturating_sub(self.away);
        match event {
            Event::Chunk(pull, chunk) => self.add_chunk(pull, chunk, now),
            Event::Damaged(pull) => self.failed(pull, None, now),
            Event::Failed(pull, problem) => self.failed(pull, Some(problem), now),
        }
    }

    /// The next action while the reader waits. `allowance`: bytes that all streams together may still
    /// request; a stream that has nothing outstanding may always request one small chunk.
    pub fn next(&mut self, now: Duration, allowance: u64) -> Action {
        if let Some(left_at) = self.left_at.take() {
            let away = now.saturating_sub(left_at);
            self.away += away;
            if away >= SLOW_READER {
                self.window = (self.window / 2).max(u64::from(self.limits.first_bytes));
            }
        }
        let clock = now.saturating_sub(self.away);
        if let Some(pull) = self.canceled.pop_front() {
            return Action::Cancel(pull);
        }
        if let Some(end) = &self.end {
            return end.clone().map_or_else(Action::Broken, |()| Action::Finished);
        }
        if let Some(request) = self.retry(clock).or_else(|| self.pull_further(clock, allowance)) {
            return Action::Pull(request);
        }
        match self.deliver() {
            Some(Delivery::Bytes(bytes)) => {
                self.left_at = Some(now);
                Action::Deliver(bytes)
            }
            Some(Delivery::End(end)) => {
                self.finish(end);
                self.next(now, allowance)
            }
            None if clock >= self.last_progress + self.limits.idle => {
                let idle = Problem::unavailable("no replica continued the stream in time");
                let why = self.last_failure.take().unwrap_or(idle);
                self.finish(Err(why));
                self.next(now, allowance)
            }
            None => {
                self.is_dry = true;
                Action::Wait(self.next_time() + self.away)
            }
        }
    }

    fn finish(&mut self, end: Result<(), Problem>) {
        self.canceled = self.abandon().into();
        self.end = Some(end);
    }

    fn add_chunk(&mut self, pull: u32, chunk: Chunk, now: Duration) {
        if chunk.stream != self.plan.stream {
            return;
        }
        let Some(at) = self.ranges.iter().position(|range| range.has(pull)) else { return };
        let range = &mut self.ranges[at];
        match range.add_chunk(pull, chunk, now) {
            ChunkOutcome::Repeat => {}
            ChunkOutcome::Torn => self.failed(pull, None, now),
            ChunkOutcome::Next { took, canceled } => {
                self.canceled.extend(canceled);
                (self.last_progress, self.failures, self.last_failure) = (now, 0, None);
                if let Some(took) = took {
                    let smoothed =
                        self.reply_time.map(|before| (before * (SMOOTHING - 1) + took) / SMOOTHING);
                    self.reply_time = Some(smoothed.unwrap_or(took));
                }
                // The next ranges begin where this one was expected to end. If it ends elsewhere, they are
                // useless.
                let (complete, is_end) = (range.is_complete, range.end.is_some());
                let next = range.next.clone();
                if complete && self.ranges.get(at + 1).is_some_and(|behind| is_end || behind.from != next) {
                    let useless = self.ranges.split_off(at + 1);
                    self.canceled
                        .extend(useless.into_iter().flat_map(|mut range| range.remove_all_attempts()));
                }
            }
        }
    }

    /// Handles a failed pull, from its beginning or after some chunks.
    fn failed(&mut self, pull: u32, problem: Option<Problem>, now: Duration) {
        let Some(range) = self.ranges.iter_mut().find(|range| range.has(pull)) else { return };
        range.remove_attempt(pull);
        match problem {
            // It breaks the stream when everything before it is delivered, unless its pull began at a wrong
            // position.
            Some(problem) if !is_transient(problem.code) => {
                self.canceled.extend(range.remove_all_attempts());
                range.broken = Some(problem);
                return;
            }
            Some(problem) => self.last_failure = Some(problem),
            // A replica may still be answering it.
            None => self.canceled.push_back(pull),
        }
        self.failures += 1;
        range.retry_at = now + pause(self.failures, self.plan.stream ^ u64::from(pull));
    }

    /// Repeats a pull that failed or is late.
    fn retry(&mut self, now: Duration) -> Option<PullRequest> {
        let timeout = self.pull_timeout();
        let is_late = |range: &PullRange| match range.needs_pull() {
            true => now >= range.retry_at,
            false => range.is_incomplete() && now >= range.last_activity + timeout,
        };
        let at = self.ranges.iter().position(is_late)?;
        if !self.ranges[at].needs_pull() {
            self.failures += 1;
        }
        Some(self.pull(at, now, true))
    }

    /// Pulls the range after the last one, if it fits into the window.
    fn pull_further(&mut self, now: Duration, allowance: u64) -> Option<PullRequest> {
        let (buffered, outstanding) = (self.buffered(), self.outstanding());
        let from = match self.ranges.back() {
            None => &self.resume,
            Some(last) if last.end.is_some() || last.broken.is_some() => return None,
            Some(_) => self.next_range()?,
        };
        let first = u64::from(self.limits.first_bytes);
        let mut chunk = (self.window / 8 / first * first).clamp(first, u64::from(self.limits.chunk_bytes));
        let mut chunks = (self.window / RANGES_PER_WINDOW / chunk).max(1);
        if chunks * chunk > allowance {
            // Other streams use most of the allowance, so this pull is small.
            (chunk, chunks) = (first, 1);
            if outstanding > 0 && chunk > allowance {
                return None;
            }
        }
        if let Some(to_byte) = self.plan.to_byte {
            let missing = to_byte.saturating_sub(self.at_byte + buffered + outstanding);
            chunks = chunks.min(missing.div_ceil(chunk));
        }
        if chunks == 0 || buffered + outstanding + chunks * chunk > self.window.max(first) {
            return None;
        }
        let narrow = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        let budget = PullBudget { chunks: narrow(chunks), bytes: narrow(chunks * chunk) };
        self.ranges.push_back(PullRange::new(from.clone(), budget, now));
        Some(self.pull(self.ranges.len() - 1, now, false))
    }

    /// The position of the range after the last one, if a chunk has announced it.
    fn next_range(&self) -> Option<&Position> {
        let budget = self.ranges.back()?.budget;
        let alike = self.ranges.iter().rev().take_while(|range| range.budget == budget);
        alike.enumerate().find_map(|(later, range)| range.next_range(later))
    }

    fn pull(&mut self, at: usize, now: Duration, is_retry: bool) -> PullRequest {
        let pull = self.next_pull;
        self.next_pull = pull.wrapping_add(1);
        let (position, budget, canceled) = self.ranges[at].add_attempt(pull, now);
        self.canceled.extend(canceled);
        PullRequest { pull, position, budget, is_retry }
    }

    /// The next bytes, or the end of the stream; `None` while they are pulled.
    fn deliver(&mut self) -> Option<Delivery> {
        loop {
            if self.plan.to_byte.is_some_and(|to_byte| self.at_byte >= to_byte) {
                return Some(Delivery::End(Ok(())));
            }
            let front = self.ranges.front_mut()?;
            // Totals are checked before the last bytes are delivered, because a reader may count the bytes
            // only.
            if let Some(totals) = front.end
                && front.buffered.len() <= 1
            {
                let ends_at = self.at_byte + front.buffered_bytes();
                if !self.plan.agrees_with(totals, ends_at) {
                    return Some(Delivery::End(Err(data_lost("the stream does not end where it should"))));
                }
            }
            if let Some(mut bytes) = front.buffered.pop_front() {
                if let Some(to_byte) = self.plan.to_byte {
                    bytes.truncate(usize::try_from(to_byte - self.at_byte).unwrap_or(usize::MAX));
                }
                self.at_byte += bytes.len() as u64;
                if self.plan.total_bytes.is_some_and(|total| self.at_byte > total) {
                    return Some(Delivery::End(Err(data_lost("the stream is longer than it should be"))));
                }
                let is_proven = self.at_byte - self.plan.from_byte >= self.limits.unproven_bytes;
                if mem::take(&mut self.is_dry) && self.failures == 0 && is_proven {
                    let grown = self.window + bytes.len() as u64 / u64::from(self.limits.growth);
                    self.window = grown.min(self.limits.max_window());
                }
                return Some(Delivery::Bytes(bytes));
            }
            if front.end.is_some() {
                return Some(Delivery::End(match self.plan.to_byte {
                    None => Ok(()),
                    Some(_) => Err(data_lost("the stream ends before the last byte asked for")),
                }));
            }
            if let Some(problem) = &front.broken {
                return Some(Delivery::End(Err(problem.clone())));
            }
            if !front.is_complete {
                return None;
            }
            self.resume = front.next.clone();
            self.ranges.pop_front();
        }
    }

    fn buffered(&self) -> u64 {
        self.ranges.iter().map(PullRange::buffered_bytes).sum()
    }

    /// How long to wait for a chunk before its pull is repeated.
    fn pull_timeout(&self) -> Duration {
        let usual = self.reply_time.unwrap_or_default().saturating_mul(TIMEOUT_FACTOR);
        let least = MIN_TIMEOUT.saturating_mul(1 << self.failures.min(3));
        usual.clamp(least.min(MAX_TIMEOUT), MAX_TIMEOUT)
    }

    /// Time of the next timeout.
    fn next_time(&self) -> Duration {
        let timeout = self.pull_timeout();
        let due = |range: &PullRange| match range.needs_pull() {
            true => range.retry_at,
            false => range.last_activity + timeout,
        };
        let waiting = self.ranges.iter().filter(|range| range.is_incomplete());
        waiting.map(due).min().unwrap_or(Duration::MAX).min(self.last_progress + self.limits.idle)
    }
}

fn data_lost(message: &str) -> Problem {
    Problem::internal(NOT_MAPPED, message)
}

#[cfg(test)]
mod tests;
