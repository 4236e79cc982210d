//! Merges several sorted walks. Each is read ahead on its own; the next entry of all is known while each walk
//! that is read and has not ended has one buffered.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
};

use mesh_store::TimeUs;

/// The order of entries: block time, entry time.
pub(crate) type Key = (TimeUs, TimeUs);

/// Fewest rows of one read of one walk.
const MIN_ROWS: usize = 16;

/// Sorted walks merged into one. An entry that lies on two of them is returned once.
pub(crate) struct Merge<T> {
    walks: Vec<Buffer<T>>,
    /// The next key of each walk with buffered entries, the smallest on top.
    next: BinaryHeap<Reverse<(Key, usize)>>,
    /// Number of walks that must be read before the next entry is known.
    awaited: usize,
    /// The key of the entry returned last.
    taken_to: Key,
}

/// The entries read ahead of one walk.
struct Buffer<T> {
    buffer: VecDeque<(Key, T)>,
    read_to: Key,
    has_ended: bool,
    /// Others have its entries, too. What it has buffered stays.
    is_paused: bool,
    /// Number of entries taken from it so far.
    taken: usize,
}

/// A read of one walk that is to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReadRequest {
    pub(crate) walk: usize,
    /// The key after which to read.
    pub(crate) after: Key,
    /// Most entries to read, or to look through.
    pub(crate) rows: usize,
}

impl<T> Buffer<T> {
    fn is_read(&self) -> bool {
        !self.has_ended && !self.is_paused
    }

    fn is_awaited(&self) -> bool {
        self.is_read() && self.buffer.is_empty()
    }
}

impl<T> Merge<T> {
    /// A merge of so many walks, all starting after this key.
    pub(crate) fn new(walks: usize, after: Key) -> Self {
        let buffer = || Buffer {
            buffer: VecDeque::new(),
            read_to: after,
            has_ended: false,
            is_paused: false,
            taken: 0,
        };
        Self {
            walks: std::iter::repeat_with(buffer).take(walks).collect(),
            next: BinaryHeap::new(),
            awaited: walks,
            taken_to: after,
        }
    }

    /// The key of the entry returned last, or the one that all walks start after.
    pub(crate) fn taken_to(&self) -> Key {
        self.taken_to
    }

    /// The last key up to which a walk has been read.
    pub(crate) fn read_to(&self, walk: usize) -> Key {
        self.walks.get(walk).map_or(self.taken_to, |walk| walk.read_to)
    }

    /// Reads a walk no further.
    pub(crate) fn pause(&mut self, walk: usize) {
        self.update(walk, |walk| walk.is_paused = true);
    }

    /// Reads a walk again, where others had its entries up to `after`.
    pub(crate) fn resume(&mut self, walk: usize, after: Key) {
        self.update(walk, |walk| {
            walk.is_paused = false;
            walk.read_to = walk.read_to.max(after);
        });
    }

    fn update<R>(&mut self, walk: usize, change: impl FnOnce(&mut Buffer<T>) -> R) -> Option<R> {
        let walk = self.walks.get_mut(walk)?;
        let was_awaited = walk.is_awaited();
        let result = change(walk);
        self.awaited = self.awaited + usize::from(walk.is_awaited()) - usize::from(was_awaited);
        Some(result)
    }

    /// The reads for about `rows` more entries. Each walk's share of them is its share of the entries taken
    /// so far; walks that have half of their share buffered are not read.
    pub(crate) fn requests(&self, rows: usize) -> Vec<ReadRequest> {
        self.requests_where(rows, |buffered, share| buffered * 2 < share)
    }

    /// The reads for about `rows` entries beyond the buffered ones; walks that have twice their share
    /// buffered are not read.
    pub(crate) fn requests_ahead(&self, rows: usize) -> Vec<ReadRequest> {
        self.requests_where(rows, |buffered, share| buffered < share * 2)
    }

    fn requests_where(&self, rows: usize, is_short: impl Fn(usize, usize) -> bool) -> Vec<ReadRequest> {
        let read = self.walks.iter().filter(|walk| walk.is_read());
        let taken: usize = read.map(|walk| walk.taken + 1).sum();
        let requests = self.walks.iter().enumerate().filter_map(|(number, walk)| {
            if !walk.is_read() {
                return None;
            }
            let share = (rows.saturating_mul(walk.taken + 1) / taken).max(MIN_ROWS);
            let request = ReadRequest { walk: number, after: walk.read_to, rows: share };
            is_short(walk.buffer.len(), share).then_some(request)
        });
        requests.collect()
    }

    /// Number of buffered entries; those that lie on two walks count twice.
    pub(crate) fn buffered(&self) -> usize {
        self.walks.iter().map(|walk| walk.buffer.len()).sum()
    }

    /// Adds the sorted result of a read, and whether the walk ends with it.
    pub(crate) fn add(&mut self, number: usize, read: Vec<(Key, T)>, has_ended: bool) {
        let first = read.first().map(|(key, _)| *key);
        let was_empty = self.update(number, |walk| {
            let was_empty = walk.buffer.is_empty();
            walk.has_ended = has_ended;
            walk.read_to = read.last().map_or(walk.read_to, |(key, _)| *key);
            walk.buffer.extend(read);
            was_empty
        });
        if let Some(key) = first
            && was_empty == Some(true)
        {
            self.next.push(Reverse((key, number)));
        }
    }

