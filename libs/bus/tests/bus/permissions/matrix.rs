//! Publishing and subscribing of every user to every subject: allowed as the table says, refused otherwise.

use std::{path::Path, time::Duration};

use mesh_bus::permissions::{DECODER, EDGE, INGEST, OPERATOR, users, workloads};
use mesh_launcher::{
    process::Process,
    servers::{Nats, NatsSettings, find_nats, start},
};
use proto_msgs::Contract;

use super::client::Client;

const READY_WITHIN: Duration = Duration::from_secs(30);

/// The users that send requests.
const ASKERS: [&str; 2] = [EDGE, OPERATOR];

/// The workload whose replicas request from each other.
const RELAY: &str = "tx-relay";

/// The users that listen for replicas.
const LISTENERS: [&str; 3] = [EDGE, OPERATOR, RELAY];

/// A subject, and the users that may publish and subscribe to it.
#[derive(Debug)]
struct Row {
    subject: String,
    queue: Option<String>,
    publish: Vec<String>,
    subscribe: Vec<String>,
}

#[derive(Default)]
struct Table(Vec<Row>);

impl Table {
    fn add(&mut self, subject: impl Into<String>, publish: &[&str], subscribe: &[&str]) {
        self.add_queue(subject, None, publish, subscribe);
    }

    fn add_queue(
        &mut self,
        subject: impl Into<String>,
        queue: Option<&str>,
        publish: &[&str],
        subscribe: &[&str],
    ) {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let (subject, queue) = (subject.into(), queue.map(str::to_owned));
        self.0.push(Row { subject, queue, publish: owned(publish), subscribe: owned(subscribe) });
    }
}

/// Requests and replies of every operation.
fn operations(table: &mut Table) {
    for operation in Contract::get().operations() {
        let (workload, name) = (operation.workload.as_str(), &operation.name);
        let subject = format!("mesh.{workload}.{name}");
        let other = if workload == "query" { "export" } else { "query" };
        // A draining replica publishes markers; requests may be subscribed to in the queue group only.
        table.add(&subject, &[EDGE, OPERATOR, workload], &[]);
        table.add_queue(&subject, Some(workload), &[EDGE, OPERATOR, workload], &[workload]);
        table.add_queue(&subject, Some(other), &[EDGE, OPERATOR, workload], &[]);
        table.add(format!("{subject}.R1"), &ASKERS, &[workload]);
        table.add(format!("{subject}.R1.more"), &[], &[]);
        table.add(format!("other.{workload}.{name}"), &[], &[]);
    }
}

/// What every workload has beside its operations.
fn of_workloads(table: &mut Table) {
    for workload in workloads() {
        table.add(format!("mesh.{workload}._.R1"), &[EDGE, OPERATOR, workload], &[workload]);
        table.add(format!("mesh.{workload}.*.R1"), &[], &[workload]);
        table.add(format!("mesh.{workload}.NoSuchOperation"), &[], &[]);
        // The server takes `>` for a token where `*` is allowed. Nothing is ever published further below.
        table.add(format!("mesh.{workload}.*.>"), &[], &[workload]);
        for too_much in ["*", ">", "*.*.*"] {
            table.add(format!("mesh.{workload}.{too_much}"), &[], &[]);
            table.add_queue(format!("mesh.{workload}.{too_much}"), Some(workload), &[], &[]);
        }
        // The replicas of the relay request from each other, too.
        let askers = if workload == RELAY { &[EDGE, OPERATOR, RELAY][..] } else { &ASKERS };
        table.add(format!("mesh.cancel.{workload}"), askers, &[workload]);
        table.add(format!("mesh.events.replicas.{workload}"), &[workload], &LISTENERS);
        for verb in ["PING", "INFO", "STATS"] {
            // The edge lists the replicas.
            let askers = if verb == "STATS" { &ASKERS[..] } else { &[OPERATOR] };
            table.add(format!("$SRV.{verb}.{workload}"), askers, &[workload]);
            table.add(format!("$SRV.{verb}.{workload}.R1"), &[OPERATOR], &[workload]);
            table.add(format!("$SRV.{verb}.{workload}.R1.more"), &[OPERATOR], &[]);
        }
    }
}

