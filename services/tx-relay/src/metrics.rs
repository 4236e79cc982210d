//! What the relay shows of its submissions.

use mesh_chassis::Registry;
use mesh_problem::{Code, Problem};
use prometheus_client::metrics::{counter::Counter, family::Family, gauge::Gauge};
use proto_msgs::v2::SubmitTransactionReply;

use crate::{fates::Strength, node::Condition};

/// Counts of the workload. Cloning shares them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Metrics {
    submissions: Family<[(&'static str, &'static str); 2], Counter>,
    remembered: Gauge,
    node: Gauge,
}

/// How a submission ended.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ended {
    /// The node took it.
    Accepted,
    /// The node checked it and refused.
    Refused,
    /// The node did not look at it.
    NotChecked,
    /// Nobody knows.
    Unknown,
    /// Answered from memory.
    Remembered,
    /// Joined one that was under way.
    Shared,
}

impl Ended {
    pub(crate) fn of(result: &Result<SubmitTransactionReply, Problem>) -> Self {
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
            Self::Remembered => "remembered",
            Self::Shared => "shared",
        }
    }
}

impl Metrics {
    /// Adds them to what `/metrics` shows.
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register(
            "mesh_relay_submissions",
            "Submissions by type and by how they ended",
            metrics.submissions.clone(),
        );
        registry.register(
            "mesh_relay_remembered",
            "Transactions whose fate is remembered",
            metrics.remembered.clone(),
        );
        registry.register(
            "mesh_relay_node",
            "How the consensus node is: 2 takes transactions, 1 catches up, 0 is away",
            metrics.node.clone(),
        );
        metrics
    }

    pub(crate) fn ended(&self, wanted: Strength, ended: Ended) {
        self.submissions.get_or_create_owned(&[("type", wanted.name()), ("outcome", ended.name())]).inc();
    }

    pub(crate) fn remembers(&self, fates: usize) {
        self.remembered.set(i64::try_from(fates).unwrap_or(i64::MAX));
    }

    pub(crate) fn node(&self, condition: Condition) {
        self.node.set(match condition {
            Condition::Takes => 2,
            Condition::CatchingUp => 1,
            Condition::Away => 0,
        });
    }
}
