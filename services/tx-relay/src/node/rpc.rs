//! A node's JSON-RPC over HTTP. Errors say whether the node may have received the call.

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{
    HeaderMap, Request, StatusCode,
    header::{AUTHORIZATION, CONTENT_TYPE},
};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use mesh_chassis::{Failure, HttpClient, HttpClientError, HttpClientSettings};
use mesh_node_rpc::{NodeUrl, ReplyError, read_reply, retry_after};
use mesh_problem::error_chain;
use mesh_telemetry::span::{self, SpanExt};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};
use tracing::Instrument;

use super::errors::Refusal;
use crate::metrics::Metrics;

/// A node that does not accept a connection in this time counts as unreachable.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// Idle connections are closed before the node closes them (CometBFT does after 10 s): a request that meets a
/// closing connection may or may not have been received.
const IDLE_TIMEOUT: Duration = Duration::from_secs(5);

/// Capacity for a request without its transaction, bytes.
const ENVELOPE_BYTES: usize = 96;

/// Longest reply that is read, bytes. That of a committed transaction contains its events.
const MAX_REPLY_BYTES: usize = 8 << 20;

/// Why a call has no result.
#[derive(Debug, Clone)]
pub(crate) enum CallError {
    /// The node refused it.
    Refused(Refusal),
    /// No byte of it has left.
    NotSent(String),
    /// It may have reached the node, which did not answer in time.
    Late,
    /// It may have reached the node; the connection broke, or the reply cannot be read.
    Broken(String),
    /// The node received it; its reply is longer than [`MAX_REPLY_BYTES`].
    TooLong,
    /// It may have reached the node; the response, with this status, is not one of a node.
    Foreign(StatusCode),
}

impl CallError {
    /// The label of metrics and spans.
    fn kind(&self) -> &'static str {
        match self {
            Self::Refused(_) => "refused",
            Self::NotSent(_) => "not_sent",
            Self::Late => "timeout",
            Self::Broken(_) | Self::TooLong | Self::Foreign(_) => "broken",
        }
    }

    /// The status of a server that answers in place of the node.
    pub(super) fn foreign_status(&self) -> Option<StatusCode> {
        match self {
            Self::Foreign(status) => Some(*status),
            Self::Refused(Refusal::Forbidden) => Some(StatusCode::FORBIDDEN),
            Self::Refused(Refusal::Throttled(_)) => Some(StatusCode::TOO_MANY_REQUESTS),
            _ => None,
        }
    }
}

/// Calls nodes over pooled connections.
#[derive(Debug, Clone)]
pub(super) struct Rpc {
    client: HttpClient,
    metrics: Metrics,
}

impl Rpc {
    /// `with_tls`: whether a node needs TLS.
    ///
    /// # Errors
    /// When TLS cannot be configured.
    pub(super) fn new(metrics: Metrics, with_tls: bool) -> Result<Self, Failure> {
        let settings =
            HttpClientSettings { with_tls, connect_timeout: CONNECT_TIMEOUT, idle_timeout: IDLE_TIMEOUT };
        Ok(Self { client: HttpClient::new(settings)?, metrics })
    }

