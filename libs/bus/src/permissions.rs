//! Who may do what on the bus: one user for each workload, one for the edge, one for those who look at the whole. What is
//! not allowed here is refused by the server. Read off the contract, so that a new operation needs no line here.
//!
//! The edge may ask. A workload may answer what belongs to it, and its replies go only to where askers of *it* expect
//! them: an [inbox](inbox_prefix) says behind its own name which workload was asked.

use proto_msgs::Contract;

use crate::{
    Announcement, NodeStatus, SegmentStatus, StoreStatus,
    replicas::{BEATS, PROBE_NAME},
    stats::VERBS,
};

/// The user of the edge.
pub const EDGE: &str = "edge";

/// The user of the command line, of monitoring and of tests of the whole.
pub const OPERATOR: &str = "operator";

/// Announcements that only some tell and only some hear.
const NEWS: [(&str, &[&str], &[&str]); 3] = [
    (StoreStatus::TOPIC, &["node-info"], &[EDGE]),
    (NodeStatus::TOPIC, &["node-info"], &[EDGE, "query", "node-info"]),
    (SegmentStatus::TOPIC, &["export"], &["export"]),
];

/// A user of the bus and what it may do. Subjects may have wildcards; behind a space comes the queue group as which
/// alone it may subscribe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// Its name: that of its workload.
    pub name: String,
    /// Subjects to which it may publish.
    pub publish: Vec<String>,
    /// Subjects to which it may subscribe.
    pub subscribe: Vec<String>,
}

/// Beginning of the subjects on which a user gets replies.
pub fn inbox_prefix(user: &str) -> String {
    format!("_INBOX_{user}")
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

/// All users of a mesh whose subjects begin with `prefix`; with `*` those of every mesh on one server.
pub fn users(prefix: &str) -> Vec<User> {
    let mut users = vec![edge(prefix)];
    users.extend(workloads().into_iter().map(|workload| worker(prefix, workload)));
    users.push(operator(prefix));
    users
}

/// The `authorization` block of a nats-server's configuration. `password` writes that of a user as the configuration
/// wants it: quoted, or as a variable.
pub fn authorization(prefix: &str, password: impl Fn(&str) -> String) -> String {
    let list = |subjects: &[String]| -> String {
        subjects.iter().map(|subject| format!("          {subject:?}\n")).collect()
    };
    let users: String = users(prefix)
        .iter()
        .map(|User { name, publish, subscribe }| {
            format!(
                "    {{\n      user: {name:?}\n      password: {}\n      permissions: {{\n        publish: [\n{}        ]\n        subscribe: [\n{}        ]\n      }}\n    }}\n",
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
    subscribe.extend(heard_by(prefix, EDGE));
    subscribe.push(format!("{prefix}.events.{BEATS}.*"));
    let mut publish = asked(prefix);
    // It shows who serves.
    publish.extend(workloads().iter().map(|workload| format!("$SRV.STATS.{workload}")));
    User { name: EDGE.to_owned(), publish, subscribe }
}

fn worker(prefix: &str, workload: &str) -> User {
    let own = operations(workload).map(|operation| format!("{prefix}.{workload}.{operation}"));
    // One that leaves sends itself empty messages behind the last request.
    let mut publish: Vec<String> = own.clone().collect();
    publish.push(format!("{prefix}.{workload}.{PROBE_NAME}.*"));
    publish.push(format!("{prefix}.events.{BEATS}.{workload}"));
    publish.extend(
        NEWS.iter()
            .filter(|(_, told_by, _)| told_by.contains(&workload))
            .map(|(topic, ..)| format!("{prefix}.events.{topic}")),
    );
    publish.push(format!("{}.*.{workload}.>", inbox_prefix(EDGE)));
    // Its tools have inboxes of their own form.
    publish.push(format!("{}.>", inbox_prefix(OPERATOR)));
    let mut subscribe: Vec<String> = own.map(|subject| format!("{subject} {workload}")).collect();
    subscribe.push(format!("{prefix}.{workload}.*.*"));
    subscribe.push(format!("{prefix}.cancel.{workload}"));
    for verb in VERBS {
        subscribe.extend(
            ["", &format!(".{workload}"), &format!(".{workload}.*")].map(|of| format!("$SRV.{verb}{of}")),
        );
    }
    subscribe.extend(heard_by(prefix, workload));
    subscribe.push(format!("{}.>", inbox_prefix(workload)));
    User { name: workload.to_owned(), publish, subscribe }
}

fn operator(prefix: &str) -> User {
    let mut publish = asked(prefix);
    publish.push("$SRV.>".to_owned());
    let subscribe = vec![format!("{}.>", inbox_prefix(OPERATOR)), format!("{prefix}.events.>")];
    User { name: OPERATOR.to_owned(), publish, subscribe }
}

/// Where asks go: to the queue group, to a replica by name, with the question whether it listens, and what takes an ask
/// back.
fn asked(prefix: &str) -> Vec<String> {
    let mut subjects = Vec::new();
    for workload in workloads() {
        for operation in operations(workload) {
            subjects.push(format!("{prefix}.{workload}.{operation}"));
            subjects.push(format!("{prefix}.{workload}.{operation}.*"));
        }
        subjects.push(format!("{prefix}.{workload}.{PROBE_NAME}.*"));
        subjects.push(format!("{prefix}.cancel.{workload}"));
    }
    subjects
}

fn heard_by(prefix: &str, user: &str) -> impl Iterator<Item = String> {
    let heard = NEWS.iter().filter(move |(_, _, heard_by)| heard_by.contains(&user));
    heard.map(move |(topic, ..)| format!("{prefix}.events.{topic}"))
}

fn operations(workload: &str) -> impl Iterator<Item = &'static str> + Clone {
    let of_workload =
        Contract::get().operations().iter().filter(move |operation| operation.workload == workload);
    of_workload.map(|operation| operation.name.as_str())
}
