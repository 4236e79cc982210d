//! Wakes the watchers of what has changed, a few at a time. Between two handfuls everything else on the edge's
//! thread has its turn, so that a plain read does not stand behind ten thousand events over HTTP/2.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use tokio::{
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    task::yield_now,
};

use crate::watch::live_query::LiveQuery;

/// Watchers that are woken at once.
const HANDFUL: usize = 8;

/// Delivers the changes of all live queries, one after the other.
pub(super) struct Delivery {
    /// Each live query is in it once at most.
    changed: UnboundedSender<Arc<LiveQuery>>,
}

/// Whether a live query waits for its delivery.
#[derive(Debug, Default)]
pub(super) struct Pending(AtomicBool);

impl Delivery {
    /// Starts to deliver, until this is dropped.
    pub(super) fn start() -> Self {
        let (changed, queue) = unbounded_channel();
        tokio::spawn(deliver(queue));
        Self { changed }
    }

    /// Wakes the watchers of a live query soon.
    pub(super) fn push(&self, query: &Arc<LiveQuery>) {
        if !query.pending().0.swap(true, Ordering::AcqRel) {
            // It ends with the edge alone.
            let _ = self.changed.send(Arc::clone(query));
        }
    }
}

async fn deliver(mut changed: UnboundedReceiver<Arc<LiveQuery>>) {
    while let Some(query) = changed.recv().await {
        // What changes from here on is delivered once more.
        query.pending().0.store(false, Ordering::Release);
        for handful in query.wakers().chunks(HANDFUL) {
            handful.iter().for_each(|waker| waker.wake());
            yield_now().await;
        }
    }
}
