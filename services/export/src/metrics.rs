//! Metrics of the stored history, of sealing and of pulled bytes.

use mesh_telemetry::{Registry, list};
use prometheus_client::metrics::{
    counter::Counter,
    family::Family,
    gauge::Gauge,
    histogram::{Histogram, exponential_buckets},
};

/// Metrics of the workload. Cloning shares them.
#[derive(Debug, Clone)]
pub struct Metrics {
    segments: Gauge,
    unreadable: Gauge,
    newest: Gauge,
    pub(crate) sealing: Histogram,
    pub(crate) failures: Counter,
    pub(crate) refused: Gauge,
    pulled: Family<[(&'static str, &'static str); 1], Counter>,
}

impl Default for Metrics {
    /// Metrics of a registry that is not exported.
    fn default() -> Self {
        Self::register(&mut Registry::default())
    }
}

impl Metrics {
    /// Adds the metrics to `registry`.
    pub fn register(registry: &mut Registry) -> Self {
        let sealing = Histogram::new(exponential_buckets(0.05, 2.0, 14));
        let metrics = Self {
            segments: registry.added(&list::HISTORY_SEGMENTS, Gauge::default()),
            unreadable: registry.added(&list::HISTORY_UNREADABLE, Gauge::default()),
            newest: registry.added(&list::HISTORY_HEIGHT, Gauge::default()),
            sealing: registry.added(&list::HISTORY_SEAL_DURATION, sealing),
            failures: registry.added(&list::HISTORY_SEAL_FAILURES, Counter::default()),
            refused: registry.added(&list::SEAL_REFUSED, Gauge::default()),
            pulled: registry.added(&list::EXPORT_PULLED, Family::default()),
        };
        for operation in ["ExportLedgerEntries", "ExportNetworkHistory"] {
            metrics.pulled(operation);
        }
        metrics
    }

    pub(crate) fn set_segments(&self, segments: usize, unreadable: usize, newest: Option<u64>) {
        self.segments.set(i64::try_from(segments).unwrap_or(i64::MAX));
        self.unreadable.set(i64::try_from(unreadable).unwrap_or(i64::MAX));
        self.newest.set(newest.and_then(|height| i64::try_from(height).ok()).unwrap_or(0));
    }

    /// The counter of an operation's pulled bytes.
    pub(crate) fn pulled(&self, operation: &'static str) -> Counter {
        self.pulled.get_or_create_owned(&[("operation", operation)])
    }
}
