//! The registry behind `/metrics`: metrics of the list under their names.

use std::fmt;

use prometheus_client::{
    encoding::text,
    metrics::{family::Family, histogram::Histogram},
    registry::{self, Unit},
};

use crate::list::{Kind, Metric};

/// Metrics of one kind by labels, each a name and a value.
pub type LabeledFamily<const LABELS: usize, M> = Family<[(&'static str, &'static str); LABELS], M, fn() -> M>;

/// Bounds of the duration buckets, seconds.
const SECONDS: [f64; 15] =
    [0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 20.0];

/// Bounds of the size buckets, bytes.
const BYTES: [f64; 8] = [256.0, 1024.0, 4096.0, 16384.0, 65536.0, 262_144.0, 1_048_576.0, 16_777_216.0];

/// A histogram of durations in seconds.
pub fn seconds_histogram() -> Histogram {
    Histogram::new(SECONDS)
}

/// A histogram of sizes in bytes.
pub fn bytes_histogram() -> Histogram {
    Histogram::new(BYTES)
}

/// The metrics of one process.
#[derive(Default)]
pub struct Registry {
    metrics: registry::Registry,
    refreshers: Vec<Box<dyn Fn()>>,
}

impl Registry {
    /// Adds a metric of the list.
    pub fn add(&mut self, listed: &Metric, metric: impl registry::Metric) {
        let name = listed.name.replace('.', "_");
        match listed.unit {
            "s" => self.metrics.register_with_unit(name, listed.help, Unit::Seconds, metric),
            "By" => self.metrics.register_with_unit(name, listed.help, Unit::Bytes, metric),
            _ => self.metrics.register(name, listed.help, metric),
        }
    }

    /// Adds a metric of the list, and returns it for its values to be set.
    pub fn added<M: registry::Metric + Clone>(&mut self, listed: &Metric, metric: M) -> M {
        self.add(listed, metric.clone());
        metric
    }

    /// Calls this before each scrape, for metrics that are read from elsewhere.
    pub fn on_scrape(&mut self, refresh: impl Fn() + 'static) {
        self.refreshers.push(Box::new(refresh));
    }

    /// The current values of all metrics in OpenMetrics text.
    ///
    /// # Errors
    /// When a metric cannot be written.
    pub fn text(&self) -> Result<String, fmt::Error> {
        for refresh in &self.refreshers {
            refresh();
        }
        let mut page = String::new();
        text::encode(&mut page, &self.metrics)?;
        Ok(page)
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.metrics.fmt(f)
    }
}

impl Metric {
    /// The family's name in Prometheus text, without `_total`: dots become underscores, and the unit is appended.
    pub fn family(&self) -> String {
        let name = self.name.replace('.', "_");
        match self.unit {
            "s" => name + "_seconds",
            "By" => name + "_bytes",
            _ => name,
        }
    }

    /// The name of its samples in queries. A histogram appends `_bucket`, `_sum` and `_count`.
    pub fn sample(&self) -> String {
        match self.kind {
            Kind::Counter => self.family() + "_total",
            Kind::Info => self.family() + "_info",
            Kind::Gauge | Kind::Histogram => self.family(),
        }
    }

    /// Its labels in Prometheus text.
    pub fn label_names(&self) -> impl Iterator<Item = String> {
        self.labels.iter().map(|label| label.replace('.', "_"))
    }
}
