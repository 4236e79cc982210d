//! Errors of migrations and of bulk loads. A variant names the step that failed; the cause is its source.

use std::{fmt, path::PathBuf};

use mesh_store::error::StoreError;

/// A failed migration or load.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// No connection, or a statement failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A migration failed, or the database has other migrations with the same numbers. The cause names the migration.
    #[error("migrating the database failed")]
    Migrate(#[source] refinery::Error),
    /// The database lacks these migrations that this build needs, oldest first, as in `V1__exportable_tables`.
    #[error("the database lacks migration {}: migrate it first", .0.join(", "))]
    SchemaBehind(Vec<String>),
    /// The tables cannot be made in this database, for this reason.
    #[error("{0}")]
    Unsuitable(String),
    /// Migrations are applied, and these tables that they create are not there, sorted.
    #[error(
        "the database lacks {}, which applied migrations created: restore the database from a back-up, or migrate an empty one",
        .0.join(", ")
    )]
    TablesDropped(Vec<String>),
    /// A file or folder cannot be read.
    #[error("cannot read {}", .0.display())]
    Read(PathBuf, #[source] std::io::Error),
    /// A folder to load holds no CSV file that belongs to a table.
    #[error("no CSV file in {} is named like a table", .0.display())]
    NothingToLoad(PathBuf),
    /// A load needs empty tables, and these are not, sorted.
    #[error("a load needs empty tables, but there are rows in {}", .0.join(", "))]
    NotEmpty(Vec<String>),
    /// The text of a member of a segment cannot be read.
    #[error("{0} cannot be read")]
    Text(String, #[source] Box<dyn std::error::Error + Send + Sync>),
    /// The database holds other rows than a segment to import: the segment, and the difference.
    #[error("the database does not agree with {0}: {1}")]
    Disagrees(String, String),
    /// Another session writes to a table that a load needs for itself.
    #[error("another session is writing to the tables to load, try again when it is done")]
    Busy,
    /// A CSV file does not fit its table. The reason is PostgreSQL's message; line 1 is the header.
    #[error("{file}{}: {reason}", place.as_ref().map(|place| format!(", {place}")).unwrap_or_default())]
    BadFile {
        /// The file's name.
        file: String,
        /// Line and column, e.g. `line 3, column height`; `None` when the reason applies to the whole file.
        place: Option<String>,
        /// The reason, in one sentence.
        reason: String,
    },
}

impl LoadError {
    /// A [`LoadError::BadFile`] of a place, or of the whole file.
    pub(crate) fn bad_file(file: &str, place: Option<String>, reason: impl fmt::Display) -> Self {
        Self::BadFile { file: file.to_owned(), place, reason: reason.to_string() }
    }

    /// Wraps a driver's error with the step that failed, for `map_err`.
    pub(crate) fn in_step(step: &'static str) -> impl Fn(tokio_postgres::Error) -> Self {
        move |source| StoreError::Database { step, source }.into()
    }
}
