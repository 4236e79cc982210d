//! How long requests were on their way, by the clocks of two machines, which may differ.

use std::time::{Duration, Instant};

use quick_cache::unsync::Cache;

/// How long the shortest time on the way counts, at least; at most twice that. So long a clock that was set makes requests
/// late. What waited for a frozen replica arrives within a moment, in the first window after it.
const WINDOW: Duration = Duration::from_secs(5);

/// A request that was longer on its way than this was not: a clock was set.
const MAX_LATE_MS: i64 = 60_000;

/// A set clock makes all requests late by the same time. It is recognised before the end of the window by so many requests
/// in a row …
const STEP_REQUESTS: u32 = 5;
/// … which are late by this at least …
const STEP_AT_LEAST_MS: i64 = 2_000;
/// … the times on the way of which differ by this at most …
const STEP_DIFFERS_MS: u64 = 10;
/// … and which arrive so far apart, at least: what waited together arrives at the same moment.
const STEP_APART: Duration = Duration::from_millis(200);

/// Most senders that are remembered, the latest ones.
const MAX_SENDERS: usize = 1_000;

/// The shortest times on the way of late, by sender. A clock that differs makes all times longer, or all shorter.
pub(crate) struct Transits(Cache<String, Shortest>);

/// The shortest times of two windows, milliseconds; negative if the sender's clock is ahead.
#[derive(Debug, Clone, Copy)]
struct Shortest {
    since: Instant,
    before: i64,
    now: i64,
    /// The late requests in a row that may be due to a set clock.
    step: Option<Step>,
}

/// Late requests in a row whose times on the way are nearly equal.
#[derive(Debug, Clone, Copy)]
struct Step {
    /// The time on the way of the first one.
    took_ms: i64,
    requests: u32,
    /// When the last counted one arrived.
    last: Instant,
}

impl Shortest {
    /// Counts a request; returns whether it and those before it are late because a clock was set.
    fn is_step(&mut self, late_ms: i64, took_ms: i64, now: Instant) -> bool {
        let first = Step { took_ms, requests: 1, last: now };
        self.step = match self.step {
            _ if late_ms < STEP_AT_LEAST_MS => None,
            Some(step) if took_ms.abs_diff(step.took_ms) > STEP_DIFFERS_MS => Some(first),
            Some(step) if now.duration_since(step.last) < STEP_APART => Some(step),
            Some(step) => Some(Step { requests: step.requests + 1, last: now, ..step }),
            None => Some(first),
        };
        self.step.is_some_and(|step| step.requests >= STEP_REQUESTS)
    }
}

impl Default for Transits {
    fn default() -> Self {
        Self(Cache::new(MAX_SENDERS))
    }
}

impl Transits {
    /// How much longer a request was on its way than the quickest of its sender. `reply_to`: its reply subject, which
    /// begins with the sender's inbox; `took_ms`: the time on the way by both clocks.
    pub(crate) fn late(&mut self, reply_to: &str, took_ms: i64, now: Instant) -> Duration {
        // <inbox>.<workload>.<token>
        let sender = reply_to.rsplitn(3, '.').last().unwrap_or_default();
        let first = Shortest { since: now, before: took_ms, now: took_ms, step: None };
        let Some(mut shortest) = self.0.get_mut(sender) else {
            self.0.insert(sender.to_owned(), first);
            return Duration::ZERO;
        };
        if now.duration_since(shortest.since) >= WINDOW {
            *shortest = Shortest { since: now, before: shortest.now, now: took_ms, step: shortest.step };
        }
        shortest.now = shortest.now.min(took_ms);
        let late = took_ms.saturating_sub(shortest.now.min(shortest.before));
        if late > MAX_LATE_MS || shortest.is_step(late, took_ms, now) {
            *shortest = first;
            return Duration::ZERO;
        }
        Duration::from_millis(late.unsigned_abs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_longer_than_usual_counts() {
        let (mut transits, start) = (Transits::default(), Instant::now());
        let mut late = |sender: &str, took_ms, after_s| {
            let reply_to = format!("_INBOX_edge.{sender}.query.7");
            transits.late(&reply_to, took_ms, start + Duration::from_secs(after_s)).as_millis()
        };
        for ahead in [0, 15_000, -15_000, 7_200_000] {
            let sender = ahead.to_string();
            assert_eq!(late(&sender, ahead + 3, 0), 0, "the first one");
            assert_eq!(late(&sender, ahead + 1, 1), 0, "a quicker one");
            for waited in 0..9 {
                let took = ahead + 9_001 - waited;
                assert_eq!(late(&sender, took, 30), (took - ahead - 1).unsigned_abs().into(), "what waited");
            }
            // The sender's clock, or this one, is set by an hour, and by 15 s.
            assert_eq!(late(&sender, ahead + 3_600_000, 31), 0);
            assert_eq!(late(&sender, ahead, 32), 0);
            assert_eq!(late(&sender, ahead + 15_000, 33), 15_000);
            assert_eq!(late(&sender, ahead + 15_000, 37), 15_000);
            assert_eq!(late(&sender, ahead + 15_000, 42), 0);
        }
    }

    #[test]
    fn a_clock_is_set_where_requests_are_late_by_the_same_time_one_after_the_other() {
        let (mut transits, start) = (Transits::default(), Instant::now());
        let mut late = |took_ms, after_ms| {
            let now = start + Duration::from_millis(after_ms);
            transits.late("_INBOX_edge.a.query.7", took_ms, now).as_millis()
        };
        assert_eq!(late(1, 0), 0);
        let set = [(12_003, 1_000), (12_001, 1_150), (11_995, 1_300), (12_010, 1_600), (12_004, 1_900)];
        let lates = set.map(|(took_ms, after_ms)| late(took_ms, after_ms));
        assert_eq!(lates, [12_002, 12_000, 11_994, 12_009, 12_003]);
        assert_eq!([late(12_004, 2_200), late(12_004, 2_300)], [0, 0]);
        // What waited in a queue is late by different times, or arrives at the same moment.
        for number in 0..5_u32 {
            let waited = 9_000 - i64::from(number) * 100;
            assert_eq!(late(12_004 + waited, 3_000 + u64::from(number) * 300), waited.unsigned_abs().into());
        }
        for after_ms in [5_000, 5_000, 5_000, 5_300, 5_600, 5_900] {
            assert_eq!(late(21_004, after_ms), 9_000);
        }
        assert_eq!(late(12_004, 6_200), 0, "one in time");
        assert_eq!([late(21_004, 6_500), late(21_004, 6_800)], [9_000, 9_000]);
    }
}
