//! How long requests were on their way, by the clocks of two machines, which may differ.

use std::time::{Duration, Instant};

use quick_cache::unsync::Cache;

/// How long the shortest time on the way counts, at least; at most twice that. So long a clock that was set makes requests
/// late. What waited for a frozen replica arrives within a moment, in the first window after it.
const WINDOW: Duration = Duration::from_secs(5);

/// A request that was longer on its way than this was not: a clock was set.
const MAX_LATE_MS: i64 = 60_000;

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
        let first = Shortest { since: now, before: took_ms, now: took_ms };
        let Some(mut shortest) = self.0.get_mut(sender) else {
            self.0.insert(sender.to_owned(), first);
            return Duration::ZERO;
        };
        if now.duration_since(shortest.since) >= WINDOW {
            *shortest = Shortest { since: now, before: shortest.now, now: took_ms };
        }
        shortest.now = shortest.now.min(took_ms);
        let late = took_ms.saturating_sub(shortest.now.min(shortest.before));
        if late > MAX_LATE_MS {
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
}
