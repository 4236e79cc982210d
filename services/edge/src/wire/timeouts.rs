//! Timeouts of a connection (contract section 7): for a request's head, from connecting or from its first byte;
//! for the next request of an idle connection; for a client that does not read its response. hyper's own timer
//! covers only the first, and only once the protocol is known.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep, sleep},
};

use crate::connection::ConnectionState;

/// The timeouts of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timeouts {
    /// For a request's head, from connecting or from its first byte.
    pub(crate) head: Duration,
    /// For the next request on an open connection.
    pub(crate) idle: Duration,
    /// For the client to read the next bytes of an answer.
    pub(crate) stall: Duration,
}

/// A stream whose reads and writes fail with [`io::ErrorKind::TimedOut`] when the client takes too long.
pub(crate) struct TimeoutStream<S> {
    stream: S,
    state: Arc<ConnectionState>,
    /// [`ConnectionState::progress`] when the deadline was set.
    progress: usize,
    awaiting: Awaiting,
    /// Deadline of `awaiting`; `None` for a head whose first bytes have just been received.
    deadline: Option<Instant>,
    /// Fires at the deadline or earlier: resetting it for every request costs more than a spare wake-up.
    timer: Pin<Box<Sleep>>,
    /// Runs while the client accepts no bytes.
    write_timer: Option<Pin<Box<Sleep>>>,
    /// Whether the last flush has not ended.
    is_flushing: bool,
    timeouts: Timeouts,
}

/// What a read waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Awaiting {
    /// The rest of a request's head, or of the bytes that identify the protocol.
    Head,
    /// The next request of HTTP/1.
    NextRequest,
    /// Frames of HTTP/2, not all of which are requests.
    Http2,
}

impl<S> TimeoutStream<S> {
    pub(crate) fn new(stream: S, state: Arc<ConnectionState>, timeouts: Timeouts) -> Self {
        let deadline = Some(Instant::now() + timeouts.head);
        let timer = Box::pin(sleep(timeouts.head.min(timeouts.idle)));
        let awaiting = Awaiting::Head;
        Self {
            stream,
            state,
            progress: 0,
            awaiting,
            deadline,
            timer,
            write_timer: None,
            is_flushing: false,
            timeouts,
        }
    }

    /// Sets the awaited input and its deadline. The timer is only moved to an earlier time here.
    fn set_deadline(&mut self, awaiting: Awaiting, deadline: Instant) {
        self.awaiting = awaiting;
        self.deadline = Some(deadline);
        if deadline < self.timer.deadline() {
            self.timer.as_mut().reset(deadline);
        }
    }

    /// Updates the awaited input after a read of some bytes.
    fn after_read(&mut self) {
        match self.awaiting {
            Awaiting::Head if self.state.is_http2() => {
                self.set_deadline(Awaiting::Http2, Instant::now() + self.timeouts.idle);
            }
            // Most heads are complete at once: the clock is read only when a read has to wait.
            Awaiting::NextRequest => (self.awaiting, self.deadline) = (Awaiting::Head, None),
            Awaiting::Head | Awaiting::Http2 => {}
        }
    }

    /// Polls the timeout of a read that has no bytes: ready with an error once it has passed.
    fn poll_read_timeout(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        if self.state.is_answering() && self.awaiting != Awaiting::Http2 {
            // During a response the write timer watches the client. The read timer only wakes the connection
            // afterwards, at the earliest time at which the idle timeout could have passed.
            while self.timer.as_mut().poll(context).is_ready() {
                self.timer.as_mut().reset(Instant::now() + self.timeouts.idle);
            }
            return Poll::Pending;
        }
        self.follow_progress();
        if self.deadline.is_none() {
            self.set_deadline(self.awaiting, Instant::now() + self.timeouts.head);
        }
        loop {
            ready!(self.timer.as_mut().poll(context));
            match self.deadline {
                Some(deadline) if deadline > self.timer.deadline() => self.timer.as_mut().reset(deadline),
                _ if self.state.has_unsent() => {
                    self.state.set_stalled();
                    return Poll::Ready(timed_out("the client takes nothing"));
                }
                // Silence on a long-lived stream does not mean a stalled client; HTTP/2 pings detect a lost one.
                _ if self.state.has_long_lived_stream() => {
                    let deadline = Instant::now() + self.timeouts.stall;
                    self.deadline = Some(deadline);
                    self.timer.as_mut().reset(deadline);
                }
                _ => return Poll::Ready(timed_out("no request in time")),
            }
        }
    }

