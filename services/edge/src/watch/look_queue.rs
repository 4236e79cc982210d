//! Limits concurrent looks per workload after a block, so that they do not delay plain reads.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use tokio::{
    sync::{Mutex, Semaphore, SemaphorePermit},
    time::{Instant, sleep_until},
};

/// Greatest number of concurrent looks.
const MAX_LOOKS: usize = 8;

/// Looks between two pauses. Single looks would wake all services for each, at 1.5 times the cost.
const GROUP: usize = 4;

/// Least time between the beginnings of two groups.
const PAUSE: Duration = Duration::from_millis(3);

/// While more looks wait, there is no pause, so that thousands of looks finish within a block.
const MAX_SPREAD: usize = 100;

/// The queue of waiting looks.
#[derive(Debug)]
pub(super) struct LookQueue {
    places: Semaphore,
    /// Locked by the look that starts next.
    turn: Mutex<Turn>,
    waiting: AtomicUsize,
}

#[derive(Debug)]
struct Turn {
    /// When the next group may begin.
    next_at: Instant,
    /// Remaining looks of this group.
    left: usize,
}

impl Default for LookQueue {
    fn default() -> Self {
        let turn = Turn { next_at: Instant::now(), left: 0 };
        Self { places: Semaphore::new(MAX_LOOKS), turn: Mutex::new(turn), waiting: AtomicUsize::new(0) }
    }
}

impl LookQueue {
    /// Waits until a look may start; dropping the returned permit ends the look.
    pub(super) async fn place(&self) -> Option<SemaphorePermit<'_>> {
        let waits = Waits::count(&self.waiting);
        let mut turn = self.turn.lock().await;
        if turn.left == 0 {
            if waits.number() <= MAX_SPREAD {
                sleep_until(turn.next_at).await;
            }
            *turn = Turn { next_at: Instant::now() + PAUSE, left: GROUP };
        }
        // The semaphore is never closed.
        let place = self.places.acquire().await.ok();
        turn.left -= 1;
        place
    }
}

/// Counts a waiting look.
struct Waits<'a>(&'a AtomicUsize);

impl<'a> Waits<'a> {
    fn count(waiting: &'a AtomicUsize) -> Self {
        waiting.fetch_add(1, Ordering::Relaxed);
        Self(waiting)
    }

    /// Number of waiting looks, including this one.
    fn number(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{StreamExt, stream::FuturesUnordered};
    use tokio::time::sleep;

    use super::*;

    /// When each of so many looks begins and ends, in their order.
    async fn looks(count: usize) -> Vec<(Instant, Instant)> {
        let queue = &LookQueue::default();
        let look = async || {
            let place = queue.place().await;
            let began = Instant::now();
            sleep(Duration::from_millis(5)).await;
            drop(place);
            (began, Instant::now())
        };
        let mut looks: Vec<_> = (0..count).map(|_| look()).collect::<FuturesUnordered<_>>().collect().await;
        looks.sort();
        looks
    }

    #[tokio::test]
    async fn few_looks_begin_in_groups() {
        let start = Instant::now();
        let looks = looks(MAX_SPREAD).await;
        for (number, group) in (0..).zip(looks.chunks(GROUP)) {
            assert!(group[0].0 >= start + PAUSE * number, "group {number} of {looks:?}");
        }
    }

    #[tokio::test]
    async fn many_looks_take_all_places_and_no_more() {
        let looks = looks(3 * MAX_SPREAD).await;
        let at_once = |at: Instant| looks.iter().filter(|look| look.0 <= at && at < look.1).count();
        assert_eq!(looks.iter().map(|look| at_once(look.0)).max(), Some(MAX_LOOKS));
    }
}
