//! Rows as a decoder of users states them in JSON: `{"table":"trades","values":{"price":"100"}}`.

use mesh_store::append::{ColumnKind, RowFault, table};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::events::literal;
use crate::block::{Cell, Row};

/// A row as JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatedRow {
    /// The table.
    pub table: String,
    /// The values by column: texts, null, JSON where the column holds JSON.
    #[serde(default)]
    pub values: Map<String, Value>,
}

impl StatedRow {
    /// The row with its cells.
    ///
    /// # Errors
    /// There is no such table or column, or a value is no text.
    pub fn read(self) -> Result<Row, RowFault> {
        let Some(table) = table(&self.table) else {
            let message = "there is no such table, or it is not a decoder's";
            return Err(RowFault::new(self.table, None, None, message));
        };
        let mut row = Row::new(table);
        for (name, value) in self.values {
            let fault = |message: &str| {
                Err(RowFault::new(table.name, Some(&name), Some(&value.to_string()), message))
            };
            let Some(index) = table.column(&name) else { return fault("there is no such column") };
            row.cells[index] = match (table.columns[index].kind, &value) {
                (_, Value::Null) => Cell::Null,
                (ColumnKind::Json, Value::String(text)) if is_json(text) => Cell::Text(text.clone()),
                (ColumnKind::Json, value) => Cell::Text(value.to_string()),
                (ColumnKind::TextArray, Value::Array(items)) => Cell::Text(literal(items)),
                (_, Value::String(text)) => Cell::Text(text.clone()),
                (_, Value::Bool(_) | Value::Number(_)) => Cell::Text(value.to_string()),
                (_, Value::Array(_) | Value::Object(_)) => return fault("the value must be a text or null"),
            };
        }
        Ok(row)
    }

    /// The row as JSON: what it states, and the hash of its transaction.
    pub fn of(row: &Row) -> Self {
        let cells = row.cells.iter().zip(&row.table.columns);
        let values = cells.filter_map(|(cell, column)| {
            let value = match cell {
                Cell::Absent if column.name == "tx_hash" => Value::String(row.tx_hash.as_deref()?.to_owned()),
                Cell::Absent => return None,
                Cell::Null => Value::Null,
                Cell::Text(text) => Value::String(text.clone()),
            };
            Some((column.name.clone(), value))
        });
        Self { table: row.table.name.to_owned(), values: values.collect() }
    }
}

/// Whether a text is JSON by itself, so that it is taken as that and not as a JSON string.
fn is_json(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}
