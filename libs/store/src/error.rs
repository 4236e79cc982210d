//! Errors of PostgreSQL and of the connection to it. A variant names the step that failed; the cause is its
//! source.

use tokio_postgres::error::SqlState;

use crate::address::AddressError;

/// A failure of the store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database URL cannot be read.
    #[error("the database address cannot be read")]
    Url {
        /// The cause.
        source: AddressError,
    },
    /// No connection: the server cannot be reached, or refuses it.
    #[error("cannot connect to the database")]
    Connect {
        /// The driver's error.
        source: tokio_postgres::Error,
    },
    /// A statement failed, and neither its parameters nor the data are the reason.
    #[error("{step} failed")]
    Database {
        /// The step, e.g. "reading the schema version".
        step: &'static str,
        /// The driver's error.
        source: tokio_postgres::Error,
    },
    /// The server is connected and does not answer.
    #[error("{step} failed: the database says nothing")]
    Silent {
        /// The step.
        step: &'static str,
    },
    /// The triggers that keep the derived tables do not fire.
    #[error(
        "triggers are switched off: reset session_replication_role for this role and database, and enable the tables' triggers"
    )]
    NoTriggers,
    /// The database stored another number of rows than it received.
    #[error("{table}: the database stored {stored} of its {sent} rows")]
    Incomplete {
        /// The table.
        table: String,
        /// Rows that were sent.
        sent: u64,
        /// Rows that were stored.
        stored: u64,
    },
}

impl StoreError {
    /// Whether no connection can succeed before the address is corrected: it cannot be read, or the server that it names
    /// rejects its user, its password or its database.
    pub fn is_wrong_address(&self) -> bool {
        match self {
            Self::Url { .. } => true,
            Self::Connect { source } => match source.code() {
                // Class 28 of SQLSTATE: invalid authorization.
                Some(code) => code.code().starts_with("28") || *code == SqlState::INVALID_CATALOG_NAME,
                // The server asks for a password, and the address has none.
                None => source.to_string().starts_with("invalid configuration"),
            },
            _ => false,
        }
    }

    /// Wraps a driver's error with the step that failed, for `map_err`.
    pub(crate) fn in_step(step: &'static str) -> impl Fn(tokio_postgres::Error) -> Self {
        move |source| Self::Database { step, source }
    }
}
