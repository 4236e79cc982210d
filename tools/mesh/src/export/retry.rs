//! The retry policy of a download: exponential pauses with jitter, and a limit of tries without progress.

use std::time::Duration;

use rand::Rng as _;

const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// Upper bound of a gateway's Retry-After.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) struct RetryPolicy {
    pub(super) most: u32,
    failures: u32,
    furthest: u64,
}

impl RetryPolicy {
    /// A policy of at most `most` consecutive attempts without progress.
    pub(super) fn new(most: u32) -> Self {
        Self { most, failures: 0, furthest: 0 }
    }

    /// Reports progress in bytes. A new maximum resets the count of tries.
    pub(super) fn reached(&mut self, position: u64) {
        if position > self.furthest {
            self.furthest = position;
            self.failures = 0;
        }
    }

    /// Reports a failed try. Returns the pause before the next one, `None` after the last. `retry_after` is
    /// the gateway's.
    pub(super) fn pause(&mut self, retry_after: Option<Duration>) -> Option<Duration> {
        if self.failures >= self.most {
            return None;
        }
        let doubled = FIRST_PAUSE.saturating_mul(1 << self.failures.min(16)).min(LONGEST_PAUSE);
        self.failures += 1;
        // Jitter, so that clients that failed together do not retry together.
        let mixed = |pause: Duration| pause.mul_f64(rand::rng().random_range(0.5..1.0));
        Some(match retry_after {
            Some(retry_after) => retry_after.min(LONGEST_RETRY_AFTER) + mixed(FIRST_PAUSE),
            None => mixed(doubled),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_bound_and_end() {
        let mut retry = RetryPolicy::new(40);
        let pauses: Vec<Duration> = std::iter::from_fn(|| retry.pause(None)).collect();
        assert_eq!(pauses.len(), 40);
        assert!(pauses[0] >= FIRST_PAUSE / 2 && pauses[0] < FIRST_PAUSE);
        assert!(pauses[39] >= LONGEST_PAUSE / 2 && pauses[39] < LONGEST_PAUSE);
        assert_eq!(RetryPolicy::new(0).pause(None), None);
    }

    #[test]
    fn only_getting_further_than_ever_gives_new_tries() {
        let mut retry = RetryPolicy::new(2);
        retry.reached(10);
        assert!(retry.pause(None).is_some());
        retry.reached(11);
        assert!(retry.pause(None).is_some() && retry.pause(None).is_some());
        retry.reached(11);
        assert_eq!(retry.pause(None), None);
    }

    #[test]
    fn a_wish_is_heeded_within_bounds() {
        let pause = |seconds| RetryPolicy::new(1).pause(Some(Duration::from_secs(seconds))).unwrap();
        assert!(pause(3) >= Duration::from_secs(3) && pause(3) < Duration::from_secs(4));
        assert!(pause(1_000_000) < LONGEST_RETRY_AFTER + Duration::from_secs(1));
    }
}
