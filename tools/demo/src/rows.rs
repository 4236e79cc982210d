//! Rows of tables: values as PostgreSQL prints them, the CSV of a bulk load, and the events of a node.

use std::{collections::BTreeMap, fmt::Debug, sync::LazyLock};

use mesh_loader::{BlockWriter, LoadError};
use mesh_store::{TimeUs, schema::columns};
use sha2::{Digest, Sha256};

const TABLES: &str = "accounts assets balances blocks chain checkpoints delegations deposits epochs ledger \
    liquidity_provisions margin_levels market_data markets network_limits network_parameters oracle_specs \
    orders positions protocol_upgrade_proposals rewards trades withdrawals";

pub(crate) static COLUMNS: LazyLock<BTreeMap<&str, Vec<String>>> =
    LazyLock::new(|| TABLES.split_ascii_whitespace().map(|table| (table, columns(table))).collect());

/// A row: its values in the order of the table's columns. NULL is `None`.
pub type Record = Vec<Option<String>>;

/// The rows of one or more blocks per table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows(BTreeMap<&'static str, Vec<Record>>);

/// A row as a node announces it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowEvent {
    /// The table.
    pub table: &'static str,
    /// Column names and values, without columns that are NULL.
    pub values: Vec<(String, String)>,
}

impl Rows {
    /// Names of the tables that have rows.
    pub fn tables(&self) -> impl Iterator<Item = &'static str> {
        self.0.keys().copied()
    }

    /// The rows of a table.
    #[must_use]
    pub fn records(&self, table: &str) -> &[Record] {
        self.0.get(table).map_or(&[], Vec::as_slice)
    }

    /// Appends the rows of a later block.
    pub fn append(&mut self, later: Rows) {
        for (table, records) in later.0 {
            self.0.entry(table).or_default().extend(records);
        }
    }

    /// Writes the rows of whole blocks into a store.
    ///
    /// # Errors
    /// The store does not take the rows, or is gone.
    pub async fn write(&self, writer: &BlockWriter<'_>) -> Result<(), LoadError> {
        for (table, records) in &self.0 {
            writer.write(table, records.len() as u64, &csv(records)).await?;
        }
        Ok(())
    }

    /// The rows as events, in order within each table. The rows of `blocks` and `chain`, and the block's
    /// time, follow from the block's header and are left out.
    pub fn events(&self) -> impl Iterator<Item = RowEvent> {
        let tables = self.0.iter().filter(|(table, _)| !["blocks", "chain"].contains(table));
        tables.flat_map(|(&table, records)| records.iter().map(move |record| row_event(table, record)))
    }

    /// A hash of all rows and of a text before them.
    pub(crate) fn hash_after(&self, before: &str) -> String {
        let mut hasher = Sha256::new();
        hasher.update(before);
        for value in self.0.values().flatten().flatten() {
            hasher.update(value.as_deref().unwrap_or("NULL"));
            hasher.update("\n");
        }
        hex::encode(hasher.finalize())
    }

    pub(crate) fn push(&mut self, table: &'static str, record: Record) {
        self.0.entry(table).or_default().push(record);
    }
}

/// The CSV text of rows in PostgreSQL's dialect, without a header: NULL is an empty field, the empty text is
/// `""`.
fn csv(records: &[Record]) -> String {
    let mut text = String::new();
    for record in records {
        for value in record {
            match value {
                Some(value) if value.is_empty() || value.contains([',', '"', '\n', '\r']) => {
                    text.push_str(&format!("\"{}\"", value.replace('"', "\"\"")));
                }
                Some(value) => text.push_str(value),
                None => {}
            }
            text.push(',');
        }
        text.pop();
        text.push('\n');
    }
    text
}

fn row_event(table: &'static str, record: &Record) -> RowEvent {
    let values = COLUMNS[table].iter().zip(record).filter(|(column, _)| *column != "block_time");
    let values = values.filter_map(|(column, value)| Some((column.clone(), attribute(value.as_ref()?))));
    RowEvent { table, values: values.collect() }
}

