//! A watcher of one question: which of its states the client has, and which it gets next (W1-W3, W6).

use std::{future::pending, sync::Arc};

use tokio::{sync::watch, time::Instant};

use crate::{
    respond::answer::Answer,
    watch::{
        event::{self, Emission, Event},
        live_query::{Latest, LiveQuery},
    },
};

/// A watcher of one question.
pub(crate) struct Watcher {
    query: Arc<LiveQuery>,
    latest: watch::Receiver<Latest>,
    /// The first event, until it is taken.
    first: Option<Emission>,
    sent: Sent,
    /// Number of looks when an event was held back because the head had moved.
    held_at: Option<u64>,
}

/// What the client was told last.
#[derive(Debug, Clone, Copy)]
struct Sent {
    height: u64,
    asked_at: Instant,
    /// `None` for a client that has come back with this height and gets the next state in any case (W6).
    digest: Option<u64>,
    /// Number of the published state, to count those that were skipped.
    number: u64,
    /// See [`Latest::resets`].
    resets: u64,
}

/// What becomes of the latest state.
enum Next {
    Send(Emission),
    /// The client has it.
    Nothing,
    /// The head has moved; the next look is awaited.
    Hold,
    /// The store was set back: heights never fall on a stream.
    End,
}

impl Watcher {
    /// A watcher who begins with an answer that was read at this height, or has come back with the height
    /// `last_id` and gets nothing before there is a newer one (W6).
    pub(crate) fn new(query: Arc<LiveQuery>, answer: &Answer, height: u64, last_id: Option<u64>) -> Self {
        let mut latest = query.subscribe();
        let (published, number, resets) = {
            let latest = latest.borrow_and_update();
            (Arc::clone(&latest.event), latest.number, latest.resets)
        };
        let digest = event::digest(answer);
        let asked_at = answer.asked_at;
        if let Some(last_id) = last_id.filter(|last_id| *last_id >= height) {
            let sent = Sent { height: last_id, asked_at, digest: None, number, resets };
            return Self { query, latest, first: None, sent, held_at: None };
        }
        let sent = Sent { height, asked_at, digest: Some(digest), number, resets };
        let event = if published.digest == digest && published.height <= height {
            published
        } else {
            Arc::new(Event::of_answer(query.question(), answer, height))
        };
        Self { query, latest, first: Some(Emission { event, height }), sent, held_at: None }
    }

    /// The height that the client has been told, or at which nothing had changed.
    pub(crate) fn height(&self) -> u64 {
        self.latest.borrow().height.max(self.sent.height)
    }

    /// The next event for the client; `None` at the end of the stream. Loses nothing when it is dropped.
    pub(crate) async fn next(&mut self) -> Option<Emission> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        loop {
            let query = Arc::clone(&self.query);
            let looked = query.looked();
            let held = match self.judge() {
                Next::Send(emission) => return Some(emission),
                Next::End => return None,
                Next::Nothing => false,
                Next::Hold => true,
            };
            let looked = async {
                match held {
                    true => looked.await,
                    false => pending().await,
                }
            };
            tokio::select! {
                changed = self.latest.changed() => changed.ok()?,
                () = looked => {}
            }
        }
    }

    fn judge(&mut self) -> Next {
        let latest = self.latest.borrow_and_update();
        let (event, sent) = (&latest.event, &mut self.sent);
        if latest.resets != sent.resets {
            return Next::End;
        }
        let has_it = match sent.digest {
            Some(digest) => digest == event.digest || event.asked_at <= sent.asked_at,
            None if event.is_problem() => event.asked_at <= sent.asked_at,
            // It comes back, and the head is above the height that it has: it gets the state of now.
            None if latest.height > sent.height => false,
            None => return Next::Hold,
        };
        if has_it {
            return Next::Nothing;
        }
        if !event.is_problem() && latest.height < self.query.head().height {
            // A plain read would be newer now (W2). The event that the next look leaves is sent in any case,
            // so that nobody waits for ever behind fast blocks.
            if *self.held_at.get_or_insert(latest.looks) == latest.looks {
                return Next::Hold;
            }
        }
        self.held_at = None;
        let height = match sent.digest {
            None => latest.height,
            Some(_) => event.height,
        };
        self.query.count(latest.number.saturating_sub(sent.number + 1));
        let height = if event.is_problem() { sent.height } else { height.max(sent.height) };
        *sent = Sent {
            height,
            asked_at: event.asked_at,
            digest: Some(event.digest),
            number: latest.number,
            resets: sent.resets,
        };
        Next::Send(Emission { event: Arc::clone(event), height })
    }
}
