//! What the workload shows of its history and of what is pulled.

use std::time::Duration;

use mesh_chassis::Registry;
use prometheus_client::metrics::{
    counter::Counter, family::Family, gauge::Gauge, histogram::Histogram, histogram::exponential_buckets,
};

/// Counts of the workload. Cloning shares them.
#[derive(Debug, Clone)]
pub struct Metrics {
    segments: Gauge,
    unreadable: Gauge,
    newest: Gauge,
    sealing: Histogram,
    failures: Counter,
    pulled: Family<[(&'static str, &'static str); 1], Counter>,
}

impl Default for Metrics {
    /// Counts that nobody sees.
    fn default() -> Self {
        Self::register(&mut Registry::default())
    }
}

impl Metrics {
    /// Adds them to what `/metrics` shows.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            segments: Gauge::default(),
            unreadable: Gauge::default(),
            newest: Gauge::default(),
            sealing: Histogram::new(exponential_buckets(0.05, 2.0, 14)),
            failures: Counter::default(),
            pulled: Family::default(),
        };
        registry.register("mesh_history_segments", "Segments held", metrics.segments.clone());
        registry.register(
            "mesh_history_segments_unreadable",
            "Objects that are named as segments and cannot be read",
            metrics.unreadable.clone(),
        );
        registry.register(
            "mesh_history_height",
            "Last height of the newest segment, 0 without one",
            metrics.newest.clone(),
        );
        registry.register(
            "mesh_history_seal_seconds",
            "Time to seal a segment here",
            metrics.sealing.clone(),
        );
        registry.register(
            "mesh_history_seal_failures",
            "Times that sealing failed here",
            metrics.failures.clone(),
        );
        registry.register(
            "mesh_export_pulled_bytes",
            "Bytes given to pulls, by operation",
            metrics.pulled.clone(),
        );
        metrics
    }

    pub(crate) fn held(&self, segments: usize, unreadable: usize, newest: Option<u64>) {
        self.segments.set(i64::try_from(segments).unwrap_or(i64::MAX));
        self.unreadable.set(i64::try_from(unreadable).unwrap_or(i64::MAX));
        self.newest.set(newest.and_then(|height| i64::try_from(height).ok()).unwrap_or(0));
    }

    pub(crate) fn sealed(&self, took: Duration) {
        self.sealing.observe(took.as_secs_f64());
    }

    pub(crate) fn seal_failed(&self) {
        self.failures.inc();
    }

    /// The counter of an operation's pulled bytes.
    pub(crate) fn pulled(&self, operation: &'static str) -> Counter {
        self.pulled.get_or_create_owned(&[("operation", operation)])
    }
}
