//! The documented list of metrics equals what the services of a running mesh serve.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::Stdio,
    time::Duration,
};

use mesh_telemetry::{Kind, Metric, list};
use mesh_testbed::{
    Answer, Database, DevNode, Mesh, Service, http_client, retry,
    scripted_node::{Chain, Version, trade},
};
use mesh_tests::{Call, MeshClient, Rpc, fixture, say};
use serde_json::json;
use tokio::{io::AsyncWriteExt, process::Command};

/// The gauges whose names end like a histogram's samples.
const COUNT_GAUGES: [Metric; 3] =
    [list::DB_CLIENT_CONNECTION_COUNT, list::PROCESS_FILES, list::PROCESS_THREADS];

/// The labels of a request whose method its operation does not serve.
const NOT_SERVED: &str = r#"operation="ListAccounts",http_request_method="_OTHER",http_route="/accounts",http_response_status_code="405",url_scheme="https""#;

/// The labels of a read of a submission, which no client can send.
const NOT_READ: &str = r#"operation="SubmitTransaction",http_request_method="GET""#;

/// A metric family of a page: its type, and the union of its samples' labels.
#[derive(Debug, Default)]
struct Family {
    kind: String,
    labels: BTreeSet<String>,
}

fn families(page: &str) -> BTreeMap<String, Family> {
    let mut families = BTreeMap::<String, Family>::new();
    let mut current = String::new();
    for line in page.lines() {
        if let Some(typed) = line.strip_prefix("# TYPE ") {
            let (name, kind) = typed.split_once(' ').unwrap();
            name.clone_into(&mut current);
            families.entry(current.clone()).or_default().kind = kind.to_owned();
        } else if !line.starts_with('#') {
            let labels = line.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
            let labels = labels.map_or("", |(labels, _)| labels).split("\",");
            let names =
                labels.filter_map(|label| Some(label.split_once('=')?.0.trim_start_matches(',').to_owned()));
            families.get_mut(&current).unwrap().labels.extend(names.filter(|name| name != "le"));
        }
    }
    families
}

/// What Prometheus' own tool says of a page, where it is installed.
async fn complaints(page: &str) -> Option<Vec<String>> {
    let mut promtool = Command::new("promtool");
    promtool.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let spawned = promtool.spawn();
    let mut running =
        spawned.inspect_err(|error| say(&format!("skipped: the metrics by promtool ({error})"))).ok()?;
    // Dropped when written, which ends the input. One that reads no further has something to say.
    let _ = running.stdin.take().unwrap().write_all(page.as_bytes()).await;
    let output = running.wait_with_output().await.unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    Some(said.lines().map(str::to_owned).collect())
}

/// Does everything once that is counted.
async fn do_everything(mesh: &Mesh, node: &DevNode) {
    let mesh_client = MeshClient::new(mesh);
    mesh_client.until_sealed(&[(1, 1), (2, 2), (3, 3)]).await;
    let paths = "/accounts /accounts /nowhere /api/v2/withdrawal/none /blockchain/height \
        /api/v2/networkhistory/export?table=TABLE_BLOCKS&fromBlock=1&toBlock=3";
    for path in paths.split(' ') {
        mesh.get(path).await;
    }
    let body = json!({"tx": node.transaction(1, "order"), "type": "TYPE_SYNC"}).to_string();
    assert_eq!(mesh_client.send("DELETE", "/accounts").await.status, 405);
    let submitted = mesh_client.post("/transaction", &body).await;
    assert_eq!(submitted.status, 200, "{submitted:?}");
    let called = Call::from_path("/accounts").unwrap();
    Rpc::connect(mesh).await.json(&called).await.unwrap();
}

async fn await_line(mesh: &Mesh, service: &str, line: &str) {
    retry(Duration::from_secs(20), async || {
        let page = mesh.service(service).admin("/metrics").await;
        let is_shown = page.text().lines().any(|shown| shown == line);
        if is_shown { Ok(()) } else { Err(format!("{service} never shows {line}: {}", page.text())) }
    })
    .await;
}

