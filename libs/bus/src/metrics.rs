//! What a workload counts about the requests it answers.

use std::time::Duration;

use prometheus_client::{
    encoding::{EncodeLabelSet, EncodeLabelValue},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

use crate::{connection::Bus, pace::Budget};

/// Bounds of the duration buckets, seconds.
const SECONDS: [f64; 14] =
    [0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];

/// Labels of a request.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct RequestLabels {
    /// The operation's name.
    pub(crate) operation: String,
    /// How it ended.
    pub(crate) outcome: Outcome,
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelValue)]
pub(crate) enum Outcome {
    /// Answered.
    Ok,
    /// Refused: the client's mistake, or there is no such thing.
    Refused,
    /// Failed: ours, or something was away.
    Failed,
    /// Turned away for want of room.
    Shed,
    /// The asker went away or its deadline passed.
    Canceled,
}

/// What a process spends on asking again.
#[derive(Debug, Default)]
pub(crate) struct Asking {
    pub(crate) budget: Budget,
    /// Asks put beside one that was still unanswered.
    pub(crate) extras: Counter,
    /// Those of them that were answered first.
    pub(crate) extras_won: Counter,
}

impl Bus {
    /// Adds the counts of asking and pulling to what `/metrics` shows.
    pub fn register_asking(&self, registry: &mut Registry) {
        let Asking { extras, extras_won, .. } = &self.shared.asking;
        registry.register("mesh_bus_hedges", "Reads asked again while still unanswered", extras.clone());
        registry.register("mesh_bus_hedges_won", "Reads answered by asking again", extras_won.clone());
        self.shared.pulling.register(registry);
    }
}

/// Counts of the requests that a process answers.
#[derive(Debug, Clone)]
pub(crate) struct RequestMetrics {
    seconds: Family<RequestLabels, Histogram, fn() -> Histogram>,
    shed: Counter,
    /// Requests being worked on.
    pub(crate) in_flight: Gauge,
}

impl RequestMetrics {
    /// Adds the counts to what `/metrics` shows.
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            seconds: Family::new_with_constructor(|| Histogram::new(SECONDS)),
            shed: Counter::default(),
            in_flight: Gauge::default(),
        };
        registry.register(
            "mesh_request_seconds",
            "Time to answer a request, by operation and outcome",
            metrics.seconds.clone(),
        );
        registry.register(
            "mesh_requests_shed",
            "Requests turned away for want of room",
            metrics.shed.clone(),
        );
        registry.register("mesh_requests_in_flight", "Requests being worked on", metrics.in_flight.clone());
        metrics
    }

    /// Counts a request that ended.
    pub(crate) fn ended(&self, operation: &str, outcome: Outcome, took: Duration) {
        if outcome == Outcome::Shed {
            self.shed.inc();
        }
        let labels = RequestLabels { operation: operation.to_owned(), outcome };
        self.seconds.get_or_create(&labels).observe(took.as_secs_f64());
    }
}
