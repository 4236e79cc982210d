//! How a command fails: one sentence that says what to do next, and an exit code.

use std::{error::Error, fmt, process::ExitCode};

use mesh_bus::BusError;
use mesh_export::SealError;
use mesh_history::HistoryError;
use mesh_launcher::{control::ControlError, home::HomeError, servers::ServerError, supervisor::NotReady};
use mesh_loader::LoadError;
use mesh_node::NodeError;
use mesh_problem::error_chain;
use mesh_store::error::StoreError;
use tokio_postgres::error::SqlState;

/// A failure with exit code 1 of a format string and its arguments.
macro_rules! failed {
    ($($text:tt)*) => {
        $crate::failure::Failure::failed(format!($($text)*))
    };
}
pub(crate) use failed;

/// The failure of a command: its message and its exit code.
#[derive(Debug)]
pub struct Failure {
    /// The exit code: 0 standard output was closed by its reader, 1 failed, 2 wrong usage, 64 wrong configuration, 69 a
    /// server is missing.
    pub code: u8,
    message: String,
}

impl Failure {
    /// The reader of standard output has closed it and wants no more: the command ends with exit code 0 and without a
    /// message.
    pub(crate) fn unread() -> Self {
        Self { code: 0, message: String::new() }
    }

    /// Failed or refused: exit code 1.
    pub fn failed(message: impl Into<String>) -> Self {
        Self { code: 1, message: message.into() }
    }

    /// Wrong usage of the command line: exit code 2.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { code: 2, message: message.into() }
    }

    /// Wrong configuration: exit code 64.
    pub fn configuration(message: impl Into<String>) -> Self {
        Self { code: 64, message: message.into() }
    }

    /// A needed server is not installed and cannot be installed: exit code 69.
    pub fn missing(message: impl Into<String>) -> Self {
        Self { code: 69, message: message.into() }
    }

    /// Appends a clause to the message.
    #[must_use]
    pub fn and(mut self, more: &str) -> Self {
        self.message.push_str("; ");
        self.message.push_str(more);
        self
    }

    /// Writes a failure to standard error and returns the exit code of the process.
    pub fn exit(outcome: Result<(), Failure>) -> ExitCode {
        match outcome {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => {
                if failure.code != 0 {
                    crate::terminal::print_line(&failure.to_string());
                }
                ExitCode::from(failure.code)
            }
        }
    }
}

/// Errors whose texts are complete: exit code 1, with their causes.
macro_rules! failed_from {
    ($($error:ty),*) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self::failed(error_chain(&error))
            }
        })*
    };
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let text = error_chain(&error);
        match error {
            _ if error.is_wrong_address() => Self::configuration(text),
            StoreError::Connect { .. } => Self::missing(text),
            StoreError::Database { source, .. } if source.code() == Some(&SqlState::UNDEFINED_TABLE) => {
                Self::failed(text).and("migrate the database first with `mesh migrate --postgres URL`")
            }
            _ => Self::failed(text),
        }
    }
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::Store(error) => error.into(),
            other => Self::failed(error_chain(&other)),
        }
    }
}

failed_from!(BusError, SealError, HistoryError, HomeError, ControlError, NotReady, serde_json::Error);

impl From<ServerError> for Failure {
    fn from(error: ServerError) -> Self {
        match error {
            ServerError::Missing(_) | ServerError::OtherVersion(..) => Self::missing(error.to_string()),
            other => Self::failed(error_chain(&other)),
        }
    }
}

impl From<NodeError> for Failure {
    fn from(error: NodeError) -> Self {
        match error {
            NodeError::Configuration(message) => Self::configuration(message),
            NodeError::NotInstalled(message) => Self::missing(message),
            NodeError::Server(error) => error.into(),
            NodeError::Failed(message) => Self::failed(message),
        }
    }
}

impl fmt::Display for Failure {
    /// One line without control characters, which a server's text may have: they and runs of spaces become one space.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_space = |letter: char| letter.is_whitespace() || letter.is_control();
        let words: Vec<&str> = self.message.split(is_space).filter(|word| !word.is_empty()).collect();
        f.write_str(&as_typed(&words.join(" ")))
    }
}

/// A failure `cannot STEP: CAUSES`, exit code 1.
pub fn cannot(step: &str, error: &dyn Error) -> Failure {
    failed!("cannot {step}: {}", error_chain(error))
}

/// Replaces `` `mesh `` by `` `cargo mesh `` when this program runs from a checkout's target folder.
pub fn as_typed(text: &str) -> String {
    let in_checkout = std::env::current_exe()
        .is_ok_and(|program| mesh_launcher::workspace::build_location(&program).is_some());
    if in_checkout { text.replace("`mesh ", "`cargo mesh ") } else { text.to_owned() }
}
