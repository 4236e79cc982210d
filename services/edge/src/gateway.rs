//! The gateway actor: answers every request, over HTTP and gRPC, and measures it.

use std::{sync::Arc, thread, time::Instant};

use actix::{Actor, Context, Handler, MailboxError, Message};
use http::{HeaderMap, Method, StatusCode, Uri, header::CONTENT_LENGTH};
use mesh_bus::CancelOnDrop;
use mesh_chassis::accept;
use mesh_problem::{Code, Problem};
use mesh_telemetry::span::SpanExt;
use scopeguard::{ScopeGuard, guard};
use tracing::{Instrument, Span};
use warp::reply::Response;

use crate::{
    admission::{Admission, ClientContext, NO_OPERATION},
    ask::{backend::Backend, cache::HttpQuestion},
    config::Config,
    decode::{
        body::{self, Body},
        query::Parameters,
    },
    http_call::HttpCall,
    metrics::Metrics,
    respond::{answer, gzip, handling::HandlingNote},
    route::{
        routes::{RouteMatch, Routes},
        status::MeshStatus,
    },
    trace::{RequestId, Trace},
    unread_body,
    watch::registry::Watches,
};

/// The head of a request with the results of earlier checks.
#[derive(Debug)]
pub(crate) struct RequestHead {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
    pub(crate) id: RequestId,
    pub(crate) client: ClientContext,
    /// The question of this target, when it was decoded before.
    pub(crate) question: Option<HttpQuestion>,
}

impl RequestHead {
    /// Path and query as received.
    pub(crate) fn target(&self) -> &str {
        self.uri.path_and_query().map_or("", |target| target.as_str())
    }

    pub(crate) fn query(&self) -> &str {
        self.uri.query().unwrap_or_default()
    }
}

/// A request over HTTP.
#[derive(Message)]
#[rtype(result = "Response")]
pub(crate) struct HttpRequest {
    pub(crate) head: Arc<RequestHead>,
    pub(crate) body: Body<warp::Error>,
}

/// Answers every request; requests overlap.
pub(crate) struct Gateway {
    pub(crate) state: Arc<GatewayState>,
}

/// What all requests share.
pub(crate) struct GatewayState {
    pub(crate) backend: Arc<Backend>,
    pub(crate) watches: Arc<Watches>,
    pub(crate) status: MeshStatus,
    pub(crate) routes: Arc<Routes>,
    pub(crate) admission: Arc<Admission>,
    pub(crate) config: Arc<Config>,
    pub(crate) metrics: Metrics,
}

impl Gateway {
    /// The gateway with these parts.
    pub(crate) fn new(state: GatewayState) -> Self {
        Self { state: Arc::new(state) }
    }
}

impl Actor for Gateway {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Self::Context) {
        context.set_mailbox_capacity(self.state.config.limits.in_flight);
    }
}

impl Handler<HttpRequest> for Gateway {
    type Result = CancelOnDrop<Response>;

    fn handle(&mut self, request: HttpRequest, _: &mut Context<Self>) -> Self::Result {
        let state = Arc::clone(&self.state);
        CancelOnDrop::new(async move { state.answer(request).await })
    }
}

impl GatewayState {
    async fn answer(&self, request: HttpRequest) -> Response {
        let started = Instant::now();
        let HttpRequest { head, mut body } = request;
        let path = head.uri.path();
        let matched = self.routes.find(path);
        let trace = Trace::of(&head.headers, &self.config.sampling);
        let route = || matched.as_ref().map(|matched| matched.route(path));
        let scheme = self.config.url_scheme();
        let span = trace.http_span(&head.method, (scheme, path), &head.id, route);
        let operation = matched.as_ref().map_or(NO_OPERATION, RouteMatch::name);
        self.metrics.active.inc();
        let _active = guard(&self.metrics.active, |active| _ = active.dec());
        let left = guard((), |()| {
            let status = code_of_dropped().status().as_u16();
            self.metrics.answered(operation, &head.method, status, None, started.elapsed());
        });
        let mut note = HandlingNote::default();
        let trace = trace.unrecorded();
        let call = HttpCall { state: self, head: &head, body: &mut body, trace, note: &mut note };
        let mut response = match call.answer(matched.as_ref()).instrument(span.clone()).await {
            Ok(response) => response,
            Err(error) => {
                let is_pretty = Parameters::parse(head.query()).and_then(|parameters| parameters.pretty());
                answer::error(&error, is_pretty.unwrap_or(false))
            }
        };
        if accept::accepts_gzip_alone(&head.headers)
            || gzip::is_long_error(&response) && accept::accepts_gzip(&head.headers)
        {
            response = gzip::compress_whole(response).await;
        }
        if head.method == Method::HEAD {
            response = answer::without_body(response);
        }
        answer::finish(&mut response, head.id.clone(), &self.config, &head.headers);
        note.write(&mut response);
        ScopeGuard::into_inner(left);
        self.record_answer(operation, &head.method, &response, started);
        record_in_trace(&span, &mut response);
        if body::is_sending(&head.headers) && response.status() != StatusCode::REQUEST_TIMEOUT {
            tokio::spawn(body::discard(body, self.config.limits));
        } else if head.client.connection.is_http2() {
            unread_body::discard(body);
        }
        response
    }

    /// Counts an answer in the metrics, with the length of its body where that is known.
    fn record_answer(&self, operation: &'static str, method: &Method, response: &Response, started: Instant) {
        let status = response.status();
        let has_body = method != Method::HEAD && status != StatusCode::NOT_MODIFIED;
        let length = response.headers().get(CONTENT_LENGTH).filter(|_| has_body);
        let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
        self.metrics.answered(operation, method, status.as_u16(), length, started.elapsed());
    }
}

/// The problem of a message that the gateway has not answered: its mailbox is closed or its handler has panicked, which
/// the error does not distinguish.
pub(crate) fn unanswered(error: &MailboxError) -> Problem {
    Problem::unavailable("the edge dropped the request: it is stopping, or failed")
        .caused_by(error.to_string())
}

/// The code that a request counts with if it is dropped before its answer: the client has left, or receives
/// `Unavailable` because the handler has panicked.
pub(crate) fn code_of_dropped() -> Code {
    if thread::panicking() { Code::Unavailable } else { Code::Canceled }
}

/// Records the status of an answer in its span. The access log takes the trace from the answer.
fn record_in_trace(span: &Span, response: &mut Response) {
    let status = response.status();
    if let Some(recorded) = span.trace_context() {
        response.extensions_mut().insert(recorded);
    }
    span.record_attribute("http.response.status_code", i64::from(status.as_u16()));
    if status.is_server_error() {
        span.record_failure(status.as_str());
    }
}
