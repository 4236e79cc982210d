//! Who holds how many of something that there is not enough of: downloads, places, connections.

use std::{
    collections::{HashMap, hash_map::Entry},
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// How many each holder has. Who has none is not remembered.
#[derive(Debug)]
pub(crate) struct Held<K> {
    counts: Mutex<HashMap<K, usize>>,
}

impl<K> Default for Held<K> {
    fn default() -> Self {
        Self { counts: Mutex::default() }
    }
}

impl<K: Copy + Eq + Hash> Held<K> {
    /// Takes one more for a holder that has fewer than so many.
    pub(crate) fn take(self: &Arc<Self>, holder: K, at_most: usize) -> Option<Hold<K>> {
        let mut counts = self.lock();
        let count = counts.get(&holder).copied().unwrap_or(0);
        if count >= at_most {
            return None;
        }
        counts.insert(holder, count + 1);
        Some(Hold { held: Arc::clone(self), holder })
    }

    fn give_back(&self, holder: K) {
        let mut counts = self.lock();
        if let Entry::Occupied(mut count) = counts.entry(holder) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, usize>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One that is held, until it is dropped.
#[derive(Debug)]
pub(crate) struct Hold<K: Copy + Eq + Hash> {
    held: Arc<Held<K>>,
    holder: K,
}

impl<K: Copy + Eq + Hash> Drop for Hold<K> {
    fn drop(&mut self) {
        self.held.give_back(self.holder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_holder_has_its_own_number_and_who_has_none_is_forgotten() {
        let held = Arc::new(Held::default());
        let mut two: Vec<_> = (0..2).map(|_| held.take("a", 2).unwrap()).collect();
        assert!(held.take("a", 2).is_none());
        let other = held.take("b", 1).unwrap();
        assert!(held.take("c", 0).is_none());
        two.pop();
        two.push(held.take("a", 2).unwrap());
        assert!(held.take("a", 2).is_none());
        drop((two, other));
        assert!(held.lock().is_empty());
    }
}
