//! The reader's side of a stream as a state machine without I/O: what came goes in by [`Puller::on`], what to do comes
//! out of [`Puller::next`]. It has no clock: times are told to it, counted from the beginning of the stream.
//!
//! It asks for stretches of a quarter of its window, each from where the one before ends: with halves, the replica had
//! nothing to send for as long as the reader took to come to the end of one. What does not fit (a gap, a repeat,
//! another stream's chunk, a wrong position, a flipped bit) is dropped and asked for again, from the last good
//! position. The time that its reader is away does not count for anything.

use std::{collections::VecDeque, mem, time::Duration};

use bytes::Bytes;
use mesh_problem::{Code, NOT_MAPPED, Problem};

use super::{
    MAX_CHUNK_BYTES, Position, Totals,
    stretch::{Came, Stretch},
    wire::{Chunk, PullBudget},
};

/// A pull without a chunk for this many times the smoothed reply time is sent again …
const PATIENCE_TIMES: u32 = 4;
/// … but not before this …
const PATIENCE_AT_LEAST: Duration = Duration::from_millis(150);
/// … and not later than this.
const PATIENCE_AT_MOST: Duration = Duration::from_secs(1);
/// Share of the newest reply in the smoothed time: one in so many.
const SMOOTHING: u32 = 8;

/// How many stretches make a window.
const STRETCHES: u64 = 4;

/// First pause after failures; the very first one is followed up at once.
const PAUSE_AT_FIRST: Duration = Duration::from_millis(10);
/// Longest pause after failures, doubling until then.
const PAUSE_AT_MOST: Duration = Duration::from_millis(500);

/// A reader that is away for this long gets half the window.
const SLOW: Duration = Duration::from_secs(1);

/// Bounds of pulling.
#[derive(Debug, Clone, Copy)]
pub struct PullLimits {
    /// Window at the beginning, and the least length of a chunk, in bytes.
    pub first_bytes: u32,
    /// Greatest length of a chunk in bytes, at most 512 KiB.
    pub chunk_bytes: u32,
    /// Greatest window, in chunks of the greatest length: what is asked for, or there and not yet read.
    pub window_chunks: u32,
    /// The window stays as it is until its reader has taken so many bytes: more than the buffers on the way to a reader
    /// take who then takes nothing, of whom there may be thousands.
    pub unproven_bytes: u64,
    /// Then it grows by one in so many of the bytes that its reader had to wait for.
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
    fn window_at_most(&self) -> u64 {
        u64::from(self.chunk_bytes) * u64::from(self.window_chunks)
    }
}

/// What is to be read.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) stream: u64,
    pub(super) first: Position,
    /// The byte of the file at which `first` stands.
    pub(super) from_byte: u64,
    /// The byte of the file at which reading stops; `None` = the end, whose totals are then checked.
    pub(super) to_byte: Option<u64>,
    /// Totals, as far as they are known in advance.
    pub(super) total_bytes: Option<u64>,
    pub(super) total_rows: Option<u64>,
}

/// What came.
#[derive(Debug)]
pub(super) enum Event {
    /// A chunk in answer to a pull.
    Chunk(u32, Chunk),
    /// A message in answer to a pull that is not as it was sent.
    Damaged(u32),
    /// A pull came to nothing.
    Failed(u32, Problem),
}

/// What to do.
#[derive(Debug)]
pub(super) enum Action {
    /// Send a pull.
    Pull(Asked),
    /// Tell whoever answers this pull that nobody waits any more.
    Cancel(u32),
    /// Hand these bytes to the reader.
    Deliver(Bytes),
    /// Nothing until something comes, or until this time.
    Wait(Duration),
    /// The stream is over and whole.
    Finished,
    /// The stream cannot be gone on with.
    Broken(Problem),
}

/// A pull to be sent.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) pull: u32,
    pub(super) position: Position,
    pub(super) budget: PullBudget,
    /// Whether it has been asked for before in vain: better of another replica.
    pub(super) is_again: bool,
}

