//! A watcher of one live query: waits for the client's next event.

use std::sync::Arc;

use tokio::time::Instant;

use crate::{
    ask::{answer::Answer, heads::HeadStatus},
    watch::{
        event::Emission,
        live_query::{LiveQuery, Subscription},
        state::{Next, Progress},
    },
};

/// A watcher of one live query.
pub(crate) struct Watcher {
    subscription: Subscription,
    /// The first event until it is sent; a newer one replaces it.
    first: Option<Emission>,
    progress: Progress,
}

impl Watcher {
    /// A watcher that starts with an answer read at this height after this number of head resets, or resumes
    /// after the height `last_id` (W6).
    pub(super) fn new(
        query: &Arc<LiveQuery>,
        answer: &Answer,
        (height, resets): (u64, u64),
        last_id: Option<u64>,
    ) -> Self {
        let subscription = query.subscribe();
        let (head, now) = (HeadStatus { resets, ..query.head() }, Instant::now());
        let (progress, first) =
            Progress::begin(&query.latest(), query.question(), answer, height, head, last_id, now);
        Self { subscription, first, progress }
    }

    /// The greatest height up to which the client is current.
    pub(crate) fn height(&self) -> u64 {
        let query = self.subscription.query();
        self.progress.height(&query.latest(), query.head())
    }

    /// The next event for the client; `None` at the end of the stream. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Option<Emission> {
        let first = self.first.take();
        let Self { subscription, progress, .. } = self;
        let query = subscription.query();
        loop {
            // Registered before the state is read, so that no look is missed.
            let looked = query.looked();
            let (next, number) = {
                let latest = query.latest();
                (progress.next(&latest, query.head()), latest.number())
            };
            let is_held = match next {
                Next::Send(emission, skipped) => {
                    query.count_event(skipped);
                    return Some(emission);
                }
                Next::End => return None,
                Next::Nothing | Next::Hold if first.is_some() => return first,
                Next::Nothing => false,
                Next::Hold => true,
            };
            tokio::select! {
                () = subscription.changed(number) => {}
                () = looked, if is_held => {}
            }
        }
    }
}
