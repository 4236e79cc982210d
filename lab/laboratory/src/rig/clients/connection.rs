//! A persistent HTTP connection of the load, with one request at a time. Block heights on it must never
//! decrease.

use std::{fmt, net::SocketAddr};

use mesh_testbed::{
    Answer,
    http1::{self, Dial},
};
use tokio::net::TcpStream;

/// The key of all clients of the drills. Edges without keys ignore it.
pub(crate) const KEY: &str = "mesh_laboratory";

pub(crate) struct Connection {
    stream: http1::Connection,
    /// The greatest block height of a response so far.
    height: u64,
}

/// Why a request got no response.
#[derive(Debug)]
pub(crate) enum RequestError {
    /// The connection was closed before a byte of the response: the request may be sent again.
    Unanswered,
    /// Any other failure of the connection, or a malformed response.
    Broken(String),
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unanswered => f.write_str("the connection was closed without an answer"),
            Self::Broken(why) => f.write_str(why),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) raw: Answer,
    /// The block height that it shows, when it names one.
    pub(crate) height: Option<u64>,
    /// The height of an earlier response on the same connection, when that was greater.
    pub(crate) earlier_height: Option<u64>,
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> Result<Self, RequestError> {
        let opened = Dial::default().connect(address).await;
        Ok(Self::over(opened.map_err(|error| RequestError::Broken(format!("cannot connect: {error}")))?))
    }

    pub(crate) fn over(stream: TcpStream) -> Self {
        Self { stream: http1::Connection::over(stream), height: 0 }
    }

    pub(crate) async fn send(&mut self, path: &str, headers: &str) -> Result<(), RequestError> {
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: rig\r\nAuthorization: Bearer {KEY}\r\n{headers}\r\n");
        // A server that has closed the connection cannot have processed the request.
        self.stream.send(request.as_bytes()).await.map_err(|_| RequestError::Unanswered)
    }

    pub(crate) async fn receive(&mut self) -> Result<Response, RequestError> {
        let raw = match self.stream.answer(false).await {
            Ok(Some(raw)) => raw,
            Ok(None) => return Err(RequestError::Unanswered),
            Err(_) if !self.stream.has_received() => return Err(RequestError::Unanswered),
            Err(error) => return Err(RequestError::Broken(error.to_string())),
        };
        if self.stream.has_unread() {
            return Err(RequestError::Broken("more was answered than was asked".to_owned()));
        }
        if raw.status != 304 && raw.header("content-length").is_none() {
            return Err(RequestError::Broken("the answer has no content-length".to_owned()));
        }
        let height = raw.header("x-block-height").and_then(|value| value.parse().ok());
        let earlier_height = height.filter(|height| *height < self.height).map(|_| self.height);
        self.height = self.height.max(height.unwrap_or_default());
        Ok(Response { raw, height, earlier_height })
    }

    pub(crate) async fn get(&mut self, path: &str) -> Result<Response, RequestError> {
        self.send(path, "").await?;
        self.receive().await
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test]
    async fn a_connection_notices_when_its_heights_go_back() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let served = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            for height in ["7", "9", "8", "9"] {
                stream.read_buf(&mut Vec::with_capacity(1 << 10)).await.unwrap();
                let answer =
                    format!("HTTP/1.1 200 OK\r\nX-Block-Height: {height}\r\nContent-Length: 0\r\n\r\n");
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        let mut connection = Connection::open(address).await.unwrap();
        let mut heights = Vec::new();
        for _ in 0..4 {
            let response = connection.get("/").await.unwrap();
            heights.push((response.height.unwrap(), response.earlier_height));
        }
        assert_eq!(heights, [(7, None), (9, None), (8, Some(9)), (9, None)]);
        served.await.unwrap();
    }
}
