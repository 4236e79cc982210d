//! The condition of the consensus nodes as a whole.

use http::StatusCode;

/// The best state among the nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Condition {
    /// One of them takes transactions.
    Takes,
    /// All that can be reached are catching up with the chain.
    CatchingUp,
    /// None can be used; in place of one of them, another server answers with this status.
    Foreign(StatusCode),
    /// None takes a connection.
    Away,
}
