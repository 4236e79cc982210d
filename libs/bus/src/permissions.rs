//! The permissions on the bus: one user for each workload, one for the edge, one for operators. The server
//! refuses what is not allowed here. Derived from the contract, so that a new operation needs no line here.
//!
//! The edge may send requests. A workload may answer its own operations, and reply only to requests that were
//! sent to it: the subject of a reply contains the workload as a token after the [inbox](inbox_prefix).

use proto_msgs::Contract;

pub use crate::subjects::inbox_prefix;
use crate::{
    announcement::{
        Announcement, EdgePresence, IngestHalt, KeyUsage, NodeStatus, RELAY_RESULTS, SegmentStatus,
        StoreStatus,
    },
    subjects::{self, HEARTBEATS, PROBE, SERVICE_VERBS, WAKE},
};

/// The user of the edge.
pub const EDGE: &str = "edge";

/// The user of the command line, of monitoring and of the mesh tests.
pub const OPERATOR: &str = "operator";

/// The user of the workload that writes the store. It answers no operation.
pub const INGEST: &str = "ingest";

/// The user of decoders, which turn blocks into rows.
pub const DECODER: &str = "decoder";

/// The token of a decoder's subjects.
const DECODE: &str = "decode";

/// Topics of announcements, the users that publish each, and those that subscribe to it.
const TOPICS: [(&str, &[&str], &[&str]); 7] = [
    (RELAY_RESULTS, &["tx-relay"], &["tx-relay"]),
    (StoreStatus::TOPIC, &["node-info"], &[EDGE]),
    (NodeStatus::TOPIC, &["node-info"], &[EDGE, "query", "node-info", INGEST]),
    (SegmentStatus::TOPIC, &["export"], &["export"]),
    (IngestHalt::TOPIC, &[INGEST], &[EDGE]),
    (EdgePresence::TOPIC, &[EDGE], &[EDGE]),
    (KeyUsage::TOPIC, &[EDGE], &[]),
];

/// Operations that the replicas of a workload request from each other by name, with their workloads. No client
/// can request them.
const PEER_OPERATIONS: [(&str, &str); 1] = [("tx-relay", "RecallTransactions")];

/// A user of the bus and what it may do. Subjects may have wildcards. A subject followed by a space and a
/// queue group may be subscribed to only as a member of that group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// Its name: that of its workload.
    pub name: String,
    /// Subjects to which it may publish.
    pub publish: Vec<String>,
    /// Subjects to which it may subscribe.
    pub subscribe: Vec<String>,
}

/// The workloads that answer on the bus, in the order of the contract.
pub fn workloads() -> Vec<&'static str> {
    let mut workloads: Vec<&str> = Vec::new();
    for operation in Contract::get().operations() {
        if !workloads.contains(&operation.workload.as_str()) {
            workloads.push(&operation.workload);
        }
    }
    workloads
}

/// All users of a mesh with this `prefix` of subjects; with `*`, of every mesh on one server.
pub fn users(prefix: &str) -> Vec<User> {
    let mut users = vec![edge(prefix)];
    users.extend(workloads().into_iter().map(|workload| worker(prefix, workload)));
    users.extend([ingest(prefix), decoder(prefix), operator(prefix)]);
    users
}

/// The `authorization` block of a nats-server's configuration. `password` writes a user's password as the
/// configuration needs it: quoted, or as a variable.
pub fn authorization(prefix: &str, password: impl Fn(&str) -> String) -> String {
    let list = |subjects: &[String]| -> String {
        subjects.iter().map(|subject| format!("          {subject:?}\n")).collect()
    };
    let users: String = users(prefix)
        .iter()
        .map(|User { name, publish, subscribe }| {
            format!(
                "    {{\n      user: {name:?}\n      password: {}\n      permissions: {{\n        publish: [\n{}\
                 \x20       ]\n        subscribe: [\n{}        ]\n      }}\n    }}\n",
                password(name),
                list(publish),
                list(subscribe),
            )
        })
        .collect();
    format!("authorization {{\n  users: [\n{users}  ]\n}}\n")
}

fn edge(prefix: &str) -> User {
    let mut subscribe = vec![format!("{}.>", inbox_prefix(EDGE))];
    subscribe.extend(topics_of(prefix, EDGE));
    subscribe.push(format!("{prefix}.events.{HEARTBEATS}.*"));
    let mut publish = ask_subjects(prefix);
    // The edge's status page lists the replicas.
    publish.extend(workloads().iter().map(|workload| format!("$SRV.STATS.{workload}")));
    publish.extend(published_by(prefix, EDGE));
    User { name: EDGE.to_owned(), publish, subscribe }
}

