//! Errors of migrations and of bulk loads. A variant names the step that failed; the cause is its source.

use std::path::PathBuf;

use mesh_store::error::StoreError;

/// A failed migration or load.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// No connection, or a statement failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A migration failed, or the database has other migrations with the same numbers.
    #[error("migrating the database failed")]
    Migrate {
        /// The migration library's error; it names the migration.
        source: refinery::Error,
    },
    /// The database has not got every migration that this build needs.
    #[error("the database lacks migration {}: migrate it first", missing.join(", "))]
    SchemaBehind {
        /// The migrations that are missing, oldest first, as in `V1__exportable_tables`.
        missing: Vec<String>,
    },
    /// The tables cannot be made in this database.
    #[error("{reason}")]
    Unsuitable {
        /// Why not, and what to do.
        reason: String,
    },
    /// Migrations are applied, and tables that they create are not there.
    #[error(
        "the database lacks {}, which applied migrations created: restore the database from a back-up, or migrate an empty one",
        tables.join(", ")
    )]
    TablesDropped {
        /// The tables that are missing, sorted.
        tables: Vec<String>,
    },
    /// A file or folder cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// A folder to load holds no CSV file that belongs to a table.
    #[error("no CSV file in {} is named like a table", dir.display())]
    NothingToLoad {
        /// The folder.
        dir: PathBuf,
    },
    /// A load needs empty tables, and these are not.
    #[error("a load needs empty tables, but there are rows in {}", tables.join(", "))]
    NotEmpty {
        /// The tables that hold rows, sorted.
        tables: Vec<String>,
    },
    /// The text of a member of a segment cannot be read.
    #[error("{member} cannot be read")]
    Text {
        /// Segment and member.
        member: String,
        /// The reader's error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The database holds other rows than a segment to import.
    #[error("the database does not agree with {segment}: {what}")]
    Disagrees {
        /// The segment.
        segment: String,
        /// The difference.
        what: String,
    },
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
    /// Wraps a driver's error with the step that failed, for `map_err`.
    pub(crate) fn in_step(step: &'static str) -> impl Fn(tokio_postgres::Error) -> Self {
        move |source| StoreError::Database { step, source }.into()
    }
}
