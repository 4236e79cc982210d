//! One trace covers edge, bus, service and the service's own requests.

use mesh_testbed::{Answer, Collector, Database, DevNode, Mesh, Taken, TakenSpan};
use mesh_tests::{Call, MeshClient, NO_CACHE, Rpc, Shared, access, fixture};
use serde_json::json;

use crate::telemetry::{SPAN, TRACE, traceparent, with_collector};

/// An expected span: service, kind, name.
type Step = (&'static str, &'static str, &'static str);

/// The spans of the trace, each the child of the one before; `None` until all of them have arrived.
fn chain<'a>(taken: &'a Taken, trace_id: &str, steps: &[Step]) -> Option<Vec<&'a TakenSpan>> {
    let trace = taken.trace(trace_id);
    let mut parent = SPAN.to_owned();
    let mut found = Vec::new();
    for (service, kind, name) in steps {
        let is_it = |span: &&&TakenSpan| {
            (span.service.as_str(), span.kind, span.name.as_str(), &span.parent_id)
                == (service, kind, name, &parent)
        };
        let span = trace.iter().find(is_it)?;
        parent.clone_from(&span.span_id);
        found.push(*span);
    }
    Some(found)
}

/// Waits until the chain is complete, since spans are exported in any order; returns all received spans.
async fn until_chain(collector: &Collector, trace_id: &str, steps: &[Step]) -> Taken {
    collector.until(|taken| chain(taken, trace_id, steps).is_some()).await
}

/// A mesh with a node, a segment for each block, and a collector that gets the traces that clients sample.
struct TracedMesh {
    collector: Collector,
    node: DevNode,
    database: Database,
    mesh: Mesh,
}

/// Runs a test on the mesh that these tests share, with its own trace id.
fn with_traced_mesh(test: impl AsyncFnOnce(&mut TracedMesh, &str)) {
    static MESH: Shared<TracedMesh> = Shared::new();
    let start = async || {
        let (collector, node, database) =
            tokio::join!(Collector::start(), DevNode::start(), fixture::database());
        let setup = with_collector(Mesh::configure(&database), &collector).env("MESH_NODE_URL", node.url());
        let setup = setup.env("MESH_RELAY_SIGNATURE_ALGO", "ed25519");
        let mesh = setup.env("MESH_HISTORY_INTERVAL_BLOCKS", "1").start().await;
        TracedMesh { collector, node, database, mesh }
    };
    let trace_id = format!("{:032x}", rand::random::<u128>());
    MESH.run(start, async |traced| test(traced, &trace_id).await);
}

async fn get(mesh: &Mesh, path: &str, trace: &str) -> Answer {
    MeshClient::new(mesh).get_with_all(path, &[("traceparent", trace), ("tracestate", "of=us")]).await
}

#[test]
fn a_read_is_one_trace_from_the_edge_to_the_database() {
    with_traced_mesh(async |TracedMesh { collector, mesh, .. }, trace_id| {
        let path = format!("/api/v2/withdrawal/{}", fixture::WITHDRAWAL);
        let answer = get(mesh, &path, &traceparent(trace_id, true)).await;
        assert_eq!(answer.status, 200);
        let steps = [
            ("edge", "SERVER", "GET /api/v2/withdrawal/{id}"),
            ("edge", "CLIENT", "query/GetWithdrawal"),
            ("query", "SERVER", "query/GetWithdrawal"),
            ("query", "CLIENT", "SELECT"),
        ];
        let taken = until_chain(collector, trace_id, &steps).await;
        let [edge, ask, answer, statement] = chain(&taken, trace_id, &steps).unwrap()[..] else {
            unreachable!()
        };
        for span in [edge, ask, answer, statement] {
            assert!(!span.has_failed && span.state == "of=us", "{span:?}");
        }
        assert_eq!(edge.attributes["http.response.status_code"], "200");
        assert_eq!(edge.attributes["url.path"], path);
        assert_eq!(edge.attributes["mesh.request_id"], answer.attributes["mesh.request_id"]);
        assert_eq!(answer.attributes["rpc.method"], "GetWithdrawal");
        assert_eq!(statement.attributes["db.system.name"], "postgresql");
        assert_eq!(statement.attributes["db.operation.name"], "SELECT");
        let shown = format!("{:?}", statement.attributes);
        assert!(!shown.contains(fixture::WITHDRAWAL) && !shown.contains("$1"), "{shown}");

        // The second answer comes from the edge's cache, and the trace shows that.
        get(mesh, &path, &traceparent(trace_id, true)).await;
        let is_edge = |span: &&&TakenSpan| span.kind == "SERVER" && span.service == "edge";
        collector.until(|taken| taken.trace(trace_id).iter().filter(is_edge).count() == 2).await;

        // A path that no route matches is not recorded.
        assert_eq!(get(mesh, "/text-of-a-client", &traceparent(trace_id, true)).await.status, 404);
        let is_unmatched = |span: &&TakenSpan| span.name == "GET" && span.trace_id == trace_id;
        let taken = collector.until(|taken| taken.spans.iter().any(|span| is_unmatched(&span))).await;
        let unmatched = taken.spans.iter().find(is_unmatched).unwrap();
        assert!(!format!("{:?}", unmatched.attributes).contains("text-of-a-client"), "{unmatched:?}");
    });
}