    /// Calls a method with a transaction's bytes.
    pub(super) async fn with_tx<T: DeserializeOwned>(
        &self,
        node: &NodeUrl,
        method: &'static str,
        tx: &[u8],
        deadline: Duration,
    ) -> Result<T, CallError> {
        // Encoded straight into the request, without a copy.
        let mut request = String::with_capacity(ENVELOPE_BYTES + tx.len().div_ceil(3) * 4);
        request.push_str(r#"{"jsonrpc":"2.0","id":0,"method":""#);
        request.push_str(method);
        request.push_str(r#"","params":{"tx":""#);
        STANDARD.encode_string(tx, &mut request);
        request.push_str(r#""}}"#);
        self.post(node, method, request, deadline).await
    }

    /// Calls a method with parameters.
    pub(super) async fn call<T: DeserializeOwned>(
        &self,
        node: &NodeUrl,
        method: &'static str,
        parameters: Value,
        deadline: Duration,
    ) -> Result<T, CallError> {
        let request = json!({"jsonrpc": "2.0", "id": 0, "method": method, "params": parameters});
        self.post(node, method, request.to_string(), deadline).await
    }

    async fn post<T: DeserializeOwned>(
        &self,
        node: &NodeUrl,
        method: &'static str,
        request: String,
        deadline: Duration,
    ) -> Result<T, CallError> {
        let span = span::http_client(node.uri().host().unwrap_or_default(), node.uri().port_u16(), method);
        let started = Instant::now();
        let result = timeout(deadline, self.exchange(node, request)).instrument(span.clone()).await;
        let response = result.unwrap_or(Err(CallError::Late));
        let kind = response.as_ref().err().map_or("", CallError::kind);
        self.metrics.record_call(node.uri(), method, kind, started.elapsed());
        if !kind.is_empty() {
            span.record_failure(kind);
        }
        let Response { status, proxy, body } = response?;
        read(&body, status, proxy)
    }

    async fn exchange(&self, node: &NodeUrl, request: String) -> Result<Response, CallError> {
        let mut call = Request::post(node.uri().clone()).header(CONTENT_TYPE, "application/json");
        if let Some(authorization) = node.authorization() {
            call = call.header(AUTHORIZATION, authorization);
        }
        if let Some(trace) = span::current_context() {
            call = call.header("traceparent", trace.traceparent());
            if let Some(state) = trace.tracestate() {
                call = call.header("tracestate", state);
            }
        }
        let call = call.body(Full::from(request)).map_err(|error| CallError::NotSent(error.to_string()))?;
        let response = self.client.send(call).await.map_err(|error| failed(&error))?;
        let (head, body) = response.into_parts();
        let collected = Limited::new(body, MAX_REPLY_BYTES).collect().await;
        let body = collected.map_err(|error| match error.is::<LengthLimitError>() {
            true => CallError::TooLong,
            false => broken(&*error),
        })?;
        let proxy = refusal_of_proxy(head.status, &head.headers);
        Ok(Response { status: head.status, proxy, body: body.to_bytes() })
    }
}

/// A whole response.
struct Response {
    status: StatusCode,
    /// What the status means when a proxy in front of the node gave it.
    proxy: Option<Refusal>,
    body: Bytes,
}

/// The statuses that a node never gives, and after which the call has not reached it.
fn refusal_of_proxy(status: StatusCode, headers: &HeaderMap) -> Option<Refusal> {
    match status {
        StatusCode::TOO_MANY_REQUESTS => Some(Refusal::Throttled(retry_after(headers))),
        StatusCode::FORBIDDEN => Some(Refusal::Forbidden),
        _ => None,
    }
}

/// Reads a reply. A node answers errors with status 500 and a JSON-RPC body, so the body counts; any other body
/// comes from a proxy in front of the node. `proxy`: what the status means if a proxy gave it.
fn read<'de, T: Deserialize<'de>>(
    answer: &'de [u8],
    status: StatusCode,
    proxy: Option<Refusal>,
) -> Result<T, CallError> {
    match (read_reply(answer), proxy) {
        (Ok(result), _) => Ok(result),
        (Err(_), Some(refusal)) => Err(CallError::Refused(refusal)),
        (Err(ReplyError::Refused(text)), None) => Err(CallError::Refused(Refusal::of(text))),
        (Err(ReplyError::Foreign(_)), None) => Err(CallError::Foreign(status)),
    }
}

fn failed(error: &HttpClientError) -> CallError {
    match error.is_connect() {
        true => CallError::NotSent(error_chain(error)),
        false => broken(error),
    }
}

fn broken(error: &dyn std::error::Error) -> CallError {
    CallError::Broken(error_chain(error))
}

#[cfg(test)]
mod tests {
    use http::header::RETRY_AFTER;

    use super::*;
    use crate::node::reply::TxResult;

    #[test]
    fn the_body_decides_unless_a_proxy_refused() {
        let read = |body: &'static [u8], status: u16| {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, "7".parse().unwrap())]);
            let status = StatusCode::from_u16(status).unwrap();
            read::<TxResult>(body, status, refusal_of_proxy(status, &headers))
        };
        let full: &[u8] =
            br#"{"jsonrpc":"2.0","id":0,"error":{"code":-32603,"message":"Internal error","data":"mempool is full"}}"#;
        let none: [&[u8]; 8] = [
            b"<html>", br#"{"result":{}}"#, b"{}", br#"{"result":null}"#, br#"{"result":7}"#, b"", b"[]",
            br#"{"error":"mempool is full"}"#,
        ];
        for body in none {
            for status in [200, 301, 401, 404, 500, 502, 503, 504] {
                assert!(
                    matches!(read(body, status), Err(CallError::Foreign(found)) if found == status),
                    "{status}"
                );
            }
        }
        for body in none.into_iter().chain([full]) {
            let throttled = read(body, 429).unwrap_err();
            assert!(matches!(throttled, CallError::Refused(Refusal::Throttled(Some(7)))), "{throttled:?}");
            assert!(matches!(read(body, 403).unwrap_err(), CallError::Refused(Refusal::Forbidden)));
        }
        assert!(matches!(read(full, 500).unwrap_err(), CallError::Refused(Refusal::Full)));
        assert!(read(br#"{"result":{"code":0,"hash":"A"},"error":null}"#, 200).is_ok());
    }
}
