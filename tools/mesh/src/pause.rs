//! The pauses before retries: exponential, with jitter, so that clients that failed together do not retry together.

use std::time::Duration;

use rand::Rng as _;

/// Longest pause that a gateway's Retry-After, or the `retry` line of its streams, may request.
pub(crate) const LONGEST_REQUESTED: Duration = Duration::from_secs(60);

/// Pauses that double with each failure, up to a bound.
#[derive(Debug)]
pub(crate) struct Pauses {
    /// The pause after the first failure.
    pub(crate) first: Duration,
    longest: Duration,
    /// Number of consecutive failures.
    pub(crate) failures: u32,
}

impl Pauses {
    pub(crate) fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, failures: 0 }
    }

    /// The pause after one more failure, at least the gateway's Retry-After.
    pub(crate) fn next(&mut self, retry_after: Option<Duration>) -> Duration {
        let doubled = self.first.saturating_mul(1 << self.failures.min(16));
        self.failures += 1;
        let pause = doubled.min(self.longest.max(self.first));
        let pause = pause.max(retry_after.unwrap_or_default().min(LONGEST_REQUESTED));
        pause.mul_f64(rand::rng().random_range(1.0..1.25))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_begin_with_the_gateways_wish_and_grow_to_a_bound() {
        let mut pauses = Pauses::new(Duration::from_secs(1), Duration::from_secs(8));
        let mut next = |wish| pauses.next(wish).as_secs();
        assert_eq!([next(None), next(None), next(None)], [1, 2, 4]);
        for _ in 0..40 {
            assert!((8..=10).contains(&next(None)));
        }
        assert!((20..=25).contains(&next(Some(Duration::from_secs(20)))));
        assert!((60..=75).contains(&next(Some(Duration::from_secs(1_000_000)))));
    }
}
