//! An operation as the target of requests.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use async_nats::Subject;
use mesh_problem::Problem;
use prometheus_client::metrics::histogram::Histogram;

use crate::{hedge::HedgeDelay, replicas::ReplicaGroup};

/// An operation to send requests to: its subject, its replicas, and the times of its replies. See
/// [`Bus::target`](crate::Bus::target).
#[derive(Debug)]
pub struct Target {
    pub(crate) workload: String,
    pub(crate) operation: String,
    pub(crate) subject: Subject,
    /// The subject of cancellations.
    pub(crate) cancel_subject: Subject,
    pub(crate) group: Arc<ReplicaGroup>,
    pub(crate) hedge_delay: HedgeDelay,
    /// Whether replies may be long: they come over their own connection.
    pub(crate) has_long_replies: AtomicBool,
    /// Durations of round trips with a reply.
    pub(crate) reply_seconds: Histogram,
}

impl Target {
    /// Lets replies come over the connection for long ones, so that short ones of other operations do not wait
    /// behind them.
    pub fn expect_long_replies(&self) {
        self.has_long_replies.store(true, Ordering::Relaxed);
    }

    /// The problem of a request that no replica listens for.
    pub(crate) fn no_replica(&self) -> Problem {
        Problem::unavailable(format!("no replica of {} answers this operation", self.workload))
    }
}
