//! How many rows a transaction has.

use std::time::Duration;

/// Fewest and most rows that one transaction aims at.
const RANGE: [usize; 2] = [1_000, 50_000];

/// The time that one transaction aims at.
const TIME: Duration = Duration::from_secs(1);

/// Most rows of the next transaction, by the time that those before have taken. A block with more has one of its own.
#[derive(Debug, Clone, Copy)]
pub struct TransactionRows(usize);

impl TransactionRows {
    /// Those of a first transaction.
    pub const FEWEST: Self = Self(RANGE[0]);

    /// Their number.
    pub fn most(self) -> usize {
        self.0
    }

    /// A transaction of so many rows has taken this time.
    pub fn took(&mut self, rows: usize, time: Duration) {
        // Small transactions do not show how many rows fit into the time.
        if rows >= self.0 / 2 {
            let fit = rows as f64 * TIME.as_secs_f64() / time.as_secs_f64().max(0.001);
            self.0 = (fit as usize).clamp(self.0 / 2, self.0 * 2).clamp(RANGE[0], RANGE[1]);
        }
    }

    /// A transaction has not ended in time: the store may be slower than before.
    pub fn halve(&mut self) {
        self.0 = (self.0 / 2).max(RANGE[0]);
    }
}
