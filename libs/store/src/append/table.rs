//! The tables whose rows a block brings, as this build's migrations declare them.

use std::sync::LazyLock;

use crate::migrate;

/// The tables, in the order in which they are written. `blocks`, `chain` and derived tables are not among them.
const NAMES: [&str; 21] = [
    "accounts",
    "assets",
    "balances",
    "checkpoints",
    "delegations",
    "deposits",
    "epochs",
    "ledger",
    "liquidity_provisions",
    "margin_levels",
    "market_data",
    "markets",
    "network_limits",
    "network_parameters",
    "oracle_specs",
    "orders",
    "positions",
    "protocol_upgrade_proposals",
    "rewards",
    "trades",
    "withdrawals",
];

static TABLES: LazyLock<Vec<Table>> = LazyLock::new(|| NAMES.map(Table::declared).into());

/// A table whose rows a block brings.
#[derive(Debug, PartialEq, Eq)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// Its columns, in order.
    pub columns: Vec<Column>,
}

/// A column of such a table.
#[derive(Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// What texts it takes.
    pub kind: ColumnKind,
    /// The text of its default, if it has one other than NULL.
    pub default: Option<String>,
}

/// What texts a column takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// PostgreSQL's text of a single value.
    Value,
    /// The same, of a whole number. PostgreSQL would round a fraction.
    Amount,
    /// JSON.
    Json,
    /// PostgreSQL's text of an array of texts.
    TextArray,
}

impl Table {
    fn declared(name: &'static str) -> Self {
        let columns = migrate::declarations(name).map(|declaration| {
            let mut words = declaration.split_whitespace();
            let name = words.next().unwrap_or_default().trim_matches('"').to_owned();
            let kind = match words.next().unwrap_or_default().trim_end_matches(',') {
                "bigamount" => ColumnKind::Amount,
                "jsonb" => ColumnKind::Json,
                "text[]" => ColumnKind::TextArray,
                _ => ColumnKind::Value,
            };
            let default = words.skip_while(|word| *word != "DEFAULT").nth(1);
            let default = default.map(|word| word.trim_end_matches(',').trim_matches('\'').to_owned());
            Column { name, kind, default }
        });
        Self { name, columns: columns.collect() }
    }

    /// The index of a column.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// The names of its columns as SQL.
    pub(super) fn column_names(&self) -> String {
        let names: Vec<String> = self.columns.iter().map(|column| format!("\"{}\"", column.name)).collect();
        names.join(", ")
    }
}

/// All tables, in the order in which they are written.
pub fn tables() -> &'static [Table] {
    &TABLES
}

/// The table of a name.
pub fn table(name: &str) -> Option<&'static Table> {
    TABLES.iter().find(|table| table.name == name)
}
