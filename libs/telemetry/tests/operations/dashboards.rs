//! The dashboards: rows of panels over the list's metrics.

use std::collections::HashSet;

use mesh_telemetry::{Kind, Metric, list};
use serde_json::{Value, json};

use crate::{alerts, is_made, words};

/// A panel: title, unit as Grafana calls it, queries with their legends.
struct Panel(&'static str, &'static str, Vec<(String, &'static str)>);

/// How often per second, by these labels.
fn rate(metric: &Metric, by: &str) -> String {
    format!("sum by ({by}) (rate({}[$__rate_interval]))", metric.sample())
}

/// Values per second of a histogram, by these labels.
fn count(metric: &Metric, by: &str) -> String {
    format!("sum by ({by}) (rate({}_count[$__rate_interval]))", metric.sample())
}

/// A quantile of a histogram, by these labels.
fn quantile(quantile: f64, metric: &Metric, by: &str) -> String {
    let name = metric.sample();
    format!("histogram_quantile({quantile}, sum by (le, {by}) (rate({name}_bucket[$__rate_interval])))")
}

fn gauge(metric: &Metric, by: &str) -> String {
    format!("sum by ({by}) ({})", metric.sample())
}

fn newest(metric: &Metric) -> String {
    format!("max({})", metric.sample())
}

fn panel(title: &'static str, unit: &'static str, query: String, legend: &'static str) -> Panel {
    Panel(title, unit, vec![(query, legend)])
}

/// Each dashboard with its rows.
fn all() -> Vec<(&'static str, &'static str, Vec<Panel>)> {
    use list::*;
    let operation = "{{operation}}";
    let method = "{{rpc_method}}";
    let instance = "{{instance}}";
    let pool = "{{db_client_connection_pool_name}}";
    let overview = vec![
        panel(
            "HTTP requests by operation",
            "reqps",
            count(&HTTP_SERVER_REQUEST_DURATION, "operation"),
            operation,
        ),
        panel(
            "HTTP requests by status",
            "reqps",
            count(&HTTP_SERVER_REQUEST_DURATION, "http_response_status_code"),
            "{{http_response_status_code}}",
        ),
        panel(
            "Time of HTTP answers, p99",
            "s",
            quantile(0.99, &HTTP_SERVER_REQUEST_DURATION, "operation"),
            operation,
        ),
        panel(
            "Time of HTTP answers, median",
            "s",
            quantile(0.5, &HTTP_SERVER_REQUEST_DURATION, "operation"),
            operation,
        ),
        panel(
            "Length of answers, p99",
            "bytes",
            quantile(0.99, &HTTP_SERVER_RESPONSE_BODY_SIZE, "operation"),
            operation,
        ),
        panel(
            "Length of request bodies, p99",
            "bytes",
            quantile(0.99, &HTTP_SERVER_REQUEST_BODY_SIZE, "operation"),
            operation,
        ),
        Panel(
            "Connections, requests under way",
            "short",
            vec![
                (gauge(&EDGE_CONNECTIONS, "instance"), "connections {{instance}}"),
                (gauge(&HTTP_SERVER_ACTIVE_REQUESTS, "instance"), "requests {{instance}}"),
            ],
        ),
        panel("Reads by source", "reqps", rate(&EDGE_READS, "source"), "{{source}}"),
        panel("Connections turned away", "cps", rate(&EDGE_REFUSED, "reason"), "{{reason}}"),
        panel("Lines of the access log dropped", "cps", rate(&LOG_DROPPED, "instance"), instance),
        panel("Limited by address", "reqps", rate(&EDGE_LIMITED, "limit"), "{{limit}}"),
        Panel(
            "Turned away",
            "reqps",
            vec![
                (rate(&EDGE_SHED, "reason"), "edge: {{reason}}"),
                (rate(&REQUESTS_SHED, "instance"), "service {{instance}}"),
            ],
        ),
        panel(
            "Who is there",
            "short",
            format!("sum by (service_name, service_version) ({})", TARGET.sample()),
            "{{service_name}} {{service_version}}",
        ),
    ];
    let services = vec![
        panel(
            "Round trips on the bus",
            "reqps",
            count(&RPC_CLIENT_CALL_DURATION, "rpc_method, rpc_response_status_code"),
            "{{rpc_method}} {{rpc_response_status_code}}",
        ),
        panel(
            "Time of a round trip, p99",
            "s",
            quantile(0.99, &RPC_CLIENT_CALL_DURATION, "rpc_method"),
            method,
        ),
        panel(
            "Calls answered",
            "reqps",
            count(&RPC_SERVER_CALL_DURATION, "rpc_system_name, rpc_method, rpc_response_status_code"),
            "{{rpc_system_name}} {{rpc_method}} {{rpc_response_status_code}}",
        ),
        panel(
            "Time to answer a call, p99",
            "s",
            quantile(0.99, &RPC_SERVER_CALL_DURATION, "rpc_system_name, rpc_method"),
            "{{rpc_system_name}} {{rpc_method}}",
        ),
        panel(
            "Length of replies, p99",
            "bytes",
            quantile(0.99, &RPC_SERVER_RESPONSE_SIZE, "rpc_method"),
            method,
        ),
        Panel(
            "Asked again",
            "reqps",
            vec![
                (rate(&BUS_HEDGES, "instance"), "again {{instance}}"),
                (rate(&BUS_HEDGES_WON, "instance"), "answered so {{instance}}"),
            ],
        ),
        Panel(
            "Requests in services",
            "short",
            vec![
                (gauge(&REQUESTS_IN_FLIGHT, "instance"), "in flight {{instance}}"),
                (gauge(&REQUESTS_LOAD, "instance"), "on average {{instance}}"),
                (gauge(&MAILBOX_DEPTH, "instance"), "in the mailbox {{instance}}"),
            ],
        ),
    ];
    let store = vec![
        panel(
            "Statements",
            "ops",
            count(&DB_CLIENT_OPERATION_DURATION, "db_client_connection_pool_name, error_type"),
            "{{db_client_connection_pool_name}} {{error_type}}",
        ),
        panel(
            "Time of a statement, p99",
            "s",
            quantile(0.99, &DB_CLIENT_OPERATION_DURATION, "db_client_connection_pool_name"),
            pool,
        ),
        panel(
            "Wait for a connection, p99",
            "s",
            quantile(0.99, &DB_CLIENT_CONNECTION_WAIT_TIME, "db_client_connection_pool_name"),
            pool,
        ),
        Panel(
            "Connections",
            "short",
            vec![
                (
                    gauge(
                        &DB_CLIENT_CONNECTION_COUNT,
                        "db_client_connection_pool_name, db_client_connection_state",
                    ),
                    "{{db_client_connection_pool_name}} {{db_client_connection_state}}",
                ),
                (
                    gauge(&DB_CLIENT_CONNECTION_MAX, "db_client_connection_pool_name"),
                    "{{db_client_connection_pool_name}} most",
                ),
                (
                    gauge(&DB_CLIENT_CONNECTION_PENDING, "db_client_connection_pool_name"),
                    "{{db_client_connection_pool_name}} waiting",
                ),
            ],
        ),
        panel(
            "No connection in time",
            "ops",
            rate(&DB_CLIENT_CONNECTION_TIMEOUTS, "db_client_connection_pool_name"),
            pool,
        ),
        Panel(
            "Heights",
            "short",
            vec![
                (newest(&STORE_HEIGHT), "store"),
                (newest(&NODE_HEIGHT), "node"),
                (newest(&HISTORY_HEIGHT), "sealed"),
            ],
        ),
        panel("Blocks behind the node", "short", newest(&CHAIN_LAG), "lag"),
        Panel(
            "Store and node",
            "short",
            vec![
                (newest(&STORE_IS_THERE), "store: 1 is there"),
                (newest(&NODE_STATE), "node: 2 answers, 1 catches up"),
                (newest(&RELAY_NODE), "the relay's node"),
            ],
        ),
    ];
    let downloads = vec![
        panel("Downloads under way", "short", gauge(&STREAMS_ACTIVE, "instance"), instance),
        panel("Downloads by end", "ops", rate(&STREAMS_ENDED, "outcome"), "{{outcome}}"),
        Panel(
            "Bytes",
            "Bps",
            vec![
                (rate(&STREAM_BYTES, "instance"), "delivered {{instance}}"),
                (rate(&EXPORT_PULLED, "operation"), "pulled {{operation}}"),
            ],
        ),
        Panel(
            "Pulls",
            "ops",
            vec![
                (rate(&STREAM_PULLS, "instance"), "pulls {{instance}}"),
                (rate(&STREAM_PULLS_AGAIN, "instance"), "resumes {{instance}}"),
            ],
        ),
        Panel(
            "Segments",
            "short",
            vec![(newest(&HISTORY_SEGMENTS), "held"), (newest(&HISTORY_UNREADABLE), "unreadable")],
        ),
        panel(
            "Time to seal a segment, p99",
            "s",
            format!(
                "histogram_quantile(0.99, sum by (le) (rate({}_bucket[$__rate_interval])))",
                HISTORY_SEAL_DURATION.sample()
            ),
            "p99",
        ),
        panel("Sealing failed", "ops", rate(&HISTORY_SEAL_FAILURES, "instance"), instance),
    ];
    let relay = vec![
        panel("Submissions by end", "ops", rate(&RELAY_SUBMISSIONS, "type, outcome"), "{{type}} {{outcome}}"),
        panel("Fates remembered", "short", gauge(&RELAY_REMEMBERED, "instance"), instance),
        panel(
            "Calls of the node",
            "ops",
            count(&HTTP_CLIENT_REQUEST_DURATION, "rpc_method, error_type"),
            "{{rpc_method}} {{error_type}}",
        ),
        panel(
            "Time of a call, p99",
            "s",
            quantile(0.99, &HTTP_CLIENT_REQUEST_DURATION, "rpc_method"),
            method,
        ),
    ];
    let processes = vec![
        panel("CPU", "short", rate(&PROCESS_CPU_TIME, "instance"), instance),
        panel("Resident memory", "bytes", gauge(&PROCESS_MEMORY_USAGE, "instance"), instance),
        Panel(
            "Open files",
            "short",
            vec![
                (gauge(&PROCESS_FILES, "instance"), instance),
                (gauge(&PROCESS_FILES_MAX, "instance"), "most {{instance}}"),
            ],
        ),
        Panel(
            "Threads and tasks",
            "short",
            vec![
                (gauge(&PROCESS_THREADS, "instance"), "threads {{instance}}"),
                (gauge(&PROCESS_TASKS, "instance"), "tasks {{instance}}"),
            ],
        ),
        panel("Time since the start", "s", gauge(&PROCESS_UPTIME, "instance"), instance),
        Panel(
            "Telemetry itself",
            "ops",
            vec![
                (rate(&TELEMETRY_SPANS, "outcome"), "spans {{outcome}}"),
                (rate(&TELEMETRY_PUSHES, "outcome"), "pushes {{outcome}}"),
            ],
        ),
    ];
    vec![
        ("mesh-overview", "Mesh: overview", overview),
        ("mesh-services", "Mesh: bus and services", services),
        ("mesh-store", "Mesh: store and heads", store),
        ("mesh-downloads", "Mesh: downloads and history", downloads),
        ("mesh-relay", "Mesh: submissions", relay),
        ("mesh-processes", "Mesh: processes", processes),
    ]
}

fn grafana(uid: &str, title: &str, panels: &[Panel]) -> Value {
    let source = json!({"type": "prometheus", "uid": "${source}"});
    let shown = |(index, Panel(title, unit, queries)): (usize, &Panel)| {
        let targets = queries.iter().zip('A'..).map(|((query, legend), id)| {
            json!({"datasource": source, "expr": query, "legendFormat": legend, "refId": id.to_string()})
        });
        json!({
            "id": index + 1,
            "type": "timeseries",
            "title": title,
            "datasource": source,
            "gridPos": {"h": 8, "w": 12, "x": 12 * (index % 2), "y": 8 * (index / 2)},
            "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
            "options": {"legend": {"displayMode": "table", "placement": "bottom", "calcs": ["lastNotNull", "max"]}},
            "targets": targets.collect::<Vec<_>>(),
        })
    };
    json!({
        "uid": uid,
        "title": title,
        "tags": ["mesh"],
        "schemaVersion": 39,
        "editable": true,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [{"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"}]},
        "panels": panels.iter().enumerate().map(shown).collect::<Vec<_>>(),
    })
}

/// Names of a metric's series.
fn series(metric: &Metric) -> Vec<String> {
    match metric.kind {
        Kind::Histogram => ["_bucket", "_sum", "_count"].map(|end| metric.sample() + end).into(),
        _ => vec![metric.sample()],
    }
}

#[test]
fn the_dashboards_are_made_from_the_list() {
    for (uid, title, panels) in all() {
        let text = serde_json::to_string_pretty(&grafana(uid, title, &panels)).unwrap() + "\n";
        is_made(&format!("k8s/telemetry/dashboards/{uid}.json"), &text);
    }
}

#[test]
fn what_is_queried_is_served_and_what_is_served_is_shown() {
    let dashboards = all();
    let shown = dashboards.iter().flat_map(|(_, _, panels)| panels).flat_map(|Panel(_, _, queries)| queries);
    let shown: Vec<&str> = shown.map(|(query, _)| query.as_str()).collect();
    let alerts = alerts::all();
    let used: HashSet<&str> = shown
        .iter()
        .copied()
        .chain(alerts.iter().map(|alert| alert.query.as_str()))
        .flat_map(words)
        .collect();
    let known: HashSet<String> = list::ALL.iter().flat_map(series).collect();
    let labels: HashSet<String> =
        list::ALL.iter().flat_map(|metric| metric.label_names().collect::<Vec<_>>()).collect();
    for word in &used {
        let is_name = word.contains('_') && !matches!(*word, "histogram_quantile" | "__rate_interval");
        assert!(
            !is_name || known.contains(*word) || labels.contains(*word),
            "{word} is no metric and no label"
        );
    }
    for metric in list::ALL {
        assert!(
            series(metric).iter().any(|name| shown.iter().any(|query| words(query).any(|word| word == name))),
            "{} is on no dashboard",
            metric.name
        );
    }
}
