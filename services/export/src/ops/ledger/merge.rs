//! Several sorted walks as one. Each is read ahead on its own; the next entry of all is known while each walk that has
//! not ended holds one.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
};

use mesh_store::TimeUs;

/// What entries are ordered by: block time, entry time.
pub(crate) type Key = (TimeUs, TimeUs);

/// Rows of one read of one walk.
const ROWS_AT_LEAST: usize = 16;

/// Walks along the same order, as one. An entry that lies on two of them is given once.
pub(crate) struct Merge<T> {
    walks: Vec<Ahead<T>>,
    /// The next key of each walk that holds entries, the smallest on top.
    next: BinaryHeap<Reverse<(Key, usize)>>,
    /// Walks that hold nothing although they have not ended.
    dry: usize,
}

/// What was read ahead of one walk.
struct Ahead<T> {
    held: VecDeque<(Key, T)>,
    read_to: Key,
    has_ended: bool,
    /// Entries that came from it.
    given: usize,
}

/// What to read of one walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) walk: usize,
    /// The key behind which to read.
    pub(crate) behind: Key,
    /// Most rows; fewer mean that the walk ends there.
    pub(crate) rows: usize,
}

impl<T> Merge<T> {
    /// So many walks, all behind this key.
    pub(crate) fn new(walks: usize, behind: Key) -> Self {
        let ahead = || Ahead { held: VecDeque::new(), read_to: behind, has_ended: false, given: 0 };
        Self {
            walks: std::iter::repeat_with(ahead).take(walks).collect(),
            next: BinaryHeap::new(),
            dry: walks,
        }
    }

    /// What to read so that some `rows` more can be given: of each walk as much as its share of what was given so
    /// far, and nothing of those that hold half of that already.
    pub(crate) fn wanted(&self, rows: usize) -> Vec<Wanted> {
        self.wanted_of_those(rows, |held, share| held * 2 < share)
    }

    /// What to read so that some `rows` more than are held can be given; nothing of walks that hold twice their share.
    pub(crate) fn wanted_ahead(&self, rows: usize) -> Vec<Wanted> {
        self.wanted_of_those(rows, |held, share| held < share * 2)
    }

    fn wanted_of_those(&self, rows: usize, lacks: impl Fn(usize, usize) -> bool) -> Vec<Wanted> {
        let given: usize = self.walks.iter().map(|walk| walk.given + 1).sum();
        let wanted = self.walks.iter().enumerate().filter_map(|(number, walk)| {
            let share = rows.saturating_mul(walk.given + 1) / given;
            let share = share.max(ROWS_AT_LEAST);
            (!walk.has_ended && lacks(walk.held.len(), share)).then_some(Wanted {
                walk: number,
                behind: walk.read_to,
                rows: share,
            })
        });
        wanted.collect()
    }

    /// Entries that are held, those that lie on two walks counted twice.
    pub(crate) fn held(&self) -> usize {
        self.walks.iter().map(|walk| walk.held.len()).sum()
    }

    /// Takes what was read of a walk, in its order.
    pub(crate) fn take(&mut self, wanted: Wanted, read: Vec<(Key, T)>) {
        let Some(walk) = self.walks.get_mut(wanted.walk) else { return };
        let was_dry = walk.held.is_empty() && !walk.has_ended;
        walk.has_ended = read.len() < wanted.rows;
        walk.read_to = read.last().map_or(walk.read_to, |(key, _)| *key);
        if let Some((key, _)) = read.first()
            && walk.held.is_empty()
        {
            self.next.push(Reverse((*key, wanted.walk)));
        }
        walk.held.extend(read);
        if was_dry && (walk.has_ended || !walk.held.is_empty()) {
            self.dry -= 1;
        }
    }

    /// The next entry, when it is known.
    pub(crate) fn next(&mut self) -> Option<(Key, T)> {
        if self.dry > 0 {
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
        let entry = walk.held.pop_front();
        walk.given += 1;
        match walk.held.front() {
            Some((key, _)) => self.next.push(Reverse((*key, number))),
            None if !walk.has_ended => self.dry += 1,
            None => {}
        }
        entry
    }

    /// Whether there is nothing more.
    pub(crate) fn has_ended(&self) -> bool {
        self.dry == 0 && self.next.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng, rngs::SmallRng};

    use super::*;

    const BEFORE_ALL: Key = (TimeUs(-1), TimeUs(-1));

    /// Reads as a database would.
    fn read(walk: &[Key], wanted: Wanted) -> Vec<(Key, usize)> {
        let behind = &walk[walk.partition_point(|key| *key <= wanted.behind)..];
        behind.iter().take(wanted.rows).map(|key| (*key, wanted.walk)).collect()
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
            assert!(!begun.is_empty(), "it waits for nothing");
            reads += 1;
            for wanted in std::mem::take(&mut begun) {
                merge.take(wanted, read(&walks[wanted.walk], wanted));
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
