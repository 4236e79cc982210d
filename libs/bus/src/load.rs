//! How much a service has to do: what it works on now, and on average over the last seconds. A look at one moment says
//! little of requests that take milliseconds; the average is what an autoscaler goes by.

use std::{cell::Cell, time::Instant};

/// Seconds after which what was counts for little more than a third.
const MEMORY_S: f64 = 15.0;

/// Requests being worked on. Its average decays, so that whoever looks, and however often, sees the same.
#[derive(Debug)]
pub(crate) struct Load {
    now: Cell<usize>,
    average: Cell<f64>,
    at: Cell<Instant>,
}

impl Load {
    /// Nothing to do since this moment.
    pub(crate) fn idle_since(at: Instant) -> Self {
        Self { now: Cell::new(0), average: Cell::new(0.0), at: Cell::new(at) }
    }

    /// Requests being worked on.
    pub(crate) fn now(&self) -> usize {
        self.now.get()
    }

    /// The same on average up to a moment.
    pub(crate) fn average(&self, at: Instant) -> f64 {
        let now = self.now.get() as f64;
        let passed = at.saturating_duration_since(self.at.get()).as_secs_f64();
        now + (self.average.get() - now) * (-passed / MEMORY_S).exp()
    }

    /// One more.
    pub(crate) fn begins(&self, at: Instant) {
        self.moves_on(at);
        self.now.set(self.now.get() + 1);
    }

    /// One less.
    pub(crate) fn ends(&self, at: Instant) {
        self.moves_on(at);
        self.now.set(self.now.get().saturating_sub(1));
    }

    fn moves_on(&self, at: Instant) {
        self.average.set(self.average(at));
        self.at.set(at.max(self.at.get()));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_average_follows_what_is_under_way_and_not_how_often_one_looks() {
        let begun = Instant::now();
        let after = |seconds: f64| begun + Duration::from_secs_f64(seconds);
        let load = Load::idle_since(begun);
        for _ in 0..4 {
            load.begins(begun);
        }
        let early = load.average(after(MEMORY_S));
        assert!((early - 4.0 * (1.0 - (-1.0_f64).exp())).abs() < 1e-9, "{early}");
        let _ = load.average(after(3.0));
        assert!((load.average(after(MEMORY_S)) - early).abs() < 1e-9);
        assert!((load.average(after(600.0)) - 4.0).abs() < 1e-9);
        for _ in 0..5 {
            load.ends(after(600.0));
        }
        assert_eq!(load.now(), 0);
        assert!(load.average(after(700.0)) < 0.01);
    }

    #[test]
    fn half_of_the_time_busy_is_a_load_of_a_half() {
        let begun = Instant::now();
        let load = Load::idle_since(begun);
        for pull in 0..100_000_u32 {
            let at = begun + Duration::from_millis(2) * pull;
            load.begins(at);
            load.ends(at + Duration::from_millis(1));
        }
        let average = load.average(begun + Duration::from_secs(200));
        assert!((average - 0.5).abs() < 0.01, "{average}");
    }
}
