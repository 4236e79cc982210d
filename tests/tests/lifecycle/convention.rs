//! What services publish about themselves on the bus by the NATS service convention (ADR-32), so that NATS
//! tools list them.

use std::collections::BTreeSet;

use async_nats::StatusCode;
use mesh_testbed::{Database, DevNode, Mesh};
use mesh_tests::fixture;
use proto_msgs::Contract;
use serde_json::Value;
use tokio::sync::OnceCell;

use crate::lifecycle::nats::{connect, question, replies};

/// The replies of this mesh's services; other meshes share the bus.
fn replies_of_mesh<'a>(said: &'a [Value], prefix: &str) -> Vec<&'a Value> {
    let is_ours = |one: &&Value| {
        let subject = one["endpoints"][0]["subject"].as_str();
        subject.is_some_and(|subject| subject.starts_with(&format!("{prefix}.")))
    };
    said.iter().filter(is_ours).collect()
}

fn assert_identity(said: &Value, kind: &str) {
    assert_eq!(said["type"], format!("io.nats.micro.v1.{kind}_response"), "{said}");
    for field in ["name", "id", "version"] {
        assert!(said[field].as_str().is_some_and(|text| !text.is_empty()), "no {field}: {said}");
    }
    let parts = said["version"].as_str().map(|version| version.split('.').count());
    assert_eq!(parts, Some(3), "no semantic version: {said}");
    assert!(said["metadata"].is_object(), "{said}");
}

/// Starts the mesh that these tests share, with a node, under the bus prefix `convention`.
async fn start_mesh() {
    static SHARED: OnceCell<(Database, Mesh, DevNode)> = OnceCell::const_new();
    let start = async || {
        let node = DevNode::start().await;
        let (database, mesh, _) = fixture::start(|setup| {
            setup.env("MESH_BUS_PREFIX", "convention").env("MESH_NODE_URL", node.url())
        })
        .await;
        (database, mesh, node)
    };
    SHARED.get_or_init(start).await;
}

#[tokio::test]
async fn every_service_publishes_its_identity_and_operations() {
    start_mesh().await;
    let bus = connect().await;
    let said = question(&bus, "$SRV.INFO").await;
    let infos = replies_of_mesh(&said, "convention");
    let names: BTreeSet<&str> = infos.iter().filter_map(|info| info["name"].as_str()).collect();
    assert_eq!(names, BTreeSet::from(["export", "node-info", "query", "tx-relay"]));
    for info in infos {
        assert_identity(info, "info");
        let workload = info["name"].as_str().expect("a name");
        // Each says what it does, so that a list of them can be read.
        assert_eq!(info["description"].as_str(), proto_msgs::description(workload), "{info}");
        let listed: BTreeSet<(String, String)> = info["endpoints"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|endpoint| {
                assert_eq!(endpoint["queue_group"], workload, "replicas share the work");
                let text = |name: &str| endpoint[name].as_str().unwrap_or_default().to_owned();
                (text("name"), text("subject"))
            })
            .collect();
        let operations = Contract::get().operations().iter().filter(|row| row.workload == workload);
        let declared =
            operations.map(|row| (row.name.clone(), format!("convention.{workload}.{}", row.name))).collect();
        assert_eq!(listed, declared, "{workload}");

        let id = info["id"].as_str().expect("an id");
        for verb in ["PING", "INFO", "STATS"] {
            let alone = question(&bus, &format!("$SRV.{verb}.{workload}.{id}")).await;
            assert_eq!(alone.len(), 1, "one replica has this id: {alone:?}");
            assert_identity(&alone[0], &verb.to_lowercase());
            assert_eq!(alone[0]["id"], id);
            for subject in [format!("$SRV.{verb}"), format!("$SRV.{verb}.{workload}")] {
                let all = question(&bus, &subject).await;
                assert!(all.iter().any(|one| one["id"] == id), "{subject} is not answered by {workload}");
            }
        }
    }
}

#[tokio::test]
async fn requests_and_failures_are_counted_by_operation() {
    let (database, _mesh, mesh_client) =
        fixture::start(|setup| setup.env("MESH_BUS_PREFIX", "counted")).await;
    for path in ["/accounts", "/accounts?party=network", "/api/v2/delegations"] {
        assert_eq!(mesh_client.get(path).await.status, 200);
    }
    database.connect().await.batch_execute("DROP TABLE withdrawals").await.expect("the table is there");
    let withdrawal = format!("/api/v2/withdrawal/{}", fixture::WITHDRAWAL);
    assert_eq!(mesh_client.get(&withdrawal).await.status, 500);

    let bus = connect().await;
    let said = question(&bus, "$SRV.STATS.query").await;
    let stats = replies_of_mesh(&said, "counted");
    assert_eq!(stats.len(), 1);
    let started = stats[0]["started"].as_str().expect("a time");
    assert!(started.contains('T') && started.ends_with('Z'), "{stats:?}");
    for (operation, requests, errors) in
        [("ListAccounts", 2, 0), ("ListDelegations", 1, 0), ("GetWithdrawal", 1, 1), ("GetOracleSpec", 0, 0)]
    {
        let endpoints = stats[0]["endpoints"].as_array().into_iter().flatten();
        let endpoint =
            endpoints.into_iter().find(|endpoint| endpoint["name"] == operation).expect("it is listed");
        let count = |name: &str| endpoint[name].as_u64().expect("a number");
        // At least: on a busy machine a read may be repeated.
        assert!(count("num_requests") >= requests, "{endpoint}");
        assert_eq!(count("num_errors") > 0, errors > 0, "{endpoint}");
        let (time, average) =
            (endpoint["processing_time"].as_u64(), endpoint["average_processing_time"].as_u64());
        assert_eq!(time.is_some_and(|ns| ns > 0), requests > 0, "{endpoint}");
        assert_eq!(average, time.map(|ns| ns / count("num_requests").max(1)), "{endpoint}");
        let has_error = endpoint["last_error"].as_str().is_some_and(|text| !text.is_empty());
        assert_eq!(has_error, errors > 0, "{endpoint}");
    }
}

#[tokio::test]
async fn an_error_on_the_bus_carries_the_conventions_headers_and_the_problem() {
    start_mesh().await;
    let bus = connect().await;
    for (payload, code, name, number) in [
        (&b"\xff"[..], 3, "InvalidArgument", 10015),
        (&[&[0x0a, 64][..], fixture::UNKNOWN_ID.as_bytes()].concat(), 5, "NotFound", 150_001),
    ] {
        let replies = replies(&bus, "convention.query.GetWithdrawal", payload).await;
        assert_eq!(replies.len(), 1, "one replica answers");
        let headers = replies[0].headers.as_ref().expect("the error is in headers");
        for (header, value) in
            [("Nats-Service-Error-Code", code.to_string()), ("Nats-Service-Error", name.into())]
        {
            assert_eq!(headers.get(header).map(|found| found.as_str()), Some(value.as_str()), "{headers:?}");
        }
        let problem: Value = serde_json::from_slice(&replies[0].payload).expect("a problem is JSON");
        let found = [&problem["code"], &problem["details"][0]["code"]];
        assert_eq!(found, [code, number], "{problem}");
    }
    let silence = replies(&bus, "convention.query.GetWithdrawal.unknown", b"").await;
    let statuses: Vec<_> = silence.iter().map(|reply| reply.status).collect();
    assert_eq!(statuses, [Some(StatusCode::NO_RESPONDERS)], "no responder is reported at once");
}
