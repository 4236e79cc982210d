//! The gateway actor: takes a request through its stages in the order of contract section 2.3: path and
//! method, sizes, parameters; then the service answers.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use actix::{Actor, Context, Handler, Message};
use bytes::Bytes;
use http::{
    HeaderMap, Method, StatusCode, Uri,
    header::{CONTENT_LENGTH, EXPECT},
};
use mesh_bus::CancelOnDrop;
use mesh_problem::{Code, NOT_MAPPED, Problem};
use mesh_telemetry::{TraceContext, span::SpanExt};
use prometheus_client::metrics::gauge::Gauge;
use proto_msgs::OperationInfo;
use tokio::time;
use tracing::Instrument;
use warp::reply::Response;

use crate::{
    admission::{
        Admission, ClientContext,
        head::{HttpError, check_size},
    },
    ask::{
        backend::{Backend, CallContext},
        cache::HttpQuestion,
    },
    config::Config,
    decode::{
        self, Decoded, accept,
        body::{self, Body},
        percent::PathField,
    },
    grpc_kind::GrpcKind,
    metrics::Metrics,
    respond::{answer, download::Download, gzip, handling::HandlingNote},
    route::{
        routes::{RouteMatch, Routes, WATCH},
        status::MeshStatus,
    },
    trace::{RequestId, Trace},
    unread_body,
    watch::{
        http::{WatchRequest, wants_events},
        registry::Watches,
    },
};

/// The value of `Allow` in the response to `OPTIONS *` (RFC 9110, 9.3.7).
const ALL_METHODS: &str = "GET, HEAD, POST, OPTIONS";

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
    fn target(&self) -> &str {
        self.uri.path_and_query().map_or("", |target| target.as_str())
    }

    fn query(&self) -> &str {
        self.uri.query().unwrap_or_default()
    }
}

/// A request over HTTP.
pub(crate) struct HttpRequest {
    pub(crate) head: Arc<RequestHead>,
    pub(crate) body: Body<warp::Error>,
}