/// The state machine.
#[derive(Debug)]
pub(super) struct Puller {
    plan: Plan,
    limits: PullLimits,
    /// What is under way, in order.
    stretches: VecDeque<Stretch>,
    /// Where pulling goes on when nothing is under way.
    resume: Position,
    /// The byte of the file that is delivered next.
    at_byte: u64,
    window: u64,
    next_pull: u32,
    /// Pulls that nobody waits for any more.
    given_up: VecDeque<u32>,
    /// Smoothed time from a pull to its first chunk.
    reply_time: Option<Duration>,
    /// Failures since the last good chunk.
    failures: u32,
    last_failure: Option<Problem>,
    progress: Duration,
    /// Whether the reader is waiting because nothing is there.
    is_dry: bool,
    /// When the reader got its latest bytes, until it comes back for more.
    left_at: Option<Duration>,
    /// How long the reader has been away in all.
    away: Duration,
    over: Option<Result<(), Problem>>,
}

impl Puller {
    pub(super) fn new(plan: Plan, limits: PullLimits) -> Self {
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
            stretches: VecDeque::new(),
            next_pull: 0,
            given_up: VecDeque::new(),
            reply_time: None,
            failures: 0,
            last_failure: None,
            progress: Duration::ZERO,
            is_dry: false,
            left_at: Some(Duration::ZERO),
            away: Duration::ZERO,
            over: None,
        }
    }

    /// Bytes that were asked for and have not come, at most.
    pub(super) fn outstanding(&self) -> u64 {
        self.stretches.iter().map(Stretch::outstanding).sum()
    }

    /// Pulls that are being answered or were given up and not said so yet; leaves none.
    pub(super) fn abandon(&mut self) -> Vec<u32> {
        let mut pulls: Vec<u32> = self.given_up.drain(..).collect();
        pulls.extend(self.stretches.drain(..).flat_map(|mut stretch| stretch.give_all_up()));
        pulls
    }

    /// Takes in what came.
    pub(super) fn on(&mut self, event: Event, now: Duration) {
        let now = self.left_at.unwrap_or(now).saturating_sub(self.away);
        match event {
            Event::Chunk(pull, chunk) => self.chunk_came(pull, chunk, now),
            Event::Damaged(pull) => self.failed(pull, None, now),
            Event::Failed(pull, problem) => self.failed(pull, Some(problem), now),
        }
    }

    /// What to do next, for a reader that wants more. `allowance`: bytes that all streams together may still ask for;
    /// one that has nothing under way may always ask for a little.
    pub(super) fn next(&mut self, now: Duration, allowance: u64) -> Action {
        if let Some(left_at) = self.left_at.take() {
            let away = now.saturating_sub(left_at);
            self.away += away;
            if away >= SLOW {
                self.window = (self.window / 2).max(u64::from(self.limits.first_bytes));
            }
        }
        let clock = now.saturating_sub(self.away);
        if let Some(pull) = self.given_up.pop_front() {
            return Action::Cancel(pull);
        }
        if let Some(over) = &self.over {
            return over.clone().map_or_else(Action::Broken, |()| Action::Finished);
        }
        if let Some(asked) = self.ask_again(clock).or_else(|| self.ask_further(clock, allowance)) {
            return Action::Pull(asked);
        }
        match self.deliver() {
            Some(Ok(bytes)) => {
                self.left_at = Some(now);
                Action::Deliver(bytes)
            }
            Some(Err(over)) => {
                self.end(over);
                self.next(now, allowance)
            }
            None if clock >= self.progress + self.limits.idle => {
                let idle = Problem::unavailable("nobody went on with the stream in time");
                let why = self.last_failure.take().unwrap_or(idle);
                self.end(Err(why));
                self.next(now, allowance)
            }
            None => {
                self.is_dry = true;
                Action::Wait(self.next_time() + self.away)
            }
        }
    }

    fn end(&mut self, over: Result<(), Problem>) {
        self.given_up = self.abandon().into();
        self.over = Some(over);
    }

    fn chunk_came(&mut self, pull: u32, chunk: Chunk, now: Duration) {
        if chunk.stream != self.plan.stream {
            return;
        }
        let Some(at) = self.stretches.iter().position(|stretch| stretch.has(pull)) else { return };
        let stretch = &mut self.stretches[at];
        match stretch.take(pull, chunk, now) {
            Came::Repeat => {}
            Came::Torn => self.failed(pull, None, now),
            Came::Next { took, given_up } => {
                self.given_up.extend(given_up);
                (self.progress, self.failures, self.last_failure) = (now, 0, None);
                if let Some(took) = took {
                    let smoothed =
                        self.reply_time.map(|before| (before * (SMOOTHING - 1) + took) / SMOOTHING);
                    self.reply_time = Some(smoothed.unwrap_or(took));
                }
                // What was asked for behind it begins where this one was said to end; if it does not end there, that
                // was in vain.
                let (complete, is_end) = (stretch.is_complete, stretch.end.is_some());
                let next = stretch.next.clone();
                if complete && self.stretches.get(at + 1).is_some_and(|behind| is_end || behind.from != next)
                {
                    let in_vain = self.stretches.split_off(at + 1);
                    self.given_up.extend(in_vain.into_iter().flat_map(|mut stretch| stretch.give_all_up()));
                }
            }
        }
    }

    /// A pull came to nothing, or to nothing more.
    fn failed(&mut self, pull: u32, problem: Option<Problem>, now: Duration) {
        let Some(stretch) = self.stretches.iter_mut().find(|stretch| stretch.has(pull)) else { return };
        stretch.give_up(pull);
        match problem {
            // It breaks the stream when everything before it is delivered, and not if its pull began at a wrong place.
            Some(problem) if !is_passing(problem.code) => {
                self.given_up.extend(stretch.give_all_up());
                stretch.broken = Some(problem);
                return;
            }
            Some(problem) => self.last_failure = Some(problem),
            // It is still being answered.
            None => self.given_up.push_back(pull),
        }
        self.failures += 1;
        stretch.ask_at = now + pause(self.failures, self.plan.stream ^ u64::from(pull));
    }

    /// Asks once more for what was asked for in vain.
    fn ask_again(&mut self, now: Duration) -> Option<Asked> {
        let patience = self.patience();
        let is_late = |stretch: &Stretch| match stretch.is_forsaken() {
            true => now >= stretch.ask_at,
            false => stretch.is_waiting() && now >= stretch.heard + patience,
        };
        let at = self.stretches.iter().position(is_late)?;
        if !self.stretches[at].is_forsaken() {
            self.failures += 1;
        }
        Some(self.ask(at, now, true))
    }

    /// Asks for what comes behind all that is under way, when the window has room for it.
    fn ask_further(&mut self, now: Duration, allowance: u64) -> Option<Asked> {
        let (held, outstanding) = (self.held(), self.outstanding());
        let from = match self.stretches.back() {
            None => &self.resume,
            Some(last) if last.end.is_some() || last.broken.is_some() => return None,
            Some(_) => self.behind_all()?,
        };
        let first = u64::from(self.limits.first_bytes);
        let mut chunk = (self.window / 8 / first * first).clamp(first, u64::from(self.limits.chunk_bytes));
        let mut chunks = (self.window / STRETCHES / chunk).max(1);
        if chunks * chunk > allowance {
            // Others have taken the room: little by little then.
            (chunk, chunks) = (first, 1);
            if outstanding > 0 && chunk > allowance {
                return None;
            }
        }
        if let Some(to_byte) = self.plan.to_byte {
            let wanted = to_byte.saturating_sub(self.at_byte + held + outstanding);
            chunks = chunks.min(wanted.div_ceil(chunk));
        }
        if chunks == 0 || held + outstanding + chunks * chunk > self.window.max(first) {
            return None;
        }
        let narrow = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        let budget = PullBudget { chunks: narrow(chunks), bytes: narrow(chunks * chunk) };
        self.stretches.push_back(Stretch::new(from.clone(), budget, now));
        Some(self.ask(self.stretches.len() - 1, now, false))
    }

    /// Where the stretch behind all that are under way begins, as far as one of them has said so.
    fn behind_all(&self) -> Option<&Position> {
        let budget = self.stretches.back()?.budget;
        let alike = self.stretches.iter().rev().take_while(|stretch| stretch.budget == budget);
        alike.enumerate().find_map(|(later, stretch)| stretch.behind(later))
    }

    fn ask(&mut self, at: usize, now: Duration, is_again: bool) -> Asked {
        let pull = self.next_pull;
        self.next_pull = pull.wrapping_add(1);
        let (position, budget, given_up) = self.stretches[at].ask(pull, now);
        self.given_up.extend(given_up);
        Asked { pull, position, budget, is_again }
    }

    /// The next bytes, or how the stream ends.
    fn deliver(&mut self) -> Option<Result<Bytes, Result<(), Problem>>> {
        loop {
            if self.plan.to_byte.is_some_and(|to_byte| self.at_byte >= to_byte) {
                return Some(Err(Ok(())));
            }
            let front = self.stretches.front_mut()?;
            // Totals are checked before the last bytes leave: whoever counts them would take the rest for whole.
            if let Some(totals) = front.end
                && front.held.len() <= 1
            {
                let ends_at = self.at_byte + front.held_bytes();
                if !self.plan.agrees_with(totals, ends_at) {
                    return Some(Err(Err(data_lost("the stream does not end where it should"))));
                }
            }
            if let Some(mut bytes) = front.held.pop_front() {
                if let Some(to_byte) = self.plan.to_byte {
                    bytes.truncate(usize::try_from(to_byte - self.at_byte).unwrap_or(usize::MAX));
                }
                self.at_byte += bytes.len() as u64;
                if self.plan.total_bytes.is_some_and(|total| self.at_byte > total) {
                    return Some(Err(Err(data_lost("the stream is longer than it should be"))));
                }
                let is_proven = self.at_byte - self.plan.from_byte >= self.limits.unproven_bytes;
                if mem::take(&mut self.is_dry) && self.failures == 0 && is_proven {
                    let grown = self.window + bytes.len() as u64 / u64::from(self.limits.growth);
                    self.window = grown.min(self.limits.window_at_most());
                }
                return Some(Ok(bytes));
            }
            if front.end.is_some() {
                return Some(Err(match self.plan.to_byte {
                    None => Ok(()),
                    Some(_) => Err(data_lost("the stream ends before the last byte asked for")),
                }));
            }
            if let Some(problem) = &front.broken {
                return Some(Err(Err(problem.clone())));
            }
            if !front.is_complete {
                return None;
            }
            self.resume = front.next.clone();
            self.stretches.pop_front();
        }
    }

    fn held(&self) -> u64 {
        self.stretches.iter().map(Stretch::held_bytes).sum()
    }

    /// How long to wait for a chunk before going around whoever should send it.
    fn patience(&self) -> Duration {
        let usual = self.reply_time.unwrap_or_default().saturating_mul(PATIENCE_TIMES);
        let least = PATIENCE_AT_LEAST.saturating_mul(1 << self.failures.min(3));
        usual.clamp(least.min(PATIENCE_AT_MOST), PATIENCE_AT_MOST)
    }

    /// When something is due if nothing comes.
    fn next_time(&self) -> Duration {
        let patience = self.patience();
        let due = |stretch: &Stretch| match stretch.is_forsaken() {
            true => stretch.ask_at,
            false => stretch.heard + patience,
        };
        let waiting = self.stretches.iter().filter(|stretch| stretch.is_waiting());
        waiting.map(due).min().unwrap_or(Duration::MAX).min(self.progress + self.limits.idle)
    }
}

impl Plan {
    fn agrees_with(&self, totals: Totals, ends_at: u64) -> bool {
        let rows_agree =
            self.total_rows.zip(totals.rows).is_none_or(|(expected, counted)| expected == counted);
        totals.bytes == ends_at && self.total_bytes.is_none_or(|expected| expected == ends_at) && rows_agree
    }
}

/// Whether another replica, or the same one later, may do better.
fn is_passing(code: Code) -> bool {
    matches!(code, Code::Unavailable | Code::DeadlineExceeded | Code::ResourceExhausted | Code::Canceled)
}

fn data_lost(message: &str) -> Problem {
    Problem::internal(NOT_MAPPED, message)
}

/// How long to pause after so many failures; spread by a number that differs from stream to stream.
fn pause(failures: u32, spread: u64) -> Duration {
    if failures <= 1 {
        return Duration::ZERO;
    }
    let pause = PAUSE_AT_FIRST.saturating_mul(1 << (failures - 2).min(10)).min(PAUSE_AT_MOST);
    let share = u32::try_from((spread.wrapping_mul(0x9e37_79b9_7f4a_7c15)) >> 54).unwrap_or_default();
    pause / 2 + pause / 2 * share / 1024
}

#[cfg(test)]
mod tests;
