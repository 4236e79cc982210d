//! Stored values that have no form in an answer (contract 2.4). They never make a list fail: a reader shows the
//! nearest form, and each value is logged once and counted.

use std::{
    collections::HashSet,
    fmt::Display,
    hash::{BuildHasher, RandomState},
};

use mesh_telemetry::{Registry, list};
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;

/// Values that are remembered, 8 bytes each. More are counted and not logged.
const MAX_LOGGED: usize = 10_000;

/// The values that were found without a form.
#[derive(Debug, Default)]
pub struct Unreadable {
    counter: Counter,
    /// Hashes of table, key and column.
    found: Mutex<HashSet<u64>>,
    hasher: RandomState,
}

impl Unreadable {
    /// Logs and counts the value in a column of the row with this key, once.
    pub fn note(&self, table: &str, key: &str, column: &str, value: impl Display) {
        let hash = self.hasher.hash_one((table, key, column));
        let mut found = self.found.lock();
        let is_known = found.contains(&hash);
        let is_full = found.len() >= MAX_LOGGED;
        if !is_known && !is_full {
            found.insert(hash);
        }
        drop(found);
        if is_known {
            return;
        }
        self.counter.inc();
        if !is_full {
            // A JSON column may hold megabytes.
            let value: String = value.to_string().chars().take(100).collect();
            tracing::warn!(table, key, column, value, "a stored value has no form in the answer");
        }
    }

    pub(super) fn register(&self, registry: &mut Registry) {
        registry.add(&list::ROWS_UNREADABLE, self.counter.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_counted_once() {
        let unreadable = Unreadable::default();
        for _ in 0..3 {
            unreadable.note("accounts", "a", "type", 99);
            unreadable.note("accounts", "b", "type", 99);
        }
        assert_eq!(unreadable.counter.get(), 2);
    }
}
