//! Finding a proof of work on all cores.

use std::{
    num::NonZeroUsize,
    sync::{
        OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
};

use crate::work::Puzzle;

/// A handle of a search: its progress, and a way to stop it.
#[derive(Debug, Default)]
pub struct SearchControl {
    tries: AtomicU64,
    ended: AtomicBool,
}

/// Tries of one core between two checks whether the search has ended.
const STRIDE: u64 = 512;

impl SearchControl {
    /// How many nonces were tried so far.
    #[must_use]
    pub fn tries(&self) -> u64 {
        self.tries.load(Ordering::Relaxed)
    }

    /// Stops the search, which then returns `None`.
    pub fn stop(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    fn is_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }
}

/// Looks for a nonce that is good for a difficulty, on all cores. Blocks until there is one, until it is
/// stopped, or until all nonces are tried. On average it takes 2 to the power of the difficulty tries.
#[must_use]
pub fn search(puzzle: &Puzzle, difficulty: u32, effort: &SearchControl) -> Option<u64> {
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get) as u64;
    let found = OnceLock::new();
    thread::scope(|scope| {
        for core in 0..cores {
            let found = &found;
            scope.spawn(move || {
                if let Some(nonce) = walk(puzzle, difficulty, effort, core, cores) {
                    // Another core may have been first.
                    let _ = found.set(nonce);
                    effort.stop();
                }
            });
        }
    });
    found.into_inner()
}

/// Every nonce of one core, until one is good or the search has ended.
fn walk(puzzle: &Puzzle, difficulty: u32, effort: &SearchControl, core: u64, cores: u64) -> Option<u64> {
    let mut nonce = core;
    while !effort.is_ended() {
        for tried in 1..=STRIDE {
            if puzzle.bits(nonce) >= difficulty {
                effort.tries.fetch_add(tried, Ordering::Relaxed);
                return Some(nonce);
            }
            nonce = nonce.checked_add(cores)?;
        }
        effort.tries.fetch_add(STRIDE, Ordering::Relaxed);
    }
    None
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn what_is_found_is_good_for_every_small_difficulty() {
        for difficulty in 0..=12 {
            let puzzle = Puzzle::new("", &"0".repeat(64), &format!("tid-{difficulty}"));
            let effort = SearchControl::default();
            let nonce = search(&puzzle, difficulty, &effort).unwrap();
            assert!(puzzle.bits(nonce) >= difficulty);
            assert!(effort.tries() > 0);
        }
    }

    #[test]
    fn a_search_can_be_stopped_and_tells_its_tries() {
        let puzzle = Puzzle::new("", "", "hopeless");
        let effort = SearchControl::default();
        let deadline = Instant::now() + Duration::from_secs(60);
        let found = thread::scope(|scope| {
            let searching = scope.spawn(|| search(&puzzle, 256, &effort));
            while effort.tries() == 0 {
                assert!(Instant::now() < deadline, "no try was made");
                thread::yield_now();
            }
            effort.stop();
            searching.join().unwrap()
        });
        assert_eq!(found, None);
    }
}
