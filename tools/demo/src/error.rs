//! What can go wrong while the demo network is made, written or kept alive.

use std::error::Error;

use mesh_store::error::StoreError;

/// A failed step, with its cause.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// The numbers of the plan make no network.
    #[error("the plan of the demo network is not usable: {0}")]
    Plan(String),
    /// The store holds blocks of another network, or of a demo network with another plan.
    #[error("the store does not hold this demo network: {0}")]
    Foreign(String),
    /// Another session feeds the same store.
    #[error("another process already writes the demo network into this store")]
    Busy,
    /// No connection to the database.
    #[error(transparent)]
    Unreachable(#[from] StoreError),
    /// The database refused or broke off a step.
    #[error("the database failed while {step}")]
    Database {
        /// What was being done.
        step: &'static str,
        /// What the driver said.
        source: tokio_postgres::Error,
    },
    /// The database did not answer in time.
    #[error("the database did not answer in time")]
    Silent,
    /// The state file could not be read or written.
    #[error("the state file {path} could not be {step}")]
    State {
        /// Where it lies.
        path: String,
        /// What was being done.
        step: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
    /// The making of rows ended early.
    #[error("the generator stopped before the history was complete")]
    Generator,
}

impl DemoError {
    /// Whether trying again later can help: the server went away, or another session still holds the store.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        match self {
            DemoError::Busy | DemoError::Silent => true,
            DemoError::Database { source, .. } | DemoError::Unreachable(StoreError::Connect { source }) => {
                passes(source)
            }
            _ => false,
        }
    }
}

fn passes(error: &tokio_postgres::Error) -> bool {
    match error.code() {
        // Connection trouble, lack of resources, a database that is closed for a while, a server that shuts
        // down, internal trouble, a transaction that was rolled back.
        Some(code) => ["08", "40", "53", "55", "57", "58"].contains(&&code.code()[..2]),
        None => error.is_closed() || error.source().is_some_and(|cause| cause.is::<std::io::Error>()),
    }
}

/// Names the step of a database call that failed.
pub(crate) trait Step<T> {
    fn step(self, step: &'static str) -> Result<T, DemoError>;
}

impl<T> Step<T> for Result<T, tokio_postgres::Error> {
    fn step(self, step: &'static str) -> Result<T, DemoError> {
        self.map_err(|source| DemoError::Database { step, source })
    }
}
