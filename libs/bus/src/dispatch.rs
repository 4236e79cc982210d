//! The handling of one request: admission, the work within the deadline, the reply, and the metrics.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    rc::Rc,
    time::{Duration, Instant},
};

use async_nats::{Message, Subject};
use futures_util::future::{AbortHandle, Abortable};
use mesh_problem::{Code, NOT_MAPPED, Problem};
use mesh_telemetry::{
    code_name,
    span::{self, SpanExt},
};
use tokio::{sync::Notify, time::timeout};
use tracing::Instrument;

use crate::{
    connection::Bus,
    headers::RequestHeaders,
    load::Load,
    metrics::{Outcome, RequestMetrics},
    reply::{Rendered, reply_client, send, send_problem},
    router::{Limits, OperationHandler},
    stats::Stats,
};

/// The result of an operation; `None` as a reply when it has sent its reply itself, `None` at all when it was
/// canceled.
type WorkResult = Option<Result<Option<Rendered>, Problem>>;

/// The state that all operations of a service share.
pub(crate) struct Dispatcher {
    pub(crate) bus: Bus,
    pub(crate) limits: Limits,
    pub(crate) metrics: RequestMetrics,
    /// Requests in flight by their reply subject.
    pub(crate) in_flight: RefCell<HashMap<String, AbortHandle>>,
    pub(crate) last_request: Cell<Option<Instant>>,
    pub(crate) load: Rc<Load>,
    /// Notified when no request is in flight any more.
    pub(crate) idle: Notify,
    pub(crate) stats: Rc<Stats>,
    /// Whether requests are taken.
    pub(crate) is_ready: Cell<bool>,
}

impl Dispatcher {
    /// Handles a request in its own task; refuses it when the service is full, drops it when its
    /// deadline has passed.
    pub(crate) fn dispatch(self: &Rc<Self>, operation: Rc<OperationHandler>, message: Message) {
        let name = operation.name;
        let Some(reply_to) = message.reply.clone() else { return };
        let started = Instant::now();
        self.last_request.set(Some(started));
        let request = RequestHeaders::read(message.headers.as_ref(), self.limits.timeout);
        let Some(left) = request.left else {
            self.metrics.record_call(name, Code::DeadlineExceeded.number(), Duration::ZERO);
            return;
        };
        if self.is_full(&operation) {
            self.metrics.shed.inc();
            self.metrics.record_call(name, Code::ResourceExhausted.number(), Duration::ZERO);
            actix::spawn(refuse(Rc::clone(self), reply_to));
            return;
        }
        let (abort, registration) = AbortHandle::new_pair();
        self.in_flight.borrow_mut().insert(reply_to.to_string(), abort);
        self.load.begin(started);
        operation.in_flight.set(operation.in_flight.get() + 1);
        let client = reply_client(&self.bus, message.headers.as_ref()).clone();
        let span = span::answer(request.trace.as_ref(), self.stats.name(), name, &request.request_id);
        // The future is made inside the span, too.
        let work = span.in_scope(|| (operation.run)(message, request.encoding)).instrument(span.clone());
        let work = Abortable::new(work, registration);
        let dispatcher = Rc::clone(self);
        actix::spawn(async move {
            let result = match timeout(left, work).await {
                Ok(Ok(result)) => Some(result),
                Ok(Err(_aborted)) => None,
                Err(_elapsed) => Some(Err(Problem::deadline_exceeded("the request took too long"))),
            };
            let (outcome, code) = (outcome(&result), code(&result));
            if outcome == Outcome::Failed || outcome == Outcome::Canceled {
                span.record_failure(code_name(code));
            }
            drop(span);
            match result {
                Some(Ok(Some(rendered))) => {
                    dispatcher.metrics.record_size(name, rendered.len());
                    send(&dispatcher.bus, &reply_to, rendered).await;
                }
                Some(Err(problem)) => {
                    log(name, &request, &problem);
                    send_problem(&client, &reply_to, &problem, None).await;
                }
                Some(Ok(None)) | None => {}
            }
            dispatcher.finish(&operation, &reply_to, started, outcome, code);
        });
    }

    /// Aborts the work on a request that was canceled.
    pub(crate) fn cancel(&self, reply_to: &str) {
        if let Some(work) = self.in_flight.borrow().get(reply_to) {
            work.abort();
        }
    }

    fn is_full(&self, operation: &OperationHandler) -> bool {
        let (all, own) = (self.load.now(), operation.in_flight.get());
        let is_full =
            own >= self.limits.per_operation || all >= self.limits.in_flight && own >= self.limits.reserved();
        !operation.is_for_peers && is_full
    }

    fn finish(
        &self,
        operation: &OperationHandler,
        reply_to: &Subject,
        started: Instant,
        outcome: Outcome,
        code: u8,
    ) {
        self.in_flight.borrow_mut().remove(reply_to.as_str());
        let ended = Instant::now();
        self.load.end(ended);
        operation.in_flight.set(operation.in_flight.get() - 1);
        self.metrics.record_call(operation.name, code, ended - started);
        self.stats.count(operation.name, ended - started, outcome);
        if self.load.now() == 0 {
            self.idle.notify_waiters();
        }
    }
}

fn outcome(result: &WorkResult) -> Outcome {
    match result {
        Some(Ok(_)) => Outcome::Ok,
        None => Outcome::Canceled,
        Some(Err(problem)) => match problem.code {
            Code::Internal | Code::Unknown | Code::Unavailable | Code::DeadlineExceeded => Outcome::Failed,
            _ => Outcome::Refused,
        },
    }
}

/// The gRPC code of a result.
fn code(result: &WorkResult) -> u8 {
    match result {
        Some(Ok(_)) => 0,
        Some(Err(problem)) => problem.code.number(),
        None => Code::Canceled.number(),
    }
}

/// Logs a failed request; it is logged only here. The cause is not sent to the client.
fn log(operation: &str, request: &RequestHeaders, problem: &Problem) {
    let cause = problem.cause.as_deref().unwrap_or_default();
    let request_id = request.request_id.as_str();
    let trace_id = request.trace.as_ref().map(|trace| tracing::field::display(trace.trace_id()));
    match problem.code {
        Code::Internal | Code::Unknown => {
            tracing::error!(operation, request_id, trace_id, %problem, cause, "failed");
        }
        Code::Unavailable | Code::DeadlineExceeded => {
            tracing::warn!(operation, request_id, trace_id, %problem, cause, "failed");
        }
        _ => tracing::debug!(operation, request_id, trace_id, %problem, cause, "refused"),
    }
}

async fn refuse(dispatcher: Rc<Dispatcher>, reply_to: Subject) {
    let problem =
        Problem::new(Code::ResourceExhausted, NOT_MAPPED, "the replica has no room for this request");
    send_problem(&dispatcher.bus.shared.client, &reply_to, &problem, Some(dispatcher.stats.id())).await;
}