#[tokio::test]
async fn the_served_metrics_are_the_documented_ones() {
    let (node, database) = tokio::join!(DevNode::start(), fixture::database());
    let setup = Mesh::configure(&database).env("MESH_NODE_URL", node.url()).tls();
    let setup = setup.env("MESH_HISTORY_INTERVAL_BLOCKS", "1").env("MESH_RELAY_SIGNATURE_ALGO", "ed25519");
    let mesh = setup.env("MESH_EDGE_KEYS_FILE", "/none/keys.jsonl").start().await;
    do_everything(&mesh, &node).await;
    let shown = [
        ("query", format!("{} 0", list::MAILBOX_DEPTH.sample())),
        ("edge", format!("{} 0", list::HTTP_SERVER_ACTIVE_REQUESTS.sample())),
        ("edge", format!("{}_count{{{NOT_SERVED}}} 1", list::HTTP_SERVER_REQUEST_DURATION.sample())),
        ("edge", format!("{} 0", list::STREAMS_ACTIVE.sample())),
        ("edge", format!("{}{{outcome=\"whole\"}} 1", list::STREAMS_ENDED.sample())),
        ("edge", format!("{}{{reason=\"memory\"}} 0", list::EDGE_SHED.sample())),
        ("tx-relay", format!("{}{{type=\"sync\",outcome=\"unknown\"}} 0", list::RELAY_SUBMISSIONS.sample())),
    ];
    for (service, line) in shown {
        await_line(&mesh, service, &line).await;
    }
    // It writes its own database, from a chain with rows.
    let (chain, stored) = (Chain::start(Version::V038).await, Database::fresh().await);
    chain.add(vec![trade(1, "1")]);
    let ingest =
        Service::configure("ingest").database(&stored).env("MESH_NODE_URL", &chain.url).start().await;
    ingest.until_metric("mesh_ingest_height ", |height| height == 1.0).await;
    for service in list::ALL_WORKLOADS {
        let process = if *service == "ingest" { &ingest } else { mesh.service(service) };
        let page = process.admin("/metrics").await;
        assert!(!page.text().contains(NOT_READ), "{service} has an empty series");
        // The tool reads the older text form alone.
        let text = http_client().get(format!("{}/metrics", process.admin_url()));
        for complaint in complaints(Answer::to(text).await.text()).await.unwrap_or_default() {
            // The conventions of OpenTelemetry name them so (docs/telemetry.md).
            let is_of_the_conventions =
                COUNT_GAUGES.iter().any(|metric| complaint.starts_with(&metric.sample()));
            assert!(is_of_the_conventions && complaint.contains("_count"), "{service}: {complaint}");
        }
        let served = families(page.text());
        for metric in list::ALL {
            let family = served.get(&metric.family());
            let is_served = metric.workloads.contains(service);
            assert_eq!(family.is_some(), is_served, "{} at {service}", metric.family());
            let Some(family) = family else { continue };
            let kind = match metric.kind {
                Kind::Counter => "counter",
                Kind::Gauge => "gauge",
                Kind::Histogram => "histogram",
                Kind::Info => "info",
            };
            let labels: BTreeSet<String> = metric.label_names().collect();
            let found = (family.kind.as_str(), &family.labels);
            assert_eq!(found, (kind, &labels), "{} at {service}", metric.name);
        }
        let listed: BTreeSet<String> = list::ALL.iter().map(Metric::family).collect();
        let counts = list::ALL.iter().filter(|metric| metric.family().ends_with("_count"));
        counts.for_each(|metric| assert!(COUNT_GAUGES.contains(metric), "{}: another name", metric.name));
        for name in served.keys() {
            assert!(listed.contains(name), "{service} serves {name}, which is not in the list");
        }
    }
}
