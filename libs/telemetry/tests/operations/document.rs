//! The table of metrics in the document.

use std::fmt::Write;

use mesh_telemetry::{Kind, list};
use mesh_testbed::assert_generated_part;

fn table() -> String {
    let mut text =
        "| Metric | In Prometheus | Kind | Labels | Served by | Meaning |\n|---|---|---|---|---|---|\n"
            .to_owned();
    for metric in list::ALL {
        let kind = match metric.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
            Kind::Info => "info",
        };
        let labels: Vec<_> = metric.label_names().map(|label| format!("`{label}`")).collect();
        let workloads = if metric.workloads == list::ALL_WORKLOADS {
            "all".to_owned()
        } else {
            metric.workloads.join(", ")
        };
        let unit = if metric.unit.is_empty() { String::new() } else { format!(" ({})", metric.unit) };
        let _ = writeln!(
            text,
            "| `{}`{unit} | `{}` | {kind} | {} | {workloads} | {} |",
            metric.name,
            metric.sample(),
            labels.join(", "),
            metric.help
        );
    }
    text
}

#[test]
fn the_generated_table_is_in_the_document() {
    assert_generated_part("docs/telemetry.md", "metrics", &table());
}
