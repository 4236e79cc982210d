//! A finished block, and the builder of a block.

use crate::{moment::Moment, random::Random, rows::Rows};

/// A block of the demo network with every row that belongs to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Height, from 1.
    pub height: u64,
    /// Time of the block, which all its rows carry.
    pub time: Moment,
    /// Hash, 64 lower-case hex digits. In the written history it covers the plan and every row of all blocks so
    /// far; in later blocks it is the node's.
    pub hash: String,
    /// The rows per table, the block's own row included, without those of the transactions.
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
pub(crate) struct Draft {
    pub(crate) height: u64,
    pub(crate) time: Moment,
    pub(crate) random: Random,
    pub(crate) rows: Rows,
    next_position: i64,
    transaction: String,
}

impl Draft {
    pub(crate) fn new(height: u64, time: Moment, mut random: Random) -> Self {
        let transaction = random.id();
        Draft { height, time, random, rows: Rows::default(), next_position: 0, transaction }
    }

    /// Gives the next event its position in the block.
    pub(crate) fn next_position(&mut self) -> i64 {
        self.next_position += 1;
        self.next_position - 1
    }

    /// Begins a transaction: the following events carry its hash.
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

    /// Hash of the present transaction.
    pub(crate) fn hash(&self) -> String {
        self.transaction.clone()
    }
}
