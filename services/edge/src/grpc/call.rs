//! A call of an operation: its message in, its reply or status out.

use std::{sync::Arc, time::Instant};

use actix::Message;
use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt, stream};
use http::{HeaderMap, HeaderValue, Request, Response, header::CONTENT_TYPE};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use mesh_bus::{Encoding, Format};
use mesh_problem::{Code, NOT_MAPPED, Problem};
use mesh_telemetry::{TraceContext, code_name, span::SpanExt};
use proto_msgs::{Method, OperationInfo};
use tokio::time;
use tonic::{
    body::Body,
    codec::{EncodeBody, SingleMessageCompressionOverride},
};
use tracing::Instrument;

use super::{
    MEDIA_TYPE, export,
    framing::{self, PREFIX_BYTES, Untouched},
    status, timeout,
};
use crate::{
    access::StreamFailure,
    answer::{RequestId, X_BLOCK_HEIGHT, X_BLOCK_TIMESTAMP, X_REQUEST_ID},
    asking::Asker,
    body,
    cache::{Answer, Question},
    gateway::Shared,
    limits, request,
    trace::Trace,
    visit::Visit,
};

const GRPC_ENCODING: &str = "grpc-encoding";
const GRPC_ACCEPT_ENCODING: &str = "grpc-accept-encoding";
const IDENTITY: HeaderValue = HeaderValue::from_static("identity");

/// A call off the wire.
pub(crate) struct Call {
    operation: &'static OperationInfo,
    headers: HeaderMap,
    body: body::Body<hyper::Error>,
    id: RequestId,
    visit: Visit,
}

impl Message for Call {
    type Result = Response<Body>;
}

impl Call {
    /// A call of an operation.
    pub(super) fn new(
        operation: &'static OperationInfo,
        request: Request<Incoming>,
        visit: Visit,
        id: RequestId,
    ) -> Self {
        let (head, body) = request.into_parts();
        Self { operation, headers: head.headers, body: Box::pin(body.into_data_stream()), id, visit }
    }
}

/// Answers a call.
pub(crate) async fn answer(shared: &Shared, mut call: Call) -> Response<Body> {
    let started = Instant::now();
    let trace = Trace::of(&call.headers, &shared.config.sampling);
    let span = trace.of_grpc(call.operation, call.id.as_str());
    let answered = try_answer(shared, &mut call, trace.unrecorded()).instrument(span.clone()).await;
    let code = answered.as_ref().map_or_else(|problem| problem.code.number(), |_| 0);
    let mut response = answered.unwrap_or_else(|problem| status::refused(&problem));
    response.headers_mut().insert(X_REQUEST_ID, call.id.into_value());
    response.headers_mut().insert(GRPC_ACCEPT_ENCODING, IDENTITY);
    if let Some(recorded) = span.trace_context() {
        response.extensions_mut().insert(recorded);
    }
    shared.metrics.called(&call.operation.name, code, started.elapsed());
    span.record_attribute("rpc.response.status_code", code_name(code));
    if answered_badly(code) {
        span.record_failure(code_name(code));
    }
    response
}

/// Whether a code says that something is wrong here and not with the call.
fn answered_badly(code: u8) -> bool {
    let bad = [Code::Unknown, Code::DeadlineExceeded, Code::Unimplemented, Code::Internal, Code::Unavailable];
    bad.iter().any(|bad| bad.number() == code)
}

async fn try_answer(
    shared: &Shared,
    call: &mut Call,
    trace: Option<TraceContext>,
) -> Result<Response<Body>, Problem> {
    if let Some(problem) = shared.over_rate(&call.visit) {
        return Err(problem);
    }
    let limits = &shared.config.limits;
    limits::check_head(0, &call.headers, limits).map_err(|_| {
        let problem = Problem::new(Code::ResourceExhausted, NOT_MAPPED, "the metadata is too large");
        problem.with_inner(format!("at most {} bytes", limits.head_bytes))
    })?;
    if call.headers.get(GRPC_ENCODING).is_some_and(|coding| coding != IDENTITY) {
        return Err(Problem::new(Code::Unimplemented, NOT_MAPPED, "a compressed message is not taken"));
    }
    let own = timeout::given(&call.headers)?;
    let until = own.and_then(|own| time::Instant::now().checked_add(own));
    let late = || Problem::deadline_exceeded("there was no answer in the time of the call");
    if own.is_some_and(|own| own.is_zero()) {
        return Err(late());
    }
    let _place = shared.room(&call.visit, call.operation)?;
    let answered = reply(shared, call, trace, until);
    match until {
        None => answered.await,
        Some(until) => time::timeout_at(until, answered).await.unwrap_or_else(|_| Err(late())),
    }
}

/// Answers a call whose client waits until then.
async fn reply(
    shared: &Shared,
    call: &mut Call,
    traceparent: Option<TraceContext>,
    until: Option<time::Instant>,
) -> Result<Response<Body>, Problem> {
    let (operation, limits) = (call.operation, &shared.config.limits);
    let mut whole = BytesMut::new();
    let at_most = limits.body_bytes.saturating_add(PREFIX_BYTES);
    let read = body::read(&mut call.body, at_most, limits, |piece| whole.extend_from_slice(&piece)).await;
    read.map_err(|refusal| refusal.problem)?;
    let message = framing::message(whole.freeze(), limits.body_bytes)?;
    let message = request::check(operation, &message)?;
    let encoding = Encoding { format: Format::Protobuf, gzip: false };
    let question = Arc::new(Question { operation: &operation.name, encoding, message });
    let latest = time::Instant::now() + limits.answer_time_of(operation);
    let asker = Asker {
        request_id: call.id.as_str().to_owned(),
        traceparent,
        deadline: until.map_or(latest, |until| until.min(latest)),
        is_patient: until.is_none_or(|until| until >= latest),
        floor: call.visit.connection.floor(),
    };
    if operation.streaming {
        let place = shared.export_place(&call.visit)?;
        let (opened, pulled) = shared.asking.stream(&question, &asker).await?;
        let failure = StreamFailure::default();
        let noted = failure.clone();
        let messages =
            export::messages(opened, pulled, until, place).inspect(move |message| noted.note(message));
        let mut response = respond(messages);
        response.extensions_mut().insert(failure);
        return Ok(response);
    }
    if operation.method == Method::Post {
        let answer = shared.asking.submit(&question, &asker).await?;
        return Ok(told(&answer));
    }
    let answer = shared.asking.read(&question, &asker).await?;
    if let Some(height) = answer.height() {
        call.visit.connection.has_seen(height);
    }
    Ok(told(&answer))
}

/// A reply, as the service wrote it.
fn told(answer: &Answer) -> Response<Body> {
    let mut response = respond(stream::iter([Ok(answer.parts.clone())]));
    if let Some(head) = answer.head {
        response.headers_mut().insert(X_BLOCK_HEIGHT, head.height.into());
        response.headers_mut().insert(X_BLOCK_TIMESTAMP, head.time_ns.into());
    }
    response
}

/// A stream of messages, which ends with its status.
fn respond(
    messages: impl futures_util::Stream<Item = Result<Vec<Bytes>, Problem>> + Send + 'static,
) -> Response<Body> {
    let messages = messages.map(|message| message.map_err(|problem| status::status(&problem)));
    let compression = SingleMessageCompressionOverride::default();
    let body = EncodeBody::new_server(Untouched, messages, None, compression, None);
    let mut response = Response::new(Body::new(body));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
    response
}
