//! The switch of a connection to WebSocket: the 101 and what follows are written without hyper, like endless
//! responses and for the same reason.

use std::io;

use actix::Addr;
use http::{
    HeaderValue, Response,
    header::{CONNECTION, CONTENT_LENGTH},
};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use crate::{
    connection::ConnectionState,
    gateway::Gateway,
    web_socket::{handshake::Upgrade, session::Session},
    wire::{
        endless::{encode_head, write_all},
        exchange::Answer,
    },
};

/// An empty 400.
const REFUSAL: &[u8] = b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// Whether a response switches its connection to WebSocket.
pub(super) fn is_switch<B>(response: &Response<B>) -> bool {
    response.extensions().get::<Upgrade>().is_some()
}

/// Writes the 101. The returned future serves the connection to its end; it is much smaller than this one.
///
/// # Errors
/// When the connection breaks, or the client sent bytes too early.
pub(super) async fn switch<S>(
    mut socket: S,
    answer: Answer,
    state: &ConnectionState,
    gateway: Addr<Gateway>,
) -> io::Result<impl Future<Output = ()> + Send + 'static>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut head, mut body) = answer.into_parts();
    // hyper has read bytes after the request, which are lost. A client must wait for the 101 (RFC 6455, 4.1).
    let is_early = state.is_receiving() || state.refusal().is_some();
    let Some(upgrade) = head.extensions.remove::<Upgrade>().filter(|_| !is_early) else {
        socket.write_all(REFUSAL).await?;
        socket.shutdown().await?;
        return Err(io::Error::new(io::ErrorKind::InvalidData, "bytes before the answer to the handshake"));
    };
    // A shutdown that has begun closes the connection with a frame.
    head.headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    head.headers.remove(CONTENT_LENGTH);
    write_all(&mut socket, &mut vec![encode_head(&head, false)]).await?;
    socket.flush().await?;
    let session = Box::new(Session::new(socket, upgrade, gateway).await);
    Ok(async move {
        let (bytes, ended) = session.run().await;
        body.set_end(bytes, ended);
    })
}
