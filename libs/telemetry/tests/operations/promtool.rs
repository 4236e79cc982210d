//! Prometheus itself reads the rules and runs their tests, where its `promtool` is installed (Debian:
//! `prometheus`).

use std::process::Command;

use mesh_testbed::say;

use crate::{RULES, TESTS, path};

#[test]
fn prometheus_takes_the_rules_and_sees_each_alert_fire() {
    for arguments in [["check", "rules", RULES], ["test", "rules", TESTS]] {
        let [verb, what, file] = arguments;
        let run = match Command::new("promtool").args([verb, what]).arg(path(file)).output() {
            Err(error) => return say(&format!("skipped: the alert rules by promtool ({error})")),
            Ok(run) => run,
        };
        let output = String::from_utf8_lossy(&[run.stdout, run.stderr].concat()).into_owned();
        assert!(run.status.success(), "{output}");
    }
}
