//! HTTP/1.1 over a raw socket, for requests that no proper client sends and details that it would hide: exact
//! bytes, pauses, missing ends.

mod framing;

use std::{
    io,
    net::{IpAddr, SocketAddr},
};

use bytes::{BufMut as _, Bytes};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
};

pub use self::framing::{Body, Chunk, Head};
use crate::Answer;

/// Bytes of a body that are read at once.
const PIECE_BYTES: usize = 16 << 10;

/// Options of a new connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct Dial {
    /// Source address of this machine, such as 127.0.0.2.
    pub source: Option<IpAddr>,
    /// Size of the receive buffer, bytes; a small one makes the server notice a slow client.
    pub receive_buffer: Option<u32>,
}

impl Dial {
    /// Connects.
    ///
    /// # Errors
    /// When the connection fails, or the source address is not of this machine.
    pub async fn connect(self, address: SocketAddr) -> io::Result<TcpStream> {
        let socket = TcpSocket::new_v4()?;
        if let Some(bytes) = self.receive_buffer {
            socket.set_recv_buffer_size(bytes)?;
        }
        if let Some(source) = self.source {
            socket.bind((source, 0).into())?;
        }
        let stream = socket.connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

/// A connection to a server.
#[derive(Debug)]
pub struct Connection<S = TcpStream> {
    stream: S,
    unread: Vec<u8>,
    has_received: bool,
}

impl Connection {
    /// Connects to the server of a URL without a path.
    ///
    /// # Errors
    /// When the connection fails.
    pub async fn open(url: &str) -> io::Result<Self> {
        Self::dial(url, Dial::default()).await
    }

    /// Connects from an address of this machine, such as 127.0.0.2.
    ///
    /// # Errors
    /// When the connection fails.
    pub async fn open_from(url: &str, from: IpAddr) -> io::Result<Self> {
        Self::dial(url, Dial { source: Some(from), ..Dial::default() }).await
    }

    /// Connects with a receive buffer of this size, bytes.
    ///
    /// # Errors
    /// When the connection fails.
    pub async fn open_narrow(url: &str, bytes: u32) -> io::Result<Self> {
        Self::dial(url, Dial { receive_buffer: Some(bytes), ..Dial::default() }).await
    }

    async fn dial(url: &str, dial: Dial) -> io::Result<Self> {
        let address = url.trim_start_matches("http://").parse().map_err(io::Error::other)?;
        Ok(Self::over(dial.connect(address).await?))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// Wraps an open connection.
    pub fn over(stream: S) -> Self {
        Self { stream, unread: Vec::new(), has_received: false }
    }

    /// Sends bytes.
    ///
    /// # Errors
    /// When the server has closed.
    pub async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await?;
        self.stream.flush().await
    }

    /// Closes the sending side.
    ///
    /// # Errors
    /// When the server has closed.
    pub async fn finish(&mut self) -> io::Result<()> {
        self.stream.shutdown().await
    }

    /// Whether any byte was received of the response that is being read or was read last.
    pub fn has_received(&self) -> bool {
        self.has_received
    }

    /// Whether bytes were received that belong to no response read so far.
    pub fn has_unread(&self) -> bool {
        !self.unread.is_empty()
    }

    /// Reads a response; `None` when the server closes without one. `to_head`: the response to `HEAD` has no
    /// body.
    ///
    /// # Errors
    /// When the connection breaks, or the response is not valid HTTP.
    pub async fn answer(&mut self, to_head: bool) -> io::Result<Option<Answer>> {
        self.has_received = !self.unread.is_empty();
        loop {
            let Some((mut answer, body)) = self.head().await? else { return Ok(None) };
            if (100..200).contains(&answer.status) {
                continue;
            }
            if !to_head {
                answer.body = self.body(body).await?.into();
            }
            return Ok(Some(answer));
        }
    }

    /// Reads the head of a response, and returns the connection for reading the body; the response's body is
    /// what has been received already, still chunked.
    ///
    /// # Errors
    /// When the connection breaks or ends, or the response is not valid HTTP.
    pub async fn head_then_stream(mut self) -> io::Result<(Answer, S)> {
        let (answer, _) = self.head().await?.ok_or(io::ErrorKind::UnexpectedEof)?;
        Ok((Answer { body: self.unread.into(), ..answer }, self.stream))
    }

    /// Reads until the server closes; returns all unread bytes.
    ///
    /// # Errors
    /// When the connection breaks.
    pub async fn rest(&mut self) -> io::Result<Vec<u8>> {
        self.stream.read_to_end(&mut self.unread).await?;
        Ok(std::mem::take(&mut self.unread))
    }

    /// Reads the head of a response, without its body; `None` when the server closes without one.
    ///
    /// # Errors
    /// When the connection breaks, or the head is not valid HTTP.
    pub async fn head(&mut self) -> io::Result<Option<(Answer, Body)>> {
        loop {
            if let Some(head) = Head::parse(&self.unread).map_err(io::Error::other)? {
                let body = head.body().map_err(io::Error::other)?;
                let answer = Answer { status: head.status, headers: head.headers(), body: Bytes::new() };
                self.unread.drain(..head.bytes);
                return Ok(Some((answer, body)));
            }
            if self.stream.read_buf(&mut self.unread).await? == 0 {
                let is_torn = !self.unread.is_empty();
                return if is_torn { Err(io::Error::other("a torn head")) } else { Ok(None) };
            }
            self.has_received = true;
        }
    }

    async fn body(&mut self, mut framing: Body) -> io::Result<Vec<u8>> {
        if framing == Body::UntilClose {
            return self.rest().await;
        }
        let (mut body, mut piece) = (Vec::new(), Vec::new());
        while self.piece(&mut framing, &mut piece, PIECE_BYTES).await? {
            body.append(&mut piece);
        }
        Ok(body)
    }

    /// Reads the next bytes of a body, which replace the content of `piece`; at most `most` are read from the
    /// socket at once. Returns `false` at the end of the body.
    ///
    /// # Errors
    /// When the connection breaks or ends within the body, or its framing is malformed.
    pub async fn piece(&mut self, framing: &mut Body, piece: &mut Vec<u8>, most: usize) -> io::Result<bool> {
        piece.clear();
        while piece.is_empty() {
            if framing.is_complete() {
                return Ok(false);
            }
            if self.unread.is_empty() {
                // Without reserved capacity the buffer would grow by a few bytes, and only those would be read.
                piece.reserve(most);
                if self.stream.read_buf(&mut piece.limit(most)).await? == 0 {
                    return match framing {
                        Body::UntilClose => Ok(false),
                        Body::Length(_) | Body::Chunked(_) => Err(io::ErrorKind::UnexpectedEof.into()),
                    };
                }
            } else {
                piece.append(&mut self.unread);
            }
            self.unread = framing.decode(piece).map_err(io::Error::other)?;
        }
        Ok(true)
    }
}
