//! How long a connection may take (contract section 7): a request head within its time, counted from connecting
//! or from its first byte; a kept connection without a request, its idle time; a client that takes nothing of its
//! answer, until it counts as gone. hyper's own timer knows only the first, and none before it knows the protocol.

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

/// How long each thing may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    /// A request's head, from connecting or from its first byte.
    pub(crate) head: Duration,
    /// The next request on a kept connection.
    pub(crate) idle: Duration,
    /// The client, to take the next bytes of an answer.
    pub(crate) stalled: Duration,
}

/// A connection that is given up when it takes too long.
pub(crate) struct Patient<S> {
    stream: S,
    state: Arc<ConnectionState>,
    /// How far the answers were when the timer was set.
    seen: usize,
    waiting_for: Waiting,
    /// When that has taken too long; not yet known for a head whose first bytes have just come.
    due: Option<Instant>,
    /// Goes off then, or earlier: setting it anew for every request would cost more than looking now and then.
    timer: Pin<Box<Sleep>>,
    /// Runs while the client takes no bytes.
    stalled: Option<Pin<Box<Sleep>>>,
    times: Times,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Waiting {
    /// The rest of a request's head, or of what tells the protocol.
    Head,
    /// The next request.
    Idle,
    /// The next request of an HTTP/2 connection, whose bytes are not all requests.
    Http2,
}

impl<S> Patient<S> {
    pub(crate) fn new(stream: S, state: Arc<ConnectionState>, times: Times) -> Self {
        let (due, timer) = (Some(Instant::now() + times.head), Box::pin(sleep(times.head.min(times.idle))));
        Self { stream, state, seen: 0, waiting_for: Waiting::Head, due, timer, stalled: None, times }
    }

    /// Waits for something until then. The timer never goes off later than that, and is not set for what is earlier.
    fn wait_for(&mut self, next: Waiting, due: Instant) {
        self.waiting_for = next;
        self.due = Some(due);
        if due < self.timer.deadline() {
            self.timer.as_mut().reset(due);
        }
    }

    /// Bytes came.
    fn received(&mut self) {
        match self.waiting_for {
            Waiting::Head if self.state.is_http2() => {
                self.wait_for(Waiting::Http2, Instant::now() + self.times.idle);
            }
            // Most heads are complete at once, and nobody looks at the clock for them.
            Waiting::Idle => (self.waiting_for, self.due) = (Waiting::Head, None),
            Waiting::Head | Waiting::Http2 => {}
        }
    }

    /// No bytes: an error once that lasts too long.
    fn starved(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        if self.state.is_answering() && self.waiting_for != Waiting::Http2 {
            // A client that takes no more of its answer is noticed by the writes. But behind the answer nothing may wake
            // us, so somebody has to look when the connection could have been idle for too long at the earliest.
            while self.timer.as_mut().poll(context).is_ready() {
                self.timer.as_mut().reset(Instant::now() + self.times.idle);
            }
            return Poll::Pending;
        }
        self.follow_answers();
        if self.due.is_none() {
            self.wait_for(self.waiting_for, Instant::now() + self.times.head);
        }
        loop {
            ready!(self.timer.as_mut().poll(context));
            match self.due {
                Some(due) if due > self.timer.deadline() => self.timer.as_mut().reset(due),
                _ => return Poll::Ready(late("no request in time")),
            }
        }
    }

    /// Begins the time for what comes next when an answer has moved on.
    fn follow_answers(&mut self) {
        let progress = self.state.progress();
        if progress == self.seen {
            return;
        }
        self.seen = progress;
        match self.waiting_for == Waiting::Http2 {
            true if self.state.is_answering() => {
                self.wait_for(Waiting::Http2, Instant::now() + self.times.stalled);
            }
            true => self.wait_for(Waiting::Http2, self.state.answered_at() + self.times.idle),
            false if self.state.is_receiving() => {
                self.wait_for(Waiting::Head, Instant::now() + self.times.head);
            }
            false => self.wait_for(Waiting::Idle, self.state.answered_at() + self.times.idle),
        }
    }

    /// Whether a write goes on: an error once the client has taken nothing for too long.
    fn written<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let timer = self.stalled.get_or_insert_with(|| Box::pin(sleep(self.times.stalled)));
        ready!(timer.as_mut().poll(context));
        Poll::Ready(Err(late("the client takes nothing")))
    }
}

