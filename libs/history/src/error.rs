//! What can go wrong with segments: each variant names the object and the step.

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
        /// Why.
        what: String,
    },
    /// The object store refused or broke off.
    #[error("{object}: the object store failed")]
    Store {
        /// The object's name.
        object: String,
        /// The store's own words, for the log.
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
    /// The object is not there (any more).
    #[error("{object}: not there")]
    Gone {
        /// The object's name.
        object: String,
    },
    /// The object is there already; segments are never replaced.
    #[error("{object}: there already")]
    Exists {
        /// The object's name.
        object: String,
    },
    /// The bytes are not what their checksums, lengths or order say.
    #[error("{object}: {what}")]
    Damaged {
        /// The object's name.
        object: String,
        /// What is wrong, and where.
        what: String,
    },
    /// A segment was asked to be made of figures that do not fit together.
    #[error("no segment can be made: {0}")]
    Unfit(String),
    /// A table's text is not of the CSV dialect.
    #[error("{member}: {source}")]
    Csv {
        /// The member under way.
        member: String,
        /// What is wrong with the text.
        source: CsvError,
    },
    /// A local file failed.
    #[error("{step}")]
    Io {
        /// What was being done.
        step: &'static str,
        /// The system's words.
        source: io::Error,
    },
}

impl HistoryError {
    pub(crate) fn damaged(object: &SegmentName, what: impl Into<String>) -> HistoryError {
        HistoryError::Damaged { object: object.to_string(), what: what.into() }
    }

    pub(crate) fn io(step: &'static str) -> impl FnOnce(io::Error) -> HistoryError {
        move |source| HistoryError::Io { step, source }
    }
}
