//! The edge's access log, as an operator reads it.

use std::time::Duration;

use mesh_testbed::{Mesh, retry};
use serde_json::Value;

/// Time limit for a line to be written.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// All access log lines so far.
pub fn lines(mesh: &Mesh) -> Vec<Value> {
    let lines = json_lines(&mesh.service("edge").log()).into_iter();
    lines.filter(|line| line["target"] == "edge::access").collect()
}

/// The lines of a log that are JSON.
pub fn json_lines(log: &str) -> Vec<Value> {
    log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Waits for the only line that fulfils a condition; `what` names it in panics.
///
/// # Panics
/// When there is none within 60 s, or more than one.
pub async fn line_with(mesh: &Mesh, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
    retry(TIME_LIMIT, async || {
        let mut found: Vec<Value> = lines(mesh).into_iter().filter(&is_it).collect();
        assert!(found.len() < 2, "{what} is logged more than once: {found:?}");
        found.pop().ok_or_else(|| format!("{what} is not logged: {}", mesh.service("edge").log()))
    })
    .await
}

/// Waits for the line of the request with this id.
pub async fn line(mesh: &Mesh, id: &str) -> Value {
    line_with(mesh, id, |line| line["request_id"] == id).await
}

/// Asserts that a line has these members with these values; `null` stands for a member that it does not have.
#[track_caller]
pub fn assert_has(line: &Value, expected: &Value) {
    for (name, value) in expected.as_object().into_iter().flatten() {
        assert_eq!(&line[name], value, "{name} in {line}");
    }
}
