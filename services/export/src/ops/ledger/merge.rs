//! Merges several sorted walks. Each is read ahead on its own; the next entry of all is known while each walk
//! that has not ended has one buffered.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
};

use mesh_store::TimeUs;

/// The order of entries: block time, entry time.
pub(crate) type Key = (TimeUs, TimeUs);

/// Fewest rows of one read of one walk.
const MIN_ROWS: usize = 16;

/// Sorted walks merged into one. An entry that lies on two of them is given once.
pub(crate) struct Merge<T> {
    walks: Vec<Buffer<T>>,
    /// The next key of each walk with buffered entries, the smallest on top.
    next: BinaryHeap<Reverse<(Key, usize)>>,
    /// Number of walks with an empty buffer that have not ended.
    empty: usize,
}

/// The entries read ahead of one walk.
struct Buffer<T> {
    buffer: VecDeque<(Key, T)>,
    read_to: Key,
    has_ended: bool,
    /// Entries that were taken from it.
    given: usize,
}

/// A read to make of one walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) walk: usize,
    /// The key after which to read.
    pub(crate) after: Key,
    /// Most rows; fewer mean that the walk ends there.
    pub(crate) rows: usize,
}

impl<T> Merge<T> {
    /// A merge of so many walks, all after this key.
    pub(crate) fn new(walks: usize, after: Key) -> Self {
        let buffer = || Buffer { buffer: VecDeque::new(), read_to: after, has_ended: false, given: 0 };
        Self {
            walks: std::iter::repeat_with(buffer).take(walks).collect(),
            next: BinaryHeap::new(),
            empty: walks,
        }
    }

    /// The reads for about `rows` more entries: of each walk its share of the entries given so far, nothing
    /// of those that have half of that buffered.
    pub(crate) fn wanted(&self, rows: usize) -> Vec<Wanted> {
        self.wanted_where(rows, |buffered, share| buffered * 2 < share)
    }

    /// The reads for about `rows` entries beyond the buffered ones; nothing of walks that have twice their
    /// share.
    pub(crate) fn wanted_ahead(&self, rows: usize) -> Vec<Wanted> {
        self.wanted_where(rows, |buffered, share| buffered < share * 2)
    }

    fn wanted_where(&self, rows: usize, lacks: impl Fn(usize, usize) -> bool) -> Vec<Wanted> {
        let given: usize = self.walks.iter().map(|walk| walk.given + 1).sum();
        let wanted = self.walks.iter().enumerate().filter_map(|(number, walk)| {
            let share = rows.saturating_mul(walk.given + 1) / given;
            let share = share.max(MIN_ROWS);
            (!walk.has_ended && lacks(walk.buffer.len(), share)).then_some(Wanted {
                walk: number,
                after: walk.read_to,
                rows: share,
            })
        });
        wanted.collect()
    }

    /// Number of buffered entries; those that lie on two walks count twice.
    pub(crate) fn buffered(&self) -> usize {
        self.walks.iter().map(|walk| walk.buffer.len()).sum()
    }

    /// Adds what was read of a walk, in its order.
    pub(crate) fn add(&mut self, wanted: Wanted, read: Vec<(Key, T)>) {
        let Some(walk) = self.walks.get_mut(wanted.walk) else { return };
        let was_empty = walk.buffer.is_empty() && !walk.has_ended;
        walk.has_ended = read.len() < wanted.rows;
        walk.read_to = read.last().map_or(walk.read_to, |(key, _)| *key);
        if let Some((key, _)) = read.first()
            && walk.buffer.is_empty()
        {
            self.next.push(Reverse((*key, wanted.walk)));
        }
        walk.buffer.extend(read);
        if was_empty && (walk.has_ended || !walk.buffer.is_empty()) {
            self.empty -= 1;
        }
    }

    /// The next entry, when it is known.
    pub(crate) fn next(&mut self) -> Option<(Key, T)> {
        if self.empty > 0 {
            return None;
        }
        let Reverse((key, walk)) = self.next.pop()?;
        let entry = self.step(walk);
        while let Some(Reverse((other, walk))) = self.next.peek().copied()
            && other == key
        {
            self.next.pop();
            self.step(walk);
        }
        entry
    }

    fn step(&mut self, number: usize) -> Option<(Key, T)> {
        let walk = self.walks.get_mut(number)?;
        let entry = walk.buffer.pop_front();
        walk.given += 1;
        match walk.buffer.front() {
            Some((key, _)) => self.next.push(Reverse((*key, number))),
            None if !walk.has_ended => self.empty += 1,
            None => {}
        }
        entry
    }

    /// Whether there is nothing more.
    pub(crate) fn has_ended(&self) -> bool {
        self.empty == 0 && self.next.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng, rngs::SmallRng};

    use super::*;

    const BEFORE_ALL: Key = (TimeUs(-1), TimeUs(-1));

    /// Reads as a database would.
    fn read(walk: &[Key], wanted: Wanted) -> Vec<(Key, usize)> {
        let rest = &walk[walk.partition_point(|key| *key <= wanted.after)..];
        rest.iter().take(wanted.rows).map(|key| (*key, wanted.walk)).collect()
    }

    /// Merges them, reading when nothing more is known; with `ahead` the next read is always under way.
    fn merged(walks: &[Vec<Key>], rows: usize, ahead: bool) -> (Vec<Key>, usize) {
        let mut merge: Merge<usize> = Merge::new(walks.len(), BEFORE_ALL);
        let (mut given, mut reads, mut begun) = (Vec::new(), 0, Vec::new());
        loop {
            while let Some((key, walk)) = merge.next() {
                walks[walk].binary_search(&key).unwrap();
                given.push(key);
            }
            if merge.has_ended() {
                return (given, reads);
            }
            if begun.is_empty() {
                begun = merge.wanted(rows);
            }
            assert!(!begun.is_empty(), "no read is wanted");
            reads += 1;
            for wanted in std::mem::take(&mut begun) {
                merge.add(wanted, read(&walks[wanted.walk], wanted));
            }
            if ahead {
                begun = merge.wanted_ahead(rows);
            }
        }
    }

    #[test]
    fn entries_come_once_and_in_order_whatever_walks_they_lie_on() {
        for seed in 0..300 {
            let mut random = SmallRng::seed_from_u64(seed);
            let count = random.random_range(0..6);
            let walks: Vec<Vec<Key>> = (0..count)
                .map(|_| {
                    let length = random.random_range(0..120);
                    let key = |_| (TimeUs(random.random_range(0..60)), TimeUs(random.random_range(0..3)));
                    let mut walk: Vec<Key> = (0..length).map(key).collect();
                    walk.sort();
                    walk.dedup();
                    walk
                })
                .collect();
            let mut expected = walks.concat();
            expected.sort();
            expected.dedup();
            let rows = random.random_range(1..200);
            for ahead in [false, true] {
                assert_eq!(merged(&walks, rows, ahead).0, expected, "seed {seed}, ahead: {ahead}");
            }
        }
    }

    #[test]
    fn a_walk_that_gives_most_is_read_most() {
        let key = |number: i64| (TimeUs(number), TimeUs(0));
        let dense: Vec<Key> = (0..100_000).map(key).collect();
        let sparse = vec![key(100_001)];
        let mut walks = vec![dense];
        walks.extend(std::iter::repeat_n(sparse, 9));
        for ahead in [false, true] {
            let (given, reads) = merged(&walks, 1000, ahead);
            assert_eq!(given.len(), 100_001);
            assert!(reads < 150, "{reads} reads");
        }
    }
}