fn late(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, what)
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if Pin::new(&mut this.stream).poll_read(context, into)?.is_ready() {
            this.received();
            return Poll::Ready(Ok(()));
        }
        this.starved(context).map(Err)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(context, bytes);
        this.written(context, written)
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
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write_vectored(context, slices);
        this.written(context, written)
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
    use crate::connection::Kept;

    /// The time that a test expects to pass, and one that it would not live to see.
    const SOON: Duration = Duration::from_millis(40);
    const NEVER: Duration = Duration::from_secs(3600);

    fn connection(
        head: Duration,
        idle: Duration,
    ) -> (DuplexStream, Patient<DuplexStream>, Arc<ConnectionState>) {
        let (client, server) = duplex(1024);
        let state = Arc::new(ConnectionState::default());
        let times = Times { head, idle, stalled: NEVER };
        let patient = Patient::new(server, Arc::clone(&state), times);
        (client, patient, state)
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
        let (mut client, mut connection, state) = connection(NEVER, SOON);
        receive(&mut client, &mut connection, b"GET").await;
        drop(state.take());
        is_given_up(&mut connection).await;
    }

    #[tokio::test]
    async fn the_next_request_on_a_kept_connection_has_the_head_time() {
        let (mut client, mut connection, state) = connection(SOON, NEVER);
        receive(&mut client, &mut connection, b"GET").await;
        drop(state.take());
        is_kept(&mut connection).await;
        receive(&mut client, &mut connection, b"G").await;
        is_given_up(&mut connection).await;
    }

    #[tokio::test]
    async fn a_head_that_begins_behind_a_request_has_the_head_time() {
        let (mut client, mut connection, state) = connection(SOON, NEVER);
        receive(&mut client, &mut connection, b"GET and G").await;
        state.has_begun(2);
        drop(state.take());
        is_given_up(&mut connection).await;
    }

    #[tokio::test]
    async fn a_request_in_flight_is_waited_for() {
        let (mut client, mut connection, state) = connection(SOON, SOON);
        receive(&mut client, &mut connection, b"GET").await;
        let request = state.take();
        is_kept(&mut connection).await;
        drop(request);
        is_given_up(&mut connection).await;
    }

    #[tokio::test]
    async fn frames_of_http2_are_no_heads() {
        let (mut client, mut connection, state) = connection(SOON, NEVER);
        state.speaks_http2();
        receive(&mut client, &mut connection, b"preface").await;
        receive(&mut client, &mut connection, b"frame").await;
        is_kept(&mut connection).await;
    }

    /// hyper with everything that it does of its own accord, over a real connection: in others each side wakes the
    /// other. A client asks, gets its answers and keeps the connection.
    async fn is_given_up_behind_answers(times: Times, requests: usize, answers_at_once: bool) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        const ASKED: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
        // It is there before anybody has read in vain.
        client.write_all(ASKED).await.unwrap();
        let state = Arc::new(ConnectionState::default());
        let connection = Patient::new(listener.accept().await.unwrap().0, Arc::clone(&state), times);
        let service = service_fn(|_: Request<Incoming>| {
            let request = state.take();
            async move {
                if !answers_at_once {
                    sleep(SOON).await;
                }
                Ok::<_, Infallible>(Response::new(Kept::new(Full::<Bytes>::from("answered"), request, None)))
            }
        });
        // A task's waker is its own: joined with the client it would be woken by that.
        let serving = async {
            let _ = http1::Builder::new().serve_connection(TokioIo::new(connection), service).await;
        };
        let asking = tokio::spawn(async move {
            for answers in 1..=requests {
                let mut answer = Vec::new();
                while !answer.ends_with(b"answered") {
                    answer.push(client.read_u8().await.unwrap());
                }
                if answers < requests {
                    client.write_all(ASKED).await.unwrap();
                }
            }
            let last = Instant::now();
            assert_eq!(client.read_u8().await.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
            last.elapsed()
        });
        timeout(Duration::from_secs(20), serving).await.expect("the connection is kept");
        let idle = asking.await.unwrap();
        // Not later than twice its time on a busy machine, nor with what is left of another time added to it.
        assert!(idle >= times.idle * 9 / 10 && idle < times.idle * 2, "it was idle for {idle:?}");
    }

    #[tokio::test]
    async fn hyper_gives_up_a_kept_connection_behind_its_answers() {
        let idle = SOON * 20;
        for (head, requests, answers_at_once) in
            [(idle / 2, 1, true), (idle / 2, 1, false), (idle * 3 / 4, 2, true), (NEVER, 2, false)]
        {
            is_given_up_behind_answers(Times { head, idle, stalled: NEVER }, requests, answers_at_once).await;
        }
    }

    #[tokio::test]
    async fn a_client_that_takes_nothing_is_given_up() {
        let (_client, server) = duplex(8);
        let times = Times { head: NEVER, idle: NEVER, stalled: SOON };
        let mut connection = Patient::new(server, Arc::default(), times);
        connection.write_all(b"answered").await.unwrap();
        let written = timeout(Duration::from_secs(20), connection.write_all(b"more")).await;
        assert_eq!(written.expect("it is kept").unwrap_err().kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn a_client_of_http2_whose_answers_stand_still_is_given_up() {
        let (mut client, server) = duplex(64);
        let state = Arc::new(ConnectionState::default());
        state.speaks_http2();
        let times = Times { head: NEVER, idle: NEVER, stalled: SOON };
        let mut connection = Patient::new(server, Arc::clone(&state), times);
        receive(&mut client, &mut connection, b"preface").await;
        let _request = state.take();
        is_given_up(&mut connection).await;
    }
}
