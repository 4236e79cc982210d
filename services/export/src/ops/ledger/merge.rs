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

/// Sorted walks merged into one. An entry that lies on two of them is returned once.
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
    /// Number of entries taken from it so far.
    taken: usize,
}

/// A read of one walk that is to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReadRequest {
    pub(crate) walk: usize,
    /// The key after which to read.
    pub(crate) after: Key,
    /// Most rows; fewer mean that the walk ends there.
    pub(crate) rows: usize,
}

impl<T> Merge<T> {
    /// A merge of so many walks, all starting after this key.
    pub(crate) fn new(walks: usize, after: Key) -> Self {
        let buffer = || Buffer { buffer: VecDeque::new(), read_to: after, has_ended: false, taken: 0 };
        Self {
            walks: std::iter::repeat_with(buffer).take(walks).collect(),
            next: BinaryHeap::new(),
            empty: walks,
        }
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
        let taken: usize = self.walks.iter().map(|walk| walk.taken + 1).sum();
        let requests = self.walks.iter().enumerate().filter_map(|(number, walk)| {
            let share = rows.saturating_mul(walk.taken + 1) / taken;
            let share = share.max(MIN_ROWS);
            (!walk.has_ended && is_short(walk.buffer.len(), share)).then_some(ReadRequest {
                walk: number,
                after: walk.read_to,
                rows: share,
            })
        });
        requests.collect()
    }

    /// Number of buffered entries; those that lie on two walks count twice.
    pub(crate) fn buffered(&self) -> usize {
        self.walks.iter().map(|walk| walk.buffer.len()).sum()
    }

    /// Adds the sorted result of a read.
    pub(crate) fn add(&mut self, request: ReadRequest, read: Vec<(Key, T)>) {
        let Some(walk) = self.walks.get_mut(request.walk) else { return };
        let was_empty = walk.buffer.is_empty() && !walk.has_ended;
        walk.has_ended = read.len() < request.rows;
        walk.read_to = read.last().map_or(walk.read_to, |(key, _)| *key);
        if let Some((key, _)) = read.first()
            && walk.buffer.is_empty()
        {
            self.next.push(Reverse((*key, request.walk)));
        }
        walk.buffer.extend(read);
        if was_empty && (walk.has_ended || !walk.buffer.is_empty()) {
            self.empty -= 1;
        }
    }

    /// The next entry; `None` while some walk that has not ended has an empty buffer, and after the end.
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
        walk.taken += 1;
        match walk.buffer.front() {
            Some((key, _)) => self.next.push(Reverse((*key, number))),
            None if !walk.has_ended => self.empty += 1,
            None => {}
        }
        entry
    }

    /// Whether all walks have ended and no entry is buffered.
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
                merge.add(request, read(&walks[request.walk], request));
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
                assert_eq!(merge_all(&walks, rows, ahead).0, expected, "seed {seed}, ahead: {ahead}");
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
            let (taken, reads) = merge_all(&walks, 1000, ahead);
            assert_eq!(taken.len(), 100_001);
            assert!(reads < 150, "{reads} reads");
        }
    }
}
