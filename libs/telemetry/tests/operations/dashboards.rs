//! The dashboards, which are edited in Grafana or by hand: they and the alerts query only listed metrics, and
//! all of these.

use std::{collections::HashSet, fs};

use mesh_telemetry::{Kind, Metric, list};
use serde_json::Value;

use crate::{alerts, path, words};

const DASHBOARDS: &str = "k8s/telemetry/dashboards";

/// Every query of every panel.
fn queries() -> Vec<String> {
    let files =
        fs::read_dir(path(DASHBOARDS)).unwrap().map(|file| fs::read_to_string(file.unwrap().path()).unwrap());
    let dashboards = files.map(|text| serde_json::from_str::<Value>(&text).unwrap());
    dashboards
        .flat_map(|dashboard| dashboard["panels"].as_array().unwrap().clone())
        .flat_map(|panel| panel["targets"].as_array().unwrap().clone())
        .map(|target| target["expr"].as_str().unwrap().to_owned())
        .collect()
}

/// Names of a metric's series.
fn series(metric: &Metric) -> Vec<String> {
    match metric.kind {
        Kind::Histogram => ["_bucket", "_sum", "_count"].map(|end| metric.sample() + end).into(),
        _ => vec![metric.sample()],
    }
}

#[test]
fn what_is_queried_is_served() {
    let alerts = alerts::all().into_iter().map(|alert| alert.query);
    let mut known: HashSet<String> = list::ALL.iter().flat_map(series).collect();
    known.extend(list::ALL.iter().flat_map(|metric| metric.label_names().collect::<Vec<_>>()));
    for query in queries().into_iter().chain(alerts) {
        for word in words(&query) {
            let is_name = word.contains('_')
                && !matches!(
                    word,
                    "histogram_quantile"
                        | "__rate_interval"
                        | "cnpg_collector_last_available_backup_timestamp"
                );
            assert!(!is_name || known.contains(word), "{word} is no metric and no label: {query}");
        }
    }
}

#[test]
fn what_is_served_is_shown() {
    let queries = queries();
    let shown: HashSet<&str> = queries.iter().flat_map(|query| words(query)).collect();
    for metric in list::ALL {
        let is_shown = series(metric).iter().any(|name| shown.contains(name.as_str()));
        assert!(is_shown, "{} is on no dashboard", metric.name);
    }
}
