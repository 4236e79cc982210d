//! The HTTP client of the collector, on its own runtime, so that it and the service do not delay each
//! other.

use std::{
    fmt,
    future::Future,
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use mesh_problem::error_chain;
use opentelemetry_http::HttpError;
use tokio::{runtime::Handle, time::timeout};

use crate::http_client::{HttpClient, HttpClientSettings};

/// Longest response that is read, bytes.
const MAX_RESPONSE_BYTES: usize = 64 << 10;

/// Idle timeout of a connection.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// The collector. Cloning shares the connections.
#[derive(Clone)]
pub(super) struct Collector {
    client: HttpClient,
    runtime: Handle,
    within: Duration,
    is_failing: Arc<AtomicBool>,
}

impl Collector {
    /// `within` is the timeout of one request; `with_tls` is needed for an `https` endpoint.
    pub(super) fn new(runtime: Handle, within: Duration, with_tls: bool) -> io::Result<Self> {
        let settings = HttpClientSettings { with_tls, connect_timeout: within, idle_timeout: IDLE_TIMEOUT };
        let client = HttpClient::new(settings).map_err(io::Error::other)?;
        Ok(Self { client, runtime, within, is_failing: Arc::default() })
    }

    /// Posts a message and returns the answer, of any status.
    pub(super) async fn post(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let answer = timeout(self.within, self.exchange(request)).await;
        let answer = answer.unwrap_or_else(|_| Err("there was no answer in time".into()));
        let wrong = match &answer {
            Ok(answer) if answer.status().is_success() => None,
            Ok(answer) => Some(answer.status().to_string()),
            Err(error) => Some(error_chain(error.as_ref())),
        };
        let was_failing = self.is_failing.swap(wrong.is_some(), Ordering::Relaxed);
        match wrong {
            Some(error) if !was_failing => tracing::warn!(error, "the collector does not take telemetry"),
            None if was_failing => tracing::info!("the collector takes telemetry again"),
            _ => {}
        }
        answer
    }

    async fn exchange(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (head, body) = self.client.send(request.map(Full::new)).await?.into_parts();
        let body = Limited::new(body, MAX_RESPONSE_BYTES).collect().await?.to_bytes();
        Ok(Response::from_parts(head, body))
    }
}

/// Used by the exporter's thread, which has no runtime.
impl opentelemetry_http::HttpClient for Collector {
    fn send_bytes<'life0, 'async_trait>(
        &'life0 self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'async_trait>>
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        let collector = self.clone();
        let posting = self.runtime.spawn(async move { collector.post(request).await });
        Box::pin(async move { posting.await? })
    }
}

impl fmt::Debug for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Collector")
    }
}
