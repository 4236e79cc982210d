//! Who has how many of something. Who has none is not remembered.

use std::{
    collections::{HashMap, hash_map::Entry},
    hash::Hash,
};

/// How many each has.
#[derive(Debug)]
pub(crate) struct Counts<K>(HashMap<K, usize>);

impl<K> Default for Counts<K> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Eq + Hash> Counts<K> {
    /// How many somebody has.
    pub(crate) fn of(&self, who: &K) -> usize {
        self.0.get(who).copied().unwrap_or(0)
    }

    /// One more.
    pub(crate) fn add(&mut self, who: K) {
        *self.0.entry(who).or_default() += 1;
    }

    /// One less.
    pub(crate) fn remove(&mut self, who: K) {
        if let Entry::Occupied(mut count) = self.0.entry(who) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }

    /// Whether nobody has any.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
