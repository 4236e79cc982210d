//! Metrics of reading: statements and connections.

use std::{iter::Sum, time::Duration};

use mesh_telemetry::{LabeledFamily, Registry, list, seconds_histogram};
use prometheus_client::metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram};

use super::Store;

/// The kind of connection that a statement runs on.
#[derive(Debug, Clone, Copy)]
pub(super) enum Pool {
    /// The pipelined connections.
    Points,
    /// A pooled connection of its own.
    Lists,
}

impl Pool {
    pub(super) const ALL: [Self; 2] = [Self::Points, Self::Lists];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Points => "points",
            Self::Lists => "lists",
        }
    }

    fn label(self) -> [(&'static str, &'static str); 1] {
        [("db_client_connection_pool_name", self.name())]
    }
}

/// Metrics of one store. Cloning shares them.
#[derive(Debug, Clone)]
pub(super) struct Metrics {
    statements: LabeledFamily<3, Histogram>,
    /// The histograms in `statements` of successful statements, by pool; cached, since the look-up takes a
    /// lock.
    succeeded: [Histogram; 2],
    waits: LabeledFamily<1, Histogram>,
    timeouts: LabeledFamily<1, Counter>,
    pending: LabeledFamily<1, Gauge>,
    most: LabeledFamily<1, Gauge>,
    open: LabeledFamily<2, Gauge>,
}

/// How many connections there are.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Connections {
    pub(super) used: usize,
    pub(super) idle: usize,
    pub(super) pending: usize,
    pub(super) most: usize,
}

impl Metrics {
    pub(super) fn new() -> Self {
        let statements = Family::new_with_constructor(seconds_histogram as fn() -> Histogram);
        let metrics = Self {
            succeeded: Pool::ALL.map(|pool| statements.get_or_create_owned(&labels(pool, ""))),
            statements,
            waits: Family::new_with_constructor(seconds_histogram),
            timeouts: Family::new_with_constructor(Counter::default),
            pending: Family::new_with_constructor(Gauge::default),
            most: Family::new_with_constructor(Gauge::default),
            open: Family::new_with_constructor(Gauge::default),
        };
        for pool in Pool::ALL {
            metrics.waits.get_or_create_owned(&pool.label());
            metrics.timeouts.get_or_create_owned(&pool.label());
        }
        metrics
    }

    /// Counts a statement that ended, with the kind of its error.
    pub(super) fn ended(&self, pool: Pool, error: Option<&'static str>, took: Duration) {
        match error {
            None => self.succeeded[pool as usize].observe(took.as_secs_f64()),
            Some(error) => self.statements.get_or_create(&labels(pool, error)).observe(took.as_secs_f64()),
        }
    }

    /// Counts a wait for a connection.
    pub(super) fn waited(&self, pool: Pool, has_failed: bool, took: Duration) {
        self.waits.get_or_create(&pool.label()).observe(took.as_secs_f64());
        if has_failed {
            self.timeouts.get_or_create(&pool.label()).inc();
        }
    }

    fn set_connections(&self, pool: Pool, now: Connections) {
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.pending.get_or_create(&pool.label()).set(number(now.pending));
        self.most.get_or_create(&pool.label()).set(number(now.most));
        for (state, count) in [("used", now.used), ("idle", now.idle)] {
            let [pool] = pool.label();
            self.open.get_or_create(&[pool, ("db_client_connection_state", state)]).set(number(count));
        }
    }
}

fn labels(pool: Pool, error: &'static str) -> [(&'static str, &'static str); 3] {
    [("db_system_name", "postgresql"), ("db_client_connection_pool_name", pool.name()), ("error_type", error)]
}

impl Store {
    /// Registers the metrics of reading.
    pub fn register(&self, registry: &mut Registry) {
        let (store, metrics) = (self.clone(), self.servers.metrics.clone());
        registry.add(&list::DB_CLIENT_OPERATION_DURATION, metrics.statements.clone());
        registry.add(&list::DB_CLIENT_CONNECTION_WAIT_TIME, metrics.waits.clone());
        registry.add(&list::DB_CLIENT_CONNECTION_TIMEOUTS, metrics.timeouts.clone());
        registry.add(&list::DB_CLIENT_CONNECTION_PENDING, metrics.pending.clone());
        registry.add(&list::DB_CLIENT_CONNECTION_MAX, metrics.most.clone());
        registry.add(&list::DB_CLIENT_CONNECTION_COUNT, metrics.open.clone());
        self.servers.unreadable.register(registry);
        registry.on_scrape(move || {
            for pool in Pool::ALL {
                metrics.set_connections(pool, store.connections(pool));
            }
        });
    }

    /// The connections to all servers together.
    fn connections(&self, pool: Pool) -> Connections {
        let servers = &*self.servers;
        std::iter::once(&servers.primary).chain(&servers.replica).map(|server| server.connections(pool)).sum()
    }
}

impl Sum for Connections {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            used: sum.used + one.used,
            idle: sum.idle + one.idle,
            pending: sum.pending + one.pending,
            most: sum.most + one.most,
        })
    }
}
