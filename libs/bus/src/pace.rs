//! When to ask again (design D3): how long an operation's replies take, and how much asking again is affordable.

use std::{
    sync::atomic::{AtomicI64, AtomicU64, Ordering},
    time::Duration,
};

/// A read is asked again after this many times its operation's smoothed time …
const PATIENCE_TIMES: u32 = 4;
/// … but not before this …
const PATIENCE_AT_LEAST: Duration = Duration::from_millis(100);
/// … and not later than this.
const PATIENCE_AT_MOST: Duration = Duration::from_secs(1);

/// Share of the newest reply in the smoothed time: one in so many.
const SMOOTHING: u64 = 8;

/// The smoothed reply time of one operation.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// Microseconds; 0 = no reply yet.
    smoothed_us: AtomicU64,
}

impl Pace {
    /// Notes a reply.
    pub(crate) fn replied_in(&self, took: Duration) {
        let took = u64::try_from(took.as_micros()).unwrap_or(u64::MAX).max(1);
        let smoothed = match self.smoothed_us.load(Ordering::Relaxed) {
            0 => took,
            before => (before * (SMOOTHING - 1)).saturating_add(took) / SMOOTHING,
        };
        // Two replies at the same time may lose one of the two: it is an estimate.
        self.smoothed_us.store(smoothed.max(1), Ordering::Relaxed);
    }

    /// How long to wait for a reply before asking again.
    pub(crate) fn patience(&self) -> Duration {
        let smoothed = Duration::from_micros(self.smoothed_us.load(Ordering::Relaxed));
        smoothed.saturating_mul(PATIENCE_TIMES).clamp(PATIENCE_AT_LEAST, PATIENCE_AT_MOST)
    }
}

/// What asking again may cost: one in ten asks, saved up for a bad moment.
#[derive(Debug)]
pub(crate) struct Budget {
    /// In tenths of an ask.
    tenths: AtomicI64,
}

impl Default for Budget {
    fn default() -> Self {
        Self { tenths: AtomicI64::new(Self::AT_FIRST) }
    }
}

impl Budget {
    /// Saved up at most: a thousand asks, what ten seconds at 1,000 a second earn.
    const AT_MOST: i64 = 10_000;
    /// For those who have asked little so far.
    const AT_FIRST: i64 = 1_000;

    /// An ask for the first time.
    pub(crate) fn earn(&self) {
        if self.tenths.load(Ordering::Relaxed) < Self::AT_MOST {
            self.tenths.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether asking again is affordable; then it is paid.
    pub(crate) fn spend(&self) -> bool {
        self.tenths
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |saved| (saved >= 10).then(|| saved - 10))
            .is_ok()
    }

    /// An ask that nobody took costs nothing.
    pub(crate) fn refund(&self) {
        self.tenths.fetch_add(10, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_follows_the_replies_within_its_bounds() {
        let pace = Pace::default();
        assert_eq!(pace.patience(), PATIENCE_AT_LEAST, "before any reply");
        for _ in 0..100 {
            pace.replied_in(Duration::from_millis(1));
        }
        assert_eq!(pace.patience(), PATIENCE_AT_LEAST);
        for _ in 0..100 {
            pace.replied_in(Duration::from_millis(100));
        }
        let patience = pace.patience().as_millis();
        assert!((390..=400).contains(&patience), "{patience} ms");
        for _ in 0..100 {
            pace.replied_in(Duration::from_secs(60));
        }
        assert_eq!(pace.patience(), PATIENCE_AT_MOST);
    }

    #[test]
    fn asking_again_costs_a_tenth_in_the_long_run() {
        let budget = Budget::default();
        while budget.spend() {}
        let mut again = 0;
        for _ in 0..5_000 {
            budget.earn();
            again += u32::from(budget.spend());
        }
        assert_eq!(again, 500);
        for _ in 0..1_000_000 {
            budget.earn();
        }
        assert_eq!((0..).take_while(|_| budget.spend()).count(), 1_000, "what is saved up has a bound");
    }
}