    /// Sets the next deadline when a response has made progress.
    fn follow_progress(&mut self) {
        let progress = self.state.progress();
        if progress == self.progress {
            return;
        }
        self.progress = progress;
        let idle_deadline = self.state.finished_at() + self.timeouts.idle;
        match self.awaiting {
            Awaiting::Http2 if self.state.is_answering() => {
                self.set_deadline(Awaiting::Http2, Instant::now() + self.timeouts.stall);
            }
            Awaiting::Http2 => self.set_deadline(Awaiting::Http2, idle_deadline),
            Awaiting::Head | Awaiting::NextRequest if self.state.is_receiving() => {
                self.set_deadline(Awaiting::Head, Instant::now() + self.timeouts.head);
            }
            Awaiting::Head | Awaiting::NextRequest => self.set_deadline(Awaiting::NextRequest, idle_deadline),
        }
    }

    /// Polls the timeout of a write that makes no progress.
    fn poll_write_timeout<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            if self.write_timer.take().is_some() {
                self.state.set_blocked(false);
            }
            return written.map_err(|error| self.noted(error));
        }
        let timer = self.write_timer.get_or_insert_with(|| {
            self.state.set_blocked(true);
            Box::pin(sleep(self.timeouts.stall))
        });
        ready!(timer.as_mut().poll(context));
        self.state.set_stalled();
        Poll::Ready(Err(timed_out("the client takes nothing")))
    }

    /// Polls the timeout of a flush or a shutdown. A plain socket is always flushed, which says nothing about a write
    /// that waits; TLS keeps bytes that the socket has not taken.
    fn poll_flush_timeout(
        &mut self,
        context: &mut Context<'_>,
        flushed: Poll<io::Result<()>>,
    ) -> Poll<io::Result<()>> {
        if flushed.is_ready() && !self.is_flushing {
            return flushed.map_err(|error| self.noted(error));
        }
        self.is_flushing = flushed.is_pending();
        self.poll_write_timeout(context, flushed)
    }

    /// Returns the error of the connection; records a stalled client if the kernel has timed the connection out.
    fn noted(&self, error: io::Error) -> io::Error {
        if error.kind() == io::ErrorKind::TimedOut {
            self.state.set_stalled();
        }
        error
    }
}

fn timed_out(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, what)
}

