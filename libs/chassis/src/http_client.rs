//! The HTTP/1 client for addresses of the configuration: a consensus node, a collector. Its own crate compiles it
//! once; in every program it would be most of the code.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, ResponseFuture, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};

pub use hyper_util::client::legacy::Error as HttpClientError;

use crate::{run::Failure, tls::client_tls};

/// The settings of an [`HttpClient`].
#[derive(Debug, Clone, Copy)]
pub struct HttpClientSettings {
    /// Whether an address needs TLS.
    pub with_tls: bool,
    /// Longest time for one attempt to connect.
    pub connect_timeout: Duration,
    /// Idle connections are closed after this time.
    pub idle_timeout: Duration,
}

/// A client with pooled connections. Cloning shares them.
#[derive(Debug, Clone)]
pub struct HttpClient(Client<HttpsConnector<HttpConnector>, Full<Bytes>>);

impl HttpClient {
    /// A client without connections.
    ///
    /// # Errors
    /// When TLS cannot be configured.
    pub fn new(settings: HttpClientSettings) -> Result<Self, Failure> {
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(settings.connect_timeout));
        connector.set_nodelay(true);
        connector.enforce_http(false);
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(client_tls(settings.with_tls)?)
            .https_or_http()
            .enable_http1()
            .wrap_connector(connector);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(settings.idle_timeout)
            .build(connector);
        Ok(Self(client))
    }

    /// Sends a request; again when the kept connection closed before a byte of it was written.
    pub fn send(&self, request: Request<Full<Bytes>>) -> ResponseFuture {
        self.0.request(request)
    }
}
