//! The one way rows come into the tables as text: COPY, with the checks that readers rely on (DATA_MODEL
//! W1), and PostgreSQL's errors about rows made readable.
//!
//! Every record that is read must become a row, and blocks must follow each other. What a value may be, NaN
//! and times outside of 1678 to 2261 among it, the tables' own constraints say. Only what PostgreSQL would store
//! as another value is found here.

use std::pin::pin;

use bytes::Bytes;
use futures_util::{SinkExt, Stream, StreamExt};
use mesh_store::{
    append::{ColumnKind, is_of_row, value_rule},
    blocks::{BlockFault, first_fault},
};
use tokio_postgres::{CopyInSink, Error, Transaction, error::SqlState};

use crate::{
    LoadError,
    records::{BadRecord, BadValue, RecordReader},
    sequence::BlockSequence,
};

/// Prefix of the names of staging tables and of their columns that the target does not have.
pub(crate) const STAGING: &str = "mesh_load_";

/// A CSV text that is copied into a relation.
pub(crate) struct CsvText<'a> {
    /// The name of the text in errors.
    pub(crate) file: &'a str,
    /// The relation, as SQL.
    pub(crate) relation: &'a str,
    /// The relation's columns in the order of the text, as SQL.
    pub(crate) columns: &'a [String],
    /// The text's names of its columns, in its order.
    pub(crate) names: &'a [String],
    /// What texts these columns take.
    pub(crate) kinds: Vec<ColumnKind>,
    pub(crate) has_header: bool,
    /// The block that the text's blocks continue, when the text holds blocks.
    pub(crate) blocks: Option<BlockSequence>,
}

pub(crate) async fn copy_in(
    transaction: &Transaction<'_>,
    source: CsvText<'_>,
    text: impl Stream<Item = Result<Bytes, LoadError>>,
) -> Result<u64, LoadError> {
    let CsvText { file, relation, columns, names, kinds, has_header, blocks } = source;
    let statement =
        format!("COPY {relation} ({}) FROM STDIN (FORMAT csv, HEADER {has_header})", columns.join(", "));
    let mut reader = RecordReader::new(has_header).watch_values(kinds);
    if let Some(sequence) = blocks {
        reader = reader.watch_blocks(names, sequence);
    }
    let refused = |place: String, fault: BlockFault| LoadError::bad_file(file, Some(place), fault);
    let check_value = |reader: &RecordReader| match reader.bad_value() {
        None => Ok(()),
        Some(BadValue { line, column, value, reason }) => {
            let place = format!("line {line}, column {}", names[*column]);
            Err(LoadError::bad_file(file, Some(place), format!("{reason}: {value:?}")))
        }
    };
    let sink: CopyInSink<Bytes> =
        transaction.copy_in(&statement).await.map_err(|error| bad_row(file, error))?;
    let (mut sink, mut text) = (pin!(sink), pin!(text));
    while let Some(piece) = text.next().await {
        for piece in reader.read(piece?) {
            sink.send(piece).await.map_err(|error| bad_row(file, error))?;
        }
        check_value(&reader)?;
    }
    let (rest, records) = reader.finish();
    check_value(&reader)?;
    if !rest.is_empty() {
        sink.send(rest).await.map_err(|error| bad_row(file, error))?;
    }
    let rows = sink.finish().await.map_err(|error| bad_row(file, error))?;
    check_count(file, records, rows)?;
    if let Some(BadRecord { line, fault }) = reader.take_fault() {
        return Err(refused(format!("line {line}"), fault));
    }
    if reader.is_unsure()
        && let Some(fault) = first_fault(transaction, relation, None).await?
    {
        return Err(refused(format!("height {}", fault.height()), fault));
    }
    Ok(rows)
}

/// Refuses a text of which the database has stored more or fewer rows than were read.
pub(crate) fn check_count(file: &str, read: u64, stored: u64) -> Result<(), LoadError> {
    if read == stored {
        return Ok(());
    }
    Err(LoadError::bad_file(file, None, format!("the database stored {stored} of its {read} rows")))
}

/// The error of a COPY: a row that does not fit, or a failure of the server.
pub(crate) fn bad_row(file: &str, error: Error) -> LoadError {
    let Some(cause) = error.as_db_error().filter(|cause| is_of_row(cause)) else {
        return LoadError::in_step("copying a file into its table")(error);
    };
    let message = cause.message().replace(STAGING, "");
    let reason = match (value_rule(cause), cause.detail()) {
        (Some(rule), _) => rule.to_owned(),
        // "Key (height)=(5) already exists." Other details repeat the whole row.
        (None, Some(detail)) if *cause.code() == SqlState::UNIQUE_VIOLATION => {
            format!("{message}, {}", detail.trim_end_matches('.'))
        }
        _ => message,
    };
    LoadError::bad_file(file, cause.where_().and_then(location), reason)
}

/// An identifier as SQL text.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Identifiers as SQL text, separated by commas.
pub(crate) fn quoted_list(names: impl IntoIterator<Item: AsRef<str>>) -> String {
    names.into_iter().map(|name| quoted(name.as_ref())).collect::<Vec<_>>().join(", ")
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
