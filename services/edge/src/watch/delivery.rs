//! Wakes the watchers of changed questions in batches. Other tasks of the edge's thread run between two
//! batches, so that a plain read does not wait behind ten thousand events over HTTP/2.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use futures_util::task::AtomicWaker;
use parking_lot::Mutex;
use tokio::{
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    task::yield_now,
};

/// Watchers woken in one batch.
const HANDFUL: usize = 8;

/// The watchers of one question.
#[derive(Debug, Default)]
pub(super) struct Subscribers {
    /// By number, which counts all watchers so far.
    wakers: Mutex<(u64, HashMap<u64, Arc<AtomicWaker>>)>,
    /// Whether they are queued to be woken.
    is_queued: AtomicBool,
}

impl Subscribers {
    /// Adds a watcher; returns its number and its waker.
    pub(super) fn add(&self) -> (u64, Arc<AtomicWaker>) {
        let (mut wakers, waker) = (self.wakers.lock(), Arc::new(AtomicWaker::new()));
        wakers.0 += 1;
        let number = wakers.0;
        wakers.1.insert(number, Arc::clone(&waker));
        (number, waker)
    }

    /// Removes a watcher.
    pub(super) fn remove(&self, number: u64) {
        self.wakers.lock().1.remove(&number);
    }

    /// Whether there is no watcher.
    pub(super) fn is_empty(&self) -> bool {
        self.wakers.lock().1.is_empty()
    }

    fn wakers(&self) -> Vec<Arc<AtomicWaker>> {
        self.wakers.lock().1.values().cloned().collect()
    }
}

/// Wakes the watchers of all questions in sequence.
pub(super) struct Delivery {
    /// Contains the watchers of each question at most once.
    changed: UnboundedSender<Arc<Subscribers>>,
}

impl Delivery {
    /// Starts the delivery task, which runs until this is dropped.
    pub(super) fn start() -> Self {
        let (changed, queue) = unbounded_channel();
        tokio::spawn(deliver(queue));
        Self { changed }
    }

    /// Queues the watchers of a question to be woken.
    pub(super) fn push(&self, subscribers: &Arc<Subscribers>) {
        if !subscribers.is_queued.swap(true, Ordering::AcqRel) {
            // The receiver lives as long as the edge.
            let _ = self.changed.send(Arc::clone(subscribers));
        }
    }
}

async fn deliver(mut changed: UnboundedReceiver<Arc<Subscribers>>) {
    while let Some(subscribers) = changed.recv().await {
        // A change from here on is queued again.
        subscribers.is_queued.store(false, Ordering::Release);
        for handful in subscribers.wakers().chunks(HANDFUL) {
            handful.iter().for_each(|waker| waker.wake());
            yield_now().await;
        }
    }
}
