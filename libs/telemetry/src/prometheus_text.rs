//! The older Prometheus text format, for readers without OpenMetrics, such as autoscalers. In it a counter and an
//! info have the name of their samples, an info is a gauge, and units have no line.

use std::fmt::Write as _;

/// A page of OpenMetrics as text format 0.0.4.
pub fn prometheus_text(page: &str) -> String {
    let mut text = String::with_capacity(page.len());
    let mut help = None;
    for line in page.lines() {
        if let Some(description) = line.strip_prefix("# HELP ") {
            help = description.split_once(' ');
        } else if let Some((name, kind)) =
            line.strip_prefix("# TYPE ").and_then(|typed| typed.split_once(' '))
        {
            let (end, kind) = match kind {
                "counter" => ("_total", kind),
                "info" => ("_info", "gauge"),
                _ => ("", kind),
            };
            // Writing to a `String` does not fail.
            if let Some((_, help)) = help.take().filter(|(of, _)| *of == name) {
                let _ = writeln!(text, "# HELP {name}{end} {help}");
            }
            let _ = writeln!(text, "# TYPE {name}{end} {kind}");
        } else if !line.starts_with('#') {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_kinds_and_lines_are_those_of_the_older_form() {
        let page = "# HELP target Who.\n# TYPE target info\ntarget_info{a=\"b\"} 1\n\
                    # HELP cpu Used # so far.\n# TYPE cpu counter\n# UNIT cpu seconds\ncpu_total 1.5\n\
                    # HELP load Now.\n# TYPE load gauge\nload 2\n\
                    # TYPE took histogram\ntook_bucket{le=\"+Inf\"} 1\ntook_sum 3\ntook_count 1\n# EOF\n";
        assert_eq!(
            prometheus_text(page),
            "# HELP target_info Who.\n# TYPE target_info gauge\ntarget_info{a=\"b\"} 1\n\
             # HELP cpu_total Used # so far.\n# TYPE cpu_total counter\ncpu_total 1.5\n\
             # HELP load Now.\n# TYPE load gauge\nload 2\n\
             # TYPE took histogram\ntook_bucket{le=\"+Inf\"} 1\ntook_sum 3\ntook_count 1\n"
        );
    }
}
