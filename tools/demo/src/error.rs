//! Errors of making and writing the demo network.

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
    /// The thread that makes rows ended early.
    #[error("the generator stopped before the history was complete")]
    Generator,
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
