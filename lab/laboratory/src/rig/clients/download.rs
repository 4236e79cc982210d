//! One download over its own connection. HTTP/1 is read directly from the socket, so that no library hides
//! a pause, a missing byte or a missing end.

use std::net::SocketAddr;

use bytes::Bytes;
use http::uri::PathAndQuery;
use mesh_testbed::{
    grpc,
    http1::{Body, Connection, Dial, RawAnswer},
};
use prost::Message;
use proto_msgs::google::api::HttpBody;
use tonic::{Request, Streaming};

use super::connection::KEY;

/// Bytes of a short body that are read at once.
const TEXT_BYTES: usize = 16 << 10;

/// A response whose body is being read.
pub(crate) struct Download {
    /// Head of the response, without the body.
    pub(crate) head: RawAnswer,
    body: Source,
}

/// Where the bytes of the body come from.
enum Source {
    Http(Connection, Body),
    Grpc(Streaming<Bytes>),
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
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: rig\r\nAuthorization: Bearer {KEY}\r\nConnection: close\r\n{range}\r\n"
        );
        let opened = async {
            let mut connection = Connection::over(Dial { receive_buffer, source: None }.connect(edge).await?);
            connection.send(request.as_bytes()).await?;
            let head = connection.head().await?;
            Ok::<_, std::io::Error>((head, connection))
        };
        match opened.await.map_err(|error| format!("the connection broke before the answer: {error}"))? {
            (None, _) => Err("the connection was closed before the answer".to_owned()),
            (Some((_, Body::UntilClose)), _) => Err("the head does not say where the body ends".to_owned()),
            (Some((head, body)), connection) => Ok(Self { head, body: Source::Http(connection, body) }),
        }
    }

    /// Calls a gRPC method whose answer is a stream of bytes.
    ///
    /// # Errors
    /// When the connection breaks, or the call is refused.
    pub(crate) async fn open_grpc(
        edge: SocketAddr,
        method: &'static str,
        request: &impl Message,
    ) -> Result<Self, String> {
        let client = grpc::Client::connect(&format!("http://{edge}")).await;
        let client = client.map_err(|error| format!("cannot connect: {error}"))?;
        let message = Request::new(request.encode_to_vec().into());
        let opened = client.stream(PathAndQuery::from_static(method), message).await;
        let messages = opened.map_err(|status| format!("cannot ask: {status}"))?;
        let head = RawAnswer { status: 200, headers: Vec::new(), body: Vec::new() };
        Ok(Self { head, body: Source::Grpc(messages) })
    }

    /// Waits for the next bytes of the body, which replace the content of `piece`; at most `most` are read
    /// from the socket at once. Returns `false` at the regular end of the body.
    ///
    /// # Errors
    /// When the body ends otherwise.
    pub(crate) async fn next(&mut self, piece: &mut Vec<u8>, most: usize) -> Result<bool, String> {
        match &mut self.body {
            Source::Http(connection, body) => {
                let read = connection.piece(body, piece, most).await;
                if connection.has_unread() {
                    return Err("more bytes than the head announces".to_owned());
                }
                read.map_err(|error| format!("the connection broke within the body: {error}"))
            }
            Source::Grpc(messages) => {
                piece.clear();
                let next = messages.message().await.map_err(|status| format!("it ended with {status}"))?;
                let Some(message) = next else { return Ok(false) };
                let message = HttpBody::decode(message).map_err(|error| error.to_string())?;
                piece.extend_from_slice(&message.data);
                Ok(true)
            }
        }
    }

    /// The rest of a short body as text.
    ///
    /// # Errors
    /// When the body does not end regularly.
    pub(crate) async fn text(&mut self) -> Result<String, String> {
        let (mut text, mut piece) = (Vec::new(), Vec::new());
        while self.next(&mut piece, TEXT_BYTES).await? {
            text.append(&mut piece);
        }
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}
