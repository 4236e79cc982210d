//! The faults of a simulation: their probabilities and their counts.

use crate::source::Rng;

/// Probabilities of faults, per thousand messages or pulls.
#[derive(Default)]
pub(crate) struct FaultRates {
    pub(crate) drop: u32,
    pub(crate) duplicate: u32,
    pub(crate) delay: u32,
    pub(crate) corrupt: u32,
    pub(crate) forge: u32,
    /// A problem after which a repetition succeeds.
    pub(crate) transient: u32,
    /// A problem that ends the stream.
    pub(crate) fatal: u32,
    /// A pull ends before its budget.
    pub(crate) stop_short: u32,
    /// The reported start of the next pull is not the end of this one.
    pub(crate) wrong_next: u32,
}

impl FaultRates {
    /// Draws the rates of a simulation; a calm one has few faults.
    pub(crate) fn draw(rng: &mut Rng, is_calm: bool) -> Self {
        let mut rate = |often: u32, most: u64| {
            if !is_calm && rng.chance(often) { rng.below(most) as u32 } else { 0 }
        };
        let drop = rate(400, 250);
        let delay = rate(300, 300);
        let corrupt = rate(300, 200);
        let forge = rate(300, 300);
        let transient = rate(300, 400);
        let fatal = rate(40, 60);
        let wrong_next = rate(100, 300);
        // Also in a calm simulation: duplicates alone must change nothing.
        let duplicate = if rng.chance(300) { rng.below(300) as u32 } else { 0 };
        Self { drop, duplicate, delay, corrupt, forge, transient, fatal, stop_short: 100, wrong_next }
    }
}

/// False reports of replicas about the end of the stream.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lie {
    None,
    Bytes,
    Rows,
    EndsEarly,
}

/// How often each fault occurred.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FaultCounts {
    /// Messages and pulls that were lost.
    pub dropped: u32,
    /// Messages that arrived twice.
    pub duplicated: u32,
    /// Messages that were delayed.
    pub delayed: u32,
    /// Messages with a flipped bit.
    pub corrupted: u32,
    /// Messages that no correct replica would send.
    pub forged: u32,
    /// Problems after which a repetition succeeds.
    pub transient: u32,
    /// Problems that end the stream.
    pub fatal: u32,
    /// Pulls that ended before their budget.
    pub stopped_short: u32,
    /// Pulls that reported a wrong position of the next one.
    pub wrong_next: u32,
    /// Ends with wrong totals, or before the end of the source.
    pub lies: u32,
    /// Replicas that froze.
    pub frozen: u32,
    /// Replicas that died.
    pub died: u32,
}

impl FaultCounts {
    /// Adds the counts of another simulation.
    pub fn add(&mut self, other: &Self) {
        for (count, more) in self.all_mut().into_iter().zip(other.all()) {
            *count += more;
        }
    }

    /// Whether every kind of fault occurred at least this often.
    pub fn each_occurred_at_least(&self, times: u32) -> bool {
        self.all().iter().all(|count| *count >= times)
    }

    fn all(mut self) -> [u32; 12] {
        self.all_mut().map(|count| *count)
    }

    fn all_mut(&mut self) -> [&mut u32; 12] {
        let Self { dropped, duplicated, delayed, corrupted, forged, transient, .. } = self;
        let Self { fatal, stopped_short, wrong_next, lies, frozen, died, .. } = self;
        [
            dropped,
            duplicated,
            delayed,
            corrupted,
            forged,
            transient,
            fatal,
            stopped_short,
            wrong_next,
            lies,
            frozen,
            died,
        ]
    }
}
