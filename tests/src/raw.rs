//! HTTP/1.1 by hand over a socket, for what a proper client would never send.

use std::{io, net::IpAddr};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
};

/// Longest head that an answer may have.
const HEAD_AT_MOST: usize = 64 << 10;

/// A connection to a server.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    unread: Vec<u8>,
}

/// An answer with its body.
#[derive(Debug, Clone)]
pub struct RawAnswer {
    /// The status code.
    pub status: u16,
    /// The headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body, unchunked.
    pub body: Vec<u8>,
}

impl RawAnswer {
    /// The value of a header, when it is there.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_str())
    }

    /// Whether the server closes the connection behind this answer.
    pub fn closes(&self) -> bool {
        self.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }
}

impl Connection {
    /// Connects to the server of a URL without a path.
    ///
    /// # Errors
    /// When nobody listens there.
    pub async fn open(url: &str) -> io::Result<Self> {
        let stream = TcpStream::connect(url.trim_start_matches("http://")).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, unread: Vec::new() })
    }

    /// Connects from an address of this machine, such as 127.0.0.2.
    ///
    /// # Errors
    /// When nobody listens there.
    pub async fn open_from(url: &str, from: IpAddr) -> io::Result<Self> {
        let address = url.trim_start_matches("http://").parse().map_err(io::Error::other)?;
        let socket = TcpSocket::new_v4()?;
        socket.bind((from, 0).into())?;
        let stream = socket.connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, unread: Vec::new() })
    }

    /// Connects as a client that takes no more than so many bytes in advance.
    ///
    /// # Errors
    /// When nobody listens there.
    pub async fn open_narrow(url: &str, bytes: u32) -> io::Result<Self> {
        let address = url.trim_start_matches("http://").parse().map_err(io::Error::other)?;
        let socket = TcpSocket::new_v4()?;
        socket.set_recv_buffer_size(bytes)?;
        let stream = socket.connect(address).await?;
        Ok(Self { stream, unread: Vec::new() })
    }

    /// Sends bytes.
    ///
    /// # Errors
    /// When the server has closed.
    pub async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await
    }

    /// Says that nothing more will be sent.
    ///
    /// # Errors
    /// When the server has closed.
    pub async fn finish(&mut self) -> io::Result<()> {
        self.stream.shutdown().await
    }

    /// Reads an answer, or nothing when the server closes without one. The answer to `HEAD` has no body.
    ///
    /// # Errors
    /// When the connection breaks, or the answer is no HTTP.
    pub async fn answer(&mut self, to_head: bool) -> io::Result<Option<RawAnswer>> {
        loop {
            let Some(head) = self.head().await? else { return Ok(None) };
            let (status, headers) = parse(&head).ok_or_else(|| odd("an odd head", &head))?;
            if (100..200).contains(&status) {
                continue;
            }
            let mut answer = RawAnswer { status, headers, body: Vec::new() };
            if !to_head && !matches!(status, 204 | 304) {
                answer.body = self.body(&answer).await?;
            }
            return Ok(Some(answer));
        }
    }

    /// Reads the head of an answer, and gives the connection from which its body comes; the answer holds what has come
    /// of it already.
    ///
    /// # Errors
    /// When the connection breaks or ends, or the answer is no HTTP.
    pub async fn head_then_stream(mut self) -> io::Result<(RawAnswer, TcpStream)> {
        let head = self.head().await?.ok_or(io::ErrorKind::UnexpectedEof)?;
        let (status, headers) = parse(&head).ok_or_else(|| odd("an odd head", &head))?;
        Ok((RawAnswer { status, headers, body: self.unread }, self.stream))
    }

    /// Reads on until the server closes, and returns what came.
    ///
    /// # Errors
    /// When the connection breaks.
    pub async fn rest(&mut self) -> io::Result<Vec<u8>> {
        self.stream.read_to_end(&mut self.unread).await?;
        Ok(std::mem::take(&mut self.unread))
    }

    async fn head(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            if let Some(end) = find(&self.unread, b"\r\n\r\n") {
                return Ok(Some(self.take(end + 4)));
            }
            if self.unread.len() > HEAD_AT_MOST {
                return Err(odd("an endless head", &self.unread));
            }
            if !self.more().await? {
                return if self.unread.is_empty() { Ok(None) } else { Err(odd("a torn head", &self.unread)) };
            }
        }
    }

    async fn body(&mut self, answer: &RawAnswer) -> io::Result<Vec<u8>> {
        if answer.header("transfer-encoding").is_some() {
            let mut body = Vec::new();
            loop {
                let line = self.line().await?;
                let size =
                    std::str::from_utf8(&line).ok().and_then(|text| usize::from_str_radix(text, 16).ok());
                let size = size.ok_or_else(|| odd("an odd chunk", &line))?;
                body.extend(self.exactly(size).await?);
                self.line().await?;
                if size == 0 {
                    return Ok(body);
                }
            }
        }
        match answer.header("content-length").map(str::parse) {
            Some(Ok(length)) => self.exactly(length).await,
            Some(Err(_)) => Err(io::Error::other("an odd content length")),
            None => self.rest().await,
        }
    }

    async fn line(&mut self) -> io::Result<Vec<u8>> {
        loop {
            if let Some(end) = find(&self.unread, b"\r\n") {
                let line = self.take(end);
                self.take(2);
                return Ok(line);
            }
            if !self.more().await? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    async fn exactly(&mut self, length: usize) -> io::Result<Vec<u8>> {
        while self.unread.len() < length {
            if !self.more().await? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(self.take(length))
    }

    async fn more(&mut self) -> io::Result<bool> {
        Ok(self.stream.read_buf(&mut self.unread).await? > 0)
    }

    fn take(&mut self, length: usize) -> Vec<u8> {
        let rest = self.unread.split_off(length);
        std::mem::replace(&mut self.unread, rest)
    }
}

fn parse(head: &[u8]) -> Option<(u16, Vec<(String, String)>)> {
    let text = String::from_utf8_lossy(head);
    let mut lines = text.split("\r\n");
    let status = lines.next()?.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
    let header = |line: &str| {
        let (name, value) = line.split_once(':')?;
        Some((name.to_ascii_lowercase(), value.trim().to_owned()))
    };
    let headers: Option<Vec<_>> = lines.take_while(|line| !line.is_empty()).map(header).collect();
    Some((status, headers?))
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

fn odd(what: &str, bytes: &[u8]) -> io::Error {
    io::Error::other(format!("{what}: {:?}", String::from_utf8_lossy(&bytes[..bytes.len().min(200)])))
}