fn worker(prefix: &str, workload: &str) -> User {
    let own = operations(workload).map(|operation| subjects::operation(prefix, workload, operation));
    // A draining replica sends markers to its own subscription.
    let mut publish: Vec<String> = own.clone().collect();
    publish.push(format!("{prefix}.{workload}.{PROBE}.*"));
    publish.push(format!("{prefix}.events.{HEARTBEATS}.{workload}"));
    publish.extend(published_by(prefix, workload));
    publish.push(format!("{}.*.{workload}.>", inbox_prefix(EDGE)));
    // The tools of NATS make inboxes of another form.
    publish.push(format!("{}.>", inbox_prefix(OPERATOR)));
    let mut subscribe: Vec<String> = own.map(|subject| format!("{subject} {workload}")).collect();
    subscribe.push(format!("{prefix}.{workload}.*.*"));
    subscribe.push(subjects::cancel(prefix, workload));
    subscribe.push(subjects::event(prefix, WAKE));
    subscribe.extend(service_subjects(workload));
    subscribe.extend(topics_of(prefix, workload));
    subscribe.push(format!("{}.>", inbox_prefix(workload)));
    if peer_operations(workload).next().is_some() {
        publish.extend(peer_operations(workload).map(|name| format!("{prefix}.{workload}.{name}.*")));
        publish.push(subjects::cancel(prefix, workload));
        publish.push(subjects::event(prefix, WAKE));
        publish.push(format!("{}.*.{workload}.>", inbox_prefix(workload)));
        subscribe.push(format!("{prefix}.events.{HEARTBEATS}.*"));
    }
    User { name: workload.to_owned(), publish, subscribe }
}

fn ingest(prefix: &str) -> User {
    let mut subscribe: Vec<String> = topics_of(prefix, INGEST).collect();
    subscribe.push(format!("{}.>", inbox_prefix(INGEST)));
    let mut publish = vec![format!("{prefix}.{DECODE}.Block")];
    publish.extend(published_by(prefix, INGEST));
    User { name: INGEST.to_owned(), publish, subscribe }
}

fn decoder(prefix: &str) -> User {
    let publish = [INGEST, OPERATOR].map(|user| format!("{}.>", inbox_prefix(user))).into();
    let mut subscribe = vec![format!("{prefix}.{DECODE}.>")];
    subscribe.extend(service_subjects(DECODER));
    User { name: DECODER.to_owned(), publish, subscribe }
}

fn operator(prefix: &str) -> User {
    let mut publish = ask_subjects(prefix);
    publish.push("$SRV.>".to_owned());
    let subscribe = vec![format!("{}.>", inbox_prefix(OPERATOR)), format!("{prefix}.events.>")];
    User { name: OPERATOR.to_owned(), publish, subscribe }
}

/// The subjects on which a service is asked what it is and does: with all others, by its name, and by that of a
/// replica.
fn service_subjects(name: &str) -> impl Iterator<Item = String> {
    SERVICE_VERBS.into_iter().flat_map(move |verb| {
        ["", &format!(".{name}"), &format!(".{name}.*")].map(|of| format!("$SRV.{verb}{of}"))
    })
}

/// Subjects for sending requests: operations of queue groups and of single replicas, probes, cancellations,
/// and waking replicas.
fn ask_subjects(prefix: &str) -> Vec<String> {
    let mut all = Vec::new();
    for workload in workloads() {
        for operation in operations(workload) {
            all.push(subjects::operation(prefix, workload, operation));
            all.push(format!("{prefix}.{workload}.{operation}.*"));
        }
        all.push(format!("{prefix}.{workload}.{PROBE}.*"));
        all.push(subjects::cancel(prefix, workload));
    }
    all.push(subjects::event(prefix, WAKE));
    all
}

fn published_by(prefix: &str, user: &str) -> impl Iterator<Item = String> {
    let topics = TOPICS.iter().filter(move |(_, publishers, _)| publishers.contains(&user));
    topics.map(move |(topic, ..)| subjects::event(prefix, topic))
}

fn topics_of(prefix: &str, user: &str) -> impl Iterator<Item = String> {
    let topics = TOPICS.iter().filter(move |(_, _, subscribers)| subscribers.contains(&user));
    topics.map(move |(topic, ..)| subjects::event(prefix, topic))
}

fn peer_operations(workload: &str) -> impl Iterator<Item = &'static str> + Clone {
    PEER_OPERATIONS.iter().filter(move |(of, _)| *of == workload).map(|(_, name)| *name)
}

fn operations(workload: &str) -> impl Iterator<Item = &'static str> + Clone {
    let of_workload =
        Contract::get().operations().iter().filter(move |operation| operation.workload == workload);
    of_workload.map(|operation| operation.name.as_str())
}
