//! A call of an operation, or of the watch of one: a message in, replies or a status out.

use std::{convert::Infallible, sync::Arc, time::Instant};

use actix::{Context, Handler, Message};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{HeaderMap, HeaderValue, Request, Response, header::CONTENT_TYPE};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Incoming;
use mesh_bus::CancelOnDrop;
use mesh_problem::{Code, NOT_MAPPED, Problem};
use mesh_telemetry::{TraceContext, code_name, span::SpanExt};
use proto_msgs::{Method, OperationInfo};
use scopeguard::{ScopeGuard, guard};
use tokio::time;
use tonic::{Status, body::Body};
use tracing::Instrument;

use crate::{
    admission::{ClientContext, head::check_size},
    ask::{
        answer::{Answer, describe_head},
        backend::NO_MEMORY,
        block_wait::BlockWait,
        cache::Question,
        call_context::CallContext,
    },
    decode::{self, body},
    gateway::{Gateway, GatewayState, code_of_dropped},
    grpc::{
        download,
        protocol::{self, GRPC_ACCEPT_ENCODING, GRPC_ENCODING, IDENTITY, PREFIX_BYTES},
        status, watch,
    },
    grpc_kind::MEDIA_TYPE,
    respond::{
        handling::{PREFERENCE_APPLIED, wait_applied},
        notes::StreamFailure,
    },
    trace::{RequestId, Trace, X_REQUEST_ID},
    unread_body,
    wire::stalled_stream::StalledStream,
};

/// What is called.
#[derive(Debug, Clone, Copy)]
pub(crate) enum GrpcMethod {
    Operation(&'static OperationInfo),
    /// The watch of an operation that the message names.
    Watch,
}

impl GrpcMethod {
    /// The name in metrics.
    fn name(&self) -> &'static str {
        match self {
            Self::Operation(operation) => &operation.name,
            Self::Watch => watch::NAME,
        }
    }

    fn path(&self) -> String {
        match self {
            Self::Operation(operation) => operation.rpc(),
            Self::Watch => watch::PATH.to_owned(),
        }
    }
}

/// A call of a method.
#[derive(Message)]
#[rtype(result = "Response<Body>")]
pub(crate) struct GrpcCall {
    method: GrpcMethod,
    headers: HeaderMap,
    body: body::Body<hyper::Error>,
    /// Whether reading the body has begun.
    is_read: bool,
    /// The seconds of the preferred wait, if the call has waited for its block.
    waited: Option<u64>,
    id: RequestId,
    client: ClientContext,
}

impl GrpcCall {
    pub(super) fn new(
        method: GrpcMethod,
        request: Request<Incoming>,
        client: ClientContext,
        id: RequestId,
    ) -> Self {
        let (head, body) = request.into_parts();
        let body = Box::pin(client.metered(body.into_data_stream()));
        Self { method, headers: head.headers, body, is_read: false, waited: None, id, client }
    }
}

impl Handler<GrpcCall> for Gateway {
    type Result = CancelOnDrop<Response<Body>>;

    fn handle(&mut self, call: GrpcCall, _: &mut Context<Self>) -> Self::Result {
        let state = Arc::clone(&self.state);
        CancelOnDrop::new(async move { answer(&state, call).await })
    }
}

async fn answer(state: &GatewayState, mut call: GrpcCall) -> Response<Body> {
    let started = Instant::now();
    let trace = Trace::of(&call.headers, &state.config.sampling);
    let span = trace.grpc_span(&call.method.path(), &call.id);
    let name = call.method.name();
    let left = guard((), |()| state.metrics.called(name, code_of_dropped().number(), started.elapsed()));
    let answered = try_answer(state, &mut call, trace.unrecorded()).instrument(span.clone()).await;
    let code = answered.as_ref().map_or_else(|problem| problem.code.number(), |_| 0);
    if answered.is_err() {
        if !call.is_read {
            unread_body::drain(&mut call.body).await;
        }
        unread_body::discard(call.body);
    }
    let mut response = answered.unwrap_or_else(|problem| status::refused(&problem));
    response.headers_mut().insert(X_REQUEST_ID, call.id.into_value());
    response.headers_mut().insert(GRPC_ACCEPT_ENCODING, IDENTITY);
    let applied = call.waited.and_then(|seconds| HeaderValue::try_from(wait_applied(seconds)).ok());
    if let Some(applied) = applied {
        response.headers_mut().insert(PREFERENCE_APPLIED, applied);
    }
    if let Some(recorded) = span.trace_context() {
        response.extensions_mut().insert(recorded);
    }
    ScopeGuard::into_inner(left);
    state.metrics.called(name, code, started.elapsed());
    span.record_attribute("rpc.response.status_code", code_name(code));
    if is_server_fault(code) {
        span.record_failure(code_name(code));
    }
    response
}

/// Whether a code means a fault of the server rather than of the call.
fn is_server_fault(code: u8) -> bool {
    let faults =
        [Code::Unknown, Code::DeadlineExceeded, Code::Unimplemented, Code::Internal, Code::Unavailable];
    faults.iter().any(|fault| fault.number() == code)
}

