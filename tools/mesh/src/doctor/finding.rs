//! Findings of the doctor, as lines for people and as JSON.

use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    Fine,
    /// Usable for now, or with limits.
    Warning,
    /// Unusable: a mesh cannot run.
    Wrong,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    /// The subject of the check, in a word.
    pub(super) check: &'static str,
    pub(super) state: State,
    /// The observation.
    pub(super) says: String,
    /// What to do about it; absent when the state is fine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) next: Option<String>,
}

/// A warning or fault of a check.
#[derive(Debug)]
pub(super) struct Fault {
    state: State,
    says: String,
    next: String,
}

/// The observation of a correct state, else the fault.
pub(super) type Checked = Result<String, Fault>;

impl Fault {
    /// A state that is usable for now, or with limits.
    pub(super) fn warning(says: impl Into<String>, next: impl Into<String>) -> Self {
        Self { state: State::Warning, says: says.into(), next: next.into() }
    }

    /// A state that must be corrected before a mesh can run.
    pub(super) fn wrong(says: impl Into<String>, next: impl Into<String>) -> Self {
        Self { state: State::Wrong, says: says.into(), next: next.into() }
    }
}

impl Finding {
    pub(super) fn of(check: &'static str, checked: Checked) -> Self {
        match checked {
            Ok(says) => Self { check, state: State::Fine, says, next: None },
            Err(Fault { state, says, next }) => Self { check, state, says, next: Some(next) },
        }
    }
}

/// Renders one line per finding, and below it the line with what to do.
pub(super) fn render(findings: &[Finding]) -> String {
    let width = findings.iter().map(|finding| finding.check.len()).max().unwrap_or(0);
    let mut lines = Vec::new();
    for Finding { check, state, says, next } in findings {
        let state = match state {
            State::Fine => "fine",
            State::Warning => "warning",
            State::Wrong => "WRONG",
        };
        lines.push(format!("{state:<7}  {check:<width$}  {says}"));
        lines.extend(next.iter().map(|next| format!("{:7}  {:width$}  -> {next}", "", "")));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_to_do_stands_below_what_is_wrong() {
        let fine = Finding::of("disk", Ok("9 GB free".to_owned()));
        let wrong = Finding::of("port 1", Err(Fault::wrong("taken", "take another")));
        let text = "fine     disk    9 GB free\nWRONG    port 1  taken\n                 -> take another";
        assert_eq!(render(&[fine, wrong]), text);
    }
}
