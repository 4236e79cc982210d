//! Hedged requests (design D3): the delay before a read is sent a second time, and the budget of such
//! requests.

use std::{
    sync::atomic::{AtomicI64, AtomicU64, Ordering},
    time::Duration,
};

/// A read is hedged after this many times the smoothed reply time of its operation …
const DELAY_FACTOR: u32 = 4;
/// … but not before this …
const MIN_DELAY: Duration = Duration::from_millis(100);
/// … and not later than this.
const MAX_DELAY: Duration = Duration::from_secs(1);

/// Weight of the newest reply in the smoothed time: one in so many.
const SMOOTHING: u64 = 8;

/// The smoothed reply time of one operation, and the delay before a hedge that follows from it.
#[derive(Debug, Default)]
pub(crate) struct HedgeDelay {
    /// Microseconds; 0 = no reply yet.
    smoothed_us: AtomicU64,
}

impl HedgeDelay {
    /// Takes the duration of a reply into account.
    pub(crate) fn record(&self, took: Duration) {
        let took = u64::try_from(took.as_micros()).unwrap_or(u64::MAX).max(1);
        let smoothed = match self.smoothed_us.load(Ordering::Relaxed) {
            0 => took,
            before => (before * (SMOOTHING - 1)).saturating_add(took) / SMOOTHING,
        };
        // Not atomic: of two simultaneous replies one may be lost, which an estimate tolerates.
        self.smoothed_us.store(smoothed.max(1), Ordering::Relaxed);
    }

    /// How long to wait for a reply before the request is hedged.
    pub(crate) fn delay(&self) -> Duration {
        let smoothed = Duration::from_micros(self.smoothed_us.load(Ordering::Relaxed));
        smoothed.saturating_mul(DELAY_FACTOR).clamp(MIN_DELAY, MAX_DELAY)
    }
}

/// A token bucket for hedges: every request deposits a tenth of one.
#[derive(Debug)]
pub(crate) struct RetryBudget {
    /// Tenths of a hedge.
    tenths: AtomicI64,
}

impl Default for RetryBudget {
    fn default() -> Self {
        Self { tenths: AtomicI64::new(Self::INITIAL) }
    }
}

impl RetryBudget {
    /// Capacity, tenths: a thousand hedges, the deposits of ten seconds at 1,000 requests a second.
    const CAPACITY: i64 = 10_000;
    /// Tenths at the start, for processes that have asked little so far.
    const INITIAL: i64 = 1_000;

    /// Deposits the tenth of one request.
    pub(crate) fn deposit(&self) {
        if self.tenths.load(Ordering::Relaxed) < Self::CAPACITY {
            self.tenths.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Withdraws the price of one hedge; `false` when the budget is too small.
    pub(crate) fn withdraw(&self) -> bool {
        self.tenths
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |saved| (saved >= 10).then(|| saved - 10))
            .is_ok()
    }

    /// Returns the price of a hedge that no replica received.
    pub(crate) fn refund(&self) {
        self.tenths.fetch_add(10, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delay_follows_the_replies_within_its_bounds() {
        let hedge = HedgeDelay::default();
        assert_eq!(hedge.delay(), MIN_DELAY, "before any reply");
        for _ in 0..100 {
            hedge.record(Duration::from_millis(1));
        }
        assert_eq!(hedge.delay(), MIN_DELAY);
        for _ in 0..100 {
            hedge.record(Duration::from_millis(100));
        }
        let delay = hedge.delay().as_millis();
        assert!((390..=400).contains(&delay), "{delay} ms");
        for _ in 0..100 {
            hedge.record(Duration::from_secs(60));
        }
        assert_eq!(hedge.delay(), MAX_DELAY);
    }

    #[test]
    fn one_request_in_ten_is_hedged_in_the_long_run() {
        let budget = RetryBudget::default();
        while budget.withdraw() {}
        let mut hedges = 0;
        for _ in 0..5_000 {
            budget.deposit();
            hedges += u32::from(budget.withdraw());
        }
        assert_eq!(hedges, 500);
        for _ in 0..1_000_000 {
            budget.deposit();
        }
        assert_eq!((0..).take_while(|_| budget.withdraw()).count(), 1_000, "the budget has a capacity");
    }
}
