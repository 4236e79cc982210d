//! Names of subjects and inboxes. `prefix` is the first token of every subject of a mesh; it differs between
//! the meshes of one server.

use async_nats::Subject;

/// The verbs of the service convention (ADR-32).
pub(crate) const SERVICE_VERBS: [&str; 3] = ["PING", "INFO", "STATS"];

/// Topic of the replicas' heartbeats. The workload follows as the next token, so that permissions can bind
/// it.
pub(crate) const HEARTBEATS: &str = "replicas";

/// Topic of the messages that wake replicas: requests are sent, heartbeats are due.
pub(crate) const WAKE: &str = "wake";

/// The token instead of an operation in the subject of a probe. No operation has this name.
pub(crate) const PROBE: &str = "_";

/// Prefix of the subjects on which a user receives replies.
pub fn inbox_prefix(user: &str) -> String {
    format!("_INBOX_{user}")
}

/// The subject of an operation for the queue group of a workload: `mesh.<workload>.<Operation>`.
pub(crate) fn operation(prefix: &str, workload: &str, operation: &str) -> String {
    format!("{prefix}.{workload}.{operation}")
}

/// The subject of an operation for one replica.
pub(crate) fn direct(queue_subject: &str, replica: &str) -> Subject {
    format!("{queue_subject}.{replica}").into()
}

/// The subject of cancellations: a message there names a request that its sender no longer waits for.
pub(crate) fn cancel(prefix: &str, workload: &str) -> String {
    format!("{prefix}.cancel.{workload}")
}

/// The subject of an announcement.
pub(crate) fn event(prefix: &str, topic: &str) -> String {
    format!("{prefix}.events.{topic}")
}
