//! How long a connection may take (contract section 7): a request head within its time, counted from connecting
//! or from its first byte; a kept connection without a request, its idle time. hyper's own timer knows only one of
//! the two, and none before it knows the protocol.

use std::{
    io,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use hyper::body::{Body, Frame, SizeHint};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep, sleep},
};

/// What the two ends of a connection's handling tell each other.
#[derive(Debug, Default)]
pub(crate) struct Answering {
    in_flight: AtomicUsize,
    answered: AtomicUsize,
}

/// A request that is being answered, until its body is gone.
#[derive(Debug)]
pub(crate) struct InFlight(Arc<Answering>);

impl Answering {
    /// Notes a request.
    pub(crate) fn begin(self: &Arc<Self>) -> InFlight {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        InFlight(Arc::clone(self))
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.answered.fetch_add(1, Ordering::Relaxed);
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A body that keeps its request in flight.
pub(crate) struct Kept<B> {
    pub(crate) body: B,
    pub(crate) _request: InFlight,
}

impl<B: Body + Unpin> Body for Kept<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        pin!(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A connection that is given up when it takes too long.
pub(crate) struct Patient<S> {
    stream: S,
    answering: Arc<Answering>,
    /// Requests answered when the timer was set.
    seen: usize,
    waiting_for: Waiting,
    timer: Pin<Box<Sleep>>,
    head_time: Duration,
    idle_time: Duration,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Waiting {
    /// The first bytes, which tell the protocol.
    First,
    /// The rest of a request's head.
    Head,
    /// The next request.
    Idle,
    /// The next request of an HTTP/2 connection, whose bytes are not all requests.
    Http2,
}

impl<S> Patient<S> {
    pub(crate) fn new(
        stream: S,
        answering: Arc<Answering>,
        head_time: Duration,
        idle_time: Duration,
    ) -> Self {
        let timer = Box::pin(sleep(head_time));
        Self { stream, answering, seen: 0, waiting_for: Waiting::First, timer, head_time, idle_time }
    }

    fn wait_for(&mut self, next: Waiting, time: Duration) {
        self.waiting_for = next;
        self.timer.as_mut().reset(Instant::now() + time);
    }

    /// Bytes came.
    fn received(&mut self, bytes: &[u8]) {
        match self.waiting_for {
            Waiting::First if bytes.starts_with(b"PRI") => self.wait_for(Waiting::Http2, self.idle_time),
            Waiting::First => self.waiting_for = Waiting::Head,
            Waiting::Idle => self.wait_for(Waiting::Head, self.head_time),
            Waiting::Head | Waiting::Http2 => {}
        }
    }

    /// No bytes: an error once that lasts too long.
    fn starved(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        let answered = self.answering.answered.load(Ordering::Relaxed);
        if answered != self.seen {
            self.seen = answered;
            let next = if self.waiting_for == Waiting::Http2 { Waiting::Http2 } else { Waiting::Idle };
            self.wait_for(next, self.idle_time);
        }
        if self.answering.in_flight.load(Ordering::Relaxed) > 0 {
            return Poll::Pending;
        }
        ready!(self.timer.as_mut().poll(context));
        Poll::Ready(io::Error::new(io::ErrorKind::TimedOut, "no request in time"))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = into.filled().len();
        if Pin::new(&mut this.stream).poll_read(context, into)?.is_ready() {
            this.received(&into.filled()[before..]);
            return Poll::Ready(Ok(()));
        }
        this.starved(context).map(Err)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex},
        time::timeout,
    };

    use super::*;

    /// The time that a test expects to pass, and one that it would not live to see.
    const SOON: Duration = Duration::from_millis(40);
    const NEVER: Duration = Duration::from_secs(3600);

    fn connection(head: Duration, idle: Duration) -> (DuplexStream, Patient<DuplexStream>, Arc<Answering>) {
        let (client, server) = duplex(1024);
        let answering = Arc::new(Answering::default());
        let patient = Patient::new(server, Arc::clone(&answering), head, idle);
        (client, patient, answering)
    }

    async fn is_given_up(connection: &mut Patient<DuplexStream>) {
        let read =
            timeout(Duration::from_secs(20), connection.read_u8()).await.expect("the connection is kept");
        assert_eq!(read.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }

    async fn is_kept(connection: &mut Patient<DuplexStream>) {
        assert!(timeout(SOON * 3, connection.read_u8()).await.is_err(), "the connection is given up");
    }

    async fn receive(client: &mut DuplexStream, connection: &mut Patient<DuplexStream>, bytes: &[u8]) {
        client.write_all(bytes).await.unwrap();
        let mut received = vec![0; bytes.len()];
        connection.read_exact(&mut received).await.unwrap();
    }

    #[tokio::test]
    async fn a_connection_without_a_byte_is_given_up_after_the_head_time() {
        let (_client, mut connection, _) = connection(SOON, NEVER);
        is_given_up(&mut connection).await;
    }

    #[tokio::test]
    async fn bytes_of_a_head_do_not_prolong_its_time() {
        let (mut client, mut connection, _) = connection(SOON, NEVER);
        receive(&mut client, &mut connection, b"G").await;
        is_given_up(&mut connection).await;
    }

    #[tokio::test]
    async fn a_kept_connection_has_its_idle_time() {
        let (mut client, mut connection, answering) = connection(NEVER, SOON);
        receive(&mut client, &mut connection, b"GET").await;
        drop(answering.begin());
        is_given_up(&mut connection).await;
    }

    #[tokio::test]
    async fn the_next_request_on_a_kept_connection_has_the_head_time() {
        let (mut client, mut connection, answering) = connection(SOON, NEVER);
        receive(&mut client, &mut connection, b"GET").await;
        drop(answering.begin());
        is_kept(&mut connection).await;
        receive(&mut client, &mut connection, b"G").await;
        is_given_up(&mut connection).await;
    }

    #[tokio::test]
    async fn a_request_in_flight_is_waited_for() {
        let (mut client, mut connection, answering) = connection(SOON, SOON);
        receive(&mut client, &mut connection, b"GET").await;
        let request = answering.begin();
        is_kept(&mut connection).await;
        drop(request);
        is_given_up(&mut connection).await;
    }

    #[tokio::test]
    async fn frames_of_http2_are_no_heads() {
        let (mut client, mut connection, _) = connection(SOON, NEVER);
        receive(&mut client, &mut connection, b"PRI * HTTP/2.0").await;
        receive(&mut client, &mut connection, b"frame").await;
        is_kept(&mut connection).await;
    }
}
