//! What is known of one connection: the parts that handle it (guard, timers, the service and, by the request's
//! extensions, the gateway) tell each other here.

use std::{
    pin::{Pin, pin},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use hyper::body::{Body, Frame, SizeHint};
use mesh_framing::Ambiguity;
use tokio::time::Instant;

use crate::access::Record;

/// The state of one connection.
#[derive(Debug, Default)]
pub(crate) struct ConnectionState {
    floor: AtomicU64,
    http2: AtomicBool,
    begun: AtomicUsize,
    broken: AtomicUsize,
    taken: AtomicUsize,
    answered: AtomicUsize,
    frames: AtomicUsize,
    /// Why it is refused, by the guard.
    refusal: OnceLock<Ambiguity>,
    /// When the connection began, and how many nanoseconds later its newest answer was complete.
    since: Since,
    answered_ns: AtomicU64,
}

#[derive(Debug)]
struct Since(Instant);

impl Default for Since {
    fn default() -> Self {
        Self(Instant::now())
    }
}

impl ConnectionState {
    /// The highest block height that was answered on it.
    pub(crate) fn floor(&self) -> u64 {
        self.floor.load(Ordering::Relaxed)
    }

    /// Notes the height of an answer.
    pub(crate) fn has_seen(&self, height: u64) {
        self.floor.fetch_max(height, Ordering::Relaxed);
    }

    /// Notes that it speaks HTTP/2.
    pub(crate) fn speaks_http2(&self) {
        self.http2.store(true, Ordering::Relaxed);
    }

    /// Whether it speaks HTTP/2.
    pub(crate) fn is_http2(&self) -> bool {
        self.http2.load(Ordering::Relaxed)
    }

    /// Notes how many requests have begun to come (HTTP/1).
    pub(crate) fn has_begun(&self, requests: usize) {
        self.begun.store(requests, Ordering::Relaxed);
    }

    /// Notes why it is refused.
    pub(crate) fn refuses(&self, because: Ambiguity) {
        let _ = self.refusal.set(because);
    }

    /// Why it is refused, if the guard did.
    pub(crate) fn refusal(&self) -> Option<Ambiguity> {
        self.refusal.get().copied()
    }

    /// Notes the request whose body is refused, counted from 1.
    pub(crate) fn breaks(&self, request: usize) {
        self.broken.store(request, Ordering::Relaxed);
    }

    /// Whether a request has begun to come that was not taken yet (HTTP/1).
    pub(crate) fn is_receiving(&self) -> bool {
        self.begun.load(Ordering::Relaxed) > self.taken()
    }

    /// Takes a request.
    pub(crate) fn take(self: &Arc<Self>) -> InFlight {
        let number = self.taken.fetch_add(1, Ordering::Relaxed) + 1;
        InFlight { number, connection: Arc::clone(self) }
    }

    /// Requests that were taken.
    pub(crate) fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    /// Requests whose answer is complete, or given up.
    pub(crate) fn answered(&self) -> usize {
        self.answered.load(Ordering::Relaxed)
    }

    /// When the newest answer was complete; when the connection began, as long as there is none.
    pub(crate) fn answered_at(&self) -> Instant {
        self.since.0 + Duration::from_nanos(self.answered_ns.load(Ordering::Relaxed))
    }

    /// Whether a request is being answered.
    pub(crate) fn is_answering(&self) -> bool {
        self.taken() != self.answered()
    }

    /// Changes whenever an answer moves on.
    pub(crate) fn progress(&self) -> usize {
        let frames = self.frames.load(Ordering::Relaxed);
        frames.wrapping_add(self.taken()).wrapping_add(self.answered())
    }
}

/// A request that is being answered, until its body is gone.
#[derive(Debug)]
pub(crate) struct InFlight {
    /// Which request of its connection it is, counted from 1.
    number: usize,
    connection: Arc<ConnectionState>,
}

impl InFlight {
    /// Whether its body is refused.
    pub(crate) fn is_broken(&self) -> bool {
        self.connection.broken.load(Ordering::Relaxed) == self.number
    }

    /// Why it is refused.
    pub(crate) fn refusal(&self) -> Option<String> {
        self.connection.refusal().map(|because| because.to_string())
    }

    /// Whether no byte has come of a request behind it.
    pub(crate) fn is_last(&self) -> bool {
        self.connection.begun.load(Ordering::Relaxed) <= self.number
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let ConnectionState { since, answered, answered_ns, .. } = &*self.connection;
        // An u64 of nanoseconds lasts for centuries.
        answered_ns.store(since.0.elapsed().as_nanos() as u64, Ordering::Relaxed);
        answered.fetch_add(1, Ordering::Relaxed);
    }
}

/// A body that keeps its request in flight.
pub(crate) struct Kept<B> {
    body: B,
    request: InFlight,
    /// Where the access log is on.
    record: Option<Box<Record>>,
}

impl<B> Kept<B> {
    /// The body of the answer to a request, of which there may be a record.
    pub(crate) fn new(body: B, request: InFlight, record: Option<Box<Record>>) -> Self {
        Self { body, request, record }
    }
}

impl<B: Body + Unpin> Body for Kept<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let Self { body, request, record } = &mut *self;
        request.connection.frames.fetch_add(1, Ordering::Relaxed);
        let frame = ready!(pin!(&mut *body).poll_frame(context));
        if let Some(record) = record {
            record.polled(&frame, body.is_end_stream());
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
