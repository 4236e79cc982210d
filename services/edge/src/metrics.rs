//! The metrics of the edge.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock, atomic::AtomicI64},
    time::Duration,
};

use http::Method;
use mesh_telemetry::{Calls, LabeledFamily, Registry, bytes_histogram, list, seconds_histogram};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
};
use proto_msgs::{Contract, OperationInfo};

use crate::{
    admission::NO_OPERATION,
    ask::backend::NO_MEMORY,
    route::routes::{ALL_METHODS, READ_METHODS, methods},
};

/// The routes of the contract's operations, by their names.
static ROUTES: LazyLock<HashMap<&'static str, Route>> = LazyLock::new(|| {
    let route =
        |operation: &OperationInfo| Route { template: operation.template(), methods: methods(operation) };
    let operations = Contract::get().operations().iter();
    operations.map(|operation| (operation.name.as_str(), route(operation))).collect()
});

/// How an operation is called over HTTP.
struct Route {
    template: String,
    /// The methods that it serves, as the value of `Allow`.
    methods: &'static str,
}

/// The labels of a gauge that is absent until it has a value.
type Unlabelled = [(&'static str, &'static str); 0];

/// The metrics of one edge.
#[derive(Debug, Clone)]
pub(crate) struct Metrics {
    seconds: Family<Labels, Histogram, fn() -> Histogram>,
    answer_bytes: Family<Labels, Histogram, fn() -> Histogram>,
    body_bytes: LabeledFamily<1, Histogram>,
    /// Requests whose answer has not begun.
    pub(crate) active: Gauge,
    calls: Calls,
    reads: Family<[(&'static str, &'static str); 1], Counter>,
    limited: Family<[(&'static str, &'static str); 1], Counter>,
    shed: Family<[(&'static str, &'static str); 1], Counter>,
    refused: Family<[(&'static str, &'static str); 1], Counter>,
    /// Access log lines dropped because the queue was full.
    pub(crate) log_dropped: Counter,
    /// Open connections.
    pub(crate) connections: Gauge<i64, AtomicI64>,
    /// Open watches.
    pub(crate) watches: Gauge,
    /// Distinct questions that are watched.
    pub(crate) watched_questions: Gauge,
    /// Events sent to watchers.
    pub(crate) watch_events: Counter,
    /// States that a newer one replaced before they were sent to a watcher.
    pub(crate) watch_events_skipped: Counter,
    /// Watches that were closed because their client read nothing.
    pub(crate) watches_cut: Counter,
    /// Seconds until the certificate in force expires.
    certificate_expiry: Family<Unlabelled, Gauge>,
    /// Whether the certificate's files are faulty.
    certificate_faulty: Family<Unlabelled, Gauge>,
    /// Keys in force.
    keys: Family<Unlabelled, Gauge>,
    /// Whether the file of keys is faulty.
    keys_faulty: Family<Unlabelled, Gauge>,
    url_scheme: &'static str,
}

/// Labels of an HTTP request. Operation: `none` where no route matches; a page has no route of the contract.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    operation: &'static str,
    http_request_method: &'static str,
    http_route: &'static str,
    http_response_status_code: u16,
    url_scheme: &'static str,
}

/// Where the answer to a read came from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ReadSource {
    /// The fast path: the target is cached.
    FastPath,
    /// The cache.
    Cache,
    /// An equal call in flight.
    Shared,
    /// The service.
    Service,
    /// The cache, while the store is unavailable.
    Stale,
}

/// A limit of one client.
#[derive(Debug, Clone, Copy)]
pub(crate) enum LimitKind {
    /// Requests a second.
    Rate,
    /// Downloads at the same time.
    Downloads,
    /// Watches at the same time.
    Watches,
}

/// Metrics of a read for the fast path, without a lookup by labels.
#[derive(Debug)]
pub(crate) struct OperationMetrics {
    seconds: Histogram,
    bytes: Histogram,
    unchanged: Histogram,
    reads: Counter,
}

impl OperationMetrics {
    /// Counts an answer of the fast path: 200 with this many bytes, or 304 without any.
    pub(crate) fn observe_fast_path(&self, bytes: Option<usize>, took: Duration) {
        self.reads.inc();
        match bytes {
            Some(bytes) => {
                self.seconds.observe(took.as_secs_f64());
                self.bytes.observe(bytes as f64);
            }
            None => self.unchanged.observe(took.as_secs_f64()),
        }
    }
}

