//! Why a read failed, in the cases that a caller treats differently.

use deadpool_postgres::PoolError;
use mesh_problem::{NOT_MAPPED, Problem, error_chain, sources};
use tokio_postgres::error::{DbError, Severity, SqlState};

use crate::address::AddressError;

/// Why a read failed.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The configuration cannot work.
    #[error("the database address does not parse")]
    Configuration(#[source] AddressError),
    /// The pool cannot be built.
    #[error("the connection pool cannot be built")]
    Pool(#[from] deadpool_postgres::BuildError),
    /// The database is unreachable.
    #[error("the database is unreachable")]
    Away(#[source] Option<Box<dyn std::error::Error + Send + Sync>>),
    /// The server has no room for another connection, and none is open. The cause is absent when it refused one a moment
    /// before.
    #[error("the database has no free connection")]
    Full(#[source] Option<tokio_postgres::Error>),
    /// All connections are taken.
    #[error("all connections to the database are busy")]
    Busy,
    /// The statement took too long.
    #[error("the statement took too long")]
    Late,
    /// The statement waited for a lock for longer than its session allows.
    #[error("a table is locked")]
    Locked,
    /// The server aborted the statement, which may succeed when it is repeated: a standby replays a conflicting change, or
    /// there was a deadlock.
    #[error("the database aborted the statement")]
    Aborted(#[source] tokio_postgres::Error),
    /// The statement failed.
    #[error("the statement failed")]
    Failed(#[source] tokio_postgres::Error),
    /// A column of a row does not have the expected type or value.
    #[error("a stored value cannot be shown: {0}")]
    Unreadable(String),
}

impl ReadError {
    /// The problem for the client; `number` is the application number of the operation's failure.
    pub fn problem(&self, number: u32) -> Problem {
        let problem = match self {
            Self::Away(_) => Problem::unavailable("the database is unreachable"),
            Self::Full(_) => Problem::unavailable("the database has no free connection").local(),
            Self::Busy => Problem::unavailable("the database is busy"),
            Self::Aborted(_) => Problem::unavailable("the database aborted the query"),
            Self::Late | Self::Locked => Problem::deadline_exceeded("the database did not answer in time"),
            Self::Configuration(_) | Self::Pool(_) | Self::Failed(_) | Self::Unreadable(_) => {
                Problem::internal(number, "the query failed")
            }
        };
        problem.caused_by(error_chain(self))
    }

    /// The label of metrics and spans.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Configuration(_) | Self::Pool(_) => "configuration",
            Self::Away(_) => "away",
            Self::Full(_) => "full",
            Self::Busy => "busy",
            Self::Late | Self::Locked => "timeout",
            Self::Aborted(_) => "aborted",
            Self::Failed(_) => "failed",
            Self::Unreadable(_) => "unreadable",
        }
    }
}

/// For an operation without an application number for failed queries.
impl From<ReadError> for Problem {
    fn from(error: ReadError) -> Self {
        error.problem(NOT_MAPPED)
    }
}

impl From<tokio_postgres::Error> for ReadError {
    fn from(error: tokio_postgres::Error) -> Self {
        match error.code() {
            Some(&SqlState::QUERY_CANCELED) => Self::Late,
            Some(&SqlState::LOCK_NOT_AVAILABLE) => Self::Locked,
            // Of the server, its reserved slots, the database or the user.
            Some(&SqlState::TOO_MANY_CONNECTIONS) => Self::Full(Some(error)),
            Some(code) if means_away(code) || is_fatal(&error) => Self::Away(Some(error.into())),
            Some(&SqlState::T_R_SERIALIZATION_FAILURE | &SqlState::T_R_DEADLOCK_DETECTED) => {
                Self::Aborted(error)
            }
            Some(_) => Self::Failed(error),
            // An error without a code is the driver's: the connection broke or cannot be made, or a value
            // does not fit its type.
            None if error.is_closed() || is_io(&error) => Self::Away(Some(error.into())),
            None => Self::Failed(error),
        }
    }
}

impl From<PoolError> for ReadError {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Timeout(deadpool_postgres::TimeoutType::Wait) => Self::Busy,
            PoolError::Backend(error) => match Self::from(error) {
                Self::Failed(error) => Self::Away(Some(error.into())),
                other => other,
            },
            other => Self::Away(Some(other.into())),
        }
    }
}

/// Whether a SQLSTATE means that the server is unavailable: class 08 (connection), 57P01-57P03 (shutdown, crash,
/// starting up). Not 25006 (read-only transaction), which would be a bug of ours.
fn means_away(code: &SqlState) -> bool {
    code.code().starts_with("08") || code.code().starts_with("57P")
}

/// Whether the server has ended the session with the error, as a standby ends one in conflict with a replayed change.
fn is_fatal(error: &tokio_postgres::Error) -> bool {
    error.as_db_error().and_then(DbError::parsed_severity) == Some(Severity::Fatal)
}

fn is_io(error: &tokio_postgres::Error) -> bool {
    sources(error).any(|cause| cause.is::<std::io::Error>())
}
