//! The gateway actor: finds the operation of a request, checks it, asks the bus, answers. In the order of
//! contract section 2.3: path and method, sizes, parameters; what comes after is the service's.

use std::{borrow::Cow, sync::Arc, time::Instant};

use actix::{Actor, Context, Handler, Message};
use bytes::{Bytes, BytesMut};
use http::{
    HeaderMap, Method, StatusCode,
    header::{CONTENT_ENCODING, CONTENT_LENGTH, EXPECT, TRANSFER_ENCODING},
};
use mesh_bus::{CancelOnDrop, Encoding, Format};
use mesh_problem::{Code, MALFORMED, NOT_MAPPED, Problem};
use mesh_telemetry::{TraceContext, span::SpanExt};
use prometheus_client::metrics::gauge::Gauge;
use proto_msgs::OperationInfo;
use tokio::time;
use tracing::Instrument;
use warp::{path::FullPath, reply::Response};

use crate::{
    answer::{self, RequestId},
    asking::{Asker, Asking},
    body::{self, Body},
    cache::Question,
    config::Config,
    exports::{ExportPlace, Exports},
    grpc,
    limits::{self, Refusal},
    metrics::{Limited, Metrics},
    now::Now,
    request,
    room::{Holder, NoPlace, Place, Room},
    routes::{Matched, Routes},
    trace::Trace,
    visit::Visit,
};

/// A request off the wire.
pub(crate) struct Call {
    pub(crate) method: Method,
    pub(crate) path: FullPath,
    pub(crate) query: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Body<warp::Error>,
    pub(crate) id: RequestId,
    pub(crate) visit: Visit,
}

impl Message for Call {
    type Result = Response;
}

/// Answers every request of the outside. Its state is what all requests share.
pub(crate) struct Gateway {
    shared: Arc<Shared>,
}

/// What all requests share.
pub(crate) struct Shared {
    pub(crate) asking: Asking,
    now: Now,
    routes: Routes,
    pub(crate) config: Arc<Config>,
    pub(crate) metrics: Metrics,
    room: Arc<Room>,
    exports: Exports,
}

impl Gateway {
    /// A gateway that asks the services.
    pub(crate) fn new(
        asking: Asking,
        now: Now,
        routes: Routes,
        config: Arc<Config>,
        metrics: Metrics,
    ) -> Self {
        let room = Room::new(config.limits.in_flight);
        let exports = Exports::new(config.exports_per_address);
        Self { shared: Arc::new(Shared { asking, now, routes, config, metrics, room, exports }) }
    }
}

impl Actor for Gateway {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Self::Context) {
        context.set_mailbox_capacity(self.shared.config.limits.in_flight);
    }
}

impl Handler<Call> for Gateway {
    type Result = CancelOnDrop<Response>;

    fn handle(&mut self, call: Call, _: &mut Context<Self>) -> Self::Result {
        let shared = Arc::clone(&self.shared);
        CancelOnDrop::new(async move { shared.answer(call).await })
    }
}

impl Handler<grpc::Call> for Gateway {
    type Result = CancelOnDrop<http::Response<tonic::body::Body>>;

    fn handle(&mut self, call: grpc::Call, _: &mut Context<Self>) -> Self::Result {
        let shared = Arc::clone(&self.shared);
        CancelOnDrop::new(async move { grpc::answer(&shared, call).await })
    }
}

impl Shared {
    async fn answer(&self, mut call: Call) -> Response {
        let started = Instant::now();
        let matched = self.routes.find(call.path.as_str());
        let trace = Trace::of(&call.headers, &self.config.sampling);
        let span = trace.of_http(&call.method, call.path.as_str(), matched.as_ref(), call.id.as_str());
        let _active = Active::begin(&self.metrics.active);
        let answering = async {
            let answered = self.try_answer(&mut call, matched.as_ref(), trace.unrecorded()).await;
            self.after_body(&mut call, answered).await
        };
        let mut response = match answering.instrument(span.clone()).await {
            Ok(response) => response,
            Err(refusal) => {
                let mut response = answer::refused(refusal.status, &refusal.problem);
                if let Some(methods) = refusal.allow {
                    answer::allow(&mut response, methods);
                }
                response
            }
        };
        if call.method == Method::HEAD {
            response = answer::without_body(response);
        }
        answer::finish(&mut response, call.id, &self.config, &call.headers);
        let operation = matched.as_ref().map_or("none", Matched::name);
        let (status, length) = (response.status().as_u16(), response.headers().get(CONTENT_LENGTH));
        let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
        let has_body = call.method != Method::HEAD && response.status() != StatusCode::NOT_MODIFIED;
        let length = length.filter(|_| has_body);
        if let Some(recorded) = span.trace_context() {
            response.extensions_mut().insert(recorded);
        }
        self.metrics.answered(operation, &call.method, status, length, started.elapsed());
        span.record_attribute("http.response.status_code", i64::from(status));
        if response.status().is_server_error() {
            span.record_failure(response.status().as_str());
        }
        if is_sending(&call.headers) && response.status() != StatusCode::REQUEST_TIMEOUT {
            tokio::spawn(body::discard(call.body, self.config.limits));
        }
        response
    }

