//! A collector of telemetry for one test: receives OTLP over HTTP, and stores it, delays its answer or never
//! answers.

use std::{collections::BTreeMap, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::{AnyValue, KeyValue, any_value::Value},
    trace::v1::{Span, span::SpanKind, status::StatusCode as SpanStatus},
};
use prost::Message;
use tokio::{
    net::TcpListener,
    sync::watch,
    task::JoinHandle,
    time::{sleep, timeout},
};
use warp::{Filter, http::StatusCode, path::FullPath};

use crate::secrets;

/// Time limit for expected spans.
const WITHIN: Duration = Duration::from_secs(20);

/// A listening collector. Dropping it closes its port.
#[derive(Debug)]
pub struct Collector {
    address: SocketAddr,
    taken: watch::Receiver<Taken>,
    accepting: JoinHandle<()>,
}

/// How a collector treats requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// Stores and answers at once.
    Takes,
    /// Stores and answers after this time.
    Late(Duration),
    /// Reads the request and never answers.
    Hangs,
    /// Counts requests, answers at once and stores nothing.
    Discards,
}

/// Everything received so far.
#[derive(Debug, Clone, Default)]
pub struct Taken {
    /// Spans in order of arrival.
    pub spans: Vec<TakenSpan>,
    /// Number of requests, answered or not.
    pub requests: usize,
    /// Whether any of them contained a credential.
    shows_secrets: bool,
}

/// A received span.
#[derive(Debug, Clone)]
pub struct TakenSpan {
    /// The `service.name` of its sender.
    pub service: String,
    /// Its name.
    pub name: String,
    /// `SERVER`, `CLIENT`, `INTERNAL` …
    pub kind: &'static str,
    /// 32 hex digits.
    pub trace_id: String,
    /// 16 hex digits.
    pub span_id: String,
    /// 16 hex digits; empty for the first span of a trace.
    pub parent_id: String,
    /// The `tracestate` of other systems.
    pub state: String,
    /// Attributes with their values as text.
    pub attributes: BTreeMap<String, String>,
    /// Names of its events in order.
    pub events: Vec<String>,
    /// Whether its status is an error.
    pub has_failed: bool,
}

impl Taken {
    /// The spans of a trace.
    pub fn trace(&self, trace_id: &str) -> Vec<&TakenSpan> {
        self.spans.iter().filter(|span| span.trace_id == trace_id).collect()
    }
}

impl Collector {
    /// Starts a collector that stores everything.
    pub async fn start() -> Self {
        Self::of(Manner::Takes).await
    }

    /// Starts a collector with this behaviour.
    pub async fn of(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.unwrap_or_else(|error| panic!("no port for a collector: {error}"));
        let address = listener.local_addr().unwrap_or_else(|error| panic!("no address: {error}"));
        let (sender, taken) = watch::channel(Taken::default());
        let sender = Arc::new(sender);
        let receive = warp::path::full().and(warp::body::bytes()).then(move |path: FullPath, body| {
            let sender = Arc::clone(&sender);
            async move { receive(path.as_str(), body, &sender, manner).await }
        });
        let accepting = tokio::spawn(warp::serve(receive).incoming(listener).run());
        Self { address, taken, accepting }
    }

    /// Its address for `OTEL_EXPORTER_OTLP_ENDPOINT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Waits until the received telemetry fulfils a condition and returns it; panics with it at the time
    /// limit.
    pub async fn until(&self, fits: impl Fn(&Taken) -> bool) -> Taken {
        let mut taken = self.taken.clone();
        let matching = timeout(WITHIN, taken.wait_for(fits)).await;
        if let Ok(Ok(matching)) = matching {
            return matching.clone();
        }
        panic!("the expected telemetry was not received: {:#?}", self.taken.borrow().spans)
    }

    /// Everything received so far.
    pub fn taken(&self) -> Taken {
        self.taken.borrow().clone()
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.accepting.abort();
        if !std::thread::panicking() {
            assert!(!self.taken.borrow().shows_secrets, "telemetry shows a credential");
        }
    }
}

async fn receive(path: &str, body: Bytes, sender: &watch::Sender<Taken>, manner: Manner) -> StatusCode {
    sender.send_modify(|taken| {
        taken.requests += 1;
        taken.shows_secrets |= manner != Manner::Discards && secrets::are_in(&body);
    });
    match manner {
        Manner::Takes => {}
        Manner::Discards => return StatusCode::OK,
        Manner::Late(by) => sleep(by).await,
        Manner::Hangs => std::future::pending().await,
    }
    match ExportTraceServiceRequest::decode(body) {
        Ok(traces) if path == "/v1/traces" => store_spans(sender, traces),
        _ => return StatusCode::BAD_REQUEST,
    }
    StatusCode::OK
}

fn store_spans(sender: &watch::Sender<Taken>, traces: ExportTraceServiceRequest) {
    let mut spans = Vec::new();
    for resource in traces.resource_spans {
        let service = service_of(resource.resource.map(|resource| resource.attributes));
        for scope in resource.scope_spans {
            spans.extend(scope.spans.into_iter().map(|span| taken_span(&service, span)));
        }
    }
    sender.send_modify(|taken| taken.spans.extend(spans));
}

fn service_of(attributes: Option<Vec<KeyValue>>) -> String {
    texts(attributes.unwrap_or_default()).remove("service.name").unwrap_or_default()
}

fn taken_span(service: &str, span: Span) -> TakenSpan {
    TakenSpan {
        service: service.to_owned(),
        kind: SpanKind::try_from(span.kind)
            .map_or("?", |kind| kind.as_str_name().trim_start_matches("SPAN_KIND_")),
        trace_id: hex::encode(&span.trace_id),
        span_id: hex::encode(&span.span_id),
        parent_id: hex::encode(&span.parent_span_id),
        state: span.trace_state,
        name: span.name,
        attributes: texts(span.attributes),
        events: span.events.into_iter().map(|event| event.name).collect(),
        has_failed: span.status.is_some_and(|status| status.code() == SpanStatus::Error),
    }
}

fn texts(attributes: Vec<KeyValue>) -> BTreeMap<String, String> {
    let text = |value: Option<AnyValue>| match value.and_then(|value| value.value) {
        Some(Value::StringValue(text)) => text,
        Some(Value::IntValue(number)) => number.to_string(),
        Some(Value::BoolValue(flag)) => flag.to_string(),
        other => format!("{other:?}"),
    };
    attributes.into_iter().map(|pair| (pair.key, text(pair.value))).collect()
}
