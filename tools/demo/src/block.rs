//! A finished block, and the builder of a block.

use mesh_store::TimeUs;

use crate::{
    plan::Plan,
    random::Random,
    rows::{COLUMNS, Cell as _, Rows},
    world::World,
};

/// A block of the demo network with every row that belongs to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Height, from 1.
    pub height: u64,
    /// Time of the block, which all its rows carry.
    pub time: TimeUs,
    /// Hash, 64 lower-case hex digits. In the written history it covers the plan and every row of all blocks
    /// so far; in later blocks it is the node's.
    pub hash: String,
    /// The rows, the block's own row included, without those of the transactions.
    pub rows: Rows,
    /// The results of the transactions, in order.
    pub executed: Vec<Executed>,
}

/// The result of a transaction of a user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Executed {
    /// Why its command could not be executed; it then has no rows.
    pub failure: Option<String>,
    /// The rows that it caused.
    pub rows: Rows,
}

/// The builder of a block: gives events their position and their transaction.
pub(crate) struct Draft<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) world: &'a mut World,
    pub(crate) height: u64,
    pub(crate) time: TimeUs,
    /// Time since the block before, in microseconds.
    pub(crate) elapsed_us: i64,
    /// The same in thousandths of the mean, within limits: blocks in quick succession have fewer rows, but
    /// never none.
    pub(crate) pace: u64,
    pub(crate) random: Random,
    pub(crate) rows: Rows,
    /// Hash of the present transaction, which the following events carry.
    pub(crate) transaction: String,
    time_text: String,
    next_position: i64,
}

impl<'a> Draft<'a> {
    pub(crate) fn new(
        plan: &'a Plan,
        world: &'a mut World,
        height: u64,
        time: TimeUs,
        elapsed_us: i64,
    ) -> Self {
        let mut random = Random::new(plan.seed, height);
        let usual_us = (plan.block_spacing_ms * 1_000) as i64;
        Draft {
            plan,
            world,
            height,
            time,
            elapsed_us,
            pace: (elapsed_us.saturating_mul(1_000) / usual_us).clamp(200, 1_500).unsigned_abs(),
            transaction: random.id(),
            random,
            rows: Rows::default(),
            time_text: time.to_string(),
            next_position: 0,
        }
    }

    pub(crate) fn begin_transaction(&mut self) {
        self.transaction = self.random.id();
    }

    /// Runs a step as a transaction of a user, with its hash; returns the rows of the step.
    pub(crate) fn as_transaction(&mut self, hash: &str, step: impl FnOnce(&mut Self)) -> Rows {
        let transaction = std::mem::replace(&mut self.transaction, hash.to_owned());
        let own = std::mem::take(&mut self.rows);
        step(self);
        self.transaction = transaction;
        std::mem::replace(&mut self.rows, own)
    }

    /// Adds a row; see the macro `row`.
    pub(crate) fn write<const N: usize>(&mut self, table: &'static str, values: [(&str, Option<String>); N]) {
        let (columns, mut values) = (&COLUMNS[table], values.into_iter().peekable());
        let (position, mut has_position) = (self.next_position, false);
        let mut record = Vec::with_capacity(columns.len());
        for column in columns {
            record.push(match column.as_str() {
                column if values.peek().is_some_and(|(name, _)| *name == column) => {
                    values.next().and_then(|(_, value)| value)
                }
                "tx_hash" => Some(self.transaction.clone()),
                "block_time" | "timestamp" | "transfer_time" => Some(self.time_text.clone()),
                "ledger_entry_time" | "synthetic_time" => {
                    has_position = true;
                    self.time.plus_us(position).cell()
                }
                "seq_num" => {
                    has_position = true;
                    position.cell()
                }
                _ => None,
            });
        }
        self.next_position += i64::from(has_position);
        assert!(
            values.next().is_none(),
            "the values of a row of {table} are not in the order of its columns"
        );
        self.rows.push(table, record);
    }
}
