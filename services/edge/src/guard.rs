//! What stands between the socket and hyper: bytes pass as long as it is clear where each request ends. At the
//! first that is not, hyper gets bytes that it refuses in the place of all that would have followed.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use mesh_framing::{BREAKER, Framing};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};

use crate::connection::ConnectionState;

/// How long a client that is still sending may take to see that the connection is closed.
const LINGER: Duration = Duration::from_secs(1);

/// How much it may send meanwhile.
const LINGER_BYTES: usize = 4 << 20;

/// A guarded connection.
pub(crate) struct Guarded<S> {
    stream: S,
    state: Arc<ConnectionState>,
    framing: Framing,
    /// What is still to be handed on of the breaker, once the rest is not.
    breaker: Option<&'static [u8]>,
    lingering: Option<Lingering>,
}

/// The end of a connection whose client is still sending.
struct Lingering {
    until: Pin<Box<Sleep>>,
    left: usize,
}

impl<S> Guarded<S> {
    pub(crate) fn new(stream: S, state: Arc<ConnectionState>) -> Self {
        Self { stream, state, framing: Framing::default(), breaker: None, lingering: None }
    }

    /// Whether the client has more to say than was taken.
    fn is_sending(&self) -> bool {
        let is_within = self.breaker.is_some() || !self.framing.is_between_requests();
        is_within || !self.framing.is_http2() && self.state.is_receiving()
    }

    /// Looks at the bytes behind `before`, and leaves those that are clear.
    fn pass(&mut self, into: &mut ReadBuf<'_>, before: usize) {
        let fed = self.framing.feed(&into.filled()[before..], &mut ());
        self.state.has_begun(self.framing.begun());
        if let Err(refusal) = fed {
            tracing::debug!(because = %refusal.because, "a connection is refused");
            self.state.refuses(refusal.because);
            if self.framing.is_in_body() {
                self.state.breaks(self.framing.begun());
            }
            into.set_filled(before + refusal.clear);
            self.breaker = Some(BREAKER);
        } else if self.framing.is_http2() {
            self.state.speaks_http2();
        }
    }
}

impl<S: AsyncRead + Unpin> Guarded<S> {
    /// Reads on for a while: a connection that is closed before its bytes are read is reset, and an answer that
    /// the client has not read yet is lost with it.
    fn poll_linger(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let lingering = self
            .lingering
            .get_or_insert_with(|| Lingering { until: Box::pin(sleep(LINGER)), left: LINGER_BYTES });
        let mut place = [0; 4096];
        loop {
            let mut read = ReadBuf::new(&mut place);
            match Pin::new(&mut self.stream).poll_read(context, &mut read) {
                Poll::Ready(Ok(())) if !read.filled().is_empty() && read.filled().len() <= lingering.left => {
                    lingering.left -= read.filled().len();
                }
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => return lingering.until.as_mut().poll(context),
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Guarded<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.breaker.is_none() {
            let before = into.filled().len();
            ready!(Pin::new(&mut this.stream).poll_read(context, into))?;
            this.pass(into, before);
        }
        match &mut this.breaker {
            None => {}
            // hyper has refused it; whoever polls on waits for the end.
            Some([]) => return Poll::Pending,
            Some(breaker) => {
                let (now, later) = breaker.split_at(breaker.len().min(into.remaining()));
                into.put_slice(now);
                *breaker = later;
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Guarded<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.lingering.is_none() {
            ready!(Pin::new(&mut this.stream).poll_shutdown(context))?;
            if !this.is_sending() {
                return Poll::Ready(Ok(()));
            }
        }
        this.poll_linger(context).map(Ok)
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
    use std::pin::pin;

    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex},
        time::timeout,
    };

    use super::*;

    const SOUND: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";

    fn guarded() -> (DuplexStream, Guarded<DuplexStream>, Arc<ConnectionState>) {
        let (client, server) = duplex(1024);
        let state = Arc::new(ConnectionState::default());
        (client, Guarded::new(server, Arc::clone(&state)), state)
    }

    #[tokio::test]
    async fn what_is_clear_passes_and_the_breaker_stands_for_the_rest() {
        let expected = [SOUND, b"GET / HTTP/1.1", BREAKER].concat();
        for room in [1, 5, 100] {
            let (mut client, mut connection, state) = guarded();
            client.write_all(&[SOUND, b"GET / HTTP/1.1\nHost: x\r\n\r\n", SOUND].concat()).await.unwrap();
            let mut read = Vec::new();
            while read.len() < expected.len() {
                let mut place = vec![0; room];
                let more = timeout(Duration::from_secs(20), connection.read(&mut place)).await;
                let length = more.expect("bytes come").unwrap();
                read.extend_from_slice(&place[..length]);
            }
            assert_eq!(read, expected, "{room} bytes at once");
            let more = timeout(Duration::from_millis(20), connection.read_u8()).await;
            assert!(more.is_err(), "nothing comes behind the breaker");
            let (sound, refused) = (state.take(), state.take());
            assert!(!sound.is_broken() && !refused.is_broken(), "a head is hyper's to refuse");
        }
    }

    #[tokio::test]
    async fn a_connection_of_http2_passes_and_is_known() {
        let (mut client, mut connection, state) = guarded();
        let sent = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\n\r";
        for byte in sent {
            client.write_u8(*byte).await.unwrap();
            assert_eq!(connection.read_u8().await.unwrap(), *byte);
        }
        assert!(state.is_http2());
    }

    #[tokio::test]
    async fn a_client_that_still_sends_is_listened_to_for_a_while_and_one_that_does_not_is_not() {
        for (sent, lingers) in [(SOUND, false), (&b"GET / HTTP/1.1\n"[..], true), (&b"GET"[..], true)] {
            let (mut client, mut connection, state) = guarded();
            client.write_all(sent).await.unwrap();
            let _ = connection.read(&mut [0; 100]).await.unwrap();
            drop((sent == SOUND).then(|| state.take()));
            let mut shutdown = pin!(connection.shutdown());
            let is_waiting = timeout(Duration::from_millis(20), &mut shutdown).await.is_err();
            assert_eq!(is_waiting, lingers, "{}", sent.escape_ascii());
            assert_eq!(client.read(&mut [0; 10]).await.unwrap(), 0, "the client sees the end at once");
            drop(client);
            if is_waiting {
                shutdown.await.unwrap();
            }
        }
    }

    #[tokio::test]
    async fn a_request_whose_body_is_refused_is_known() {
        let (mut client, mut connection, state) = guarded();
        let chunked = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\n";
        client.write_all(&[SOUND, chunked].concat()).await.unwrap();
        let mut read = vec![0; SOUND.len() + chunked.len() - 1 + BREAKER.len()];
        connection.read_exact(&mut read).await.unwrap();
        let (sound, refused) = (state.take(), state.take());
        assert!(refused.is_broken() && !sound.is_broken());
        assert!(refused.is_last() && !sound.is_last());
    }
}
