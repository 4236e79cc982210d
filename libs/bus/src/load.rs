//! The load of a service: its requests in flight, now and as an exponentially weighted average. Autoscalers
//! use the average, because the current number varies within milliseconds.

use std::{cell::Cell, time::Instant};

/// Time constant of the average, seconds.
const TIME_CONSTANT_S: f64 = 15.0;

/// Requests in flight. Reading the average does not change it.
#[derive(Debug)]
pub(crate) struct Load {
    now: Cell<usize>,
    average: Cell<f64>,
    updated: Cell<Instant>,
}

impl Load {
    /// A load without requests.
    pub(crate) fn new(at: Instant) -> Self {
        Self { now: Cell::new(0), average: Cell::new(0.0), updated: Cell::new(at) }
    }

    /// Requests in flight.
    pub(crate) fn now(&self) -> usize {
        self.now.get()
    }

    /// Average of the requests in flight up to a moment.
    pub(crate) fn average(&self, at: Instant) -> f64 {
        let now = self.now.get() as f64;
        let passed = at.saturating_duration_since(self.updated.get()).as_secs_f64();
        now + (self.average.get() - now) * (-passed / TIME_CONSTANT_S).exp()
    }

    /// Counts a request that begins.
    pub(crate) fn begin(&self, at: Instant) {
        self.update(at);
        self.now.set(self.now.get() + 1);
    }

    /// Counts a request that ends.
    pub(crate) fn end(&self, at: Instant) {
        self.update(at);
        self.now.set(self.now.get().saturating_sub(1));
    }

    fn update(&self, at: Instant) {
        self.average.set(self.average(at));
        self.updated.set(at.max(self.updated.get()));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_average_depends_on_requests_in_flight_and_not_on_how_often_it_is_read() {
        let started = Instant::now();
        let after = |seconds: f64| started + Duration::from_secs_f64(seconds);
        let load = Load::new(started);
        for _ in 0..4 {
            load.begin(started);
        }
        let early = load.average(after(TIME_CONSTANT_S));
        assert!((early - 4.0 * (1.0 - (-1.0_f64).exp())).abs() < 1e-9, "{early}");
        let _ = load.average(after(3.0));
        assert!((load.average(after(TIME_CONSTANT_S)) - early).abs() < 1e-9);
        assert!((load.average(after(600.0)) - 4.0).abs() < 1e-9);
        for _ in 0..5 {
            load.end(after(600.0));
        }
        assert_eq!(load.now(), 0);
        assert!(load.average(after(700.0)) < 0.01);
    }

    #[test]
    fn a_service_busy_for_half_of_the_time_has_a_load_of_a_half() {
        let started = Instant::now();
        let load = Load::new(started);
        for pull in 0..100_000_u32 {
            let at = started + Duration::from_millis(2) * pull;
            load.begin(at);
            load.end(at + Duration::from_millis(1));
        }
        let average = load.average(started + Duration::from_secs(200));
        assert!((average - 0.5).abs() < 0.01, "{average}");
    }
}
