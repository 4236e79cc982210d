//! One download over gRPC, a message after the other, with nothing kept of those before.

use std::net::SocketAddr;

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message as _;
use proto_msgs::StreamingOperation;
use proto_msgs::google::api::HttpBody;
use tokio::net::TcpStream;

/// What stands before a message: a flag and a length.
const PREFIX_BYTES: usize = 5;
/// Greatest message.
const MESSAGE_BYTES: usize = 1 << 20;

/// A call whose messages are being read.
pub(super) struct Call {
    body: Incoming,
    /// What came of messages that are not whole.
    received: BytesMut,
    /// The status, once it came.
    status: Option<String>,
    // The connection ends with it.
    _requests: http2::SendRequest<Full<Bytes>>,
}

impl Call {
    /// Calls a download.
    pub(super) async fn open<R: StreamingOperation>(
        edge: SocketAddr,
        service: &str,
        request: &R,
    ) -> Result<Self, String> {
        let stream = TcpStream::connect(edge).await.map_err(|error| format!("cannot ask: {error}"))?;
        let shaken = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
        let (mut requests, connection) = shaken.map_err(|error| format!("cannot ask: {error}"))?;
        tokio::spawn(connection);
        let mut message = BytesMut::new();
        message.put_u8(0);
        message.put_u32(u32::try_from(request.encoded_len()).unwrap_or(u32::MAX));
        request.encode(&mut message).map_err(|error| format!("cannot ask: {error}"))?;
        let call = http::Request::post(format!("http://{edge}/{service}/{}", R::NAME))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(Full::new(message.freeze()))
            .map_err(|error| format!("cannot ask: {error}"))?;
        let answered = requests.send_request(call).await;
        let (head, body) = answered.map_err(|error| format!("there is no answer: {error}"))?.into_parts();
        let status = status(&head.headers);
        Ok(Self { body, received: BytesMut::new(), status, _requests: requests })
    }

    /// The bytes of the next message; nothing when the call has ended well.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, String> {
        loop {
            if let Some(message) = self.whole_message()? {
                let message = HttpBody::decode(message).map_err(|error| error.to_string())?;
                return Ok(Some(message.data));
            }
            match self.body.frame().await {
                None => break,
                Some(Err(error)) => return Err(format!("the connection broke: {error}")),
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.received.extend_from_slice(&data),
                    Err(frame) => self.status = frame.trailers_ref().and_then(status),
                },
            }
        }
        match &self.status {
            Some(status) if status == "0" && self.received.is_empty() => Ok(None),
            Some(status) => {
                Err(format!("it ended with {status}, {} bytes into a message", self.received.len()))
            }
            None => Err("it ended without a status".to_owned()),
        }
    }

    fn whole_message(&mut self) -> Result<Option<Bytes>, String> {
        let Some(prefix) = self.received.get(..PREFIX_BYTES) else { return Ok(None) };
        let (flag, length) = (prefix[0], (&prefix[1..]).get_u32() as usize);
        if flag != 0 || length > MESSAGE_BYTES {
            return Err(format!("a message of flag {flag} and {length} bytes"));
        }
        if self.received.len() < PREFIX_BYTES + length {
            return Ok(None);
        }
        self.received.advance(PREFIX_BYTES);
        Ok(Some(self.received.split_to(length).freeze()))
    }
}

/// The status that headers or trailers tell, with its words.
fn status(headers: &http::HeaderMap) -> Option<String> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    Some([text("grpc-status")?, text("grpc-message").unwrap_or_default()].join(" ").trim().to_owned())
}
