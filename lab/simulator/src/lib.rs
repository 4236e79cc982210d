//! The bus's puller against simulated replicas, network and reader, all from one seed: messages are dropped,
//! doubled, delayed, reordered, corrupted and forged, replicas die, freeze, refuse and lie, readers pause.
//! Under all faults, the reader gets the source's bytes or sees the stream break, in time, within its window.
//!
//! Sizes are a thousandth of the real ones, times are in simulated microseconds, and no real time passes.

mod faults;
mod order;
mod replica;
mod source;
mod world;

use std::{fmt, time::Duration};

use bytes::Bytes;
use mesh_bus::stream::{
    PullLimits,
    puller::{Action, Plan, Puller},
    wire::PullHeader,
};

pub use self::faults::{Fault, PerFault};
pub use self::order::{OrderTotals, simulate_order};
pub use self::source::mix;
use self::{
    source::{Rng, STREAM, Source},
    world::World,
};

const LIMITS: PullLimits = PullLimits {
    first_bytes: 64,
    chunk_bytes: 512,
    window_chunks: 8,
    unproven_bytes: 512,
    growth: 2,
    idle: Duration::from_secs(30),
};
const WINDOW: u64 = 512 * 8;

/// A longer wait of the reader counts as endless, µs: well above the idle limit.
const MAX_WAIT_US: u64 = 100_000_000;
/// Actions of the puller after which a simulation counts as endless.
const MAX_STEPS: u32 = 200_000;

/// How a simulated stream ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// Whether the stream ended properly; otherwise it broke visibly, and for a reason.
    pub is_whole: bool,
    /// Bytes delivered.
    pub bytes: u64,
    /// Pulls sent.
    pub pulls: u32,
    /// Pulls that repeated an earlier one.
    pub again: u32,
    /// The faults that occurred.
    pub faults: PerFault,
}

/// A violation of a stream's guarantees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The seed that repeats it.
    pub seed: u64,
    /// The violation.
    pub what: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "seed {}: {}", self.seed, self.what)
    }
}

impl std::error::Error for Failure {}

/// Simulates one stream.
///
/// # Errors
/// When the reader got a wrong byte, a stream that ended properly but incomplete, no end at all, a break
/// without a reason, or pulls beyond its window.
pub fn simulate(seed: u64) -> Result<Outcome, Failure> {
    Run::new(seed).run().map_err(|what| Failure { seed, what })
}