async fn try_answer(
    state: &GatewayState,
    call: &mut GrpcCall,
    trace: Option<TraceContext>,
) -> Result<Response<Body>, Problem> {
    call.client.check_access()?;
    state.admission.check_rate(&call.client)?;
    let limits = &state.config.limits;
    check_size(0, &call.headers, limits).map_err(|_| {
        let problem = Problem::new(Code::ResourceExhausted, NOT_MAPPED, "the metadata is too large");
        problem.with_inner(format!("at most {} bytes", limits.head_bytes))
    })?;
    let timeout = protocol::timeout(&call.headers)?;
    let deadline = timeout.and_then(|timeout| time::Instant::now().checked_add(timeout));
    let late = || Problem::deadline_exceeded("there was no answer in the time of the call");
    if timeout.is_some_and(|timeout| timeout.is_zero()) {
        return Err(late());
    }
    // Before the message: permits bound the memory for those that are too short to be counted.
    let _permit = state.admission.request(&call.client, call.method.name())?;
    let replied = reply(state, call, trace, deadline);
    match deadline {
        None => replied.await,
        Some(deadline) => time::timeout_at(deadline, replied).await.unwrap_or_else(|_| Err(late())),
    }
}

/// Answers a call whose client may have set a deadline.
async fn reply(
    state: &GatewayState,
    call: &mut GrpcCall,
    traceparent: Option<TraceContext>,
    deadline: Option<time::Instant>,
) -> Result<Response<Body>, Problem> {
    let limits = &state.config.limits;
    let max = limits.body_bytes.saturating_add(PREFIX_BYTES);
    call.is_read = true;
    let hold = |bytes| state.backend.hold_body(call.client.id.number(), bytes);
    let read = body::collect(&mut call.body, max, limits, hold).await;
    let (whole, _held) = read.map_err(|error| error.problem)?;
    let message = protocol::unframe(whole, limits.body_bytes, call.headers.get(GRPC_ENCODING))?;
    let context = |within| {
        let request_id = call.id.as_str().to_owned();
        CallContext::new(request_id, &call.client, traceparent, within).with_deadline(deadline)
    };
    let operation = match call.method {
        GrpcMethod::Operation(operation) => operation,
        GrpcMethod::Watch => {
            let read = watch::read(&state.routes, &message)?;
            let (client, context) = (&call.client, context(limits.answer_time));
            let messages =
                watch::messages(&state.watches, &read, client, &call.headers, deadline, &context).await?;
            return Ok(respond(messages));
        }
    };
    let question = Arc::new(decode::from_grpc(operation, &message)?);
    let context = context(limits.answer_time_of(operation));
    if operation.streaming {
        return respond_with_file(state, &question, &context, &call.client, deadline).await;
    }
    if operation.method == Method::Post {
        return respond_once(state, &state.backend.submit(&question, &context).await?, &call.client);
    }
    let mut wait = BlockWait::of_request(&question, &call.headers);
    let answered = state.backend.read_when_stored(&question, context, wait.as_mut()).await;
    call.waited = wait.and_then(|wait| wait.applied());
    respond_once(state, &*answered?, &call.client)
}

/// The response with a download.
async fn respond_with_file(
    state: &GatewayState,
    question: &Question,
    context: &CallContext,
    client: &ClientContext,
    deadline: Option<time::Instant>,
) -> Result<Response<Body>, Problem> {
    let permit = state.admission.download(client)?;
    let opened = state.backend.open(question, context, 0).await?;
    let pulled = state.backend.pull(question, context, &opened, None).await?;
    let failure = StreamFailure::default();
    let (recorder, head) = (failure.clone(), opened.head);
    let messages = download::messages(opened, pulled, deadline, permit);
    let messages = StalledStream::new(messages, status::stalled, || {});
    let mut response = respond(messages.inspect(move |message| recorder.record(message)));
    if let Some(head) = &head {
        describe_head(response.headers_mut(), head);
    }
    response.extensions_mut().insert(failure);
    Ok(response)
}

/// The response with one reply, as the service encoded it.
fn respond_once(
    state: &GatewayState,
    answer: &Answer,
    client: &ClientContext,
) -> Result<Response<Body>, Problem> {
    let parts = answer.parts_for(client).inspect_err(|_| _ = state.metrics.shed(NO_MEMORY).inc())?;
    let mut response = respond(stream::iter([Ok(parts.into_owned())]));
    if let Some(head) = &answer.head {
        describe_head(response.headers_mut(), head);
    }
    Ok(response)
}

/// The response with a stream of messages, which ends with its status.
fn respond(
    messages: impl futures_util::Stream<Item = Result<Vec<Bytes>, Problem>> + Send + 'static,
) -> Response<Body> {
    let frames = stream::unfold(Some(Box::pin(messages)), |messages| async {
        let mut messages = messages?;
        Some(match messages.next().await {
            Some(Ok(message)) => (protocol::message(&message), Some(messages)),
            Some(Err(problem)) => (vec![protocol::trailers(&status::status(&problem))], None),
            None => (vec![protocol::trailers(&Status::ok(""))], None),
        })
    });
    let body = StreamBody::new(frames.flat_map(stream::iter).map(Ok::<_, Infallible>));
    let mut response = Response::new(Body::new(body));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
    response
}
