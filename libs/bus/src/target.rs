//! An operation as its askers see it.

use std::sync::Arc;

use async_nats::Subject;
use prometheus_client::metrics::histogram::Histogram;

use crate::{hedge::HedgeDelay, replicas::ReplicaGroup};

/// An operation that can be asked: its subject, its replicas, how long its replies take. See
/// [`Bus::target`](crate::Bus::target).
#[derive(Debug)]
pub struct Target {
    pub(crate) workload: String,
    pub(crate) operation: String,
    pub(crate) subject: Subject,
    /// Where an asker tells the replicas that it no longer waits for a reply.
    pub(crate) cancel_subject: Subject,
    pub(crate) group: Arc<ReplicaGroup>,
    pub(crate) hedge_delay: HedgeDelay,
    /// Durations of round trips that brought a reply.
    pub(crate) reply_seconds: Histogram,
}
