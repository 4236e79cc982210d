//! The gateway actor: finds the operation of a request, checks it, asks the bus, answers. In the order of
//! contract section 2.3: path and method, sizes, parameters; what comes after is the service's.

use std::{pin::Pin, sync::Arc, time::Instant};

use actix::{Actor, Context, Handler, Message};
use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt};
use http::{
    HeaderMap, Method, StatusCode,
    header::{CONTENT_ENCODING, CONTENT_LENGTH, EXPECT, TRANSFER_ENCODING},
};
use mesh_bus::{AskOptions, Bus, Encoding, Format, WhileAwaited};
use mesh_problem::{Code, MALFORMED, NOT_MAPPED, Problem};
use proto_msgs::OperationInfo;
use tokio::{
    sync::Semaphore,
    time::{self, timeout_at},
};
use warp::{path::FullPath, reply::Response};

use crate::{
    answer::{self, RequestId},
    config::{Config, Limits},
    metrics::Metrics,
    request,
    routes::{Matched, Routes},
};

/// How much of a body that nobody wants is read all the same, in greatest bodies.
const DISCARDED_AT_MOST: usize = 8;

/// A body as it comes.
pub(crate) type Body = Pin<Box<dyn Stream<Item = Result<Bytes, warp::Error>> + Send>>;

/// A request off the wire.
pub(crate) struct Call {
    pub(crate) method: Method,
    pub(crate) path: FullPath,
    pub(crate) query: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Body,
    pub(crate) id: RequestId,
}

impl Message for Call {
    type Result = Response;
}

/// Answers every request of the outside. Its state is what all requests share.
pub(crate) struct Gateway {
    shared: Arc<Shared>,
}

struct Shared {
    bus: Bus,
    routes: Routes,
    config: Arc<Config>,
    metrics: Metrics,
    room: Semaphore,
}

/// Why a request gets no reply of a service.
struct Refusal {
    status: StatusCode,
    problem: Problem,
    allow: Option<&'static str>,
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Self { status: problem.code.status(), problem, allow: None }
    }
}

impl Gateway {
    /// A gateway to the services on this bus.
    pub(crate) fn new(bus: Bus, routes: Routes, config: Arc<Config>, metrics: Metrics) -> Self {
        let room = Semaphore::new(config.limits.in_flight);
        Self { shared: Arc::new(Shared { bus, routes, config, metrics, room }) }
    }
}

impl Actor for Gateway {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Self::Context) {
        context.set_mailbox_capacity(self.shared.config.limits.in_flight);
    }
}

impl Handler<Call> for Gateway {
    type Result = WhileAwaited<Response>;

    fn handle(&mut self, call: Call, _: &mut Context<Self>) -> Self::Result {
        let shared = Arc::clone(&self.shared);
        WhileAwaited::by(async move { shared.answer(call).await })
    }
}