/// The permissions by the design, written independently of the product's code.
fn table() -> Table {
    let (mut table, workloads) = (Table::default(), workloads());
    operations(&mut table);
    of_workloads(&mut table);
    for verb in ["PING", "INFO", "STATS"] {
        let served: Vec<_> = workloads.iter().copied().chain([DECODER]).collect();
        table.add(format!("$SRV.{verb}"), &[OPERATOR], &served);
        table.add(format!("$SRV.{verb}.decoder"), &[OPERATOR], &[DECODER]);
        table.add(format!("$SRV.{verb}.decoder.R1"), &[OPERATOR], &[DECODER]);
        table.add(format!("$SRV.{verb}.edge"), &[OPERATOR], &[]);
    }
    table.add("mesh.events.head.store", &["node-info"], &ASKERS);
    table.add("mesh.events.head.node", &["node-info"], &[EDGE, OPERATOR, "query", "node-info", INGEST]);
    table.add("mesh.events.ingest.halted", &[INGEST], &[EDGE, OPERATOR]);
    table.add("mesh.events.edges", &[EDGE], &[EDGE, OPERATOR]);
    table.add("mesh.events.usage", &[EDGE], &[OPERATOR]);
    table.add("mesh.decode.Block", &[INGEST], &[DECODER]);
    table.add("mesh.decode.Other", &[], &[DECODER]);
    table.add("mesh.events.history.segments", &["export"], &[OPERATOR, "export"]);
    let woken: Vec<_> = workloads.iter().copied().chain([OPERATOR]).collect();
    table.add("mesh.events.wake", &LISTENERS, &woken);
    table.add("mesh.events.relay.results", &[RELAY], &[OPERATOR, RELAY]);
    table.add("mesh.tx-relay.RecallTransactions", &[], &[]);
    table.add("mesh.tx-relay.RecallTransactions.R1", &[RELAY], &[RELAY]);
    table.add("mesh.events.replicas", &[], &[OPERATOR]);
    for subject in ["edge", "*", ">"] {
        table.add(format!("mesh.events.replicas.{subject}"), &[], &LISTENERS);
    }
    table.add("mesh.events.whatever", &[], &[OPERATOR]);
    table.add("mesh.events.>", &[], &[OPERATOR]);
    inboxes(&mut table, &workloads);
    for nobodys in
        ["mesh", "mesh.>", "mesh.*.*", "mesh.*.*.R1", "*", ">", "*.>", "$SRV.>", "$SRV.*", "_INBOX.>"]
    {
        table.add(nobodys, &[], &[]);
    }
    for system in
        ["$SYS.REQ.SERVER.PING", "$SYS.REQ.USER.INFO", "$SYS.ACCOUNT.$G.CONNECT", "$JS.API.INFO", "$SYS.>"]
    {
        table.add(system, &[], &[]);
    }
    table
}

/// Only its owner may subscribe to an inbox. A workload may publish to the part of the edge's inbox for its
/// replies.
fn inboxes(table: &mut Table, workloads: &[&str]) {
    for user in users("mesh") {
        let (name, inbox) = (user.name.as_str(), format!("_INBOX_{}", user.name));
        // A decoder sends no requests.
        let owner = if name == DECODER { &[][..] } else { &[name] };
        let served: Vec<_> = workloads.iter().copied().chain([DECODER]).collect();
        let to_operator = match name {
            OPERATOR => &served[..],
            INGEST => &[DECODER],
            _ => &[],
        };
        table.add(format!("{inbox}.>"), &[], owner);
        table.add(format!("{inbox}.nuid"), to_operator, owner);
        for workload in workloads.iter().copied() {
            let answers = match name {
                EDGE => &[workload][..],
                RELAY if workload == RELAY => &[RELAY],
                _ => to_operator,
            };
            table.add(format!("{inbox}.nuid.{workload}.7"), answers, owner);
            table.add(format!("{inbox}.nuid.{workload}.77.7"), answers, owner);
            table.add(format!("{inbox}.{workload}.7"), to_operator, owner);
        }
        table.add(format!("{inbox}.nuid.edge.7"), to_operator, owner);
        table.add(inbox, &[], &[]);
    }
    table.add("_INBOX.nuid.7", &[], &[]);
}

async fn start_server(home: &Path) -> (Nats, Process) {
    let (program, settings) = (find_nats().unwrap(), NatsSettings::of("mesh"));
    let server =
        Nats::prepare(&program, &home.join("nats"), &home.join("nats.log"), &settings).await.unwrap();
    let process = start(&server.spec(), || server.ready(READY_WITHIN)).await.unwrap();
    (server, process)
}

#[tokio::test]
async fn every_user_may_do_on_every_subject_what_it_must_and_nothing_else() {
    let home = tempfile::tempdir().unwrap();
    let (server, process) = start_server(home.path()).await;
    let table = table();
    let (mut wrong, mut asked) = (Vec::new(), 0);
    for user in users("mesh") {
        let mut client = Client::connect(&server, &user.name).await;
        for row in &table.0 {
            let subject = &row.subject;
            let may = client.may_subscribe(subject, row.queue.as_deref()).await;
            if may != row.subscribe.contains(&user.name) {
                let in_group = row.queue.as_deref().unwrap_or("no group");
                wrong.push(format!("{} may subscribe to {subject} in {in_group}: {may}", user.name));
            }
            asked += 1;
            // Wildcards cannot be published to.
            if !subject.contains(['*', '>']) {
                let may = client.may_publish(subject).await;
                if may != row.publish.contains(&user.name) {
                    wrong.push(format!("{} may publish to {subject}: {may}", user.name));
                }
                asked += 1;
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {asked} are wrong:\n{}", wrong.len(), wrong.join("\n"));
    process.stop().await.unwrap();
}