    async fn try_answer(
        &self,
        call: &mut Call,
        matched: Option<&Matched>,
        trace: Option<TraceContext>,
    ) -> Result<Response, Refusal> {
        let url = call.path.as_str().len() + call.query.len() + usize::from(!call.query.is_empty());
        limits::check_head(url, &call.headers, &self.config.limits)?;
        if grpc::is_meant(&call.method, &call.headers) {
            return Err(Refusal {
                status: StatusCode::UNSUPPORTED_MEDIA_TYPE,
                problem: Problem::new(Code::InvalidArgument, NOT_MAPPED, "gRPC is spoken over HTTP/2"),
                allow: None,
            });
        }
        let Some(matched) = matched else {
            return Err(Problem::not_found(NOT_MAPPED, "no such path").into());
        };
        if call.method == Method::OPTIONS {
            return Ok(answer::preflight(matched.allow()));
        }
        let is_read = matches!(call.method, Method::GET | Method::HEAD);
        match matched {
            Matched::Page(page) if is_read => {
                if !page.is_vital {
                    self.check_rate(call)?;
                }
                Ok(page.answer(&call.query, &call.headers)?)
            }
            Matched::Now if is_read => {
                self.check_rate(call)?;
                Ok(self.now.answer().await)
            }
            Matched::Operation(operation, path)
                if is_read == (operation.method == proto_msgs::Method::Get)
                    && (is_read || call.method == Method::POST) =>
            {
                self.check_rate(call)?;
                self.ask(call, operation, path, trace).await
            }
            _ => Err(Refusal {
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

    /// Refuses a request that came too early, unless it is too large at any time (contract 2.3).
    fn check_rate(&self, call: &Call) -> Result<(), Refusal> {
        let Some(problem) = self.over_rate(&call.visit) else { return Ok(()) };
        self.check_announced(&call.headers)?;
        Err(problem.into())
    }

    /// Why a request is refused that came too early.
    pub(crate) fn over_rate(&self, visit: &Visit) -> Option<Problem> {
        let problem = visit.rate.and_then(|rate| rate.refusal())?;
        self.metrics.limited(Limited::Rate).inc();
        Some(problem)
    }

    /// A place among the downloads of a client.
    pub(crate) fn export_place(&self, visit: &Visit) -> Result<ExportPlace, Problem> {
        self.exports.enter(visit.client).inspect_err(|_| {
            self.metrics.limited(Limited::Exports).inc();
        })
    }

    /// A place among the requests that are being answered.
    pub(crate) fn room(&self, visit: &Visit, operation: &'static OperationInfo) -> Result<Place<2>, Problem> {
        let holders = [Holder::Address(visit.client), Holder::Operation(&operation.name)];
        self.room.enter(holders).map_err(|no_place| {
            self.metrics.shed(no_place.reason()).inc();
            Problem::unavailable(match no_place {
                NoPlace::Full => "too many requests are being answered",
                NoPlace::Share(Holder::Address(_)) => "too many requests of this address are being answered",
                NoPlace::Share(Holder::Operation(_)) => "too many requests of this kind are being answered",
            })
        })
    }

    /// An answer that did not wait for its request's body waits for it here: a body that nobody wants must be
    /// sound all the same, since the next request begins at its end. One that is too large changes nothing.
    async fn after_body(
        &self,
        call: &mut Call,
        answered: Result<Response, Refusal>,
    ) -> Result<Response, Refusal> {
        let ends_here = |refusal: &Refusal| {
            matches!(refusal.status, StatusCode::PAYLOAD_TOO_LARGE | StatusCode::REQUEST_TIMEOUT)
        };
        if answered.as_ref().is_err_and(ends_here) {
            return answered;
        }
        match self.unwanted_body(call).await {
            Err(refusal) if refusal.status != StatusCode::PAYLOAD_TOO_LARGE => Err(refusal),
            _ => answered,
        }
    }

    async fn ask(
        &self,
        call: &mut Call,
        operation: &'static OperationInfo,
        path: &[(&str, String)],
        traceparent: Option<TraceContext>,
    ) -> Result<Response, Refusal> {
        let is_read = operation.method == proto_msgs::Method::Get;
        if is_read {
            // What nobody wants takes no place while it comes.
            self.unwanted_body(call).await?;
        }
        let _place = self.room(&call.visit, operation)?;
        let body = match is_read {
            true => Bytes::new(),
            false => {
                let body = self.body(call).await?;
                self.metrics.took(&operation.name, body.len());
                body
            }
        };
        let headers = &call.headers;
        let gzip = answer::takes_gzip(headers);
        let asker = Asker {
            request_id: call.id.as_str().to_owned(),
            traceparent,
            deadline: time::Instant::now() + self.config.limits.answer_time_of(operation),
            is_patient: true,
            floor: call.visit.connection.floor(),
        };
        if !is_read {
            let question = question(operation, path, &call.query, &body, gzip)?;
            let answer = self.asking.submit(&question, &asker).await?;
            return Ok(answer::respond(&answer, headers));
        }
        if operation.streaming {
            let question = question(operation, path, &call.query, &body, gzip)?;
            let is_head = call.method == Method::HEAD;
            let place = self.export_place(&call.visit)?;
            return self.asking.download(&question, &asker, headers, is_head, place).await;
        }
        let target = target(call);
        let question = match self.asking.cache.question(&target, gzip) {
            Some(question) => question,
            None => Arc::new(question(operation, path, &call.query, &body, gzip)?),
        };
        let answer = self.asking.read(&question, &asker).await?;
        if let Some(height) = answer.height() {
            call.visit.connection.has_seen(height);
            self.asking.cache.learn(&target, &question, &answer);
        }
        Ok(answer::respond(&answer, headers))
    }

    /// The whole body.
    async fn body(&self, call: &mut Call) -> Result<Bytes, Refusal> {
        if call.headers.get(CONTENT_ENCODING).is_some_and(|coding| coding != "identity") {
            return Err(Problem::invalid(MALFORMED, "a compressed body is not taken").into());
        }
        let mut body = BytesMut::new();
        self.read_body(call, |piece| body.extend_from_slice(&piece)).await?;
        Ok(body.freeze())
    }

    /// Reads a body that nobody wants to its end.
    async fn unwanted_body(&self, call: &mut Call) -> Result<(), Refusal> {
        if !is_sending(&call.headers) {
            return Ok(());
        }
        self.read_body(call, drop).await
    }

    /// Reads a body to its end.
    async fn read_body(&self, call: &mut Call, take: impl FnMut(Bytes)) -> Result<(), Refusal> {
        self.check_announced(&call.headers)?;
        let limits = &self.config.limits;
        body::read(&mut call.body, limits.body_bytes, limits, take).await
    }

    /// Refuses a body that is too large by its own account.
    fn check_announced(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let announced =
            headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
        let at_most = self.config.limits.body_bytes;
        match announced.is_some_and(|length| length > at_most) {
            true => Err(body::too_large(at_most)),
            false => Ok(()),
        }
    }
}

/// A request that waits for its answer to begin.
struct Active<'a>(&'a Gauge);

impl<'a> Active<'a> {
    fn begin(active: &'a Gauge) -> Self {
        active.inc();
        Self(active)
    }
}

impl Drop for Active<'_> {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// What a request asks, checked.
fn question(
    operation: &'static OperationInfo,
    path: &[(&str, String)],
    query: &str,
    body: &[u8],
    gzip: bool,
) -> Result<Question, Problem> {
    let checked = request::read(operation, path, query, body)?;
    let format = if checked.pretty { Format::PrettyJson } else { Format::Json };
    let encoding = Encoding { format, gzip };
    Ok(Question { operation: &operation.name, encoding, message: checked.message })
}

/// Path and query of a request, as it spelled them.
fn target(call: &Call) -> Cow<'_, str> {
    match call.query.as_str() {
        "" => Cow::Borrowed(call.path.as_str()),
        query => Cow::Owned([call.path.as_str(), query].join("?")),
    }
}

/// Whether a client sends a body unasked; one that waits for `100 Continue` is to be spared it.
fn is_sending(headers: &HeaderMap) -> bool {
    let has_body = headers.contains_key(TRANSFER_ENCODING)
        || headers.get(CONTENT_LENGTH).is_some_and(|length| length != "0");
    has_body && !headers.contains_key(EXPECT)
}
