//! The table of metrics in the document.

use std::fmt::Write;

use mesh_telemetry::{Kind, list};

use crate::{assert_generated, read};

const DOCUMENT: &str = "docs/telemetry.md";
const BEGIN: &str = "<!-- metrics: made from the list, MESH_UPDATE=1 cargo test -p mesh-telemetry -->\n";
const END: &str = "<!-- end of metrics -->\n";

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
fn the_documents_table_is_the_list() {
    let document = read(DOCUMENT);
    let (before, rest) =
        document.split_once(BEGIN).unwrap_or_else(|| panic!("{DOCUMENT} has no place for it"));
    let (_, after) = rest.split_once(END).unwrap_or_else(|| panic!("{DOCUMENT}: the place has no end"));
    assert_generated(DOCUMENT, &format!("{before}{BEGIN}{}{END}{after}", table()));
}
