//! Reads rows by the names of their columns, for all tests of the demo network.
use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock, Mutex},
};

use mesh_demo::{Block, Plan, Record, Rows, Simulator};
use mesh_store::schema::columns;

/// The places of a table's columns.
type Columns = Arc<BTreeMap<String, usize>>;

/// The columns of a table. They are found once: the search in the schema takes longer than most rows of a block.
fn columns_of(table: &str) -> Columns {
    static KNOWN: Mutex<BTreeMap<String, Columns>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap();
    let find = || Arc::new(columns(table).into_iter().zip(0..).collect());
    Arc::clone(known.entry(table.to_owned()).or_insert_with(find))
}

/// A table's rows with their columns by name.
pub(crate) struct Parsed<'a> {
    columns: Columns,
    pub(crate) rows: &'a [Record],
}

impl<'a> Parsed<'a> {
    pub(crate) fn new(rows: &'a Rows, table: &str) -> Self {
        let columns = columns_of(table);
        assert!(rows.records(table).iter().all(|row| row.len() == columns.len()), "{table}");
        Parsed { columns, rows: rows.records(table) }
    }

    pub(crate) fn has(&self, column: &str) -> bool {
        self.columns.contains_key(column)
    }

    pub(crate) fn value(&self, row: &'a Record, column: &str) -> Option<&'a str> {
        row[self.columns[column]].as_deref()
    }

    pub(crate) fn text(&self, row: &'a Record, column: &str) -> &'a str {
        self.value(row, column).unwrap_or_else(|| panic!("{column} is NULL"))
    }

    pub(crate) fn number(&self, row: &'a Record, column: &str) -> i128 {
        let text = self.text(row, column);
        text.parse().unwrap_or_else(|_| panic!("{column} is {text}"))
    }

    /// Every value of a column with how often it occurs.
    pub(crate) fn census(&self, column: &str) -> BTreeMap<Option<&'a str>, u64> {
        let mut census = BTreeMap::new();
        for row in self.rows {
            *census.entry(self.value(row, column)).or_default() += 1;
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

/// All rows of the default history.
pub(crate) fn default_rows() -> &'static Rows {
    static ROWS: LazyLock<Rows> = LazyLock::new(|| rows_of(history(Plan::default())));
    &ROWS
}

/// All rows of some blocks, those of a block's transactions first.
pub(crate) fn rows_of(blocks: Vec<Block>) -> Rows {
    let mut rows = Rows::default();
    for block in blocks {
        block.executed.into_iter().for_each(|executed| rows.append(executed.rows));
        rows.append(block.rows);
    }
    rows
}
