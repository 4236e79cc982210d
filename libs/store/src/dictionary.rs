//! The columns of the exportable tables with their types, descriptions and units, for services that have no database at
//! hand. `dictionary.json` is generated from the schema and its comments; a test compares them.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

/// A table and its columns in the order of the CSV.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DescribedTable {
    /// Name in the database and in segments.
    pub table: String,
    /// The columns in their order.
    pub columns: Vec<DescribedColumn>,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DescribedColumn {
    /// Name.
    pub name: String,
    /// Type, as PostgreSQL names it, without domains; `text` for an enum.
    #[serde(rename = "type")]
    pub kind: String,
    /// The comment; for an enum with its labels.
    pub description: String,
    /// Unit of its numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
}

/// The exportable tables by name.
pub fn tables() -> &'static [DescribedTable] {
    static TABLES: LazyLock<Vec<DescribedTable>> = LazyLock::new(|| {
        serde_json::from_str(include_str!("../dictionary.json")).expect("a test generates the file")
    });
    &TABLES
}
