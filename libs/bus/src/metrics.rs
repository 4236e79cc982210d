//! What a process counts about the requests that it puts on the bus, and about those that it answers.

use std::{
    borrow::Cow,
    rc::Rc,
    sync::atomic::AtomicU64,
    time::{Duration, Instant},
};

use mesh_telemetry::{Calls, LabeledFamily, Registry, bytes_histogram, list};
use prometheus_client::metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram};

use crate::{connection::Bus, load::Load, pace::Budget};

/// What telemetry calls the asks on the bus.
const SYSTEM: &str = "mesh";

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Answered.
    Ok,
    /// Refused: the client's mistake, or there is no such thing.
    Refused,
    /// Failed: ours, or something was away.
    Failed,
    /// The asker went away.
    Canceled,
}

/// What a process spends on asking.
#[derive(Debug)]
pub(crate) struct Asking {
    pub(crate) budget: Budget,
    /// Round trips.
    pub(crate) calls: Calls,
    /// Asks put beside one that was still unanswered.
    pub(crate) extras: Counter,
    /// Those of them that were answered first.
    pub(crate) extras_won: Counter,
}

impl Default for Asking {
    fn default() -> Self {
        Self {
            budget: Budget::default(),
            calls: Calls::new(SYSTEM),
            extras: Counter::default(),
            extras_won: Counter::default(),
        }
    }
}

impl Bus {
    /// Adds the counts of asking and pulling to what is shown.
    pub fn register_metrics(&self, registry: &mut Registry) {
        let Asking { calls, extras, extras_won, .. } = &self.shared.asking;
        calls.register(registry, &list::RPC_CLIENT_CALL_DURATION);
        registry.add(&list::BUS_HEDGES, extras.clone());
        registry.add(&list::BUS_HEDGES_WON, extras_won.clone());
        self.shared.pulling.register(registry);
    }
}

/// Counts of the requests that a process answers.
#[derive(Debug, Clone)]
pub(crate) struct RequestMetrics {
    calls: Calls,
    sizes: LabeledFamily<1, Histogram>,
    /// Turned away for want of room.
    pub(crate) shed: Counter,
    /// Requests that wait for their actor.
    pub(crate) mailbox: Gauge,
}

impl RequestMetrics {
    /// Adds the counts to what is shown.
    pub(crate) fn register(registry: &mut Registry, load: &Rc<Load>) -> Self {
        let metrics = Self {
            calls: Calls::new(SYSTEM),
            sizes: Family::new_with_constructor(bytes_histogram),
            shed: Counter::default(),
            mailbox: Gauge::default(),
        };
        metrics.calls.register(registry, &list::RPC_SERVER_CALL_DURATION);
        registry.add(&list::RPC_SERVER_RESPONSE_SIZE, metrics.sizes.clone());
        registry.add(&list::REQUESTS_SHED, metrics.shed.clone());
        let (in_flight, average) = (Gauge::<i64>::default(), Gauge::<f64, AtomicU64>::default());
        registry.add(&list::REQUESTS_IN_FLIGHT, in_flight.clone());
        registry.add(&list::REQUESTS_LOAD, average.clone());
        let load = Rc::clone(load);
        registry.on_scrape(move || {
            in_flight.set(i64::try_from(load.now()).unwrap_or(i64::MAX));
            average.set(load.average(Instant::now()));
        });
        registry.add(&list::MAILBOX_DEPTH, metrics.mailbox.clone());
        metrics
    }

    /// Shows an operation before it was ever asked for.
    pub(crate) fn begin(&self, operation: &'static str) {
        self.calls.histogram(operation, 0);
        self.sizes.get_or_create_owned(&[("rpc_method", operation)]);
    }

    /// Counts a request that ended with a gRPC code.
    pub(crate) fn ended(&self, operation: &'static str, code: u8, took: Duration) {
        self.calls.histogram(Cow::Borrowed(operation), code).observe(took.as_secs_f64());
    }

    /// Counts a reply's bytes.
    pub(crate) fn replied(&self, operation: &'static str, bytes: usize) {
        self.sizes.get_or_create(&[("rpc_method", operation)]).observe(bytes as f64);
    }
}
