//! Strict HTTP/1 in front of hyper: bytes pass as long as message boundaries are unambiguous. From the first
//! ambiguous byte on, hyper gets [`POISON`] instead, which it refuses.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use mesh_framing::{Framing, POISON};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};

use crate::{
    connection::ConnectionState,
    unread_body::{LINGER_BYTES, LINGER_TIME},
};

/// A connection whose HTTP/1 messages have unambiguous boundaries; HTTP/2 passes unchecked.
pub(crate) struct StrictHttp1<S> {
    stream: S,
    state: Arc<ConnectionState>,
    framing: Framing,
    /// Rest of the poison that hyper has not read; `None` while the connection is unambiguous.
    poison: Option<&'static [u8]>,
    lingering: Option<Lingering>,
}

/// A connection that is shut down while its client is still sending.
struct Lingering {
    deadline: Pin<Box<Sleep>>,
    bytes_left: usize,
}

impl<S> StrictHttp1<S> {
    pub(crate) fn new(stream: S, state: Arc<ConnectionState>) -> Self {
        Self { stream, state, framing: Framing::default(), poison: None, lingering: None }
    }

    /// Whether the client is in the middle of a request, or has sent one that was not started.
    fn is_sending(&self) -> bool {
        let is_within = self.poison.is_some() || !self.framing.is_between_requests();
        is_within || !self.framing.is_http2() && self.state.is_receiving()
    }

    /// Checks the bytes from `before` on, and truncates them at the first ambiguous one.
    fn check(&mut self, into: &mut ReadBuf<'_>, before: usize) {
        let fed = self.framing.feed(&into.filled()[before..], &mut ());
        self.state.set_begun(self.framing.begun());
        if let Err(refusal) = fed {
            tracing::debug!(because = %refusal.reason, "a connection is refused");
            self.state.set_refusal(refusal.reason);
            if self.framing.is_in_body() {
                self.state.set_broken(self.framing.begun());
            }
            into.set_filled(before + refusal.clear);
            self.poison = Some(POISON);
        } else if self.framing.is_http2() {
            self.state.set_http2();
        }
    }
}

impl<S: AsyncRead + Unpin> StrictHttp1<S> {
    /// Reads for up to [`LINGER_TIME`]: closing with unread bytes resets the connection, and the client loses an
    /// unread response.
    fn poll_linger(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let lingering = self.lingering.get_or_insert_with(|| Lingering {
            deadline: Box::pin(sleep(LINGER_TIME)),
            bytes_left: LINGER_BYTES,
        });
        let mut buffer = [0; 4096];
        loop {
            let mut read = ReadBuf::new(&mut buffer);
            match Pin::new(&mut self.stream).poll_read(context, &mut read) {
                Poll::Ready(Ok(()))
                    if !read.filled().is_empty() && read.filled().len() <= lingering.bytes_left =>
                {
                    lingering.bytes_left -= read.filled().len();
                }
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => return lingering.deadline.as_mut().poll(context),
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for StrictHttp1<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.poison.is_none() {
            let before = into.filled().len();
            ready!(Pin::new(&mut this.stream).poll_read(context, into))?;
            this.check(into, before);
        }
        match &mut this.poison {
            None => {}
            // hyper has refused it and reads no more.
            Some([]) => return Poll::Pending,
            Some(poison) => {
                let (now, later) = poison.split_at(poison.len().min(into.remaining()));
                into.put_slice(now);
                *poison = later;
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for StrictHttp1<S> {
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
    use std::{pin::pin, time::Duration};

    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex},
        time::timeout,
    };

    use super::*;

    const SOUND: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";

    fn strict() -> (DuplexStream, StrictHttp1<DuplexStream>, Arc<ConnectionState>) {
        let (client, server) = duplex(1024);
        let state = Arc::new(ConnectionState::default());
        (client, StrictHttp1::new(server, Arc::clone(&state)), state)
    }

    #[tokio::test]
    async fn unambiguous_bytes_pass_and_poison_replaces_the_rest() {
        let expected = [SOUND, b"GET / HTTP/1.1", POISON].concat();
        for size in [1, 5, 100] {
            let (mut client, mut connection, state) = strict();
            client.write_all(&[SOUND, b"GET / HTTP/1.1\nHost: x\r\n\r\n", SOUND].concat()).await.unwrap();
            let mut read = Vec::new();
            while read.len() < expected.len() {
                let mut buffer = vec![0; size];
                let more = timeout(Duration::from_secs(20), connection.read(&mut buffer)).await;
                let length = more.expect("bytes come").unwrap();
                read.extend_from_slice(&buffer[..length]);
            }
            assert_eq!(read, expected, "{size} bytes at once");
            let more = timeout(Duration::from_millis(20), connection.read_u8()).await;
            assert!(more.is_err(), "nothing follows the poison");
            let (sound, refused) = (state.start_request(), state.start_request());
            assert!(!sound.is_broken() && !refused.is_broken(), "hyper refuses a head itself");
        }
    }

    #[tokio::test]
    async fn a_shutdown_lingers_only_while_the_client_sends() {
        for (sent, lingers) in [(SOUND, false), (&b"GET / HTTP/1.1\n"[..], true), (&b"GET"[..], true)] {
            let (mut client, mut connection, state) = strict();
            client.write_all(sent).await.unwrap();
            let _ = connection.read(&mut [0; 100]).await.unwrap();
            drop((sent == SOUND).then(|| state.start_request()));
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
}
