//! The condition of the consensus nodes as a whole.

/// The best state among the nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Condition {
    /// One of them takes transactions.
    Takes,
    /// All that can be reached are catching up with the chain.
    CatchingUp,
    /// None takes a connection.
    Away,
}
