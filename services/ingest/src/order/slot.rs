//! A block between the node and the store.

use std::time::Duration;

use super::types::{Halt, Link};

/// Names an action; the event that answers it carries the same.
pub type Ticket = u64;

/// The state of a block.
#[derive(Debug)]
pub(super) enum Slot {
    /// It is to be fetched at this time.
    Wanted {
        at: Duration,
        /// Since when the node has no results of it.
        without_results_since: Option<Duration>,
    },
    /// It is being fetched.
    Fetching { ticket: Ticket, without_results_since: Option<Duration> },
    /// It is to be decoded at this time.
    Fetched { link: Link, at: Duration },
    /// It is being decoded.
    Decoding { ticket: Ticket, link: Link },
    /// It is decoded into so many rows.
    Ready { link: Link, rows: usize },
    /// It cannot be stored; at this time it is fetched once more.
    Failed { halt: Halt, until: Duration },
}

impl Slot {
    /// The link of a block that is held.
    pub(super) fn link(&self) -> Option<&Link> {
        match self {
            Self::Fetched { link, .. } | Self::Decoding { link, .. } | Self::Ready { link, .. } => Some(link),
            Self::Wanted { .. } | Self::Fetching { .. } | Self::Failed { .. } => None,
        }
    }

    /// The number of rows, once it is known.
    pub(super) fn rows(&self) -> usize {
        if let Self::Ready { rows, .. } = self { *rows } else { 0 }
    }

    /// The time of the next action on the block, when none is under way.
    pub(super) fn due(&self) -> Option<Duration> {
        match self {
            Self::Wanted { at, .. } | Self::Fetched { at, .. } | Self::Failed { until: at, .. } => Some(*at),
            Self::Fetching { .. } | Self::Decoding { .. } | Self::Ready { .. } => None,
        }
    }
}
