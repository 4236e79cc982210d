//! Why a node does not serve a block, by the texts of its errors.

use std::time::Duration;

use super::MAX_REPLY_BYTES;

/// Why a node does not serve a block.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// The block is above the newest one.
    #[error("the node has no block of that height so far")]
    TooHigh,
    /// The block has no results so far.
    #[error("the node has no results of the block so far")]
    NoResultsYet,
    /// The node has removed the block; the oldest that it has is above it.
    #[error("the node's oldest block is {lowest}")]
    Pruned {
        /// The height of its oldest block.
        lowest: u64,
    },
    /// The node is configured to keep no results.
    #[error("the node keeps no results of blocks")]
    KeepsNoResults,
    /// A reply is longer than [`MAX_REPLY_BYTES`].
    #[error("the node's reply has more than {MAX_REPLY_BYTES} bytes")]
    TooLarge,
    /// The node, or a proxy before it, limits the rate of requests.
    #[error("the node limits the rate of requests")]
    Limited {
        /// When the next one is allowed.
        after: Duration,
    },
    /// No reply, or one that is no reply to the request: the end of a sentence about the node.
    #[error("the node {0}")]
    Unavailable(String),
}

impl FetchError {
    /// Reads an error of the node's.
    pub(super) fn read(text: &str) -> Self {
        if text.contains("must be less than or equal to the current blockchain height") {
            return Self::TooHigh;
        }
        if text.contains("could not find results") {
            return Self::NoResultsYet;
        }
        if text.contains("not persisting") {
            return Self::KeepsNoResults;
        }
        let lowest = text.split_once("lowest height is ").map(|(_, rest)| rest);
        let digits = |rest: &str| rest.chars().take_while(char::is_ascii_digit).collect::<String>();
        match lowest.and_then(|rest| digits(rest).parse().ok()) {
            Some(lowest) => Self::Pruned { lowest },
            None => Self::Unavailable(format!("answers with an error: {text}")),
        }
    }

    /// Rank of a node's error among those of all nodes; the greatest is reported. A node that does not answer now may have
    /// the block that others never have.
    pub(super) fn weight(&self) -> u8 {
        match self {
            Self::TooHigh => 0,
            Self::Pruned { .. } => 1,
            Self::KeepsNoResults => 2,
            Self::Unavailable(_) => 3,
            Self::Limited { .. } => 4,
            Self::NoResultsYet => 5,
            Self::TooLarge => 6,
        }
    }

    /// A reply to this path that is none of a consensus node.
    pub(super) fn unreadable(path: &str) -> Self {
        Self::Unavailable(format!("sent a reply to {path} that is none of a consensus node"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_versions_of_the_node_are_told_apart() {
        for (text, expected) in [
            ("height 7 must be less than or equal to the current blockchain height 6", FetchError::TooHigh),
            ("height 3 is not available, lowest height is 10", FetchError::Pruned { lowest: 10 }),
            ("could not find results for height #5", FetchError::NoResultsYet),
            ("node is not persisting abci responses", FetchError::KeepsNoResults),
            ("node is not persisting finalize block responses", FetchError::KeepsNoResults),
            ("x", FetchError::Unavailable("answers with an error: x".to_owned())),
        ] {
            assert_eq!(FetchError::read(text), expected, "{text}");
        }
    }
}
