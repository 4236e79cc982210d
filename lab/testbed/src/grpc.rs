//! A gRPC client without behaviour of its own: messages are raw bytes, and it enforces no deadline.

use std::{
    io,
    task::{Context, Poll},
};

use bytes::{Buf, BufMut, Bytes};
use futures_util::future::BoxFuture;
use http::{Uri, uri::PathAndQuery};
use hyper::{
    body::Incoming,
    client::conn::http2::{self, SendRequest},
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tonic::{
    Request, Response, Status, Streaming,
    body::Body,
    client::Grpc,
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
};
use tower_service::Service;

/// An HTTP/2 connection. Tonic's own channel would enforce the deadline of a call itself, so that a test
/// could not see whether the mesh does.
#[derive(Debug, Clone)]
pub struct Connection(SendRequest<Body>);

impl Service<http::Request<Body>> for Connection {
    type Response = http::Response<Incoming>;
    type Error = hyper::Error;
    type Future = BoxFuture<'static, Result<Self::Response, hyper::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), hyper::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        Box::pin(self.0.send_request(request))
    }
}

/// A client of one gRPC server.
#[derive(Debug, Clone)]
pub struct Client {
    /// The connection, for generated clients.
    pub connection: Connection,
    /// The address of the server.
    pub origin: Uri,
}

impl Client {
    /// Connects to the server of a URL.
    ///
    /// # Errors
    /// When the connection fails, or the server has no HTTP/2.
    pub async fn connect(url: &str) -> io::Result<Self> {
        let stream = TcpStream::connect(url.trim_start_matches("http://")).await?;
        // Head and message are two writes: without TCP_NODELAY the second would wait for the first one's ACK.
        stream.set_nodelay(true)?;
        let shaken = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
        let (requests, connection) = shaken.map_err(io::Error::other)?;
        tokio::spawn(connection);
        let origin = url.parse().map_err(io::Error::other)?;
        Ok(Self { connection: Connection(requests), origin })
    }

    /// Calls a unary operation.
    ///
    /// # Errors
    /// The status, when it is not OK.
    pub async fn unary(
        &self,
        path: PathAndQuery,
        request: Request<Bytes>,
    ) -> Result<Response<Bytes>, Status> {
        self.ready().await?.unary(request, path, RawCodec).await
    }

    /// Calls a server-streaming operation.
    ///
    /// # Errors
    /// The status, when it is refused.
    pub async fn stream(
        &self,
        path: PathAndQuery,
        request: Request<Bytes>,
    ) -> Result<Streaming<Bytes>, Status> {
        Ok(self.ready().await?.server_streaming(request, path, RawCodec).await?.into_inner())
    }

    async fn ready(&self) -> Result<Grpc<Connection>, Status> {
        let grpc = Grpc::with_origin(self.connection.clone(), self.origin.clone());
        let mut grpc = grpc.max_decoding_message_size(usize::MAX);
        grpc.ready().await.map_err(|error| Status::unknown(error.to_string()))?;
        Ok(grpc)
    }
}

/// Passes encoded messages through unchanged.
#[derive(Debug, Clone, Copy)]
struct RawCodec;

impl Codec for RawCodec {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for RawCodec {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, message: Bytes, into: &mut EncodeBuf<'_>) -> Result<(), Status> {
        into.put(message);
        Ok(())
    }
}

impl Decoder for RawCodec {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}