#[tokio::test]
async fn an_unsampled_trace_is_not_recorded_and_a_failure_is_marked() {
    let (collector, database) = (Collector::start().await, fixture::database().await);
    let setup = with_collector(Mesh::configure(&database), &collector).env(NO_CACHE.0, NO_CACHE.1);
    let mesh = setup.without(&["node-info"]).start().await;
    const UNSAMPLED_TRACE: &str = "11111111111111111111111111111111";
    get(&mesh, "/accounts", &traceparent(UNSAMPLED_TRACE, false)).await;
    assert_eq!(mesh.get("/accounts").await.status, 200);
    let missing = get(&mesh, "/api/v2/network/limits", &traceparent(TRACE, true)).await;
    assert_eq!(missing.status, 503);
    let steps =
        [("edge", "SERVER", "GET /api/v2/network/limits"), ("edge", "CLIENT", "node-info/GetNetworkLimits")];
    let taken = until_chain(&collector, TRACE, &steps).await;
    let [edge, ask] = chain(&taken, TRACE, &steps).unwrap()[..] else { unreachable!() };
    assert!(edge.has_failed && ask.has_failed);
    assert_eq!(ask.attributes["error.type"], "Unavailable");
    assert!(taken.spans.iter().all(|span| span.trace_id == TRACE), "{:#?}", taken.spans);
}

#[test]
fn a_failure_is_logged_with_the_ids_of_request_and_trace_recorded_or_not() {
    with_traced_mesh(async |TracedMesh { collector, database, mesh, .. }, trace_id| {
        let client = database.connect().await;
        client.batch_execute("ALTER TABLE delegations_current RENAME TO elsewhere").await.unwrap();
        const UNSAMPLED_TRACE: &str = "22222222222222222222222222222222";
        for (trace, is_sampled, id) in [(trace_id, true, "first"), (UNSAMPLED_TRACE, false, "second")] {
            let parent = traceparent(trace, is_sampled);
            let headers = [("x-request-id", id), ("traceparent", parent.as_str())];
            let failed = MeshClient::new(mesh).get_with_all("/api/v2/delegations", &headers).await;
            assert_eq!(failed.status, 500, "{failed:?}");
            let lines = access::json_lines(&mesh.service("query").log());
            let line = lines.iter().find(|line| line["request_id"] == id).expect("it is logged");
            access::assert_has(line, &json!({"trace_id": trace, "operation": "ListDelegations"}));
        }
        client.batch_execute("ALTER TABLE elsewhere RENAME TO delegations_current").await.unwrap();
        let is_statement = |span: &&TakenSpan| span.name == "SELECT" && span.trace_id == trace_id;
        let taken = collector.until(|taken| taken.spans.iter().any(|span| is_statement(&span))).await;
        let statement = taken.spans.iter().find(is_statement).unwrap();
        assert!(statement.has_failed && statement.attributes["error.type"] == "failed", "{statement:?}");
    });
}

#[test]
fn a_grpc_call_is_named_by_its_method() {
    with_traced_mesh(async |TracedMesh { collector, mesh, .. }, trace_id| {
        let called = Call::from_path("/accounts").unwrap();
        let request = called.with_metadata(&[("traceparent", &traceparent(trace_id, true))]);
        Rpc::connect(mesh).await.call_with(&called, request).await.unwrap();
        let steps = [
            ("edge", "SERVER", "api.v2.Query/ListAccounts"),
            ("edge", "CLIENT", "query/ListAccounts"),
            ("query", "SERVER", "query/ListAccounts"),
            ("query", "CLIENT", "SELECT"),
        ];
        let taken = until_chain(collector, trace_id, &steps).await;
        let attributes = &chain(&taken, trace_id, &steps).unwrap()[0].attributes;
        assert_eq!(attributes["rpc.system.name"], "grpc");
        assert_eq!(attributes["rpc.response.status_code"], "OK");
    });
}