/// A value as an attribute. The receiver decodes a JSON string, so a text that begins with a quote is sent as
/// one.
fn attribute(value: &str) -> String {
    if value.starts_with('"') { serde_json::Value::from(value).to_string() } else { value.to_owned() }
}

pub(crate) trait Cell {
    /// The value as PostgreSQL prints it; NULL is `None`.
    fn cell(&self) -> Option<String>;
}

macro_rules! displayed_cells {
    ($($type:ty),*) => {
        $(impl Cell for $type {
            fn cell(&self) -> Option<String> {
                Some(self.to_string())
            }
        })*
    };
}

displayed_cells!(str, String, i32, u32, u64, i64, i128, f64, TimeUs, serde_json::Value);

impl Cell for bool {
    fn cell(&self) -> Option<String> {
        Some(if *self { "t" } else { "f" }.to_owned())
    }
}

impl<T: Cell + ?Sized> Cell for &T {
    fn cell(&self) -> Option<String> {
        (**self).cell()
    }
}

impl<T: Cell> Cell for Option<T> {
    fn cell(&self) -> Option<String> {
        self.as_ref().and_then(Cell::cell)
    }
}

/// The label of an enumeration's value: `TradingTerminated` with the prefix `STATE` is
/// `STATE_TRADING_TERMINATED`.
pub(crate) fn label(prefix: &str, value: impl Debug) -> String {
    let mut label = prefix.to_owned();
    for letter in format!("{value:?}").chars() {
        label.push_str(if letter.is_ascii_uppercase() { "_" } else { "" });
        label.push(letter.to_ascii_uppercase());
    }
    label
}

/// Adds a row to a draft: `row! { draft, table: column: value, … }`, with columns in the table's order. The
/// draft knows the transaction, times and position of the event; other columns that are not given are NULL.
macro_rules! row {
    ($draft:expr, $table:ident: $($column:ident: $value:expr),* $(,)?) => {
        $draft.write(stringify!($table), [$((stringify!($column), $crate::rows::Cell::cell(&$value))),*])
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_quoted_as_postgres_quotes_them() {
        let mut rows = Rows::default();
        rows.push("assets", vec!["a,\"b\"\r\n".cell(), "".cell(), None, "\\N".cell()]);
        rows.push("assets", vec![" NULL ".cell(), "é".cell(), "x'y".cell(), true.cell()]);
        assert_eq!(csv(rows.records("assets")), "\"a,\"\"b\"\"\r\n\",\"\",,\\N\n NULL ,é,x'y,t\n");
    }

    #[test]
    fn events_have_no_null_and_nothing_that_follows_from_the_header() {
        let mut rows = Rows::default();
        rows.push("chain", vec!["demo".cell(), true.cell()]);
        rows.push("blocks", vec!["12:00".cell(), 7_u64.cell(), "ab".cell()]);
        let times = ["12:00".cell(), "13:00".cell()];
        rows.push(
            "epochs",
            [vec![1_u64.cell()], times.to_vec(), vec![None, "".cell(), "12:00".cell()]].concat(),
        );
        rows.push(
            "network_parameters",
            ["network.notice", "\"a\" b", "cd", "12:00"].map(|text| text.cell()).to_vec(),
        );
        let sent: Vec<_> = rows.events().map(|event| (event.table, event.values)).collect();
        let values = |values: &[(&str, &str)]| -> Vec<(String, String)> {
            values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let epoch = [("id", "1"), ("start_time", "12:00"), ("expire_time", "13:00"), ("tx_hash", "")];
        // A text that begins with a quote is sent as a JSON string.
        let notice = [("key", "network.notice"), ("value", r#""\"a\" b""#), ("tx_hash", "cd")];
        assert_eq!(sent, [("epochs", values(&epoch)), ("network_parameters", values(&notice))]);
    }
}
