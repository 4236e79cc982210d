//! A client of watches over a WebSocket (contract section 13).

use std::{fmt::Debug, time::Duration};

use futures_util::{SinkExt, StreamExt};
use mesh_testbed::http1::Dial;
use serde_json::Value;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    time::timeout,
};
use tokio_tungstenite::{
    WebSocketStream, client_async,
    tungstenite::{
        Message,
        client::ClientRequestBuilder,
        error::Error,
        protocol::{Role, frame::coding::CloseCode},
    },
};

/// Longest wait for a frame that has to come.
const WITHIN: Duration = Duration::from_secs(20);

/// The handshake of a client.
pub const HANDSHAKE: &str = "GET /watch HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
     Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

/// An open WebSocket.
#[derive(Debug)]
pub struct WebSocket<S = TcpStream> {
    stream: WebSocketStream<S>,
}

impl WebSocket {
    /// Opens one to the server of a URL without a path.
    ///
    /// # Errors
    /// The status of another answer.
    pub async fn open(url: &str, headers: &[(&str, &str)]) -> Result<Self, u16> {
        Self::dial(url, Dial::default(), headers).await
    }

    /// Opens one with a receive buffer of this size, bytes.
    pub async fn open_narrow(url: &str, bytes: u32) -> Self {
        let dial = Dial { receive_buffer: Some(bytes), ..Dial::default() };
        Self::dial(url, dial, &[]).await.unwrap_or_else(|status| panic!("the answer is {status}"))
    }

    async fn dial(url: &str, dial: Dial, headers: &[(&str, &str)]) -> Result<Self, u16> {
        let address = url.trim_start_matches("http://");
        let stream = async { dial.connect(address.parse().map_err(std::io::Error::other)?).await };
        let stream = stream.await.unwrap_or_else(|error| panic!("{url}: {error}"));
        Self::over(stream, headers).await
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Debug> WebSocket<S> {
    /// Opens one over a connection.
    ///
    /// # Errors
    /// The status of another answer.
    pub async fn over(stream: S, headers: &[(&str, &str)]) -> Result<Self, u16> {
        let request = ClientRequestBuilder::new("ws://localhost/watch".parse().expect("a URI"));
        let request =
            headers.iter().fold(request, |request, (name, value)| request.with_header(*name, *value));
        match timeout(WITHIN, client_async(request, stream)).await.expect("the handshake is answered") {
            Ok((stream, _)) => Ok(Self { stream }),
            Err(Error::Http(answer)) => Err(answer.status().as_u16()),
            Err(error) => panic!("no handshake: {error}"),
        }
    }

    /// A WebSocket over a connection whose handshake has been made.
    pub async fn after_handshake(stream: S) -> Self {
        Self { stream: WebSocketStream::from_raw_socket(stream, Role::Client, None).await }
    }

    /// Sends a frame.
    pub async fn send(&mut self, message: impl Into<Message>) {
        self.stream.send(message.into()).await.unwrap_or_else(|error| panic!("not sent: {error}"));
    }

    /// Begins a watch.
    pub async fn watch(&mut self, id: &str, path: &str) {
        self.send(serde_json::json!({"id": id, "watch": path}).to_string()).await;
    }

    /// The next frame of any kind; `None` at the end of the connection.
    ///
    /// # Panics
    /// When nothing comes in 20 s.
    pub async fn message(&mut self) -> Option<Result<Message, Error>> {
        timeout(WITHIN, self.stream.next()).await.unwrap_or_else(|_| panic!("nothing comes"))
    }

    /// The next text frame.
    pub async fn frame(&mut self) -> Value {
        loop {
            match self.message().await {
                Some(Ok(Message::Text(text))) => {
                    return serde_json::from_str(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
                }
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                other => panic!("no text comes: {other:?}"),
            }
        }
    }

    /// The next text frame that is no sign of life.
    pub async fn news(&mut self) -> Value {
        loop {
            let frame = self.frame().await;
            if frame.as_object().is_none_or(|frame| frame.len() > 2 || !frame.contains_key("height")) {
                return frame;
            }
        }
    }

    /// Reads until the server closes; returns its code.
    pub async fn closed(&mut self) -> u16 {
        loop {
            match self.message().await {
                Some(Ok(Message::Close(Some(close)))) => return close.code.into(),
                Some(Ok(Message::Close(None))) | None | Some(Err(_)) => panic!("it closes without a code"),
                Some(Ok(_)) => {}
            }
        }
    }

    /// Closes it, and waits for the server's answer and the end.
    ///
    /// # Panics
    /// When the server does not echo the code.
    pub async fn close(&mut self) {
        let code = CloseCode::Normal;
        let frame = tokio_tungstenite::tungstenite::protocol::CloseFrame { code, reason: "done".into() };
        self.send(Message::Close(Some(frame))).await;
        assert_eq!(self.closed().await, u16::from(code));
        assert!(self.message().await.is_none(), "it ends in order");
    }
}