    /// The next entry; `None` while a walk must be read first, and after the end.
    pub(crate) fn next(&mut self) -> Option<(Key, T)> {
        if self.awaited > 0 {
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
        self.taken_to = key;
        entry
    }

    fn step(&mut self, number: usize) -> Option<(Key, T)> {
        let (entry, next) = self.update(number, |walk| {
            walk.taken += 1;
            (walk.buffer.pop_front(), walk.buffer.front().map(|(key, _)| *key))
        })?;
        if let Some(key) = next {
            self.next.push(Reverse((key, number)));
        }
        entry
    }

    /// Whether all walks have ended and no entry is buffered.
    pub(crate) fn has_ended(&self) -> bool {
        self.awaited == 0 && self.next.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng, rngs::SmallRng};

    use super::*;

    const BEFORE_ALL: Key = (TimeUs(-1), TimeUs(-1));

    fn sorted(mut keys: Vec<Key>) -> Vec<Key> {
        keys.sort();
        keys.dedup();
        keys
    }

    /// A random walk of fewer than `length` keys, with this many times and positions.
    fn walk(random: &mut SmallRng, length: usize, times: i64, positions: i64) -> Vec<Key> {
        let length = random.random_range(0..length);
        let mut at = |count: i64| TimeUs(random.random_range(0..count));
        sorted((0..length).map(|_| (at(times), at(positions))).collect())
    }

    /// Reads as a database would.
    fn read(walk: &[Key], request: ReadRequest) -> Vec<(Key, usize)> {
        let rest = &walk[walk.partition_point(|key| *key <= request.after)..];
        rest.iter().take(request.rows).map(|key| (*key, request.walk)).collect()
    }

    /// Merges the walks and counts the rounds of reads; with `ahead`, the next round starts before it is
    /// needed.
    fn merge_all(walks: &[Vec<Key>], rows: usize, ahead: bool) -> (Vec<Key>, usize) {
        let mut merge: Merge<usize> = Merge::new(walks.len(), BEFORE_ALL);
        let (mut taken, mut reads, mut pending) = (Vec::new(), 0, Vec::new());
        loop {
            while let Some((key, walk)) = merge.next() {
                walks[walk].binary_search(&key).unwrap();
                taken.push(key);
            }
            if merge.has_ended() {
                return (taken, reads);
            }
            if pending.is_empty() {
                pending = merge.requests(rows);
            }
            assert!(!pending.is_empty(), "no read is wanted");
            reads += 1;
            for request in std::mem::take(&mut pending) {
                let read = read(&walks[request.walk], request);
                let has_ended = read.len() < request.rows;
                merge.add(request.walk, read, has_ended);
            }
            if ahead {
                pending = merge.requests_ahead(rows);
            }
        }
    }

    #[test]
    fn entries_come_once_and_in_order_whatever_walks_they_lie_on() {
        for seed in 0..300 {
            let mut random = SmallRng::seed_from_u64(seed);
            let count = random.random_range(0..6);
            let walks: Vec<Vec<Key>> = (0..count).map(|_| walk(&mut random, 120, 60, 3)).collect();
            let expected = sorted(walks.concat());
            let rows = random.random_range(1..200);
            for ahead in [false, true] {
                assert_eq!(merge_all(&walks, rows, ahead).0, expected, "seed {seed}, ahead: {ahead}");
            }
        }
    }

    #[test]
    fn entries_come_once_whichever_walks_are_paused() {
        for seed in 0..1000 {
            let mut random = SmallRng::seed_from_u64(seed);
            let others = [150, 150, 20].map(|length| walk(&mut random, length, 200, 1));
            let all = sorted(others.concat());
            let walks = [&[all.clone()][..], &others].concat();
            let (mut merge, mut taken, mut is_whole) = (Merge::new(4, BEFORE_ALL), Vec::new(), true);
            while !(is_whole && taken.len() == all.len() || merge.has_ended()) {
                // The first walk has what the others have together; either is read.
                let was_whole = std::mem::replace(&mut is_whole, random.random());
                let after = if was_whole { merge.read_to(0) } else { merge.taken_to() };
                for walk in 0..4 {
                    match (walk == 0) == is_whole {
                        true if was_whole != is_whole || taken.is_empty() => merge.resume(walk, after),
                        true => {}
                        false => merge.pause(walk),
                    }
                }
                for request in merge.requests(20) {
                    let read = read(&walks[request.walk], request);
                    let has_ended = request.walk > 0 && read.len() < request.rows;
                    merge.add(request.walk, read, has_ended);
                }
                while let Some((key, _)) = merge.next() {
                    taken.push(key);
                }
            }
            assert_eq!(taken, all, "seed {seed}");
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
            let (taken, reads) = merge_all(&walks, 1000, ahead);
            assert_eq!(taken.len(), 100_001);
            assert!(reads < 150, "{reads} reads");
        }
    }
}
