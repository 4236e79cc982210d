//! Rows as events of a node: one event for each row, which `ingest` turns into the row again.

use mesh_store::migrate::columns;

use crate::rows::Rows;

/// A row as a node announces it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowEvent {
    /// The table.
    pub table: &'static str,
    /// Column names and values, without columns that are NULL.
    pub values: Vec<(String, String)>,
}

impl Rows {
    /// The rows as events, in order within each table. The rows of `blocks` and `chain`, and the block's time,
    /// follow from the block's header and are left out.
    pub fn events(&self) -> impl Iterator<Item = RowEvent> {
        let tables = self.tables().filter(|table| !["blocks", "chain"].contains(table));
        tables.flat_map(|table| {
            let columns = columns(table);
            self.records(table).into_iter().map(move |record| {
                let values = columns.iter().zip(record).filter(|(column, _)| *column != "block_time");
                let values = values.filter_map(|(column, value)| Some((column.clone(), sent(value?))));
                RowEvent { table, values: values.collect() }
            })
        })
    }
}

/// A value as an attribute. A JSON string is decoded by the receiver, so a text that begins with a quote is sent
/// as one.
fn sent(value: String) -> String {
    if value.starts_with('"') { serde_json::Value::String(value).to_string() } else { value }
}
