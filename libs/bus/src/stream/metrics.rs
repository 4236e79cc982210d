//! Metrics of the streams that a process reads.

use mesh_telemetry::{Registry, list};
use prometheus_client::metrics::{counter::Counter, family::Family, gauge::Gauge};

/// Counts of the streams that a process reads.
#[derive(Debug, Default)]
pub(crate) struct PullMetrics {
    /// Pulls sent.
    pub(super) pulls: Counter,
    /// Pulls sent again because an earlier attempt failed or was late.
    pub(super) again: Counter,
    /// Streams that are open.
    pub(super) active: Gauge,
    /// Bytes delivered to readers.
    pub(super) delivered: Counter,
    /// Ended streams by outcome.
    ended: Family<[(&'static str, &'static str); 1], Counter>,
}

impl PullMetrics {
    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.add(&list::STREAM_PULLS, self.pulls.clone());
        registry.add(&list::STREAM_PULLS_AGAIN, self.again.clone());
        registry.add(&list::STREAM_BYTES, self.delivered.clone());
        registry.add(&list::STREAMS_ACTIVE, self.active.clone());
        for end in [StreamEnd::Whole, StreamEnd::Broken, StreamEnd::Left] {
            self.ended(end);
        }
        registry.add(&list::STREAMS_ENDED, self.ended.clone());
    }

    /// The counter of streams with this outcome.
    pub(super) fn ended(&self, end: StreamEnd) -> Counter {
        self.ended.get_or_create_owned(&[("outcome", end.name())])
    }
}

/// How a stream ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamEnd {
    /// Its reader got all requested bytes.
    Whole,
    /// It could not be continued.
    Broken,
    /// Its reader stopped reading.
    Left,
}

impl StreamEnd {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Broken => "broken",
            Self::Left => "left",
        }
    }
}
