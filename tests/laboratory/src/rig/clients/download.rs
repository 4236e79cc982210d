//! One download over a connection of its own, as plainly as HTTP/1.1 goes: nothing between the socket and what is
//! counted hides a pause, a missing byte or a missing end.

use std::net::SocketAddr;

use bytes::BufMut as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

/// Greatest head of an answer.
const HEAD_BYTES: usize = 16 << 10;

/// An answer whose body is being read.
pub(crate) struct Download {
    stream: TcpStream,
    /// What the head says.
    pub(crate) head: Head,
    body: Body,
    /// Body bytes, as they came, that came with the head.
    early: Vec<u8>,
}

/// What counts of the head of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    /// The status.
    pub(crate) status: u16,
    /// The entity tag, with its quotes.
    pub(crate) etag: Option<String>,
    /// The digest of the whole file, as it is written.
    pub(crate) digest: Option<String>,
    /// When to ask again, as it says.
    pub(crate) retry_after: Option<String>,
    body: Body,
}

/// How one sees where a body ends.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Body {
    /// There are so many more bytes.
    Length(u64),
    /// In chunks.
    Chunks(Chunk),
}

/// Where one is in a body of chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chunk {
    /// Within the line of its size, which is so much so far.
    Size(u64),
    /// Within its bytes, with so many to come.
    Bytes(u64),
    /// In the line's end behind them.
    Behind,
    /// In the last line's end, of which so many bytes are to come.
    Last(u8),
}

impl Default for Body {
    fn default() -> Self {
        Self::Length(0)
    }
}

impl Download {
    /// Asks, and waits for the head. A receive buffer that is given stays as small as that, so that the server feels
    /// the pace of its client.
    pub(crate) async fn open(
        edge: SocketAddr,
        path: &str,
        range: Option<&str>,
        receive_buffer: Option<u32>,
    ) -> Result<Self, String> {
        let range = range.map(|range| format!("Range: bytes={range}\r\n")).unwrap_or_default();
        let request = format!("GET {path} HTTP/1.1\r\nHost: rig\r\nConnection: close\r\n{range}\r\n");
        let connected = async {
            let socket = TcpSocket::new_v4()?;
            if let Some(bytes) = receive_buffer {
                socket.set_recv_buffer_size(bytes)?;
            }
            let mut stream = socket.connect(edge).await?;
            stream.write_all(request.as_bytes()).await?;
            Ok::<_, std::io::Error>(stream)
        };
        let mut stream = connected.await.map_err(|error| format!("cannot ask: {error}"))?;
        let mut received = Vec::with_capacity(1 << 10);
        loop {
            if let Some((head, end)) = Head::read(&received)? {
                let (body, early) = (head.body.clone(), received.split_off(end));
                return Ok(Self { stream, head, body, early });
            }
            if received.len() > HEAD_BYTES {
                return Err("the head has no end".to_owned());
            }
            match stream.read_buf(&mut received).await {
                Ok(0) => return Err("the connection was closed before the answer".to_owned()),
                Ok(_) => {}
                Err(error) => return Err(format!("the connection broke before the answer: {error}")),
            }
        }
    }

    /// Waits for the next bytes of the body, which replace what is in `piece`; at most so many are taken off the
    /// socket. `false`: the body has ended, as it said that it would.
    pub(crate) async fn next(&mut self, piece: &mut Vec<u8>, most: usize) -> Result<bool, String> {
        piece.clear();
        while piece.is_empty() {
            if self.body.is_over() {
                return Ok(false);
            }
            if self.early.is_empty() {
                // A buffer with no room would grow by a few bytes, and take no more than those.
                piece.reserve(most);
                match self.stream.read_buf(&mut piece.limit(most)).await {
                    Ok(0) => return Err("the connection was closed within the body".to_owned()),
                    Ok(_) => {}
                    Err(error) => return Err(format!("the connection broke within the body: {error}")),
                }
            } else {
                piece.append(&mut self.early);
            }
            self.body.strip(piece)?;
        }
        Ok(true)
    }

