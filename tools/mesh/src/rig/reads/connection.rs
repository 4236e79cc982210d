//! A kept HTTP/1.1 connection, as lean as the load wants it: of an answer its status, its length and three headers are
//! read.

use std::fmt;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Room for an answer; a longer one makes room for itself.
const ANSWER_BYTES: usize = 8 << 10;

/// A connection.
pub(in crate::rig) struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
}

/// Why no answer came.
#[derive(Debug)]
pub(in crate::rig) enum Lost {
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
pub(in crate::rig) struct Answer {
    /// The status.
    pub(in crate::rig) status: u16,
    /// When to ask again, as it says.
    pub(in crate::rig) retry_after: Option<String>,
    /// Whether the connection is closed after it.
    pub(in crate::rig) closes: bool,
    head_bytes: usize,
    body_bytes: usize,
}

impl Connection {
    /// Connects.
    pub(in crate::rig) async fn open(address: SocketAddr) -> Result<Self, Lost> {
        let opened = TcpStream::connect(address).await;
        let stream = opened.map_err(|error| Lost::Broken(format!("cannot connect: {error}")))?;
        Ok(Self::over(stream))
    }

    /// Takes a connection that is open.
    pub(in crate::rig) fn over(stream: TcpStream) -> Self {
        // Without it a request in two pieces would wait; these are of one.
        let _ = stream.set_nodelay(true);
        Self { stream, received: Vec::new() }
    }

    /// Sends a request.
    pub(in crate::rig) async fn ask(&mut self, path: &str) -> Result<(), Lost> {
        let request = format!("GET {path} HTTP/1.1\r\nHost: rig\r\n\r\n");
        // It cannot have been taken in by somebody who has closed the connection.
        self.stream.write_all(request.as_bytes()).await.map_err(|_| Lost::Unasked)
    }

    /// Waits for the answer.
    pub(in crate::rig) async fn answer(&mut self) -> Result<Answer, Lost> {
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
            let Some(answer) = read_head(&self.received).map_err(Lost::Broken)? else { continue };
            let whole = answer.head_bytes + answer.body_bytes;
            if self.received.len() > whole {
                return Err(Lost::Broken("more was answered than was asked".to_owned()));
            }
            if self.received.len() == whole {
                return Ok(answer);
            }
        }
    }

    /// The body of the answer that came last.
    pub(in crate::rig) fn body(&self, answer: &Answer) -> &[u8] {
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
    let (mut retry_after, mut closes, mut body_bytes) = (None, false, None);
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "retry-after" => retry_after = Some(value.to_owned()),
            "connection" => closes = value.eq_ignore_ascii_case("close"),
            "content-length" => body_bytes = value.parse().ok(),
            _ => {}
        }
    }
    let body_bytes = body_bytes.ok_or("the answer has no content-length")?;
    Ok(Some(Answer { status, retry_after, closes, head_bytes: end + 4, body_bytes }))
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
}
