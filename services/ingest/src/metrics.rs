//! Metrics of the work.

use mesh_store::append::NewBlock;
use mesh_telemetry::{LabeledFamily, Registry, list, seconds_histogram};
use prometheus_client::metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram};

use crate::order::{Order, Reason};

#[derive(Debug, Clone)]
pub(crate) struct Metrics {
    height: Gauge,
    lag: Gauge,
    rows: LabeledFamily<1, Counter>,
    pub(crate) block_duration: Histogram,
    halted: LabeledFamily<1, Gauge>,
}

impl Metrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        Self {
            height: registry.added(&list::INGEST_HEIGHT, Gauge::default()),
            lag: registry.added(&list::INGEST_LAG, Gauge::default()),
            rows: registry.added(&list::INGEST_ROWS, Family::new_with_constructor(Counter::default)),
            block_duration: registry.added(&list::INGEST_BLOCK_DURATION, seconds_histogram()),
            halted: registry.added(&list::INGEST_HALTED, Family::new_with_constructor(Gauge::default)),
        }
    }

    /// Sets the gauges. Unknown heights keep their last value.
    pub(crate) fn show(&self, order: &Order) {
        if let (Some(store), node) = order.heights() {
            self.height.set(store.cast_signed());
            if let Some(node) = node {
                self.lag.set(node.saturating_sub(store).cast_signed());
            }
        }
        for reason in Reason::ALL {
            let is_halted = order.halt().is_some_and(|halt| halt.reason == reason);
            self.halted.get_or_create(&[("reason", reason.name())]).set(is_halted.into());
        }
    }

    pub(crate) fn stored(&self, blocks: &[NewBlock]) {
        for (table, rows) in blocks.iter().flat_map(|block| &block.rows) {
            self.rows.get_or_create(&[("table", *table)]).inc_by(rows.rows());
        }
    }
}
