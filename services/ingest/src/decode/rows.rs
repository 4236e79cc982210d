//! Rows as a decoder of users states them in JSON: `{"table":"trades","values":{"price":"100"}}`.

use std::{collections::BTreeMap, fmt};

use mesh_store::append::{ColumnKind, RowFault, table};
use serde::{
    Deserialize, Serialize,
    de::{Deserializer, Error, MapAccess, Visitor},
};
use serde_json::{Value, value::RawValue};

use super::events::literal;
use crate::block::{Cell, Row};

/// A row as JSON.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatedRow {
    /// The table.
    pub table: String,
    /// The values by column: texts, null, JSON where the column holds JSON. Numbers keep all their digits.
    #[serde(default, deserialize_with = "distinct")]
    pub values: BTreeMap<String, Box<RawValue>>,
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
        for (name, raw) in self.values {
            let raw = raw.get();
            let fault = |message: &str| Err(RowFault::new(table.name, Some(&name), Some(raw), message));
            let Some(index) = table.column(&name) else { return fault("there is no such column") };
            row.cells[index] = match (table.columns[index].kind, raw.as_bytes().first()) {
                // NULL would be refused, and a row that no transaction caused has none.
                (_, Some(b'n')) if name == "tx_hash" => Cell::Absent,
                (_, Some(b'n')) => Cell::Null,
                (kind, Some(b'"')) => match serde_json::from_str::<String>(raw) {
                    Ok(text) if kind == ColumnKind::Json && !is_json(&text) => Cell::Text(raw.to_owned()),
                    Ok(text) => Cell::Text(text),
                    Err(_) => return fault("the text cannot be read"),
                },
                (ColumnKind::TextArray, Some(b'[')) => match serde_json::from_str::<Vec<Value>>(raw) {
                    Ok(items) => Cell::Text(literal(&items)),
                    Err(_) => return fault("the array cannot be read"),
                },
                (kind, Some(b'[' | b'{')) if kind != ColumnKind::Json => {
                    return fault("the value must be a text or null");
                }
                _ => Cell::Text(raw.to_owned()),
            };
        }
        Ok(row)
    }

    /// The row as JSON: what it states, and the hash of its transaction.
    pub fn of(row: &Row) -> Self {
        let cells = row.cells.iter().zip(&row.table.columns);
        let values = cells.filter_map(|(cell, column)| {
            let value = match cell {
                Cell::Absent if column.name == "tx_hash" => Some(row.tx_hash.as_deref()?),
                Cell::Absent => return None,
                Cell::Null => None,
                Cell::Text(text) => Some(text.as_str()),
            };
            let value = serde_json::value::to_raw_value(&value).ok()?;
            Some((column.name.clone(), value))
        });
        Self { table: row.table.name.to_owned(), values: values.collect() }
    }
}

/// Reads an object whose keys differ.
fn distinct<'de, D: Deserializer<'de>>(json: D) -> Result<BTreeMap<String, Box<RawValue>>, D::Error> {
    struct Values;
    impl<'de> Visitor<'de> for Values {
        type Value = BTreeMap<String, Box<RawValue>>;

        fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            out.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut values = BTreeMap::new();
            while let Some((name, value)) = map.next_entry::<String, Box<RawValue>>()? {
                if values.contains_key(&name) {
                    return Err(A::Error::custom(format!("{name} is given twice")));
                }
                values.insert(name, value);
            }
            Ok(values)
        }
    }
    json.deserialize_map(Values)
}

/// Whether a text is JSON by itself, so that it is taken as that and not as a JSON string.
fn is_json(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}