/// A simulated reader and what it received.
struct Run {
    rng: Rng,
    world: World,
    puller: Puller,
    /// The part of the source that is read.
    from: u64,
    to: u64,
    /// Whether it is read to the end of the source.
    to_end: bool,
    /// Offset of the next expected byte.
    at: u64,
    now: u64,
    waiting_since: u64,
    pulls: u32,
    again: u32,
    /// How often the reader pauses, per thousand, and the maximum duration, µs.
    pauses: (u32, u64),
    /// Maximum share of the process's budget that other streams leave to this one, bytes.
    allowance: Option<u64>,
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let source = Source::new(&mut rng);
        let length = source.length;
        let (mut from, mut to) = (0, None);
        if rng.chance(250) && length > 0 && source.is_arithmetic {
            from = rng.below(length);
            to = rng.chance(700).then(|| from + rng.below(length - from + 1));
        }
        let plan = Plan {
            stream: STREAM,
            first: source.position(from),
            from_byte: from,
            to_byte: to,
            total_bytes: source.is_arithmetic.then_some(length),
            total_rows: source.rows.filter(|_| rng.chance(500)),
        };
        let pauses = [(0, 0), (1000, 50_000), (300, 3_000_000), (30, 200_000_000)][rng.below(4) as usize];
        let allowance = rng.chance(200).then(|| rng.below(2 * WINDOW));
        let is_rows_checked = plan.total_rows.is_some();
        Self {
            world: World::new(source, is_rows_checked, &mut rng),
            puller: Puller::new(plan, LIMITS),
            from,
            to: to.unwrap_or(length),
            to_end: to.is_none(),
            at: from,
            now: 0,
            waiting_since: 0,
            pulls: 0,
            again: 0,
            pauses,
            allowance,
            rng,
        }
    }

    fn run(mut self) -> Result<Outcome, String> {
        for _ in 0..MAX_STEPS {
            while let Some(event) = self.world.arrived(self.now) {
                self.puller.on(event, Duration::from_micros(self.now));
            }
            let allowance = self.allowance.map_or(u64::MAX, |most| self.rng.below(most + 1));
            match self.puller.next(Duration::from_micros(self.now), allowance) {
                Action::Pull(asked) => {
                    let budget = asked.budget;
                    let offset = self
                        .world
                        .source
                        .offset(&asked.position)
                        .ok_or("a position that was never issued")?;
                    if budget.chunk_bytes() > 512 || offset + u64::from(budget.bytes) > self.at + WINDOW {
                        return Err(format!("{budget:?} at {offset}, reader at {}", self.at));
                    }
                    self.pulls += 1;
                    self.again += u32::from(asked.is_retry);
                    let header = PullHeader { stream: STREAM, budget, position: asked.position };
                    self.world.pull(asked.pull, header.write(), asked.is_retry, self.now);
                }
                Action::Cancel(pull) => self.world.cancel(pull, self.now),
                Action::Deliver(bytes) => self.read(&bytes)?,
                Action::Wait(until) => {
                    let until = u64::try_from(until.as_micros()).unwrap_or(u64::MAX).max(self.now + 1);
                    self.now = self.world.next_time().map_or(until, |next| next.clamp(self.now, until));
                    if self.now > self.waiting_since + MAX_WAIT_US {
                        return Err("the reader hangs".to_owned());
                    }
                }
                Action::Finished => return self.finished(),
                Action::Broken(problem) => {
                    return match self.world.may_break() {
                        true => Ok(self.outcome(false)),
                        false => Err(format!("broke without a reason: {problem}")),
                    };
                }
            }
        }
        Err("no end of steps".to_owned())
    }

    fn read(&mut self, bytes: &Bytes) -> Result<(), String> {
        let end = self.at + bytes.len() as u64;
        if bytes.is_empty() || end > self.to || *bytes != self.world.source.bytes(self.at, end) {
            return Err(format!("wrong bytes at {}..{end} of {}..{}", self.at, self.from, self.to));
        }
        self.at = end;
        let (often, pause_us) = self.pauses;
        if self.rng.chance(often) {
            self.now += self.rng.below(pause_us);
        }
        self.waiting_since = self.now;
        Ok(())
    }

    fn finished(self) -> Result<Outcome, String> {
        if self.at != self.to {
            return Err(format!("taken for whole at {} of {}..{}", self.at, self.from, self.to));
        }
        if self.to_end && self.world.lies_about_totals() {
            return Err("taken for whole with totals that do not agree".to_owned());
        }
        if self.world.is_calm() && self.again > 0 {
            return Err(format!("{} pulls sent again for nothing", self.again));
        }
        Ok(self.outcome(true))
    }

    fn outcome(&self, is_whole: bool) -> Outcome {
        let Self { pulls, again, .. } = *self;
        let faults = self.world.counts;
        Outcome { is_whole, bytes: self.at - self.from, pulls, again, faults }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_fault_gives_a_wrong_stream() {
        let (mut whole, mut broken, mut again) = (0, 0, 0_u64);
        let mut faults = [0; 12];
        for seed in 0..20_000 {
            let outcome = simulate(seed).unwrap_or_else(|failure| panic!("{failure}"));
            let count = if outcome.is_whole { &mut whole } else { &mut broken };
            *count += 1;
            again += u64::from(outcome.again);
            faults.iter_mut().zip(outcome.faults.0).for_each(|(total, count)| *total += count);
        }
        assert!(
            whole > 12_000 && broken > 1_000 && again > 20_000,
            "{whole} whole, {broken} broken, {again} again"
        );
        assert!(faults.iter().all(|count| *count >= 100), "{faults:?}");
    }

    #[test]
    fn a_seed_always_gives_the_same_run() {
        for seed in 0..200 {
            assert_eq!(simulate(seed), simulate(seed));
        }
    }
}
