//! What the edge counts.

use std::{
    fmt::{self, Write},
    sync::atomic::AtomicI64,
    time::Duration,
};

use prometheus_client::{
    encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder},
    metrics::{family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

/// Bounds of the duration buckets, seconds.
const SECONDS: [f64; 14] =
    [0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];

/// Counts of one edge.
#[derive(Debug, Clone)]
pub(crate) struct Metrics {
    requests: Family<Labels, Histogram, fn() -> Histogram>,
    /// Open connections.
    pub(crate) connections: Gauge<i64, AtomicI64>,
}

/// How a client asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Protocol {
    Http,
    Grpc,
}

impl EncodeLabelValue for Protocol {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), fmt::Error> {
        encoder.write_str(match self {
            Self::Http => "http",
            Self::Grpc => "grpc",
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    protocol: Protocol,
    /// Operation, or `none` where no route matches.
    operation: String,
    /// HTTP status, or gRPC code.
    status: u16,
}

impl Metrics {
    /// Adds the counts to what `/metrics` shows.
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            requests: Family::new_with_constructor(|| Histogram::new(SECONDS)),
            connections: Gauge::default(),
        };
        registry.register(
            "mesh_edge_request_seconds",
            "Time to answer, by protocol, operation and HTTP status or gRPC code",
            metrics.requests.clone(),
        );
        registry.register("mesh_edge_connections", "Open connections", metrics.connections.clone());
        metrics
    }

    /// Where answers of an operation with one status are counted.
    pub(crate) fn answers(&self, protocol: Protocol, operation: &str, status: u16) -> Histogram {
        let labels = Labels { protocol, operation: operation.to_owned(), status };
        self.requests.get_or_create(&labels).clone()
    }

    /// Counts an answered request.
    pub(crate) fn answered(&self, protocol: Protocol, operation: &str, status: u16, took: Duration) {
        self.answers(protocol, operation, status).observe(took.as_secs_f64());
    }
}
