//! A kept HTTP/1.1 connection, as lean as the load wants it: of an answer its status, its length and a few headers are
//! read.

use std::fmt;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Room for an answer; a longer one makes room for itself.
const ANSWER_BYTES: usize = 8 << 10;

/// A connection.
pub(crate) struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
    /// The greatest height of an answer so far.
    height: u64,
}

/// Why no answer came.
#[derive(Debug)]
pub(crate) enum Lost {
    /// The connection was closed before a byte of the answer: the request may be put again.
    Unasked,
    /// Something else.
    Broken(String),
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unasked => f.write_str("the connection was closed without an answer"),
            Self::Broken(why) => f.write_str(why),
        }
    }
}

/// An answer that came whole.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// The status.
    pub(crate) status: u16,
    /// When to ask again, as it says.
    pub(crate) retry_after: Option<String>,
    /// Whether the connection is closed after it.
    pub(crate) closes: bool,
    /// The block that it shows the store at, when it says so.
    pub(crate) height: Option<u64>,
    /// The height of an answer before it on the same connection, when that was greater.
    pub(crate) goes_back_from: Option<u64>,
    head_bytes: usize,
    body_bytes: usize,
}

impl Connection {
    /// Connects.
    pub(crate) async fn open(address: SocketAddr) -> Result<Self, Lost> {
        let opened = TcpStream::connect(address).await;
        let stream = opened.map_err(|error| Lost::Broken(format!("cannot connect: {error}")))?;
        Ok(Self::over(stream))
    }

    /// Takes a connection that is open.
    pub(crate) fn over(stream: TcpStream) -> Self {
        // Without it a request in two pieces would wait; these are of one.
        let _ = stream.set_nodelay(true);
        Self { stream, received: Vec::new(), height: 0 }
    }

    /// Sends a request.
    pub(crate) async fn ask(&mut self, path: &str) -> Result<(), Lost> {
        let request = format!("GET {path} HTTP/1.1\r\nHost: rig\r\n\r\n");
        // It cannot have been taken in by somebody who has closed the connection.
        self.stream.write_all(request.as_bytes()).await.map_err(|_| Lost::Unasked)
    }

    /// Waits for the answer.
    pub(crate) async fn answer(&mut self) -> Result<Answer, Lost> {
        self.received.clear();
        self.received.reserve(ANSWER_BYTES);
        loop {
            let read = match self.stream.read_buf(&mut self.received).await {
                Ok(read) => read,
                Err(_) if self.received.is_empty() => return Err(Lost::Unasked),
                Err(error) => return Err(Lost::Broken(error.to_string())),
            };
            if read == 0 {
                return Err(match self.received.is_empty() {
                    true => Lost::Unasked,
                    false => Lost::Broken("the connection was closed within an answer".to_owned()),
                });
            }
            let Some(mut answer) = read_head(&self.received).map_err(Lost::Broken)? else { continue };
            let whole = answer.head_bytes + answer.body_bytes;
            if self.received.len() > whole {
                return Err(Lost::Broken("more was answered than was asked".to_owned()));
            }
            if self.received.len() == whole {
                if let Some(height) = answer.height {
                    answer.goes_back_from = (height < self.height).then_some(self.height);
                    self.height = self.height.max(height);
                }
                return Ok(answer);
            }
        }
    }

    /// The body of the answer that came last.
    pub(crate) fn body(&self, answer: &Answer) -> &[u8] {
        self.received.get(answer.head_bytes..).unwrap_or_default()
    }
}

/// The head of an answer, or `None` as long as it is not complete.
fn read_head(received: &[u8]) -> Result<Option<Answer>, String> {
    let Some(end) = received.windows(4).position(|bytes| bytes == b"\r\n\r\n") else { return Ok(None) };
    let head = String::from_utf8_lossy(&received[..end]);
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok());
    let status = status.ok_or_else(|| format!("the answer is no HTTP: {head}"))?;
    let (mut retry_after, mut closes, mut body_bytes, mut height) = (None, false, None, None);
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "retry-after" => retry_after = Some(value.to_owned()),
            "connection" => closes = value.eq_ignore_ascii_case("close"),
            "content-length" => body_bytes = value.parse().ok(),
            "x-block-height" => height = value.parse().ok(),
            _ => {}
        }
    }
    let body_bytes = body_bytes.ok_or("the answer has no content-length")?;
    let (head_bytes, goes_back_from) = (end + 4, None);
    Ok(Some(Answer { status, retry_after, closes, height, goes_back_from, head_bytes, body_bytes }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_when_it_is_whole() {
        let head = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nconnection: close\r\ncontent-length: 2\r\n\r\n";
        for cut in 0..head.len() {
            assert_eq!(read_head(&head.as_bytes()[..cut]), Ok(None), "{cut}");
        }
        let answer = read_head(head.as_bytes()).unwrap().unwrap();
        assert_eq!((answer.status, answer.retry_after.as_deref(), answer.closes), (503, Some("1"), true));
        assert_eq!((answer.head_bytes, answer.body_bytes), (head.len(), 2));
        read_head(b"SSH-2.0\r\n\r\n").unwrap_err();
        read_head(b"HTTP/1.1 200 OK\r\n\r\n").unwrap_err();
    }
    #[tokio::test]
    async fn a_connection_notices_when_its_heights_go_back() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let served = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            for height in ["7", "9", "8", "9"] {
                stream.read_buf(&mut Vec::new()).await.unwrap();
                let answer =
                    format!("HTTP/1.1 200 OK\r\nX-Block-Height: {height}\r\nContent-Length: 0\r\n\r\n");
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        let mut connection = Connection::open(address).await.unwrap();
        let mut seen = Vec::new();
        for _ in 0..4 {
            connection.ask("/").await.unwrap();
            let answer = connection.answer().await.unwrap();
            seen.push((answer.height.unwrap(), answer.goes_back_from));
        }
        assert_eq!(seen, [(7, None), (9, None), (8, Some(9)), (9, None)]);
        served.await.unwrap();
    }
}