    /// The rest of a short body as text.
    pub(crate) async fn text(&mut self) -> Result<String, String> {
        let (mut text, mut piece) = (Vec::new(), Vec::new());
        while self.next(&mut piece, HEAD_BYTES).await? {
            text.append(&mut piece);
        }
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}

impl Head {
    /// Reads a head and tells its length, or `None` as long as it is not complete.
    fn read(received: &[u8]) -> Result<Option<(Self, usize)>, String> {
        let Some(end) = received.windows(4).position(|bytes| bytes == b"\r\n\r\n") else { return Ok(None) };
        let text = String::from_utf8_lossy(&received[..end]);
        let mut lines = text.split("\r\n");
        let status = lines.next().and_then(|line| line.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok());
        let status = status.ok_or_else(|| format!("the answer is no HTTP: {text}"))?;
        let mut head = Self { status, ..Self::default() };
        for (name, value) in lines.filter_map(|line| line.split_once(':')) {
            let value = value.trim();
            match name.to_ascii_lowercase().as_str() {
                "etag" => head.etag = Some(value.to_owned()),
                "repr-digest" => head.digest = Some(value.to_owned()),
                "retry-after" => head.retry_after = Some(value.to_owned()),
                "content-length" => {
                    let length = value.parse().map_err(|_| format!("the length {value} is no number"))?;
                    head.body = Body::Length(length);
                }
                "transfer-encoding" => head.body = Body::Chunks(Chunk::Size(0)),
                _ => {}
            }
        }
        Ok(Some((head, end + 4)))
    }
}

impl Body {
    fn is_over(&self) -> bool {
        matches!(self, Self::Length(0) | Self::Chunks(Chunk::Last(0)))
    }

    /// Leaves of what came the bytes of the file.
    fn strip(&mut self, piece: &mut Vec<u8>) -> Result<(), String> {
        let chunk = match self {
            Self::Length(left) => {
                let more = || "more came than the head says".to_owned();
                *left = left.checked_sub(piece.len() as u64).ok_or_else(more)?;
                return Ok(());
            }
            Self::Chunks(chunk) => chunk,
        };
        let (mut read, mut kept) = (0, 0);
        while let Some(&byte) = piece.get(read) {
            let wrong = || format!("the chunks are broken at byte {byte:#x}");
            match *chunk {
                Chunk::Bytes(left) => {
                    let length = left.min((piece.len() - read) as u64);
                    // Both lie in the piece.
                    let taken = length as usize;
                    piece.copy_within(read..read + taken, kept);
                    (read, kept) = (read + taken, kept + taken);
                    *chunk = if length == left { Chunk::Behind } else { Chunk::Bytes(left - length) };
                    continue;
                }
                Chunk::Size(size) => match byte {
                    b'\r' => {}
                    b'\n' if size == 0 => *chunk = Chunk::Last(2),
                    b'\n' => *chunk = Chunk::Bytes(size),
                    _ => {
                        let digit = char::from(byte).to_digit(16).ok_or_else(wrong)?;
                        let size = size.checked_mul(16).ok_or_else(wrong)?;
                        *chunk = Chunk::Size(size + u64::from(digit));
                    }
                },
                Chunk::Behind if byte == b'\n' => *chunk = Chunk::Size(0),
                Chunk::Behind if byte == b'\r' => {}
                Chunk::Last(left @ 1..) if byte == b'\r' || byte == b'\n' => *chunk = Chunk::Last(left - 1),
                Chunk::Behind | Chunk::Last(_) => return Err(wrong()),
            }
            read += 1;
        }
        piece.truncate(kept);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    /// What a client of this answer reads, in small pieces, and how it ends.
    async fn read(answer: &'static [u8], most: usize) -> (Vec<u8>, Result<u16, String>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let edge = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.read_buf(&mut Vec::new()).await.unwrap();
            stream.write_all(answer).await.unwrap();
        });
        let mut download = match Download::open(edge, "/", Some("0-"), Some(4096)).await {
            Ok(download) => download,
            Err(why) => return (Vec::new(), Err(why)),
        };
        let (mut all, mut piece) = (Vec::new(), Vec::new());
        loop {
            match download.next(&mut piece, most).await {
                Ok(true) => all.append(&mut piece),
                Ok(false) => return (all, Ok(download.head.status)),
                Err(why) => return (all, Err(why)),
            }
        }
    }

    #[tokio::test]
    async fn bodies_end_where_they_say_and_nowhere_else() {
        for most in [1, 3, 1000] {
            let whole =
                read(b"HTTP/1.1 206 Part\r\nContent-Length: 5\r\nETag: \"x\"\r\n\r\nbytes", most).await;
            assert_eq!(whole, (b"bytes".to_vec(), Ok(206)));
            let chunks =
                b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nbyt\r\n02\r\nes\r\n0\r\n\r\n";
            assert_eq!(read(chunks, most).await, (b"bytes".to_vec(), Ok(200)));
            assert_eq!(read(b"HTTP/1.1 204 No\r\n\r\n", most).await, (Vec::new(), Ok(204)));
            for broken in [
                &b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nbytes"[..],
                b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nbytes",
                b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nbytes\r\n0\r\n",
                b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nbytes\r\nx",
            ] {
                let (bytes, ended) = read(broken, most).await;
                assert!(ended.is_err() && (bytes == b"bytes" || bytes.is_empty()), "{ended:?}");
            }
        }
        assert!(read(b"HTTP/1.1 200 OK\r\nContent-", 10).await.1.is_err());
        assert!(read(b"SSH-2.0\r\n\r\n", 10).await.1.is_err());
    }
}