#[test]
fn a_download_is_one_span_with_events_and_shows_the_object_store() {
    with_traced_mesh(async |TracedMesh { collector, mesh, .. }, trace_id| {
        MeshClient::new(mesh).until_sealed(&[(1, 1), (2, 2), (3, 3)]).await;
        let path = "/api/v2/networkhistory/export?table=TABLE_BLOCKS&fromBlock=1&toBlock=3";
        let download = get(mesh, path, &traceparent(trace_id, true)).await;
        assert_eq!(download.status, 200);
        const PULL: &str = "pull export/ExportNetworkHistory";
        let route = "GET /api/v2/networkhistory/export";
        let steps = [
            ("edge", "SERVER", route),
            ("edge", "CLIENT", PULL),
            ("export", "SERVER", "export/ExportNetworkHistory"),
            ("export", "CLIENT", "get object"),
        ];
        let taken = until_chain(collector, trace_id, &steps).await;
        let stream = chain(&taken, trace_id, &steps).unwrap()[1];
        // On a busy machine a pull may be repeated at another replica.
        let (Some((opened, later)), resumes) =
            (stream.events.split_first(), stream.events.len().saturating_sub(2))
        else {
            panic!("{stream:?}")
        };
        assert_eq!((opened.as_str(), later.last().map(String::as_str)), ("opened", Some("ended")));
        assert!(later[..resumes].iter().all(|event| event == "resumed"), "{stream:?}");
        let opening = [("edge", "SERVER", route), ("edge", "CLIENT", "export/ExportNetworkHistory")];
        assert!(chain(&taken, trace_id, &opening).is_some(), "{:#?}", taken.trace(trace_id));
        let pulls = taken.trace(trace_id).iter().filter(|span| span.parent_id == stream.span_id).count();
        assert!((1..=1 + resumes).contains(&pulls), "a span for the first pull and for each resume: {pulls}");
    });
}

#[test]
fn a_submission_is_one_trace_from_the_edge_to_the_node() {
    with_traced_mesh(async |TracedMesh { collector, node, mesh, .. }, trace_id| {
        let body = json!({"tx": node.transaction(1, "order"), "type": "TYPE_SYNC"}).to_string();
        let trace = traceparent(trace_id, true);
        let answer = MeshClient::new(mesh).post_with("/transaction", &[("traceparent", &trace)], body).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let call = "POST broadcast_tx_sync";
        let steps = [
            ("edge", "SERVER", "POST /transaction"),
            ("edge", "CLIENT", "tx-relay/SubmitTransaction"),
            ("tx-relay", "SERVER", "tx-relay/SubmitTransaction"),
            ("tx-relay", "CLIENT", call),
        ];
        let taken = until_chain(collector, trace_id, &steps).await;
        let to_node = chain(&taken, trace_id, &steps).unwrap()[3];
        assert_eq!(to_node.attributes["server.address"], "127.0.0.1");
    });
}

#[tokio::test]
async fn a_trace_that_begins_at_the_edge_is_named_in_the_access_log() {
    let (collector, database) = (Collector::start().await, fixture::database().await);
    let setup =
        with_collector(Mesh::configure(&database), &collector).env("OTEL_TRACES_SAMPLER", "always_on");
    let mesh = setup.env("MESH_EDGE_ACCESS_LOG", "all").start().await;
    let answer = MeshClient::new(&mesh).get(&format!("/api/v2/withdrawal/{}", fixture::WITHDRAWAL)).await;
    let http = access::line(&mesh, answer.header("x-request-id").unwrap()).await;
    Rpc::connect(&mesh).await.json(&Call::from_path("/accounts").unwrap()).await.unwrap();
    let grpc = access::line_with(&mesh, "a call", |line| line["operation"] == "ListAccounts").await;
    for (line, name) in [(http, "GET /api/v2/withdrawal/{id}"), (grpc, "api.v2.Query/ListAccounts")] {
        let trace = line["trace_id"].as_str().unwrap_or_else(|| panic!("{line}")).to_owned();
        let is_it = |span: &TakenSpan| span.service == "edge" && span.name == name && span.trace_id == trace;
        collector.until(|taken| taken.spans.iter().any(is_it)).await;
    }
}
