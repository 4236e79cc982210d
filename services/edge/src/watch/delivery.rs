//! Wakes the watchers of changed live queries in batches. Other tasks of the edge's thread run between two
//! batches, so that a plain read does not wait behind ten thousand events over HTTP/2.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use tokio::{
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    task::yield_now,
};

use crate::watch::live_query::LiveQuery;

/// Watchers woken in one batch.
const HANDFUL: usize = 8;

/// Delivers the changes of all live queries in sequence.
pub(super) struct Delivery {
    /// Contains each live query at most once.
    changed: UnboundedSender<Arc<LiveQuery>>,
}

/// Whether a live query is queued for delivery.
#[derive(Debug, Default)]
pub(super) struct Pending(AtomicBool);

impl Delivery {
    /// Starts the delivery task, which runs until this is dropped.
    pub(super) fn start() -> Self {
        let (changed, queue) = unbounded_channel();
        tokio::spawn(deliver(queue));
        Self { changed }
    }

    /// Queues a live query to wake its watchers.
    pub(super) fn push(&self, query: &Arc<LiveQuery>) {
        if !query.pending().0.swap(true, Ordering::AcqRel) {
            // The receiver lives as long as the edge.
            let _ = self.changed.send(Arc::clone(query));
        }
    }
}

async fn deliver(mut changed: UnboundedReceiver<Arc<LiveQuery>>) {
    while let Some(query) = changed.recv().await {
        // A change from here on is queued again.
        query.pending().0.store(false, Ordering::Release);
        for handful in query.wakers().chunks(HANDFUL) {
            handful.iter().for_each(|waker| waker.wake());
            yield_now().await;
        }
    }
}
