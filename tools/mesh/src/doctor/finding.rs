//! Findings of the doctor, as lines for people and as JSON.

use serde::Serialize;

/// The outcome of one check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    /// As it should be.
    Fine,
    /// It works for now, or with limits.
    Warning,
    /// A mesh cannot work in this state.
    Wrong,
}

/// The finding of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    /// The subject of the check, in a word.
    pub(super) check: &'static str,
    /// The outcome.
    pub(super) state: State,
    /// What was found.
    pub(super) says: String,
    /// What to do about it; absent when the state is fine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) next: Option<String>,
}

impl Finding {
    /// As it should be.
    pub(super) fn fine(check: &'static str, says: impl Into<String>) -> Self {
        Self { check, state: State::Fine, says: says.into(), next: None }
    }

    /// Works for now, or with limits.
    pub(super) fn warning(check: &'static str, says: impl Into<String>, next: impl Into<String>) -> Self {
        Self { check, state: State::Warning, says: says.into(), next: Some(next.into()) }
    }

    /// Has to be corrected before a mesh can work.
    pub(super) fn wrong(check: &'static str, says: impl Into<String>, next: impl Into<String>) -> Self {
        Self { check, state: State::Wrong, says: says.into(), next: Some(next.into()) }
    }
}

/// Renders one line per finding, and below it the line with what to do.
pub(super) fn render(findings: &[Finding]) -> String {
    let width = findings.iter().map(|finding| finding.check.len()).max().unwrap_or(0);
    let mut text = String::new();
    for Finding { check, state, says, next } in findings {
        let state = match state {
            State::Fine => "fine",
            State::Warning => "warning",
            State::Wrong => "WRONG",
        };
        text.push_str(&format!("{state:<7}  {check:<width$}  {says}\n"));
        if let Some(next) = next {
            text.push_str(&format!("{:7}  {:width$}  -> {next}\n", "", ""));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_to_do_stands_below_what_is_wrong() {
        let text =
            render(&[Finding::fine("disk", "9 GB free"), Finding::wrong("port 1", "taken", "take another")]);
        assert_eq!(
            text,
            "fine     disk    9 GB free\nWRONG    port 1  taken\n                 -> take another\n"
        );
    }
}
