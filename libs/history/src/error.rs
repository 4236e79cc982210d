//! Errors of segments. Each variant names the object and the step.

use std::{io, time::Duration};

use crate::{csv::CsvError, name::SegmentName};

/// A failure of the segment store or of a segment file.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// The store's root cannot be used.
    #[error("the history at {root} cannot be opened: {what}")]
    Root {
        /// Folder or URL.
        root: String,
        /// The reason.
        what: String,
    },
    /// The object store refused or broke off.
    #[error("{object}: the object store failed")]
    Store {
        /// The object's name.
        object: String,
        /// The store's error, for the log.
        source: object_store::Error,
    },
    /// The object store did not answer in time.
    #[error("{object}: no answer from the object store in {after:?}")]
    Late {
        /// The object's name.
        object: String,
        /// The deadline that passed.
        after: Duration,
    },
    /// The object does not exist (any more).
    #[error("{object}: not there")]
    Gone {
        /// The object's name.
        object: String,
    },
    /// The object exists already; segments are never replaced.
    #[error("{object}: there already")]
    Exists {
        /// The object's name.
        object: String,
    },
    /// The bytes do not have their checksums, lengths or order.
    #[error("{object}: {what}")]
    Damaged {
        /// The object's name.
        object: String,
        /// The fault and its position.
        what: String,
    },
    /// A segment cannot be made, because its heights, times or members contradict each other.
    #[error("no segment can be made: {0}")]
    Unfit(String),
    /// A table's text is not of the CSV dialect.
    #[error("{member}: {source}")]
    Csv {
        /// The member.
        member: String,
        /// The violation of the dialect.
        source: CsvError,
    },
    /// A local file failed.
    #[error("{step}")]
    Io {
        /// The step.
        step: &'static str,
        /// The system's error.
        source: io::Error,
    },
}

impl HistoryError {
    /// Whether the store failed and not the object, which may be readable for another replica, or later.
    #[must_use]
    pub fn is_unreachable(&self) -> bool {
        matches!(self, Self::Store { .. } | Self::Late { .. } | Self::Io { .. })
    }

    pub(crate) fn damaged(object: &SegmentName, what: impl Into<String>) -> HistoryError {
        HistoryError::Damaged { object: object.to_string(), what: what.into() }
    }

    pub(crate) fn io(step: &'static str) -> impl FnOnce(io::Error) -> HistoryError {
        move |source| HistoryError::Io { step, source }
    }
}
