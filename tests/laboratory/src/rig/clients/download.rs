//! One download over a connection of its own, read directly from the socket, so that no library hides a
//! pause, a missing byte or a missing end.

use std::net::SocketAddr;

use bytes::BufMut as _;
use mesh_testbed::http1::{self, Body, Dial};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// Bytes of a short body that are read at once.
const TEXT_BYTES: usize = 16 << 10;

/// A response whose body is being read.
pub(crate) struct Download {
    stream: TcpStream,
    /// Head of the response.
    pub(crate) head: Head,
    body: Body,
    /// Bytes of the body, still framed, that came with the head.
    early: Vec<u8>,
}

/// The fields of a response head that are checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    /// The status.
    pub(crate) status: u16,
    /// The entity tag, with its quotes.
    pub(crate) etag: Option<String>,
    /// The value of `Retry-After`.
    pub(crate) retry_after: Option<String>,
}

impl Download {
    /// Sends the request and waits for the head. A given receive buffer size is fixed, so that flow control
    /// reaches the server.
    ///
    /// # Errors
    /// When the connection breaks, or the response is malformed.
    pub(crate) async fn open(
        edge: SocketAddr,
        path: &str,
        range: Option<&str>,
        receive_buffer: Option<u32>,
    ) -> Result<Self, String> {
        let range = range.map(|range| format!("Range: bytes={range}\r\n")).unwrap_or_default();
        let request = format!("GET {path} HTTP/1.1\r\nHost: rig\r\nConnection: close\r\n{range}\r\n");
        let connected = async {
            let mut stream = Dial { receive_buffer, source: None }.connect(edge).await?;
            stream.write_all(request.as_bytes()).await?;
            Ok::<_, std::io::Error>(stream)
        };
        let mut stream = connected.await.map_err(|error| format!("cannot ask: {error}"))?;
        let mut received = Vec::with_capacity(1 << 10);
        loop {
            if let Some(head) = http1::Head::parse(&received)? {
                let body = head.body()?;
                if body == Body::UntilClose {
                    return Err("the head does not say where the body ends".to_owned());
                }
                let text = |name| head.header(name).map(str::to_owned);
                let end = head.bytes;
                let head = Head { status: head.status, etag: text("etag"), retry_after: text("retry-after") };
                return Ok(Self { stream, head, body, early: received.split_off(end) });
            }
            match stream.read_buf(&mut received).await {
                Ok(0) => return Err("the connection was closed before the answer".to_owned()),
                Ok(_) => {}
                Err(error) => return Err(format!("the connection broke before the answer: {error}")),
            }
        }
    }

    /// Waits for the next bytes of the body, which replace the content of `piece`; at most `most` are read
    /// from the socket. Returns `false` at the regular end of the body.
    pub(crate) async fn next(&mut self, piece: &mut Vec<u8>, most: usize) -> Result<bool, String> {
        piece.clear();
        while piece.is_empty() {
            if self.body.is_complete() {
                return Ok(false);
            }
            if self.early.is_empty() {
                // Without reserved capacity the buffer would grow by a few bytes, and only those would be
                // read.
                piece.reserve(most);
                match self.stream.read_buf(&mut piece.limit(most)).await {
                    Ok(0) => return Err("the connection was closed within the body".to_owned()),
                    Ok(_) => {}
                    Err(error) => return Err(format!("the connection broke within the body: {error}")),
                }
            } else {
                piece.append(&mut self.early);
            }
            if !self.body.decode(piece)?.is_empty() {
                return Err("more came than the head says".to_owned());
            }
        }
        Ok(true)
    }

    /// The rest of a short body as text.
    pub(crate) async fn text(&mut self) -> Result<String, String> {
        let (mut text, mut piece) = (Vec::new(), Vec::new());
        while self.next(&mut piece, TEXT_BYTES).await? {
            text.append(&mut piece);
        }
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    /// The bytes that a client of this answer reads in pieces of at most `most`, and how the download ends.
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
