//! Why a node cannot be started, or ends.

use mesh_launcher::servers::ServerError;

/// A failure of a node: one sentence that says what to do next.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// A variable is missing or wrong.
    #[error("{0}")]
    Configuration(String),
    /// CometBFT is not installed.
    #[error("{0}")]
    NotInstalled(String),
    /// A server cannot be prepared.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// Anything else.
    #[error("{0}")]
    Failed(String),
}

/// A [`NodeError::Failed`] of a format string and its arguments.
macro_rules! failed {
    ($($text:tt)*) => {
        $crate::error::NodeError::Failed(format!($($text)*))
    };
}
pub(crate) use failed;
