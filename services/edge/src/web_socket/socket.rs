//! The WebSocket of a connection (RFC 6455) after its handshake: messages of the client, frames of the edge, the
//! closing handshake.

use std::{io, time::Duration};

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt},
    time::timeout,
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Error, Message,
        error::ProtocolError,
        protocol::{CloseFrame, Role, WebSocketConfig, frame::coding::CloseCode},
    },
};

use crate::{
    access_log::record::Ended,
    unread_body::{LINGER_BYTES, linger},
    wire::endless::write_all,
};

/// Bytes read at once. A frame is some hundred bytes, and the buffer is allocated for as long as the connection.
const READ_BYTES: usize = 256;

/// Longest output buffer, bytes: it has the answers to pings and the last frame.
const CONTROL_BYTES: usize = 1 << 10;

/// Longest time for the last frame to be taken.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// A connection whose handshake has been answered.
pub(super) struct WebSocket<S>(WebSocketStream<S>);

/// Why a connection ends.
pub(super) enum End {
    /// The edge closes it for this reason.
    Close(CloseCode, &'static str),
    /// The client has closed it.
    ByClient,
    Lost(io::Error),
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> Self {
        Self::Lost(error)
    }
}

impl From<Error> for End {
    fn from(error: Error) -> Self {
        match error {
            Error::Io(error) => Self::Lost(error),
            Error::ConnectionClosed
            | Error::AlreadyClosed
            | Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => {
                Self::Lost(io::ErrorKind::UnexpectedEof.into())
            }
            Error::Capacity(_) => Self::Close(CloseCode::Size, "a frame has at most 16 KiB"),
            Error::Utf8(_) => Self::Close(CloseCode::Invalid, "text must be UTF-8"),
            _ => Self::Close(CloseCode::Protocol, "malformed frame"),
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> WebSocket<S> {
    /// A WebSocket on this connection; a frame and a message of the client have at most so many bytes.
    pub(super) async fn new(connection: S, most: usize) -> Self {
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BYTES)
            .write_buffer_size(0)
            .max_write_buffer_size(CONTROL_BYTES)
            .max_message_size(Some(most))
            .max_frame_size(Some(most));
        Self(WebSocketStream::from_raw_socket(connection, Role::Server, Some(config)).await)
    }

    /// The next message. The answers to pings and to a close frame are sent by the next read.
    pub(super) async fn next(&mut self) -> Result<Message, End> {
        match self.0.next().await {
            Some(message) => Ok(message?),
            None => Err(End::Lost(io::ErrorKind::UnexpectedEof.into())),
        }
    }

    /// Writes frames past the output buffer, which would copy each of them and keep the memory of the largest one.
    pub(super) async fn write(&mut self, mut pieces: Vec<Bytes>) -> Result<(), End> {
        pieces.retain(|piece| !piece.is_empty());
        // An answer to a ping goes first: nothing may come between the bytes of a frame.
        self.0.flush().await?;
        let connection = self.0.get_mut();
        write_all(connection, &mut pieces).await?;
        connection.flush().await?;
        Ok(())
    }

    /// Sends the last frame, and closes.
    pub(super) async fn end(mut self, end: End) -> Ended {
        let ended = match end {
            End::Lost(error) => {
                tracing::debug!(%error, "a WebSocket broke");
                return Ended::Left;
            }
            End::ByClient => {
                let _ = timeout(CLOSE_TIMEOUT, self.0.flush()).await;
                Ended::Whole
            }
            End::Close(code, reason) => {
                tracing::debug!(code = u16::from(code), reason, "a WebSocket is closed");
                let frame = CloseFrame { code, reason: reason.into() };
                let _ = timeout(CLOSE_TIMEOUT, self.0.close(Some(frame))).await;
                let is_in_order = matches!(code, CloseCode::Away | CloseCode::Policy);
                if is_in_order { Ended::Whole } else { Ended::Broken }
            }
        };
        linger(self.0.get_mut(), LINGER_BYTES as u64).await;
        ended
    }
}
