//! The alert rules: the operator's form is that of the plain one, each rule has its runbook and is shown to
//! Prometheus firing and quiet.

use mesh_testbed::assert_generated;
use serde::Deserialize;

use crate::read;

/// The rules as Prometheus reads them.
pub(crate) const RULES: &str = "k8s/telemetry/alerts.yaml";
/// The same rules as a custom resource of the Prometheus Operator.
const RESOURCE: &str = "k8s/telemetry/prometheus-rule.yaml";
/// Unit tests of the rules, for `promtool test rules`.
pub(crate) const TESTS: &str = "k8s/telemetry/alerts-test.yaml";
const RUNBOOK: &str = "docs/operations/alerts.md";

#[derive(Deserialize)]
struct Rules {
    groups: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    rules: Vec<Alert>,
}

/// What the tests here read of an alert.
#[derive(Deserialize)]
pub(crate) struct Alert {
    #[serde(rename = "alert")]
    name: String,
    #[serde(rename = "expr")]
    pub(crate) query: String,
    annotations: Annotations,
}

#[derive(Deserialize)]
struct Annotations {
    runbook_url: String,
}

#[derive(Deserialize)]
struct Tests {
    tests: Vec<Test>,
}

#[derive(Deserialize)]
struct Test {
    name: String,
}

/// All alerts, in the order of the file.
pub(crate) fn all() -> Vec<Alert> {
    let rules: Rules = serde_saphyr::from_str(&read(RULES)).unwrap();
    rules.groups.into_iter().flat_map(|group| group.rules).collect()
}

#[test]
fn the_generated_resource_of_the_operator_has_the_same_rules() {
    let rules = read(RULES);
    let groups: String =
        rules.lines().filter(|line| !line.starts_with('#')).map(|line| format!("  {line}\n")).collect();
    let head = "# Generated from alerts.yaml by mesh update.\n\
                apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata:\n  name: mesh\nspec:\n";
    assert_generated(RESOURCE, &format!("{head}{groups}"));
}

#[test]
fn each_alert_has_its_paragraph_and_each_paragraph_its_alert() {
    let runbook = read(RUNBOOK);
    let mut paragraphs = runbook.split("\n## ").skip(1).map(|paragraph| paragraph.split_once('\n').unwrap());
    for alert in all() {
        let (name, text) = paragraphs.next().unwrap_or_else(|| panic!("{RUNBOOK} lacks {}", alert.name));
        assert_eq!(name, alert.name, "in the order of the rules");
        assert!(text.split_whitespace().count() >= 20, "{name}: too little to act by");
        let url = format!("https://tradewind.example/{RUNBOOK}#{}", name.to_ascii_lowercase());
        assert_eq!(alert.annotations.runbook_url, url, "Alertmanager links absolute addresses only");
    }
    assert_eq!(paragraphs.next(), None);
}

#[test]
fn each_alert_is_tested_firing_and_quiet() {
    let tests: Tests = serde_saphyr::from_str(&read(TESTS)).unwrap();
    let tested: Vec<String> = tests.tests.into_iter().map(|test| test.name).collect();
    let wanted = all()
        .into_iter()
        .flat_map(|Alert { name, .. }| [format!("{name} fires"), format!("{name} is quiet")]);
    assert_eq!(tested, wanted.collect::<Vec<_>>());
}
