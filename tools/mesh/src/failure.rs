//! How a command fails: one sentence that says what to do next, and an exit code.

use std::{error::Error, fmt, process::ExitCode};

use mesh_history::HistoryError;
use mesh_problem::error_chain;
use mesh_store::error::StoreError;

/// Why a command failed.
#[derive(Debug)]
pub struct Failure {
    /// The exit code, one of the few that the command line promises.
    pub code: u8,
    message: String,
}

impl Failure {
    /// Failed or refused.
    pub fn failed(message: impl Into<String>) -> Self {
        Self { code: 1, message: message.into() }
    }

    /// Wrong usage of the command line.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { code: 2, message: message.into() }
    }

    /// Wrong configuration.
    pub fn configuration(message: impl Into<String>) -> Self {
        Self { code: 64, message: message.into() }
    }

    /// A needed server is not there and cannot be installed.
    pub fn missing(message: impl Into<String>) -> Self {
        Self { code: 69, message: message.into() }
    }

    /// The same, and something more that its reader wants to know.
    #[must_use]
    pub fn and(mut self, more: &str) -> Self {
        self.message.push_str("; ");
        self.message.push_str(more);
        self
    }
}

impl Failure {
    /// Says on standard error how a command failed, if it did, and gives the exit code of the process.
    pub fn exit(outcome: Result<(), Failure>) -> ExitCode {
        match outcome {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => {
                eprintln!("{failure}");
                ExitCode::from(failure.code)
            }
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::failed(error_chain(&error))
    }
}

impl From<HistoryError> for Failure {
    fn from(error: HistoryError) -> Self {
        Self::failed(error_chain(&error))
    }
}

impl fmt::Display for Failure {
    /// One line, whatever the causes said.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<&str> = self.message.split_whitespace().collect();
        f.write_str(&as_typed(&words.join(" ")))
    }
}

/// Says which step failed.
pub fn cannot(step: &str, error: &dyn Error) -> Failure {
    Failure::failed(format!("cannot {step}: {}", error_chain(error)))
}

/// Names commands as the reader types them: in a checkout the program is reached through cargo.
pub fn as_typed(text: &str) -> String {
    let in_checkout = std::env::current_exe()
        .is_ok_and(|program| mesh_launcher::workspace::build_location(&program).is_some());
    if in_checkout { text.replace("`mesh ", "`cargo mesh ") } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_one_line_whatever_it_was_made_of() {
        let failure = Failure::failed("first\n  second\tthird");
        assert_eq!(failure.to_string(), "first second third");
    }
}