impl Message for HttpRequest {
    type Result = Response;
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
    pub(crate) routes: Routes,
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
        let span = trace.http_span(&head.method, path, &head.id, route);
        let _active = ActiveGuard::begin(&self.metrics.active);
        let mut note = HandlingNote::default();
        let answering = async {
            let trace = trace.unrecorded();
            let answered = self.try_answer(&head, &mut body, matched.as_ref(), trace, &mut note).await;
            self.after_body(&head, &mut body, answered).await
        };
        let mut response = match answering.instrument(span.clone()).await {
            Ok(response) => response,
            Err(error) => answer::error(&error),
        };
        if accept::accepts_gzip_alone(&head.headers) {
            response = gzip::compress_whole(response).await;
        }
        if head.method == Method::HEAD {
            response = answer::without_body(response);
        }
        answer::finish(&mut response, head.id.clone(), &self.config, &head.headers);
        note.write(&mut response);
        let operation = matched.as_ref().map_or("none", RouteMatch::name);
        let status = response.status();
        let length = response.headers().get(CONTENT_LENGTH);
        let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
        let has_body = head.method != Method::HEAD && status != StatusCode::NOT_MODIFIED;
        let length = length.filter(|_| has_body);
        if let Some(recorded) = span.trace_context() {
            response.extensions_mut().insert(recorded);
        }
        self.metrics.answered(operation, &head.method, status.as_u16(), length, started.elapsed());
        span.record_attribute("http.response.status_code", i64::from(status.as_u16()));
        if status.is_server_error() {
            span.record_failure(status.as_str());
        }
        if body::is_sending(&head.headers) && status != StatusCode::REQUEST_TIMEOUT {
            tokio::spawn(body::discard(body, self.config.limits));
        } else if head.client.connection.is_http2() {
            unread_body::discard(body);
        }
        response
    }

    async fn try_answer(
        &self,
        head: &RequestHead,
        body: &mut Body<warp::Error>,
        matched: Option<&RouteMatch>,
        trace: Option<TraceContext>,
        note: &mut HandlingNote,
    ) -> Result<Response, HttpError> {
        check_size(head.target().len(), &head.headers, &self.config.limits)?;
        if let Some(kind) = GrpcKind::of_request(&head.method, &head.headers) {
            return Err(kind.refusal());
        }
        if head.method == Method::OPTIONS && head.uri.path() == "*" {
            return Ok(answer::preflight(ALL_METHODS, &head.headers, &self.config));
        }
        let Some(matched) = matched else {
            return Err(Problem::not_found(NOT_MAPPED, "no such path").into());
        };
        if head.method == Method::OPTIONS {
            return Ok(answer::preflight(matched.allow(), &head.headers, &self.config));
        }
        let is_read = matches!(head.method, Method::GET | Method::HEAD);
        match matched {
            RouteMatch::Page(page) if is_read => {
                if !page.is_vital {
                    self.check_rate(head)?;
                }
                Ok(page.answer(head.query(), &head.headers)?)
            }
            RouteMatch::Status if is_read => {
                self.check_rate(head)?;
                answer::check_if_match(&head.headers, None)?;
                Ok(self.status.answer().await)
            }
            RouteMatch::Watch if is_read => {
                self.check_rate(head)?;
                self.watch(head, body, None, trace, note).await
            }
            RouteMatch::Operation(operation, path)
                if operation.method == proto_msgs::Method::Get && is_read =>
            {
                self.check_rate(head)?;
                if operation.is_watchable() && wants_events(&head.headers) {
                    return self.watch(head, body, Some((operation, path)), trace, note).await;
                }
                self.read(head, body, operation, path, trace, note).await
            }
            RouteMatch::Operation(operation, path)
                if operation.method == proto_msgs::Method::Post && head.method == Method::POST =>
            {
                self.check_rate(head)?;
                self.submit(head, body, operation, path, trace, note).await
            }
            _ => Err(HttpError {
                status: StatusCode::METHOD_NOT_ALLOWED,
                problem: Problem::new(
                    Code::Unimplemented,
                    NOT_MAPPED,
                    "the method is not allowed on this path",
                ),
                allow: Some(matched.allow()),
            }),
        }
    }

    /// Rejects a request over its rate limit; a body that is too large gets 413 instead (contract 2.3).
    fn check_rate(&self, head: &RequestHead) -> Result<(), HttpError> {
        let Some(problem) = self.admission.rate_refusal(&head.client) else { return Ok(()) };
        body::check_announced(&head.headers, &self.config.limits)?;
        Err(problem.into())
    }

    /// Reads the rest of an unread body, which must be well framed: the next request begins at its end. A
    /// body that is too large does not change the answer.
    async fn after_body(
        &self,
        head: &RequestHead,
        body: &mut Body<warp::Error>,
        answered: Result<Response, HttpError>,
    ) -> Result<Response, HttpError> {
        let is_final = |error: &HttpError| {
            matches!(error.status, StatusCode::PAYLOAD_TOO_LARGE | StatusCode::REQUEST_TIMEOUT)
        };
        if answered.as_ref().is_err_and(is_final) {
            return answered;
        }
        let is_announced = body::is_sending(&head.headers) || head.headers.contains_key(EXPECT);
        if !is_announced && head.client.connection.is_http2() {
            // Over HTTP/2 a body needs no header that announces it.
            unread_body::drain(body).await;
        }
        match body::drain(body, &head.headers, &self.config.limits).await {
            Err(error) if error.status != StatusCode::PAYLOAD_TOO_LARGE => Err(error),
            _ => answered,
        }
    }

    /// Answers a read or a download.
    async fn read(
        &self,
        head: &RequestHead,
        body: &mut Body<warp::Error>,
        operation: &'static OperationInfo,
        path: &[PathField],
        trace: Option<TraceContext>,
        note: &mut HandlingNote,
    ) -> Result<Response, HttpError> {
        // Before the permit: a slow body holds none.
        body::drain(body, &head.headers, &self.config.limits).await?;
        let _permit = self.admission.request(&head.client, &operation.name)?;
        let gzip = accept::accepts_gzip(&head.headers);
        let question = match &head.question {
            Some(question) => {
                note.ignored.clone_from(&question.ignored);
                question.clone()
            }
            None => {
                let handling = note.read(&head.headers);
                let Decoded { question, ignored } =
                    decode::from_http(operation, path, head.query(), &[], gzip, handling);
                let ignored = ignored.header();
                note.ignored.clone_from(&ignored);
                HttpQuestion { question: Arc::new(question?), ignored }
            }
        };
        let context = self.call_context(head, self.config.limits.answer_time_of(operation), trace);
        if operation.streaming {
            let download = Download {
                backend: &self.backend,
                question: &question.question,
                context: &context,
                headers: &head.headers,
                is_head: head.method == Method::HEAD,
                permit: Some(self.admission.download(&head.client)?),
            };
            return download.answer().await;
        }
        let answer = self.backend.read_target(head.target(), &question, &context).await?;
        answer::check_if_match(&head.headers, answer.etag.as_deref())?;
        Ok(answer::respond(&answer, &head.headers))
    }

    /// Answers a watch: of one read, or of those in the query of `GET /watch`.
    async fn watch(
        &self,
        head: &RequestHead,
        body: &mut Body<warp::Error>,
        read: Option<(&'static OperationInfo, &[PathField])>,
        trace: Option<TraceContext>,
        note: &mut HandlingNote,
    ) -> Result<Response, HttpError> {
        body::drain(body, &head.headers, &self.config.limits).await?;
        let _permit = self.admission.request(&head.client, read.map_or(WATCH, |(read, _)| &read.name))?;
        let handling = note.read(&head.headers);
        let request = match read {
            Some((read, path)) => WatchRequest::one(read, path, head.query(), handling),
            None => WatchRequest::several(&self.routes, head.query(), handling),
        };
        note.ignored = request.ignored.header();
        let context = self.call_context(head, self.config.limits.answer_time, trace);
        let response = request.answer(&self.watches, &head.client, &head.headers, &context).await?;
        // Events have no tag.
        answer::check_if_match(&head.headers, None)?;
        Ok(response)
    }

    /// Answers a submission.
    async fn submit(
        &self,
        head: &RequestHead,
        body: &mut Body<warp::Error>,
        operation: &'static OperationInfo,
        path: &[PathField],
        trace: Option<TraceContext>,
        note: &mut HandlingNote,
    ) -> Result<Response, HttpError> {
        let _permit = self.admission.request(&head.client, &operation.name)?;
        let body: Bytes = body::read_whole(body, &head.headers, &self.config.limits).await?;
        self.metrics.received_body(&operation.name, body.len());
        let gzip = accept::accepts_gzip(&head.headers);
        let context = self.call_context(head, self.config.limits.answer_time_of(operation), trace);
        let handling = note.read(&head.headers);
        let decoded = decode::from_http(operation, path, head.query(), &body, gzip, handling);
        note.ignored = decoded.ignored.header();
        let answer = self.backend.submit(&decoded.question?, &context).await?;
        Ok(answer::respond(&answer, &head.headers))
    }

    fn call_context(&self, head: &RequestHead, within: Duration, trace: Option<TraceContext>) -> CallContext {
        CallContext {
            request_id: head.id.as_str().to_owned(),
            traceparent: trace,
            deadline: time::Instant::now() + within,
            has_full_time: true,
            connection: Arc::clone(&head.client.connection),
        }
    }
}

/// Counts a request whose answer has not begun.
struct ActiveGuard<'a>(&'a Gauge);

impl<'a> ActiveGuard<'a> {
    fn begin(active: &'a Gauge) -> Self {
        active.inc();
        Self(active)
    }
}

impl Drop for ActiveGuard<'_> {
    fn drop(&mut self) {
        self.0.dec();
    }
}
