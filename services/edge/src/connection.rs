//! The state of one connection, shared by its handlers: message boundaries, timeouts, the server and, through the
//! request's client context, the gateway.

use std::{
    pin::pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use mesh_framing::Ambiguity;
use tokio::{sync::Notify, time::Instant};

/// The state of one connection.
#[derive(Debug, Default)]
pub(crate) struct ConnectionState {
    min_height: AtomicU64,
    http2: AtomicBool,
    /// Whether the newest request is of HTTP/1.0.
    http10: AtomicBool,
    begun: AtomicUsize,
    broken: AtomicUsize,
    started: AtomicUsize,
    finished: AtomicUsize,
    frames: AtomicUsize,
    long_lived: AtomicUsize,
    unsent: AtomicUsize,
    /// Why strict HTTP/1 refused the connection.
    refusal: OnceLock<Ambiguity>,
    opened_at: OpenedAt,
    /// When the newest answer was complete, and taken (HTTP/2), nanoseconds after `opened_at`.
    finished_ns: AtomicU64,
    /// Whether writes are blocked by the client.
    blocked: AtomicBool,
    /// Notified when the connection is writable again.
    unblocked: Notify,
    /// Whether the connection is closed because its client read nothing for too long.
    stalled: AtomicBool,
}

#[derive(Debug)]
struct OpenedAt(Instant);

impl Default for OpenedAt {
    fn default() -> Self {
        Self(Instant::now())
    }
}

impl ConnectionState {
    /// The highest block height that was answered on this connection; later answers may not be older.
    pub(crate) fn min_height(&self) -> u64 {
        self.min_height.load(Ordering::Relaxed)
    }

    /// Records the block height of an answer.
    pub(crate) fn raise_min_height(&self, height: u64) {
        self.min_height.fetch_max(height, Ordering::Relaxed);
    }

    /// Records that the client speaks HTTP/2.
    pub(crate) fn set_http2(&self) {
        self.http2.store(true, Ordering::Relaxed);
    }

    /// Whether the client speaks HTTP/2.
    pub(crate) fn is_http2(&self) -> bool {
        self.http2.load(Ordering::Relaxed)
    }

    /// Records whether the newest request is of HTTP/1.0.
    pub(crate) fn set_http10(&self, is_http10: bool) {
        self.http10.store(is_http10, Ordering::Relaxed);
    }

    /// Whether the newest request is of HTTP/1.0, whose answers may have no other end than that of the connection.
    pub(crate) fn is_http10(&self) -> bool {
        self.http10.load(Ordering::Relaxed)
    }

    /// Records the number of requests of which a byte has been received (HTTP/1).
    pub(crate) fn set_begun(&self, requests: usize) {
        self.begun.store(requests, Ordering::Relaxed);
    }

    /// Records why the connection is refused.
    pub(crate) fn set_refusal(&self, reason: Ambiguity) {
        let _ = self.refusal.set(reason);
    }

    /// Why the connection is refused, if it is.
    pub(crate) fn refusal(&self) -> Option<Ambiguity> {
        self.refusal.get().copied()
    }

    /// Records the request whose body is refused, counted from 1.
    pub(crate) fn set_broken(&self, request: usize) {
        self.broken.store(request, Ordering::Relaxed);
    }

    /// Whether bytes of a request have been received that has not started (HTTP/1).
    pub(crate) fn is_receiving(&self) -> bool {
        self.begun.load(Ordering::Relaxed) > self.started()
    }

    /// Starts the next request.
    pub(crate) fn start_request(self: &Arc<Self>) -> InFlightRequest {
        let number = self.started.fetch_add(1, Ordering::Relaxed) + 1;
        InFlightRequest { number, connection: Arc::clone(self) }
    }

    fn started(&self) -> usize {
        self.started.load(Ordering::Relaxed)
    }

    fn finished(&self) -> usize {
        self.finished.load(Ordering::Relaxed)
    }

    /// When the newest response was complete; before the first one, when the connection was opened.
    pub(crate) fn finished_at(&self) -> Instant {
        self.opened_at.0 + Duration::from_nanos(self.finished_ns.load(Ordering::Relaxed))
    }

    /// Whether a request is in flight, or bytes of an answer are.
    pub(crate) fn is_answering(&self) -> bool {
        self.started() != self.finished() || self.has_unsent()
    }

    /// Marks bytes that wait for the client to take them, until the mark is dropped (HTTP/2).
    pub(crate) fn mark_unsent(self: &Arc<Self>) -> Unsent {
        self.unsent.fetch_add(1, Ordering::Relaxed);
        Unsent(Arc::clone(self))
    }

    /// Whether bytes wait for the client to take them (HTTP/2).
    pub(crate) fn has_unsent(&self) -> bool {
        self.unsent.load(Ordering::Relaxed) > 0
    }

    /// Marks a stream that may stay open and idle, until the mark is dropped.
    pub(crate) fn mark_long_lived(self: &Arc<Self>) -> LongLivedStream {
        self.long_lived.fetch_add(1, Ordering::Relaxed);
        LongLivedStream(Arc::clone(self))
    }

    /// Whether a long-lived stream is open: silence does not mean a stalled client then.
    pub(crate) fn has_long_lived_stream(&self) -> bool {
        self.long_lived.load(Ordering::Relaxed) > 0
    }

    /// Records whether a write has to wait for the client.
    pub(crate) fn set_blocked(&self, is_blocked: bool) {
        if self.blocked.swap(is_blocked, Ordering::Relaxed) && !is_blocked {
            self.unblocked.notify_waiters();
        }
    }

    /// Whether writes are blocked by the client.
    pub(crate) fn is_blocked(&self) -> bool {
        self.blocked.load(Ordering::Relaxed)
    }

    /// Resolves once the connection is writable. An answer read only then is newer.
    pub(crate) async fn until_writable(&self) {
        let mut unblocked = pin!(self.unblocked.notified());
        while self.is_blocked() {
            unblocked.as_mut().await;
            unblocked.set(self.unblocked.notified());
        }
    }

    /// Records that the connection is closed because its client read nothing for too long.
    pub(crate) fn set_stalled(&self) {
        self.stalled.store(true, Ordering::Relaxed);
    }

    /// Whether the connection is closed because its client read nothing for too long.
    pub(crate) fn has_stalled(&self) -> bool {
        self.stalled.load(Ordering::Relaxed)
    }

    /// Counts a poll of an answer's body, or bytes that a client has taken (HTTP/2).
    pub(crate) fn count_frame(&self) {
        self.frames.fetch_add(1, Ordering::Relaxed);
    }

    /// A number that changes whenever an answer makes progress.
    pub(crate) fn progress(&self) -> usize {
        let frames = self.frames.load(Ordering::Relaxed);
        frames.wrapping_add(self.started()).wrapping_add(self.finished())
    }

    fn set_finished_now(&self) {
        // A u64 of nanoseconds lasts for centuries.
        self.finished_ns.store(self.opened_at.0.elapsed().as_nanos() as u64, Ordering::Relaxed);
    }
}

/// The mark of an open long-lived stream.
#[derive(Debug)]
pub(crate) struct LongLivedStream(Arc<ConnectionState>);

impl Drop for LongLivedStream {
    fn drop(&mut self) {
        self.0.long_lived.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The mark of bytes that wait for the client to take them.
#[derive(Debug)]
pub(crate) struct Unsent(Arc<ConnectionState>);

impl Unsent {
    /// Counts bytes that the client has taken.
    pub(crate) fn count(&self) {
        self.0.count_frame();
    }
}

impl Drop for Unsent {
    fn drop(&mut self) {
        self.0.set_finished_now();
        self.0.unsent.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A request that is being answered; dropped when the body of its answer is.
#[derive(Debug)]
pub(crate) struct InFlightRequest {
    /// Number of the request on its connection, counted from 1.
    number: usize,
    pub(crate) connection: Arc<ConnectionState>,
}

impl InFlightRequest {
    /// Whether the request's body is refused.
    pub(crate) fn is_broken(&self) -> bool {
        self.connection.broken.load(Ordering::Relaxed) == self.number
    }

    /// Why the connection is refused, if it is.
    pub(crate) fn refusal(&self) -> Option<String> {
        self.connection.refusal().map(|reason| reason.to_string())
    }

    /// Whether no byte of a later request has been received.
    pub(crate) fn is_last(&self) -> bool {
        self.connection.begun.load(Ordering::Relaxed) <= self.number
    }
}

impl Drop for InFlightRequest {
    fn drop(&mut self) {
        self.connection.set_finished_now();
        self.connection.finished.fetch_add(1, Ordering::Relaxed);
    }
}