impl Metrics {
    /// Registers the metrics.
    pub(crate) fn register(registry: &mut Registry, url_scheme: &'static str) -> Self {
        let seconds = Family::new_with_constructor(seconds_histogram as fn() -> Histogram);
        let answer_bytes = Family::new_with_constructor(bytes_histogram as fn() -> Histogram);
        let body_bytes = Family::new_with_constructor(bytes_histogram as fn() -> Histogram);
        let metrics = Self {
            seconds: registry.added(&list::HTTP_SERVER_REQUEST_DURATION, seconds),
            answer_bytes: registry.added(&list::HTTP_SERVER_RESPONSE_BODY_SIZE, answer_bytes),
            body_bytes: registry.added(&list::HTTP_SERVER_REQUEST_BODY_SIZE, body_bytes),
            log_dropped: registry.added(&list::LOG_DROPPED, Counter::default()),
            active: registry.added(&list::HTTP_SERVER_ACTIVE_REQUESTS, Gauge::default()),
            calls: Calls::new("grpc").register(registry, &list::RPC_SERVER_CALL_DURATION),
            reads: registry.added(&list::EDGE_READS, Family::default()),
            refused: registry.added(&list::EDGE_REFUSED, Family::default()),
            limited: registry.added(&list::EDGE_LIMITED, Family::default()),
            shed: registry.added(&list::EDGE_SHED, Family::default()),
            connections: registry.added(&list::EDGE_CONNECTIONS, Gauge::default()),
            watches: registry.added(&list::EDGE_WATCHES, Gauge::default()),
            watched_questions: registry.added(&list::EDGE_WATCHED_QUESTIONS, Gauge::default()),
            watch_events: registry.added(&list::EDGE_WATCH_EVENTS, Counter::default()),
            watch_events_skipped: registry.added(&list::EDGE_WATCH_EVENTS_SKIPPED, Counter::default()),
            watches_cut: registry.added(&list::EDGE_WATCHES_CUT, Counter::default()),
            certificate_expiry: registry.added(&list::EDGE_CERTIFICATE_EXPIRY, Family::default()),
            certificate_faulty: registry.added(&list::EDGE_CERTIFICATE_FAULTY, Family::default()),
            keys: registry.added(&list::EDGE_KEYS, Family::default()),
            keys_faulty: registry.added(&list::EDGE_KEYS_FAULTY, Family::default()),
            url_scheme,
        };
        for source in [
            ReadSource::FastPath,
            ReadSource::Cache,
            ReadSource::Shared,
            ReadSource::Service,
            ReadSource::Stale,
        ] {
            metrics.read(source);
        }
        for limit in [LimitKind::Rate, LimitKind::Downloads, LimitKind::Watches] {
            metrics.limited(limit);
        }
        for reason in ["full", "address", "operation", NO_MEMORY] {
            metrics.shed(reason);
        }
        for reason in ["full", "address", "rate", "files"] {
            metrics.refused_connection(reason);
        }
        metrics
    }

    /// The metrics of a read.
    pub(crate) fn of_read(&self, operation: &'static str) -> Arc<OperationMetrics> {
        let of = |status| self.labels(operation, "GET", status);
        Arc::new(OperationMetrics {
            seconds: self.seconds.get_or_create_owned(&of(200)),
            bytes: self.answer_bytes.get_or_create_owned(&of(200)),
            unchanged: self.seconds.get_or_create_owned(&of(304)),
            reads: self.read(ReadSource::FastPath),
        })
    }

    /// Counts an answered HTTP request; the length of the answer is not always known.
    pub(crate) fn answered(
        &self,
        operation: &'static str,
        method: &Method,
        status: u16,
        bytes: Option<u64>,
        took: Duration,
    ) {
        let labels = self.labels(operation, served_method(operation, method), status);
        self.seconds.get_or_create(&labels).observe(took.as_secs_f64());
        if let Some(bytes) = bytes {
            self.answer_bytes.get_or_create(&labels).observe(bytes as f64);
        }
    }

    fn labels(&self, operation: &'static str, method: &'static str, status: u16) -> Labels {
        Labels {
            operation,
            http_request_method: method,
            http_route: ROUTES.get(operation).map_or("", |route| route.template.as_str()),
            http_response_status_code: status,
            url_scheme: self.url_scheme,
        }
    }

    /// Shows the certificate in force and whether its files hold a good one.
    pub(crate) fn show_certificate(&self, expires_in_s: i64, is_faulty: bool) {
        self.certificate_expiry.get_or_create_owned(&[]).set(expires_in_s);
        self.certificate_faulty.get_or_create_owned(&[]).set(is_faulty.into());
    }

    /// Shows the number of keys in force and whether their file is faulty.
    pub(crate) fn show_keys(&self, count: usize, is_faulty: bool) {
        self.keys.get_or_create_owned(&[]).set(i64::try_from(count).unwrap_or(i64::MAX));
        self.keys_faulty.get_or_create_owned(&[]).set(is_faulty.into());
    }

    /// Counts the body of a request.
    pub(crate) fn received_body(&self, operation: &'static str, bytes: usize) {
        self.body_bytes.get_or_create(&[("operation", operation)]).observe(bytes as f64);
    }

    /// Counts a gRPC call by its method, or `none`, and code.
    pub(crate) fn called(&self, method: &'static str, code: u8, took: Duration) {
        self.calls.histogram(method, code).observe(took.as_secs_f64());
    }

    /// The counter of requests that were refused by this limit.
    pub(crate) fn limited(&self, kind: LimitKind) -> Counter {
        let limit = match kind {
            LimitKind::Rate => "rate",
            LimitKind::Downloads => "exports",
            LimitKind::Watches => "watches",
        };
        self.limited.get_or_create_owned(&[("limit", limit)])
    }

    /// The counter of requests rejected without a free permit.
    pub(crate) fn shed(&self, reason: &'static str) -> Counter {
        self.shed.get_or_create_owned(&[("reason", reason)])
    }

    /// The counter of connections that were rejected.
    pub(crate) fn refused_connection(&self, reason: &'static str) -> Counter {
        self.refused.get_or_create_owned(&[("reason", reason)])
    }

    /// The counter of reads by source.
    pub(crate) fn read(&self, source: ReadSource) -> Counter {
        let source = match source {
            ReadSource::FastPath => "kept",
            ReadSource::Cache => "cache",
            ReadSource::Shared => "shared",
            ReadSource::Service => "service",
            ReadSource::Stale => "outdated",
        };
        self.reads.get_or_create_owned(&[("source", source)])
    }
}

/// The method, or `_OTHER` if the operation does not serve it: otherwise any client could multiply the series.
fn served_method(operation: &str, method: &Method) -> &'static str {
    let served = match ROUTES.get(operation) {
        Some(route) => route.methods,
        None if operation == NO_OPERATION => ALL_METHODS,
        None => READ_METHODS,
    };
    served.split(", ").find(|served| *served == method.as_str()).unwrap_or("_OTHER")
}
