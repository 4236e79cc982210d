//! A watcher of one question: waits for the next state that its client is to be sent.

use std::{future::pending, sync::Arc};

use tokio::sync::watch;

use crate::{
    respond::answer::Answer,
    watch::{
        event::Emission,
        live_query::LiveQuery,
        state::{Latest, Next, Progress},
    },
};

/// A watcher of one question.
pub(crate) struct Watcher {
    query: Arc<LiveQuery>,
    latest: watch::Receiver<Latest>,
    /// The first event, until it is taken.
    first: Option<Emission>,
    progress: Progress,
}

impl Watcher {
    /// A watcher who begins with an answer that was read at this height, or has come back with the height
    /// `last_id` (W6).
    pub(super) fn new(query: Arc<LiveQuery>, answer: &Answer, height: u64, last_id: Option<u64>) -> Self {
        let mut latest = query.subscribe();
        let (progress, first) =
            Progress::begin(&latest.borrow_and_update(), query.question(), answer, height, last_id);
        Self { query, latest, first, progress }
    }

    /// The height at which nothing had changed for the client.
    pub(crate) fn height(&self) -> u64 {
        self.latest.borrow().height().max(self.progress.height())
    }

    /// The next event for the client; `None` at the end of the stream. Loses nothing when it is dropped.
    pub(crate) async fn next(&mut self) -> Option<Emission> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        loop {
            // Before the state is looked at, so that no look is missed.
            let looked = self.query.looked();
            let next = self.progress.next(&self.latest.borrow_and_update(), self.query.head().height);
            let looked = match next {
                Next::Send(emission, skipped) => {
                    self.query.count_event(skipped);
                    return Some(emission);
                }
                Next::End => return None,
                Next::Nothing => None,
                Next::Hold => Some(looked),
            };
            let looked = async {
                match looked {
                    Some(looked) => looked.await,
                    None => pending().await,
                }
            };
            tokio::select! {
                changed = self.latest.changed() => changed.ok()?,
                () = looked => {}
            }
        }
    }
}
