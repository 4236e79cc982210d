//! Metrics of submissions and of calls to nodes.

use std::time::Duration;

use http::Uri;
use mesh_problem::{Code, Problem};
use mesh_telemetry::{Registry, list, seconds_histogram};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
};
use proto_msgs::v2::SubmitTransactionReply;

use crate::{condition::Condition, result_cache::Finality};

/// Metrics of the workload. Cloning shares them.
#[derive(Debug, Clone)]
pub(crate) struct Metrics {
    submissions: Family<[(&'static str, &'static str); 2], Counter>,
    cached_results: Gauge,
    node: Gauge,
    calls: Family<Call, Histogram, fn() -> Histogram>,
}

/// Labels of a call to a node; the error is empty when there was an answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Call {
    http_request_method: &'static str,
    server_address: String,
    server_port: Option<u16>,
    rpc_method: &'static str,
    error_type: &'static str,
}

/// How a submission ended: the label `outcome`.
#[derive(Debug, Clone, Copy)]
pub(crate) enum OutcomeLabel {
    /// The node accepted it.
    Accepted,
    /// The node checked and refused it.
    Refused,
    /// The node did not check it.
    NotChecked,
    /// The node did not answer: the transaction may be included.
    Unknown,
    /// Answered from the result cache.
    Cached,
    /// Joined an equal submission in flight.
    Shared,
}

impl OutcomeLabel {
    const ALL: [Self; 6] =
        [Self::Accepted, Self::Refused, Self::NotChecked, Self::Unknown, Self::Cached, Self::Shared];

    pub(crate) fn from_result(result: &Result<SubmitTransactionReply, Problem>) -> Self {
        match result {
            Ok(reply) if reply.success => Self::Accepted,
            Ok(_) => Self::Refused,
            Err(problem) if problem.code == Code::DeadlineExceeded => Self::Unknown,
            Err(_) => Self::NotChecked,
        }
    }

    /// Its name in metrics.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Refused => "refused",
            Self::NotChecked => "not_checked",
            Self::Unknown => "unknown",
            Self::Cached => "remembered",
            Self::Shared => "shared",
        }
    }
}

impl Metrics {
    /// Registers the metrics.
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let calls = Family::new_with_constructor(seconds_histogram as fn() -> Histogram);
        let metrics = Self {
            submissions: registry.added(&list::RELAY_SUBMISSIONS, Family::default()),
            cached_results: registry.added(&list::RELAY_REMEMBERED, Gauge::default()),
            node: registry.added(&list::RELAY_NODE, Gauge::default()),
            calls: registry.added(&list::HTTP_CLIENT_REQUEST_DURATION, calls),
        };
        for required in Finality::ALL {
            for outcome in OutcomeLabel::ALL {
                metrics.submissions(required, outcome);
            }
        }
        metrics
    }

    /// Counts a submission that ended.
    pub(crate) fn count_submission(&self, required: Finality, outcome: OutcomeLabel) {
        self.submissions(required, outcome).inc();
    }

    /// The counter of submissions of this type with this outcome.
    fn submissions(&self, required: Finality, outcome: OutcomeLabel) -> Counter {
        self.submissions.get_or_create_owned(&[("type", required.name()), ("outcome", outcome.name())])
    }

    /// Counts a call to a node; `error` is empty when there was an answer.
    pub(crate) fn record_call(&self, node: &Uri, method: &'static str, error: &'static str, took: Duration) {
        let labels = Call {
            http_request_method: "POST",
            server_address: node.host().unwrap_or_default().to_owned(),
            server_port: node.port_u16(),
            rpc_method: method,
            error_type: error,
        };
        self.calls.get_or_create_owned(&labels).observe(took.as_secs_f64());
    }

    pub(crate) fn set_cached_results(&self, results: usize) {
        self.cached_results.set(i64::try_from(results).unwrap_or(i64::MAX));
    }

    pub(crate) fn set_condition(&self, condition: Condition) {
        self.node.set(match condition {
            Condition::Takes => 2,
            Condition::CatchingUp => 1,
            Condition::Foreign(_) | Condition::Away => 0,
        });
    }
}
