//! An operation as the target of requests.

use std::sync::Arc;

use async_nats::Subject;
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
    /// Durations of round trips with a reply.
    pub(crate) reply_seconds: Histogram,
}
