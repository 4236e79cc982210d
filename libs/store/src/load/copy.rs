//! Streams one CSV file into its table with COPY.
//!
//! A file whose columns are all known goes straight into the table. One with other columns goes through a
//! temporary table that is like the target, keys and checks included, and has those columns as text; so a bad
//! row is found with its line either way.

use std::pin::pin;

use bytes::{Bytes, BytesMut};
use futures_util::SinkExt;
use tokio::io::AsyncReadExt;
use tokio_postgres::error::SqlState;
use tokio_postgres::{CopyInSink, Error, Transaction};

use super::folder::{Catalog, Source};
use super::quoted;
use crate::error::StoreError;

/// Bytes read from a file and sent to the server at a time.
const PIECE: usize = 256 << 10;

/// Beginning of the names of staging tables and of the columns in them that are dropped.
const STAGING: &str = "mesh_load_";

/// Copies the file of `source` into its table and returns the number of rows.
pub(super) async fn copy_file(
    transaction: &Transaction<'_>,
    source: &Source,
    catalog: &Catalog,
) -> Result<u64, StoreError> {
    let unknown = source.unknown(catalog);
    if unknown.is_empty() {
        let columns: Vec<String> = source.header.iter().map(|name| quoted(name)).collect();
        return copy_into(transaction, source, &quoted(&source.table), &columns).await;
    }

    // The unknown columns get names of our own: the file's may be empty or too long for an identifier.
    let staging = quoted(&format!("{STAGING}{}", source.table));
    let target = quoted(&source.table);
    let skipped = |name: &String| {
        let place = unknown.iter().position(|other| other == name)?;
        Some(format!("{STAGING}skipped_{place}"))
    };
    let columns: Vec<String> =
        source.header.iter().map(|name| skipped(name).unwrap_or_else(|| quoted(name))).collect();
    let extra: Vec<String> =
        unknown.iter().filter_map(skipped).map(|name| format!("ADD COLUMN {name} text")).collect();
    transaction
        .batch_execute(&format!(
            "CREATE TEMP TABLE {staging} (LIKE {target} INCLUDING ALL) ON COMMIT DROP;
             ALTER TABLE {staging} {}",
            extra.join(", "),
        ))
        .await
        .map_err(StoreError::in_step("making a staging table"))?;
    copy_into(transaction, source, &staging, &columns).await?;
    let known: Vec<String> = source.known(catalog).map(|name| quoted(name)).collect();
    let known = known.join(", ");
    let rows = transaction
        .execute(&format!("INSERT INTO {target} ({known}) SELECT {known} FROM {staging}"), &[])
        .await
        .map_err(|error| bad_row(source, error))?;
    transaction
        .batch_execute(&format!("DROP TABLE {staging}"))
        .await
        .map_err(StoreError::in_step("dropping a staging table"))?;
    Ok(rows)
}

async fn copy_into(
    transaction: &Transaction<'_>,
    source: &Source,
    table: &str,
    columns: &[String],
) -> Result<u64, StoreError> {
    let statement = format!("COPY {table} ({}) FROM STDIN (FORMAT csv, HEADER true)", columns.join(", "));
    let sink: CopyInSink<Bytes> =
        transaction.copy_in(&statement).await.map_err(|error| bad_row(source, error))?;
    let mut sink = pin!(sink);
    let unreadable = |error| StoreError::Read { path: source.path.clone(), source: error };
    let mut file = tokio::fs::File::open(&source.path).await.map_err(unreadable)?;
    loop {
        let mut piece = BytesMut::with_capacity(PIECE);
        while piece.len() < PIECE && file.read_buf(&mut piece).await.map_err(unreadable)? > 0 {}
        if piece.is_empty() {
            break;
        }
        sink.send(piece.freeze()).await.map_err(|error| bad_row(source, error))?;
    }
    sink.finish().await.map_err(|error| bad_row(source, error))
}

/// Tells a row that does not fit from a server that fails.
fn bad_row(source: &Source, error: Error) -> StoreError {
    let Some(told) = error.as_db_error() else {
        return StoreError::Database { step: "copying a file into its table", source: error };
    };
    // Classes 22 and 23 of SQLSTATE: data exceptions and constraint violations.
    if !matches!(told.code().code().get(..2), Some("22" | "23")) {
        return StoreError::Database { step: "copying a file into its table", source: error };
    }
    let message = told.message().replace(STAGING, "");
    let reason = match told.detail() {
        // "Key (height)=(5) already exists." Other details repeat the whole row.
        Some(detail) if *told.code() == SqlState::UNIQUE_VIOLATION => {
            format!("{message}, {}", detail.trim_end_matches('.'))
        }
        _ => message,
    };
    StoreError::BadFile { file: source.file.clone(), place: told.where_().and_then(place), reason }
}

/// The place in PostgreSQL's context `COPY trades, line 3, column price: "abc"`: what stands between the table
/// and the value. Untouched words, so it works in whatever language the server speaks.
fn place(context: &str) -> Option<String> {
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
            assert_eq!(place(context).as_deref(), found);
        }
    }
}
