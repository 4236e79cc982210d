//! Errors of making and writing the demo network.

use mesh_loader::LoadError;

/// A failed step, with its cause.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// The numbers of the plan are not usable.
    #[error("the plan of the demo network is not usable: {0}")]
    Plan(String),
    /// The store holds blocks of another network, or of a demo network with another plan.
    #[error("the store does not hold this demo network: {0}")]
    Foreign(String),
    /// No connection to the database, a step that failed, or blocks that it did not take.
    #[error(transparent)]
    Store(#[from] LoadError),
    /// The thread that makes rows ended early.
    #[error("the generator stopped before the history was complete")]
    Generator,
}
