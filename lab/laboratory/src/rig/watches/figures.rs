//! Figures of a phase of watches.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::{
    rig::{
        clients::samples::quantile,
        report::{self, Column},
    },
    watches::{
        HeightAt,
        blocks::{Blocks, delays},
    },
};

/// The report of a phase.
pub(super) type Report = report::Report<Figures>;

/// Figures of a phase.
#[derive(Clone, Debug, Default)]
pub(super) struct Figures {
    /// Watches that were open at the same time.
    pub(super) watches: usize,
    /// Events received in the measured time.
    pub(super) received: Delays,
    /// Memory of the edge for each watch, KiB.
    pub(super) kib_each: f64,
    /// Processor time of the edge, milliseconds a second.
    pub(super) cpu_ms: f64,
}

/// Times from a block's COMMIT to the receipt of its changes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Delays {
    /// Changes received.
    pub(super) events: usize,
    /// Changes that a client did not receive.
    pub(super) missed: usize,
    p50: Duration,
    pub(super) p99: Duration,
}

impl Delays {
    /// The delays of the blocks of a period, each of which `watchers` clients must receive.
    pub(super) fn of(
        blocks: &Blocks,
        from: Instant,
        to: Instant,
        received: &[HeightAt],
        watchers: usize,
    ) -> Self {
        let written = blocks.written(from, to);
        let delays = delays(&written, received);
        let missed = (written.len() * watchers).saturating_sub(delays.len());
        let [p50, p99] = [0.5, 0.99].map(|share| quantile(delays.clone(), share));
        Self { events: delays.len(), missed, p50, p99 }
    }
}

impl report::Figures for Figures {
    fn columns(&self) -> Vec<Column> {
        let decimal = |heading, member, value: f64| {
            Column::new(heading, member, format!("{value:.1}"), json!((value * 10.0).round() / 10.0))
        };
        vec![
            Column::count("watches", "watches", self.watches),
            Column::count("events", "events", self.received.events),
            Column::count("missed", "missed", self.received.missed),
            Column::time("p50 ms", "p50Ms", self.received.p50),
            Column::time("p99 ms", "p99Ms", self.received.p99),
            decimal("KiB each", "kibEach", self.kib_each),
            decimal("edge ms/s", "edgeMsPerSecond", self.cpu_ms),
        ]
    }
}
