//! Names of subjects and inboxes. `prefix` is the first token of every subject of a mesh, by which several
//! meshes share one server.

use async_nats::Subject;

/// The questions of the service convention (ADR-32).
pub(crate) const SERVICE_VERBS: [&str; 3] = ["PING", "INFO", "STATS"];

/// Topic of the replicas' heartbeats. The workload follows as the next token, so that permissions can bind
/// it.
pub(crate) const HEARTBEATS: &str = "replicas";

/// Stands in place of an operation where a replica is only asked whether it listens. No operation has this
/// name.
pub(crate) const PROBE: &str = "_";

/// Beginning of the subjects on which a user gets replies.
pub fn inbox_prefix(user: &str) -> String {
    format!("_INBOX_{user}")
}

/// Where the queue group of a workload takes an operation: `mesh.<workload>.<Operation>`.
pub(crate) fn operation(prefix: &str, workload: &str, operation: &str) -> String {
    format!("{prefix}.{workload}.{operation}")
}

/// Where one replica takes an operation.
pub(crate) fn direct(queue_subject: &str, replica: &str) -> Subject {
    format!("{queue_subject}.{replica}").into()
}

/// Where an asker tells all replicas of a workload that it no longer waits for a reply.
pub(crate) fn cancel(prefix: &str, workload: &str) -> String {
    format!("{prefix}.cancel.{workload}")
}

/// Where an announcement is published.
pub(crate) fn event(prefix: &str, topic: &str) -> String {
    format!("{prefix}.events.{topic}")
}
