//! Copies CSV text into a table with COPY, and turns PostgreSQL's errors about rows into readable ones.

use std::pin::pin;

use bytes::Bytes;
use futures_util::{SinkExt, Stream, StreamExt};
use tokio_postgres::{CopyInSink, Error, Transaction, error::SqlState};

use crate::error::StoreError;

/// Prefix of the names of staging tables and of their columns that the target does not have.
pub(crate) const STAGING: &str = "mesh_load_";

/// Copies text with a header into the columns of a table, both given as SQL, and returns the number of rows.
/// `file` is the name of the text in errors.
pub(crate) async fn copy_in(
    transaction: &Transaction<'_>,
    file: &str,
    table: &str,
    columns: &[String],
    text: impl Stream<Item = Result<Bytes, StoreError>>,
) -> Result<u64, StoreError> {
    let statement = format!("COPY {table} ({}) FROM STDIN (FORMAT csv, HEADER true)", columns.join(", "));
    let sink: CopyInSink<Bytes> =
        transaction.copy_in(&statement).await.map_err(|error| bad_row(file, error))?;
    let (mut sink, mut text) = (pin!(sink), pin!(text));
    while let Some(piece) = text.next().await {
        sink.send(piece?).await.map_err(|error| bad_row(file, error))?;
    }
    sink.finish().await.map_err(|error| bad_row(file, error))
}

/// The error of a COPY: a row that does not fit, or a failure of the server.
pub(crate) fn bad_row(file: &str, error: Error) -> StoreError {
    let Some(cause) = error.as_db_error() else {
        return StoreError::Database { step: "copying a file into its table", source: error };
    };
    // Classes 22 and 23 of SQLSTATE: data exceptions and constraint violations.
    if !matches!(cause.code().code().get(..2), Some("22" | "23")) {
        return StoreError::Database { step: "copying a file into its table", source: error };
    }
    let message = cause.message().replace(STAGING, "");
    let reason = match cause.detail() {
        // "Key (height)=(5) already exists." Other details repeat the whole row.
        Some(detail) if *cause.code() == SqlState::UNIQUE_VIOLATION => {
            format!("{message}, {}", detail.trim_end_matches('.'))
        }
        _ => message,
    };
    StoreError::BadFile { file: file.to_owned(), place: cause.where_().and_then(location), reason }
}

/// An identifier as SQL text.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Line and column from PostgreSQL's context `COPY trades, line 3, column price: "abc"`: the part between the
/// table and the value. Copied word for word, so that it works with servers of any language.
fn location(context: &str) -> Option<String> {
    let copy = context.lines().find(|line| line.starts_with("COPY "))?;
    let (_, place) = copy.split_once(", ")?;
    let place = place.split_once(':').map_or(place, |(place, _)| place);
    Some(place.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_is_the_line_and_column_without_the_value() {
        for (context, found) in [
            ("COPY trades, line 3, column price: \"a: b, c\"", Some("line 3, column price")),
            ("COPY trades, line 3: \"a,b\"", Some("line 3")),
            ("COPY trades, line 3", Some("line 3")),
            ("JSON data, line 1: x\nCOPY markets, line 7, column fees: \"x\"", Some("line 7, column fees")),
            ("SQL statement \"INSERT\"\nPL/pgSQL function keep_last_block() line 5", None),
        ] {
            assert_eq!(location(context).as_deref(), found);
        }
    }
}
