//! Limits concurrent looks per workload after a block, so that they do not delay plain reads. A client has few looks in
//! the queue, so that one with thousands of questions does not delay those of others.

use std::{
    collections::HashMap,
    sync::{
        Arc, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex as BlockingMutex;
use scopeguard::guard;
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
    lanes: BlockingMutex<HashMap<u64, Weak<Lane>>>,
}

/// The looks of one client that are in the queue or running, as many as may run.
#[derive(Debug)]
pub(super) struct Lane(Semaphore);

/// A look that may run until this is dropped.
pub(super) struct Place<'a> {
    _place: Option<SemaphorePermit<'a>>,
    _in_lane: Option<SemaphorePermit<'a>>,
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
        Self {
            places: Semaphore::new(MAX_LOOKS),
            turn: Mutex::new(turn),
            waiting: AtomicUsize::new(0),
            lanes: BlockingMutex::default(),
        }
    }
}

impl LookQueue {
    /// The lane of a client, which is to be kept as long as it has questions.
    pub(super) fn lane(&self, client: u64) -> Arc<Lane> {
        let mut lanes = self.lanes.lock();
        if let Some(lane) = lanes.get(&client).and_then(Weak::upgrade) {
            return lane;
        }
        if lanes.len() == lanes.capacity() {
            lanes.retain(|_, lane| lane.strong_count() > 0);
        }
        let lane = Arc::new(Lane(Semaphore::new(MAX_LOOKS)));
        lanes.insert(client, Arc::downgrade(&lane));
        lane
    }

    /// Waits until a look may start, which ends when the place is dropped.
    pub(super) async fn place<'a>(&'a self, lane: &'a Lane) -> Place<'a> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let _waits = guard(&self.waiting, |waiting| _ = waiting.fetch_sub(1, Ordering::Relaxed));
        // The semaphores are never closed.
        let in_lane = lane.0.acquire().await.ok();
        let mut turn = self.turn.lock().await;
        if turn.left == 0 {
            if self.waiting.load(Ordering::Relaxed) <= MAX_SPREAD {
                sleep_until(turn.next_at).await;
            }
            *turn = Turn { next_at: Instant::now() + PAUSE, left: GROUP };
        }
        let place = self.places.acquire().await.ok();
        turn.left -= 1;
        Place { _place: place, _in_lane: in_lane }
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
        let lane = &*queue.lane(1);
        let look = async || {
            let place = queue.place(lane).await;
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
    async fn the_look_of_a_client_does_not_wait_for_all_of_another() {
        let queue = &LookQueue::default();
        let (many, one) = (&*queue.lane(1), &*queue.lane(2));
        let ended = &AtomicUsize::new(0);
        let look = async |lane| {
            let _place = queue.place(lane).await;
            sleep(Duration::from_millis(5)).await;
            ended.fetch_add(1, Ordering::Relaxed)
        };
        let mut looks: FuturesUnordered<_> = (0..3 * MAX_SPREAD).map(|_| look(many)).collect();
        let before = tokio::select! {
            biased;
            () = async { while looks.next().await.is_some() {} } => panic!("it waits for all"),
            before = async { sleep(Duration::from_millis(1)).await; look(one).await } => before,
        };
        assert!(before <= 5 * MAX_LOOKS, "it waited for {before} looks");
    }

    #[tokio::test]
    async fn many_looks_take_all_places_and_no_more() {
        let looks = looks(3 * MAX_SPREAD).await;
        let at_once = |at: Instant| looks.iter().filter(|look| look.0 <= at && at < look.1).count();
        assert_eq!(looks.iter().map(|look| at_once(look.0)).max(), Some(MAX_LOOKS));
    }
}
