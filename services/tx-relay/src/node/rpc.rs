//! One node's JSON-RPC over HTTP: a call, its answer, and what is known of a call that failed.

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{Request, Uri, header::CONTENT_TYPE};
use http_body_util::{BodyExt, Full};
use hyper_util::{
    client::legacy::{self, Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use mesh_problem::error_chain;
use mesh_telemetry::span::{self, SpanExt};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};
use tracing::Instrument;

use super::said::{Envelope, Refusal};
use crate::metrics::Metrics;

/// A node that does not take a connection in this time is away.
const CONNECT_WITHIN: Duration = Duration::from_secs(1);

/// Kept connections are given up before the node closes them (CometBFT does after 10 s): a request that meets a
/// closing connection would have an unknown fate.
const KEPT_FOR: Duration = Duration::from_secs(5);

/// Room for what stands around a transaction in a request.
const ENVELOPE_BYTES: usize = 96;

/// Longest answer that is read. A committed transaction's carries its events.
const ANSWER_BYTES: usize = 8 << 20;

/// Why a call has no result.
#[derive(Debug, Clone)]
pub(crate) enum Failed {
    /// The node refused it.
    Refused(Refusal),
    /// No byte of it has left.
    NotSent(String),
    /// It may have reached the node, which did not answer in time.
    Late,
    /// It may have reached the node; the connection broke, or what came is no answer.
    Broken(String),
}

impl Failed {
    /// It in a word, for those who count.
    fn kind(&self) -> &'static str {
        match self {
            Self::Refused(_) => "refused",
            Self::NotSent(_) => "not_sent",
            Self::Late => "timeout",
            Self::Broken(_) => "broken",
        }
    }
}

/// Calls nodes over kept connections.
#[derive(Debug, Clone)]
pub(super) struct Rpc {
    client: Client<HttpConnector, Full<Bytes>>,
    metrics: Metrics,
}

impl Rpc {
    pub(super) fn new(metrics: Metrics) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(CONNECT_WITHIN));
        connector.set_nodelay(true);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(KEPT_FOR)
            // What a closing connection may have taken is not sent again.
            .retry_canceled_requests(false)
            .build(connector);
        Self { client, metrics }
    }

    /// Calls a method with a transaction's bytes.
    pub(super) async fn with_tx<T: DeserializeOwned>(
        &self,
        node: &Uri,
        method: &'static str,
        tx: &[u8],
        within: Duration,
    ) -> Result<T, Failed> {
        // The transaction is written once, where it is sent from.
        let mut request = String::with_capacity(ENVELOPE_BYTES + tx.len().div_ceil(3) * 4);
        request.push_str(r#"{"jsonrpc":"2.0","id":0,"method":""#);
        request.push_str(method);
        request.push_str(r#"","params":{"tx":""#);
        STANDARD.encode_string(tx, &mut request);
        request.push_str(r#""}}"#);
        self.posted(node, method, request, within).await
    }

    /// Calls a method with parameters.
    pub(super) async fn call<T: DeserializeOwned>(
        &self,
        node: &Uri,
        method: &'static str,
        parameters: Value,
        within: Duration,
    ) -> Result<T, Failed> {
        let request = json!({"jsonrpc": "2.0", "id": 0, "method": method, "params": parameters});
        self.posted(node, method, request.to_string(), within).await
    }

    async fn posted<T: DeserializeOwned>(
        &self,
        node: &Uri,
        method: &'static str,
        request: String,
        within: Duration,
    ) -> Result<T, Failed> {
        let span = span::http_client(node.host().unwrap_or_default(), node.port_u16(), method);
        let begun = Instant::now();
        let exchanged = timeout(within, self.exchange(node, request)).instrument(span.clone()).await;
        let answered = exchanged.unwrap_or(Err(Failed::Late));
        let kind = answered.as_ref().err().map_or("", Failed::kind);
        self.metrics.called(node, method, kind, begun.elapsed());
        if !kind.is_empty() {
            span.record_failure(kind);
        }
        read(&answered?)
    }

    async fn exchange(&self, node: &Uri, request: String) -> Result<Vec<u8>, Failed> {
        let mut call = Request::post(node.clone()).header(CONTENT_TYPE, "application/json");
        if let Some(trace) = span::current_context() {
            call = call.header("traceparent", trace.traceparent());
            if let Some(state) = trace.tracestate() {
                call = call.header("tracestate", state);
            }
        }
        let call = call.body(Full::from(request)).map_err(|error| Failed::NotSent(error.to_string()))?;
        let answered = self.client.request(call).await;
        let mut body = answered.map_err(|error| failed(&error))?.into_body();
        let mut answer = Vec::new();
        while let Some(frame) = body.frame().await {
            // What is no data says nothing about the answer.
            if let Ok(piece) = frame.map_err(|error| broken(&error))?.into_data() {
                take(&mut answer, &piece)?;
            }
        }
        Ok(answer)
    }
}

fn take(answer: &mut Vec<u8>, piece: &Bytes) -> Result<(), Failed> {
    if answer.len() + piece.len() > ANSWER_BYTES {
        return Err(Failed::Broken("the answer is too long".to_owned()));
    }
    answer.extend_from_slice(piece);
    Ok(())
}

/// A node answers errors with status 500 and a JSON-RPC body: the body decides. What is none comes from something
/// that stands before the node.
fn read<'de, T: Deserialize<'de>>(answer: &'de [u8]) -> Result<T, Failed> {
    let envelope: Envelope<T> = serde_json::from_slice(answer)
        .map_err(|error| Failed::Broken(format!("that is no answer of a node: {error}")))?;
    match (envelope.result, envelope.error) {
        (_, Some(fault)) => Err(Failed::Refused(fault.meaning())),
        (Some(result), None) => Ok(result),
        (None, None) => Err(Failed::Broken("the answer has no result".to_owned())),
    }
}

fn failed(error: &legacy::Error) -> Failed {
    match error.is_connect() {
        true => Failed::NotSent(error_chain(error)),
        false => broken(error),
    }
}

fn broken(error: &dyn std::error::Error) -> Failed {
    Failed::Broken(error_chain(error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::said::Broadcast;

    #[test]
    fn the_body_decides() {
        let refused = read::<Broadcast>(
            br#"{"jsonrpc":"2.0","id":0,"error":{"code":-32603,"message":"Internal error","data":"mempool is full"}}"#,
        );
        assert!(matches!(refused, Err(Failed::Refused(Refusal::Full))), "{refused:?}");
        for none in [&b"<html>"[..], b"{}", br#"{"result":null}"#, br#"{"result":7}"#, b""] {
            assert!(matches!(read::<Broadcast>(none), Err(Failed::Broken(_))));
        }
        assert!(read::<Broadcast>(br#"{"result":{"code":0,"hash":"A"},"error":null}"#).is_ok());
    }
}