impl<S: AsyncRead + Unpin> AsyncRead for TimeoutStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if let Poll::Ready(read) = Pin::new(&mut this.stream).poll_read(context, into) {
            read.map_err(|error| this.noted(error))?;
            this.after_read();
            return Poll::Ready(Ok(()));
        }
        this.poll_read_timeout(context).map(Err)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimeoutStream<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(context, bytes);
        this.poll_write_timeout(context, written)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = Pin::new(&mut this.stream).poll_flush(context);
        this.poll_flush_timeout(context, flushed)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let shut = Pin::new(&mut this.stream).poll_shutdown(context);
        this.poll_flush_timeout(context, shut)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write_vectored(context, slices);
        this.poll_write_timeout(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use bytes::Bytes;
    use http_body_util::Full;
    use hyper::{Request, Response, body::Incoming, server::conn::http1, service::service_fn};
    use hyper_util::rt::TokioIo;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex},
        net::{TcpListener, TcpStream},
        time::timeout,
    };

    use super::*;
    use crate::wire::tracked_body::TrackedBody;

    /// A timeout that passes during a test, and one that does not.
    const SOON: Duration = Duration::from_millis(40);
    const NEVER: Duration = Duration::from_secs(3600);

    fn connection(
        head: Duration,
        idle: Duration,
    ) -> (DuplexStream, TimeoutStream<DuplexStream>, Arc<ConnectionState>) {
        let (client, server) = duplex(1024);
        let state = Arc::new(ConnectionState::default());
        let timeouts = Timeouts { head, idle, stall: NEVER };
        let stream = TimeoutStream::new(server, Arc::clone(&state), timeouts);
        (client, stream, state)
    }

    async fn times_out(connection: &mut TimeoutStream<DuplexStream>) {
        let read =
            timeout(Duration::from_secs(20), connection.read_u8()).await.expect("the connection stays open");
        assert_eq!(read.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }

    async fn stays_open(connection: &mut TimeoutStream<DuplexStream>) {
        assert!(timeout(SOON * 3, connection.read_u8()).await.is_err(), "the connection timed out");
    }

    async fn receive(client: &mut DuplexStream, connection: &mut TimeoutStream<DuplexStream>, bytes: &[u8]) {
        client.write_all(bytes).await.unwrap();
        let mut received = vec![0; bytes.len()];
        connection.read_exact(&mut received).await.unwrap();
    }

    #[tokio::test]
    async fn a_request_in_flight_has_no_read_timeout() {
        let (mut client, mut connection, state) = connection(SOON, SOON);
        receive(&mut client, &mut connection, b"GET").await;
        let request = state.start_request();
        stays_open(&mut connection).await;
        drop(request);
        times_out(&mut connection).await;
    }

    #[tokio::test]
    async fn frames_of_http2_have_no_head_timeout() {
        let (mut client, mut connection, _) = http2(Timeouts { head: SOON, idle: NEVER, stall: NEVER }).await;
        receive(&mut client, &mut connection, b"frame").await;
        stays_open(&mut connection).await;
    }

    /// Serves a connection with hyper over TCP (in-memory streams wake the other side). The client sends
    /// requests, reads the answers and leaves the connection open.
    async fn times_out_after_answers(timeouts: Timeouts, requests: usize, answers_at_once: bool) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
        // The request is there before the first read.
        client.write_all(REQUEST).await.unwrap();
        let state = Arc::new(ConnectionState::default());
        let connection = TimeoutStream::new(listener.accept().await.unwrap().0, Arc::clone(&state), timeouts);
        let service = service_fn(|_: Request<Incoming>| {
            let request = state.start_request();
            async move {
                if !answers_at_once {
                    sleep(SOON).await;
                }
                Ok::<_, Infallible>(Response::new(TrackedBody::new(
                    Full::<Bytes>::from("answered"),
                    request,
                    None,
                    None,
                )))
            }
        });
        // In its own task, so that the client does not wake it.
        let serving = async {
            let _ = http1::Builder::new().serve_connection(TokioIo::new(connection), service).await;
        };
        let client = tokio::spawn(async move {
            for answers in 1..=requests {
                let mut answer = Vec::new();
                while !answer.ends_with(b"answered") {
                    answer.push(client.read_u8().await.unwrap());
                }
                if answers < requests {
                    client.write_all(REQUEST).await.unwrap();
                }
            }
            let last = Instant::now();
            assert_eq!(client.read_u8().await.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
            last.elapsed()
        });
        timeout(Duration::from_secs(20), serving).await.expect("the connection stays open");
        let idle = client.await.unwrap();
        // At most twice the timeout on a busy machine; no rest of another timeout is added.
        assert!(idle >= timeouts.idle * 9 / 10 && idle < timeouts.idle * 2, "it was idle for {idle:?}");
    }

    #[tokio::test]
    async fn an_idle_connection_of_hyper_times_out_after_its_answers() {
        let idle = SOON * 20;
        for (head, requests, answers_at_once) in
            [(idle / 2, 1, true), (idle / 2, 1, false), (idle * 3 / 4, 2, true), (NEVER, 2, false)]
        {
            times_out_after_answers(Timeouts { head, idle, stall: NEVER }, requests, answers_at_once).await;
        }
    }

    #[tokio::test]
    async fn a_client_that_reads_nothing_times_out() {
        let (_client, server) = duplex(8);
        let timeouts = Timeouts { head: NEVER, idle: NEVER, stall: SOON };
        let mut connection = TimeoutStream::new(server, Arc::default(), timeouts);
        connection.write_all(b"answered").await.unwrap();
        let written = timeout(Duration::from_secs(20), connection.write_all(b"more")).await;
        assert_eq!(written.expect("it stays open").unwrap_err().kind(), io::ErrorKind::TimedOut);
    }

    /// An HTTP/2 connection with these timeouts.
    async fn http2(timeouts: Timeouts) -> (DuplexStream, TimeoutStream<DuplexStream>, Arc<ConnectionState>) {
        let (mut client, server) = duplex(64);
        let state = Arc::new(ConnectionState::default());
        state.set_http2();
        let mut connection = TimeoutStream::new(server, Arc::clone(&state), timeouts);
        receive(&mut client, &mut connection, b"preface").await;
        (client, connection, state)
    }

    #[tokio::test]
    async fn an_http2_client_whose_answers_make_no_progress_times_out() {
        let (_client, mut connection, state) =
            http2(Timeouts { head: NEVER, idle: NEVER, stall: SOON }).await;
        let _request = state.start_request();
        times_out(&mut connection).await;
    }

    #[tokio::test]
    async fn a_silent_long_lived_stream_keeps_an_http2_connection_open() {
        let (_client, mut connection, state) = http2(Timeouts { head: NEVER, idle: SOON, stall: SOON }).await;
        let (request, long_lived) = (state.start_request(), state.mark_long_lived());
        stays_open(&mut connection).await;
        drop((request, long_lived));
        times_out(&mut connection).await;
    }
}
