//! Parses rows from their text, for all tests of the demo network.
use std::collections::BTreeMap;

use mesh_demo::{Block, Plan, Rows, Simulator};
use mesh_store::migrate::columns;

/// A value: NULL, or a text that may be empty.
pub(crate) type Value = Option<String>;

/// A table's rows with their columns by name.
pub(crate) struct Parsed {
    columns: BTreeMap<String, usize>,
    pub(crate) rows: Vec<Vec<Value>>,
}

impl Parsed {
    pub(crate) fn new(rows: &Rows, table: &str) -> Parsed {
        let columns: BTreeMap<String, usize> = columns(table).into_iter().zip(0..).collect();
        let parsed = rows.records(table);
        assert_eq!(parsed.len() as u64, rows.count(table), "{table}");
        assert!(parsed.iter().all(|row| row.len() == columns.len()), "{table}");
        Parsed { columns, rows: parsed }
    }

    pub(crate) fn has(&self, column: &str) -> bool {
        self.columns.contains_key(column)
    }

    pub(crate) fn value<'a>(&self, row: &'a [Value], column: &str) -> Option<&'a str> {
        row[self.columns[column]].as_deref()
    }

    pub(crate) fn text<'a>(&self, row: &'a [Value], column: &str) -> &'a str {
        self.value(row, column).unwrap_or_else(|| panic!("{column} is NULL"))
    }

    pub(crate) fn number(&self, row: &[Value], column: &str) -> i128 {
        let text = self.text(row, column);
        text.parse().unwrap_or_else(|_| panic!("{column} is {text}"))
    }

    /// Every value of a column with how often it occurs.
    pub(crate) fn census(&self, column: &str) -> BTreeMap<Value, u64> {
        let mut census = BTreeMap::new();
        for row in &self.rows {
            *census.entry(row[self.columns[column]].clone()).or_default() += 1;
        }
        census
    }
}

/// The whole history of a plan.
pub(crate) fn history(plan: Plan) -> Vec<Block> {
    let blocks = plan.blocks;
    let mut simulator = Simulator::new(plan).unwrap();
    (0..blocks).map(|_| simulator.next_history_block()).collect()
}

/// All rows of some blocks, those of a block's transactions first.
pub(crate) fn rows_of(blocks: &[Block]) -> Rows {
    let mut rows = Rows::default();
    for block in blocks {
        block.executed.iter().for_each(|executed| rows.append(&executed.rows));
        rows.append(&block.rows);
    }
    rows
}
