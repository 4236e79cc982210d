//! A socket that is lent to hyper and returned to its owner when hyper drops it; with it the answer that is written
//! without hyper.

use std::{
    future::poll_fn,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{exchange::Answer, tls::Socket};

/// Receives the lent socket when hyper drops it.
#[derive(Default)]
pub(super) struct SocketOwner {
    socket: Mutex<Option<Socket>>,
    answer: Mutex<Option<Box<Answer>>>,
}

impl SocketOwner {
    /// Lends a socket.
    pub(super) fn lend(self: &Arc<Self>, socket: Socket) -> LentSocket {
        LentSocket { socket: Some(socket), owner: Arc::clone(self) }
    }

    /// The socket, once it has been returned.
    pub(super) fn take_socket(&self) -> Option<Socket> {
        self.socket.lock().take()
    }

    /// Ends hyper's connection with this answer, which is written without it.
    pub(super) fn set_answer(&self, answer: Answer) {
        *self.answer.lock() = Some(Box::new(answer));
    }

    /// Resolves to the answer that is written without hyper. Polled after hyper's connection, within whose polls it is
    /// set: nothing else wakes the task.
    pub(super) fn answer(&self) -> impl Future<Output = Box<Answer>> {
        poll_fn(|_| self.answer.lock().take().map_or(Poll::Pending, Poll::Ready))
    }
}

/// A socket that is returned to its owner on drop.
pub(super) struct LentSocket {
    /// Present until it is dropped.
    socket: Option<Socket>,
    owner: Arc<SocketOwner>,
}

impl LentSocket {
    fn socket(&mut self) -> io::Result<Pin<&mut Socket>> {
        self.socket.as_mut().map(Pin::new).ok_or_else(|| io::ErrorKind::NotConnected.into())
    }
}

impl Drop for LentSocket {
    fn drop(&mut self) {
        *self.owner.socket.lock() = self.socket.take();
    }
}

impl AsyncRead for LentSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.socket()?.poll_read(context, into)
    }
}

impl AsyncWrite for LentSocket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.socket()?.poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket()?.poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket()?.poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.socket()?.poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.as_ref().is_some_and(AsyncWrite::is_write_vectored)
    }
}
