//! Errors of making, writing and feeding the demo network.

use std::error::Error;

use mesh_store::error::StoreError;

/// A failed step, with its cause.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// The numbers of the plan are not usable.
    #[error("the plan of the demo network is not usable: {0}")]
    Plan(String),
    /// The store holds blocks of another network, or of a demo network with another plan.
    #[error("the store does not hold this demo network: {0}")]
    Foreign(String),
    /// Another session feeds the same store.
    #[error("another process already writes the demo network into this store")]
    Busy,
    /// No connection to the database, or blocks that it did not take.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The database refused or broke off a step.
    #[error("the database failed while {step}")]
    Database {
        /// What was being done.
        step: &'static str,
        /// The driver's error.
        source: tokio_postgres::Error,
    },
    /// The database did not answer in time.
    #[error("the database did not answer in time")]
    Silent,
    /// The state file could not be read or written.
    #[error("the state file {path} could not be {step}")]
    State {
        /// Its path.
        path: String,
        /// What was being done.
        step: &'static str,
        /// The system's error.
        source: std::io::Error,
    },
    /// The thread that makes rows ended early.
    #[error("the generator stopped before the history was complete")]
    Generator,
}

impl DemoError {
    /// Whether a retry can help: the server is unreachable, another session still has the lock, or the block
    /// does not follow a store that was set back meanwhile.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        match self {
            DemoError::Busy | DemoError::Silent | DemoError::Store(StoreError::BadFile { .. }) => true,
            DemoError::Database { source, .. }
            | DemoError::Store(StoreError::Connect { source } | StoreError::Database { source, .. }) => {
                passes(source)
            }
            _ => false,
        }
    }
}

fn passes(error: &tokio_postgres::Error) -> bool {
    match error.code() {
        // SQLSTATE classes: connection exception, insufficient resources, object not in prerequisite state,
        // operator intervention, system error, transaction rollback.
        Some(code) => ["08", "40", "53", "55", "57", "58"].contains(&&code.code()[..2]),
        None => error.is_closed() || error.source().is_some_and(|cause| cause.is::<std::io::Error>()),
    }
}

/// Maps a database error to a [`DemoError`] that names the failed step.
pub(crate) trait Step<T> {
    fn step(self, step: &'static str) -> Result<T, DemoError>;
}

impl<T> Step<T> for Result<T, tokio_postgres::Error> {
    fn step(self, step: &'static str) -> Result<T, DemoError> {
        self.map_err(|source| DemoError::Database { step, source })
    }
}
