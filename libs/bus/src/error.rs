//! Why the bus cannot be used.

use std::error::Error;

/// Why the bus cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BusError {
    /// The configuration cannot work.
    #[error("the bus cannot be used as configured")]
    Configuration(#[source] Box<dyn Error + Send + Sync>),
    /// The connection is closed.
    #[error("the connection to the bus is closed")]
    Closed(#[source] Box<dyn Error + Send + Sync>),
}

impl BusError {
    pub(crate) fn configuration(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Configuration(cause.into())
    }

    pub(crate) fn closed(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Closed(cause.into())
    }
}
