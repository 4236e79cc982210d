//! The alert rules: what is wrong, for how long, and how Prometheus is shown that the rule sees it.

use std::fmt::Write;

use mesh_telemetry::list::{self, EVERYBODY};

use crate::{is_made, read};

pub(crate) const RULES: &str = "k8s/telemetry/alerts.yaml";
/// The same for the Prometheus Operator.
const RESOURCE: &str = "k8s/telemetry/prometheus-rule.yaml";
pub(crate) const TESTS: &str = "k8s/telemetry/alerts-test.yaml";
const RUNBOOK: &str = "docs/operations/alerts.md";

/// An alert.
pub(crate) struct Alert {
    pub(crate) name: &'static str,
    pub(crate) query: String,
    /// How long before somebody is told.
    lasts: &'static str,
    severity: &'static str,
    summary: &'static str,
    /// Series with which it fires after an hour.
    bad: Vec<(String, &'static str)>,
    /// Series with which it does not.
    good: Vec<(String, &'static str)>,
    /// Labels of the alert that fires.
    labels: &'static [(&'static str, &'static str)],
}

const PAGE: &str = "page";
const TICKET: &str = "ticket";

pub(crate) fn all() -> Vec<Alert> {
    let requests = list::HTTP_SERVER_REQUEST_DURATION.sample() + "_count";
    let buckets = list::HTTP_SERVER_REQUEST_DURATION.sample() + "_bucket";
    let asks = list::RPC_CLIENT_CALL_DURATION.sample() + "_count";
    let target = list::TARGET.sample();
    let [edge_shed, shed, hedges, ended, seal_failures, submissions, timeouts, spans] = [
        list::EDGE_SHED,
        list::REQUESTS_SHED,
        list::BUS_HEDGES,
        list::STREAMS_ENDED,
        list::HISTORY_SEAL_FAILURES,
        list::RELAY_SUBMISSIONS,
        list::DB_CLIENT_CONNECTION_TIMEOUTS,
        list::TELEMETRY_SPANS,
    ]
    .map(|metric| metric.sample());
    let [store_there, store_height, lag, node, unreadable, sealed, files, files_max] = [
        list::STORE_IS_THERE,
        list::STORE_HEIGHT,
        list::CHAIN_LAG,
        list::NODE_STATE,
        list::HISTORY_UNREADABLE,
        list::HISTORY_HEIGHT,
        list::PROCESS_FILES,
        list::PROCESS_FILES_MAX,
    ]
    .map(|metric| metric.sample());
    let absent: Vec<_> =
        EVERYBODY.iter().map(|name| format!("absent({target}{{service_name=\"{name}\"}})")).collect();
    let there = |without: &'static str| {
        let others = EVERYBODY.iter().filter(move |name| **name != without);
        others.map(|name| (format!("{target}{{service_name=\"{name}\"}}"), "1x90")).collect::<Vec<_>>()
    };
    let one = |series: &str, values: &'static str| vec![(series.to_owned(), values)];
    let status = |status: &str| format!("{requests}{{http_response_status_code=\"{status}\"}}");
    vec![
        Alert {
            name: "MeshServiceAbsent",
            query: absent.join("\nor "),
            lasts: "2m",
            severity: PAGE,
            summary: "no replica of {{ $labels.service_name }} is scraped",
            bad: there("query"),
            good: there(""),
            labels: &[("service_name", "query")],
        },
        Alert {
            name: "MeshRequestsFail",
            query: format!(
                "sum(rate({requests}{{http_response_status_code=~\"5..\"}}[5m])) / sum(rate({requests}[5m])) > 0.01"
            ),
            lasts: "5m",
            severity: PAGE,
            summary: "{{ $value | humanizePercentage }} of the HTTP requests fail",
            bad: [one(&status("200"), "0+900x90"), one(&status("503"), "0+60x90")].concat(),
            good: [one(&status("200"), "0+900x90"), one(&status("404"), "0+60x90")].concat(),
            labels: &[],
        },
        Alert {
            name: "MeshReadsSlow",
            query: format!(
                "histogram_quantile(0.99, sum by (le, operation) (rate({buckets}{{http_request_method=\"GET\", \
                 operation!~\"Export.*\"}}[5m]))) > 1"
            ),
            lasts: "10m",
            severity: TICKET,
            summary: "one in a hundred answers to {{ $labels.operation }} takes over a second",
            bad: quantile(&buckets, "0+1x90"),
            good: quantile(&buckets, "0+100x90"),
            labels: &[("operation", "ListAccounts")],
        },
        Alert {
            name: "MeshRequestsShed",
            query: format!(
                "(sum(rate({edge_shed}[5m])) or vector(0)) + (sum(rate({shed}[5m])) or vector(0)) > 0"
            ),
            lasts: "5m",
            severity: TICKET,
            summary: "{{ $value | humanize }} requests a second are turned away for want of room",
            bad: one(&shed, "0+60x90"),
            good: [one(&shed, "7x90"), one(&edge_shed, "0x90")].concat(),
            labels: &[],
        },
        Alert {
            name: "MeshReplicasSilent",
            query: format!("sum(rate({hedges}[5m])) / sum(rate({asks}[5m])) > 0.05"),
            lasts: "10m",
            severity: TICKET,
            summary: "{{ $value | humanizePercentage }} of the asks on the bus are repeated for want of an answer",
            bad: [one(&hedges, "0+60x90"), one(&asks, "0+600x90")].concat(),
            good: [one(&hedges, "0+6x90"), one(&asks, "0+600x90")].concat(),
            labels: &[],
        },
        Alert {
            name: "MeshStoreAway",
            query: format!("max({store_there}) == 0"),
            lasts: "1m",
            severity: PAGE,
            summary: "the database does not answer",
            bad: one(&store_there, "0x90"),
            good: [
                (format!("{store_there}{{instance=\"a\"}}"), "0x90"),
                (format!("{store_there}{{instance=\"b\"}}"), "1x90"),
            ]
            .to_vec(),
            labels: &[],
        },
        Alert {
            name: "MeshStoreBehind",
            query: format!("max({lag}) > 100"),
            lasts: "10m",
            severity: PAGE,
            summary: "the store is {{ $value }} blocks behind the consensus node",
            bad: one(&lag, "101x90"),
            good: one(&lag, "100x90"),
            labels: &[],
        },
        Alert {
            name: "MeshNoBlocks",
            query: format!("max({store_height}) - max({store_height} offset 10m) <= 0"),
            lasts: "5m",
            severity: PAGE,
            summary: "the store has had no new block for ten minutes",
            bad: one(&store_height, "500x90"),
            good: one(&store_height, "500+1x90"),
            labels: &[],
        },
        Alert {
            name: "MeshNodeAway",
            query: format!("max({node}) < 2"),
            lasts: "2m",
            severity: PAGE,
            summary: "the consensus node is away or catches up: nothing can be submitted",
            bad: one(&node, "1x90"),
            good: one(&node, "2x90"),
            labels: &[],
        },
        Alert {
            name: "MeshDownloadsBreak",
            query: format!("sum(rate({ended}{{outcome=\"broken\"}}[10m])) > 0"),
            lasts: "5m",
            severity: TICKET,
            summary: "downloads break before their end",
            bad: one(&format!("{ended}{{outcome=\"broken\"}}"), "0+1x90"),
            good: one(&format!("{ended}{{outcome=\"left\"}}"), "0+9x90"),
            labels: &[],
        },
        Alert {
            name: "MeshSealingFails",
            query: format!("sum(increase({seal_failures}[30m])) > 0"),
            lasts: "5m",
            severity: TICKET,
            summary: "sealing of the history has failed {{ $value | humanize }} times in half an hour",
            bad: one(&seal_failures, "0+1x90"),
            good: one(&seal_failures, "5x90"),
            labels: &[],
        },
        Alert {
            name: "MeshSealingBehind",
            query: format!("max({store_height}) - max({sealed}) > 5000"),
            lasts: "30m",
            severity: TICKET,
            summary: "{{ $value }} blocks are not sealed",
            bad: [one(&store_height, "9000x90"), one(&sealed, "3999x90")].concat(),
            good: [one(&store_height, "9000x90"), one(&sealed, "8000x90")].concat(),
            labels: &[],
        },
        Alert {
            name: "MeshSegmentUnreadable",
            query: format!("max({unreadable}) > 0"),
            lasts: "5m",
            severity: PAGE,
            summary: "{{ $value }} history segments cannot be read",
            bad: one(&unreadable, "1x90"),
            good: one(&unreadable, "0x90"),
            labels: &[],
        },
        Alert {
            name: "MeshFatesUnknown",
            query: format!(
                "sum(rate({submissions}{{outcome=\"unknown\"}}[10m])) / sum(rate({submissions}[10m])) > 0.01"
            ),
            lasts: "5m",
            severity: TICKET,
            summary: "of {{ $value | humanizePercentage }} of the submissions nobody knows what became of them",
            bad: [
                one(&format!("{submissions}{{outcome=\"accepted\"}}"), "0+90x90"),
                one(&format!("{submissions}{{outcome=\"unknown\"}}"), "0+3x90"),
            ]
            .concat(),
            good: one(&format!("{submissions}{{outcome=\"refused\"}}"), "0+90x90"),
            labels: &[],
        },
        Alert {
            name: "MeshConnectionsTaken",
            query: format!("sum by (db_client_connection_pool_name) (rate({timeouts}[5m])) > 0"),
            lasts: "5m",
            severity: TICKET,
            summary: "statements get no connection of the pool {{ $labels.db_client_connection_pool_name }}",
            bad: one(&format!("{timeouts}{{db_client_connection_pool_name=\"lists\"}}"), "0+6x90"),
            good: one(&format!("{timeouts}{{db_client_connection_pool_name=\"lists\"}}"), "3x90"),
            labels: &[("db_client_connection_pool_name", "lists")],
        },
        Alert {
            name: "MeshFilesRunOut",
            query: format!("{files} / {files_max} > 0.8"),
            lasts: "5m",
            severity: PAGE,
            summary: "{{ $labels.instance }} has used {{ $value | humanizePercentage }} of its open files",
            bad: [one(&files, "900x90"), one(&files_max, "1024x90")].concat(),
            good: [one(&files, "700x90"), one(&files_max, "1024x90")].concat(),
            labels: &[],
        },
        Alert {
            name: "MeshTelemetryLost",
            query: format!("sum(rate({spans}{{outcome=~\"failed|dropped\"}}[10m])) > 0"),
            lasts: "30m",
            severity: TICKET,
            summary: "the collector does not take all traces",
            bad: one(&format!("{spans}{{outcome=\"dropped\"}}"), "0+6x90"),
            good: one(&format!("{spans}{{outcome=\"exported\"}}"), "0+60x90"),
            labels: &[],
        },
    ]
}

/// A hundred reads a minute, of which so many take a quarter of a second at most.
fn quantile(buckets: &str, quick: &'static str) -> Vec<(String, &'static str)> {
    let bucket = |le: &str| {
        format!("{buckets}{{http_request_method=\"GET\", le=\"{le}\", operation=\"ListAccounts\"}}")
    };
    vec![(bucket("0.25"), quick), (bucket("2.5"), "0+100x90"), (bucket("+Inf"), "0+100x90")]
}

fn indented(text: &str, by: usize) -> String {
    text.lines().map(|line| format!("{:by$}{line}\n", "")).collect()
}

fn anchor(name: &str) -> String {
    name.to_ascii_lowercase()
}

fn annotations(alert: &Alert) -> String {
    format!("summary: {:?}\nrunbook_url: {:?}\n", alert.summary, format!("{RUNBOOK}#{}", anchor(alert.name)))
}

fn rules() -> String {
    let mut text = "# Made from the list of metrics: MESH_UPDATE=1 cargo test -p mesh-telemetry\n\
                    groups:\n  - name: mesh\n    rules:\n"
        .to_owned();
    for alert in all() {
        let Alert { name, query, lasts, severity, .. } = &alert;
        let _ = writeln!(text, "      - alert: {name}\n        expr: |-");
        text += &indented(query, 10);
        let _ = writeln!(
            text,
            "        for: {lasts}\n        labels:\n          severity: {severity}\n        annotations:"
        );
        text += &indented(&annotations(&alert), 10);
    }
    text
}

/// The rules as a custom resource.
fn resource() -> String {
    let rules = rules();
    let (made, groups) = rules.split_once('\n').unwrap();
    let head = "apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata:\n  name: mesh\nspec:\n";
    format!("{made}\n{head}{}", indented(groups, 2))
}

/// What `promtool test rules` reads: each alert fires after an hour with its bad series, and not with its good ones.
fn tests() -> String {
    let mut text = "# Made with the rules: MESH_UPDATE=1 cargo test -p mesh-telemetry\n\
                    rule_files: [alerts.yaml]\nevaluation_interval: 1m\ntests:\n"
        .to_owned();
    for alert in all() {
        for (is_bad, series) in [(true, &alert.bad), (false, &alert.good)] {
            let kind = if is_bad { "fires" } else { "is quiet" };
            let _ = writeln!(text, "  - name: {} {kind}\n    interval: 1m\n    input_series:", alert.name);
            for (series, values) in series {
                let _ = writeln!(text, "      - series: '{series}'\n        values: '{values}'");
            }
            // What a summary says depends on the value; that it fires with its labels is enough.
            let labels: Vec<_> =
                alert.labels.iter().map(|(label, value)| format!(", {label}=\"{value}\"")).collect();
            let firing = format!(
                "ALERTS{{alertname=\"{}\", alertstate=\"firing\", severity=\"{}\"{}}}",
                alert.name,
                alert.severity,
                labels.concat()
            );
            let _ = writeln!(
                text,
                "    promql_expr_test:\n      - expr: ALERTS{{alertname=\"{}\", alertstate=\"firing\"}}\n        eval_time: 60m",
                alert.name
            );
            if is_bad {
                let _ = writeln!(
                    text,
                    "        exp_samples:\n          - labels: '{firing}'\n            value: 1"
                );
            }
        }
    }
    text
}

#[test]
fn the_rules_are_made_from_the_list() {
    is_made(RULES, &rules());
    is_made(RESOURCE, &resource());
    is_made(TESTS, &tests());
}

#[test]
fn each_alert_has_its_paragraph_and_each_paragraph_its_alert() {
    let runbook = read(RUNBOOK);
    let mut paragraphs = runbook.split("\n## ").skip(1).map(|paragraph| paragraph.split_once('\n').unwrap());
    for alert in all() {
        let (name, text) = paragraphs.next().unwrap_or_else(|| panic!("{RUNBOOK} lacks {}", alert.name));
        assert_eq!(name, alert.name, "in the order of the rules");
        assert!(text.split_whitespace().count() >= 20, "{name}: too little to act by");
    }
    assert_eq!(paragraphs.next(), None);
}