impl Shared {
    async fn answer(&self, mut call: Call) -> Response {
        let started = Instant::now();
        let matched = self.routes.find(call.path.as_str());
        let mut response = match self.try_answer(&mut call, matched.as_ref()).await {
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
        answer::finish(&mut response, &call.id, &self.config, &call.headers);
        let operation = match &matched {
            Some(Matched::Operation(operation, _)) => operation.name.as_str(),
            Some(Matched::Health) => "health",
            None => "none",
        };
        self.metrics.answered(operation, response.status().as_u16(), started.elapsed());
        if is_sending(&call.headers) && response.status() != StatusCode::REQUEST_TIMEOUT {
            tokio::spawn(discard(call.body, self.config.limits));
        }
        response
    }

    async fn try_answer(&self, call: &mut Call, matched: Option<&Matched>) -> Result<Response, Refusal> {
        self.check_head(call)?;
        let Some(matched) = matched else {
            return Err(Problem::not_found(NOT_MAPPED, "no such path").into());
        };
        if call.method == Method::OPTIONS {
            return Ok(answer::preflight(matched.allow()));
        }
        let is_read = matches!(call.method, Method::GET | Method::HEAD);
        match matched {
            Matched::Health if is_read => Ok(answer::health()),
            Matched::Operation(operation, path)
                if is_read == (operation.method == proto_msgs::Method::Get)
                    && (is_read || call.method == Method::POST) =>
            {
                let _room = self
                    .room
                    .try_acquire()
                    .map_err(|_| Problem::unavailable("too many requests are being answered"))?;
                self.ask(call, operation, path).await
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

    fn check_head(&self, call: &Call) -> Result<(), Refusal> {
        let limits = &self.config.limits;
        let url = call.path.as_str().len() + call.query.len() + usize::from(!call.query.is_empty());
        let too_large = |status, problem| Err(Refusal { status, problem, allow: None });
        if url > limits.url_bytes {
            let problem = Problem::invalid(NOT_MAPPED, "the URL is too long");
            return too_large(
                StatusCode::URI_TOO_LONG,
                problem.with_inner(format!("at most {} bytes", limits.url_bytes)),
            );
        }
        // Name, colon, space, value, end of line: what the block takes on the wire.
        let head: usize =
            call.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
        if head > limits.head_bytes {
            let problem = Problem::invalid(NOT_MAPPED, "the headers are too large");
            return too_large(
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
                problem.with_inner(format!("at most {} bytes", limits.head_bytes)),
            );
        }
        Ok(())
    }

    async fn ask(
        &self,
        call: &mut Call,
        operation: &OperationInfo,
        path: &[(&str, String)],
    ) -> Result<Response, Refusal> {
        let is_read = operation.method == proto_msgs::Method::Get;
        self.check_announced_body(call)?;
        let body = if is_read { Bytes::new() } else { self.body(call).await? };
        let checked = request::read(operation, path, &call.query, &body)?;
        let options = AskOptions {
            encoding: Encoding {
                format: if checked.pretty { Format::PrettyJson } else { Format::Json },
                gzip: answer::takes_gzip(&call.headers),
            },
            timeout: self.config.limits.answer_time,
            request_id: call.id.0.clone(),
            traceparent: call
                .headers
                .get("traceparent")
                .and_then(|value| value.to_str().ok())
                .map(str::to_owned),
            repeatable: is_read,
        };
        let reply =
            self.bus.ask(&operation.workload, &operation.name, checked.message.clone(), &options).await?;
        let etag = reply.head.map(|head| answer::etag(&operation.name, &checked.message, head));
        Ok(match etag.as_deref().filter(|etag| answer::is_unchanged(&call.headers, etag)) {
            Some(etag) => answer::unchanged(reply.head, etag),
            None => answer::reply(reply, etag.as_deref(), is_read),
        })
    }

    fn check_announced_body(&self, call: &Call) -> Result<(), Refusal> {
        let announced =
            call.headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
        match announced {
            Some(length) if length > self.config.limits.body_bytes as u64 => Err(self.body_too_large()),
            _ => Ok(()),
        }
    }

    fn body_too_large(&self) -> Refusal {
        Refusal {
            status: StatusCode::PAYLOAD_TOO_LARGE,
            problem: Problem::new(Code::ResourceExhausted, NOT_MAPPED, "the body is too large")
                .with_inner(format!("at most {} bytes", self.config.limits.body_bytes)),
            allow: None,
        }
    }

    /// The whole body, within its limits of size and time.
    async fn body(&self, call: &mut Call) -> Result<Bytes, Refusal> {
        let limits = &self.config.limits;
        if call.headers.get(CONTENT_ENCODING).is_some_and(|coding| coding != "identity") {
            return Err(Problem::invalid(MALFORMED, "a compressed body is not taken").into());
        }
        let deadline = time::Instant::now() + limits.body_time;
        let mut body = BytesMut::new();
        loop {
            let patience = deadline.min(time::Instant::now() + limits.body_idle);
            match timeout_at(patience, call.body.next()).await {
                Ok(Some(Ok(piece))) if body.len() + piece.len() > limits.body_bytes => {
                    return Err(self.body_too_large());
                }
                Ok(Some(Ok(piece))) => body.extend_from_slice(&piece),
                Ok(Some(Err(_))) => return Err(Problem::invalid(MALFORMED, "the body breaks off").into()),
                Ok(None) => return Ok(body.freeze()),
                Err(_) => {
                    return Err(Refusal {
                        status: StatusCode::REQUEST_TIMEOUT,
                        problem: Problem::deadline_exceeded("the body did not come in time"),
                        allow: None,
                    });
                }
            }
        }
    }
}

/// Whether a client sends a body unasked; one that waits for `100 Continue` is to be spared it.
fn is_sending(headers: &HeaderMap) -> bool {
    let has_body = headers.contains_key(TRANSFER_ENCODING)
        || headers.get(CONTENT_LENGTH).is_some_and(|length| length != "0");
    has_body && !headers.contains_key(EXPECT)
}

/// Reads what is left of a body that is answered already. Closing a connection while its client still sends
/// resets it, and the answer is lost with it.
async fn discard(mut body: Body, limits: Limits) {
    let deadline = time::Instant::now() + limits.body_time;
    let mut left = limits.body_bytes.saturating_mul(DISCARDED_AT_MOST);
    loop {
        let patience = deadline.min(time::Instant::now() + limits.body_idle);
        match timeout_at(patience, body.next()).await {
            Ok(Some(Ok(piece))) if piece.len() <= left => left -= piece.len(),
            _ => return,
        }
    }
}
