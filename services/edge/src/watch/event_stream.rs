//! Watches over HTTP: the events of one or several watchers as server-sent events (W1, W4, W10, W11).

use std::{io, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{
    FutureExt, StreamExt,
    future::{BoxFuture, select_all},
    stream,
};
use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{CACHE_CONTROL, CONNECTION, CONTENT_TYPE},
};
use mesh_problem::Problem;
use sync_wrapper::SyncStream;
use tokio::time::{Instant, sleep_until};
use warp::reply::{Reply as _, Response};

use crate::{
    connection::ConnectionState,
    watch::{event::Emission, registry::OpenStream, watcher::Watcher},
    wire::{endless::Endless, stalled_stream::StalledStream},
};

pub(super) const MEDIA_TYPE: &str = "text/event-stream";
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Delay before a client reconnects, milliseconds (W1).
const RETRY: &str = "retry: 1000\n";

/// Ends a stream whose store was reset: the client drops its last event id, a height that the store may not reach
/// for long, and reconnects without one.
const NO_ID: &[u8] = b"id:\n\n";

/// Idle time before a heartbeat (W4). It means "unchanged", so it is longer than the time between two looks.
pub(crate) const SIGN_INTERVAL: Duration = Duration::from_secs(12);

/// Whether a response with these headers has an event stream as its body.
pub(crate) fn is_in(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|media_type| media_type == MEDIA_TYPE)
}

/// The event stream of one client.
pub(crate) struct EventStream {
    /// One watcher, or those of `GET /watch`.
    watchers: Vec<Watcher>,
    /// Whether events are named by the index of their read.
    is_indexed: bool,
    connection: Arc<ConnectionState>,
    ending: BoxFuture<'static, Problem>,
    has_begun: bool,
    is_over: bool,
    /// Index of the watcher that is polled first: the one after the last event's, so that a slow client gets the
    /// events of all watchers in turn.
    turn: usize,
    /// When bytes were last sent to the client.
    sent_at: Instant,
    open: OpenStream,
}

/// The next step of a stream.
enum Step {
    Event(Option<(usize, Emission)>),
    NothingNew,
    End,
}

impl EventStream {
    /// A stream with the events of these watchers, at least one.
    pub(crate) fn new(watchers: Vec<Watcher>, is_indexed: bool, open: OpenStream) -> Self {
        Self {
            watchers,
            is_indexed,
            connection: Arc::clone(open.connection()),
            ending: open.ending().boxed(),
            has_begun: false,
            is_over: false,
            turn: 0,
            sent_at: Instant::now(),
            open,
        }
    }

    /// The response with these events.
    pub(crate) fn into_response(self) -> Response {
        // The connection is not reused: a client that reconnects while this edge stops must reach another one.
        let closes = !self.connection.is_http2();
        let on_stall = self.open.on_stall();
        let frames = stream::unfold(self, |mut events| async move {
            let frames = events.next().await?;
            Some((stream::iter(frames.into_iter().map(Ok::<Bytes, io::Error>)), events))
        });
        let frames = match closes {
            true => frames.flatten().left_stream(),
            false => {
                let stalled = || io::Error::from(io::ErrorKind::TimedOut);
                StalledStream::new(frames.flatten(), stalled, on_stall).right_stream()
            }
        };
        let mut response = warp::reply::stream(SyncStream::new(frames)).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store, no-transform"));
        headers.insert(X_ACCEL_BUFFERING, HeaderValue::from_static("no"));
        if closes {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
            response.extensions_mut().insert(Endless);
        }
        response
    }

    /// The next bytes; `None` at the end.
    async fn next(&mut self) -> Option<Vec<Bytes>> {
        if self.is_over {
            return None;
        }
        let first = !std::mem::replace(&mut self.has_begun, true);
        let step = match first {
            // The first bytes are sent at once (W11).
            true => {
                let step = select_watcher(&mut self.watchers, self.turn).now_or_never();
                step.map_or(Step::NothingNew, Step::Event)
            }
            false => self.step().await,
        };
        let mut frames = match step {
            Step::End => return None,
            Step::Event(None) => {
                self.is_over = true;
                vec![Bytes::from_static(NO_ID)]
            }
            Step::NothingNew => {
                let height = self.watchers.iter().map(Watcher::height).max().unwrap_or_default();
                vec![format!(": {height}\n\n").into()]
            }
            Step::Event(Some((index, emission))) => {
                self.turn = (index + 1) % self.watchers.len();
                emission.bytes(self.is_indexed.then_some(index))
            }
        };
        if first {
            frames.insert(0, Bytes::from_static(RETRY.as_bytes()));
        }
        self.sent_at = Instant::now();
        Some(frames)
    }

    /// Waits for the next step. An event is taken only once the connection is writable; until then a newer one
    /// may replace it (W3).
    async fn step(&mut self) -> Step {
        let Self { watchers, connection, ending, turn, sent_at, .. } = self;
        let emission = async {
            connection.until_writable().await;
            select_watcher(watchers, *turn).await
        };
        tokio::select! {
            biased;
            _ = ending => Step::End,
            emission = emission => Step::Event(emission),
            () = sleep_until(*sent_at + SIGN_INTERVAL) => Step::NothingNew,
        }
    }
}

/// The next event of any of these watchers, polled from index `turn` on, with its index; `None` when one ends.
async fn select_watcher(watchers: &mut [Watcher], turn: usize) -> Option<(usize, Emission)> {
    if let [only] = watchers {
        return Some((0, only.next().await?));
    }
    let count = watchers.len();
    let (before, after) = watchers.split_at_mut(turn);
    let each = after.iter_mut().chain(before).map(|watcher| watcher.next().boxed());
    let (emission, position, _) = select_all(each).await;
    Some(((turn + position) % count, emission?))
}
