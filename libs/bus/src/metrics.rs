//! Metrics of the requests that a process sends over the bus, and of those that it answers.

use std::{
    borrow::Cow,
    rc::Rc,
    sync::atomic::AtomicU64,
    time::{Duration, Instant},
};

use mesh_telemetry::{Calls, LabeledFamily, Registry, bytes_histogram, list};
use prometheus_client::metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram};

use crate::load::Load;

/// `rpc.system.name` of calls over the bus.
const SYSTEM: &str = "mesh";

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Answered.
    Ok,
    /// Refused because of the client's request.
    Refused,
    /// Failed because of a bug, or because a dependency was unavailable.
    Failed,
    /// The request was canceled.
    Canceled,
}

/// Counts of the requests that a process sends.
#[derive(Debug)]
pub(crate) struct AskMetrics {
    /// Round trips.
    pub(crate) calls: Calls,
    /// Requests sent again while an earlier attempt was unanswered.
    pub(crate) hedges: Counter,
    /// Hedges that were answered first.
    pub(crate) hedges_won: Counter,
}

impl Default for AskMetrics {
    fn default() -> Self {
        Self { calls: Calls::new(SYSTEM), hedges: Counter::default(), hedges_won: Counter::default() }
    }
}

impl AskMetrics {
    /// Adds the counts to a registry.
    pub(crate) fn register(&self, registry: &mut Registry) {
        self.calls.clone().register(registry, &list::RPC_CLIENT_CALL_DURATION);
        registry.add(&list::BUS_HEDGES, self.hedges.clone());
        registry.add(&list::BUS_HEDGES_WON, self.hedges_won.clone());
    }
}

/// Counts of the requests that a process answers.
#[derive(Debug, Clone)]
pub(crate) struct RequestMetrics {
    calls: Calls,
    sizes: LabeledFamily<1, Histogram>,
    /// Requests refused because the service has reached its limit.
    pub(crate) shed: Counter,
    /// Requests that wait for their actor.
    pub(crate) mailbox: Gauge,
}

impl RequestMetrics {
    /// Makes the counts and adds them to a registry.
    pub(crate) fn register(registry: &mut Registry, load: &Rc<Load>) -> Self {
        let calls = Calls::new(SYSTEM).register(registry, &list::RPC_SERVER_CALL_DURATION);
        let sizes = Family::new_with_constructor(bytes_histogram as fn() -> Histogram);
        let sizes = registry.added(&list::RPC_SERVER_RESPONSE_SIZE, sizes);
        let shed = registry.added(&list::REQUESTS_SHED, Counter::default());
        let in_flight = registry.added(&list::REQUESTS_IN_FLIGHT, Gauge::<i64>::default());
        let average = registry.added(&list::REQUESTS_LOAD, Gauge::<f64, AtomicU64>::default());
        let load = Rc::clone(load);
        registry.on_scrape(move || {
            in_flight.set(i64::try_from(load.now()).unwrap_or(i64::MAX));
            average.set(load.average(Instant::now()));
        });
        Self { calls, sizes, shed, mailbox: registry.added(&list::MAILBOX_DEPTH, Gauge::default()) }
    }

    /// Creates the metrics of an operation, so that they are exported as 0 before its first request.
    pub(crate) fn show(&self, operation: &'static str) {
        self.calls.histogram(operation, 0);
        self.sizes.get_or_create_owned(&[("rpc_method", operation)]);
    }

    /// Counts a request that ended with a gRPC code.
    pub(crate) fn record_call(&self, operation: &'static str, code: u8, took: Duration) {
        self.calls.histogram(Cow::Borrowed(operation), code).observe(took.as_secs_f64());
    }

    /// Counts a reply's bytes.
    pub(crate) fn record_size(&self, operation: &'static str, bytes: usize) {
        self.sizes.get_or_create(&[("rpc_method", operation)]).observe(bytes as f64);
    }
}
