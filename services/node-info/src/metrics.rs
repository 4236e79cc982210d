//! Metrics of the heads of store and node.

use mesh_telemetry::{Registry, list};
use prometheus_client::metrics::gauge::Gauge;

use crate::node::NodeState;

/// Heights and states of store and node.
#[derive(Debug, Clone, Default)]
pub(crate) struct Metrics {
    store_height: Gauge,
    store_is_there: Gauge,
    node_height: Gauge,
    node_state: Gauge,
    lag: Gauge,
}

impl Metrics {
    /// Adds the metrics to `registry`; those of the node only when one is configured.
    pub(crate) fn register(registry: &mut Registry, has_node: bool) -> Self {
        let metrics = Self::default();
        registry.add(&list::STORE_HEIGHT, metrics.store_height.clone());
        registry.add(&list::STORE_IS_THERE, metrics.store_is_there.clone());
        if has_node {
            registry.add(&list::NODE_HEIGHT, metrics.node_height.clone());
            registry.add(&list::NODE_STATE, metrics.node_state.clone());
            registry.add(&list::CHAIN_LAG, metrics.lag.clone());
        }
        metrics
    }

    pub(crate) fn store(&self, height: Option<u64>, is_there: bool) {
        self.store_height.set(gauge_value(height.unwrap_or(0)));
        self.store_is_there.set(is_there.into());
        self.set_lag();
    }

    pub(crate) fn node(&self, state: &NodeState) {
        self.node_state.set(match state {
            NodeState::Synced(_) => 2,
            NodeState::CatchingUp { .. } => 1,
            NodeState::Away(_) => 0,
        });
        if let Some(height) = state.height() {
            self.node_height.set(gauge_value(height));
        }
        self.set_lag();
    }

    fn set_lag(&self) {
        self.lag.set((self.node_height.get() - self.store_height.get()).max(0));
    }
}

fn gauge_value(height: u64) -> i64 {
    i64::try_from(height).unwrap_or(i64::MAX)
}
