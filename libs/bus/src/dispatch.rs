//! The handling of one request: admission, the work within the deadline, the reply, and the metrics.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    rc::Rc,
    time::{Duration, Instant},
};

use async_nats::{Client, Message, Subject};
use futures_util::future::{AbortHandle, Abortable};
use mesh_problem::{Code, NOT_MAPPED, Problem};
use mesh_telemetry::{
    code_name,
    span::{self, SpanExt},
};
use quick_cache::unsync::Cache;
use tokio::{
    sync::Notify,
    time::{sleep, timeout},
};
use tracing::Instrument;

use crate::{
    connection::Bus,
    headers::RequestHeaders,
    line::{Arrival, BRIEF, Line, Place, Turn},
    load::Load,
    metrics::{Outcome, RequestMetrics},
    reply::{Rendered, reply_client, send, send_problem},
    router::{Limits, OperationHandler},
    stats::Stats,
    transit::Transits,
};

/// The result of an operation; `None` as a reply when it has sent its reply itself, `None` at all when it was
/// canceled.
type WorkResult = Option<Result<Option<Rendered>, Problem>>;

/// A request that was received.
struct Call {
    operation: Rc<OperationHandler>,
    headers: RequestHeaders,
    reply_to: Subject,
    started: Instant,
}

/// Why a request is not begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rejection {
    /// Its deadline has passed.
    Expired,
    /// Its sender has canceled it.
    Canceled,
    /// The line is too long.
    NoRoom,
}

/// Most cancellations that are kept for requests to come.
pub(crate) const MAX_CANCELED: usize = 1_000;

/// The state that all operations of a service share.
pub(crate) struct Dispatcher {
    pub(crate) bus: Bus,
    pub(crate) limits: Limits,
    pub(crate) metrics: RequestMetrics,
    /// Requests in flight by their reply subject.
    pub(crate) in_flight: RefCell<HashMap<String, AbortHandle>>,
    /// Cancellations of requests that are not in flight, the latest ones: another replica has those, or they are still
    /// in the queue of their own subscription.
    pub(crate) canceled: RefCell<Cache<String, ()>>,
    pub(crate) transits: RefCell<Transits>,
    pub(crate) last_request: Cell<Option<Instant>>,
    pub(crate) load: Rc<Load>,
    pub(crate) line: Rc<Line>,
    /// Whether a task starts requests that wait for others to take longer.
    pub(crate) starts_waiting: Cell<bool>,
    /// Notified when no request is in flight any more.
    pub(crate) idle: Notify,
    pub(crate) stats: Rc<Stats>,
    /// Whether requests are taken.
    pub(crate) is_ready: Cell<bool>,
}

impl Dispatcher {
    /// Handles a request in its own task, at its turn; refuses it when the line is too long or its deadline has passed.
    pub(crate) fn dispatch(self: &Rc<Self>, operation: Rc<OperationHandler>, message: Message) {
        let Some(reply_to) = message.reply.clone() else { return };
        let started = Instant::now();
        self.last_request.set(Some(started));
        let headers = RequestHeaders::read(message.headers.as_ref(), self.limits.timeout);
        let call = Call { operation, headers, reply_to, started };
        let left = self.time_left(&call);
        match self.admit(&call, left, message.payload.len()) {
            Ok(place) => self.begin(call, message, left, place),
            Err(rejection) => self.reject(call, rejection),
        }
    }

    /// The time until a request's deadline: what its sender gave it, less the delay on its way.
    fn time_left(&self, call: &Call) -> Duration {
        let late = |took_ms| self.transits.borrow_mut().late(&call.reply_to, took_ms, call.started);
        call.headers.left.saturating_sub(call.headers.took_ms.map_or(Duration::ZERO, late))
    }

    /// Enters a request into the line. `None`: its operation is outside of it. Uses up its cancellation, if there
    /// is one.
    fn admit(&self, call: &Call, left: Duration, bytes: usize) -> Result<Option<Place>, Rejection> {
        if left.is_zero() {
            return Err(Rejection::Expired);
        }
        if self.canceled.borrow_mut().remove(call.reply_to.as_str()).is_some() {
            return Err(Rejection::Canceled);
        }
        let Some(queue) = &call.operation.queue else { return Ok(None) };
        let (client, may_wait) = (call.headers.client, call.headers.may_wait);
        let arrival = Arrival { client, bytes, left, may_wait };
        self.line.enter(queue, arrival, call.started).map(Some).ok_or(Rejection::NoRoom)
    }

    /// Counts a request that is not begun, and informs its sender unless that has canceled it.
    fn reject(self: &Rc<Self>, call: Call, rejection: Rejection) {
        let name = call.operation.name;
        let code = match rejection {
            Rejection::Expired => {
                tracing::debug!(operation = name, request_id = call.headers.request_id, "expired on its way");
                Code::DeadlineExceeded
            }
            Rejection::Canceled => Code::Canceled,
            Rejection::NoRoom => {
                self.metrics.shed.inc();
                Code::ResourceExhausted
            }
        };
        self.metrics.record_call(name, code.number(), Duration::ZERO);
        // Also when it has expired. A clock may have been set: then its sender still waits, and asks another replica.
        if rejection != Rejection::Canceled {
            actix::spawn(refuse(Rc::clone(self), call.reply_to));
        }
    }

    /// Begins the work on a request in its own task, which sends the reply.
    fn begin(self: &Rc<Self>, call: Call, message: Message, left: Duration, place: Option<Place>) {
        let waits = matches!(place, Some(Place::Later(_)));
        if waits && self.line.waits_for_brief() && !self.starts_waiting.replace(true) {
            actix::spawn(start_waiting(Rc::clone(self)));
        }
        let (abort, registration) = AbortHandle::new_pair();
        self.in_flight.borrow_mut().insert(call.reply_to.to_string(), abort);
        self.load.begin(call.started);
        let client = reply_client(&self.bus, message.headers.as_ref()).clone();
        let Call { operation, headers, .. } = &call;
        let (trace, request_id) = (headers.trace.as_ref(), &headers.request_id);
        let span = span::answer(trace, self.stats.name(), operation.name, request_id);
        // The future is made inside the span, too.
        let work = span.in_scope(|| (operation.run)(message, headers.encoding));
        let work = at_its_turn(place, work).instrument(span.clone());
        let work = Abortable::new(work, registration);
        let dispatcher = Rc::clone(self);
        actix::spawn(async move {
            // The turn lasts until the reply is sent: replies do not pile up before a slow connection.
            let (_turn, result) = match timeout(left, work).await {
                Ok(Ok(Ok((turn, result)))) => (turn, Some(Ok(result))),
                Ok(Ok(Err(problem))) => (None, Some(Err(problem))),
                Ok(Err(_aborted)) => (None, None),
                Err(_elapsed) => (None, Some(Err(Problem::deadline_exceeded("the request took too long")))),
            };
            let (outcome, code) = (outcome(&result), code(&result));
            if outcome == Outcome::Failed || outcome == Outcome::Canceled {
                span.record_failure(code_name(code));
            }
            drop(span);
            dispatcher.reply(&call, &client, result).await;
            dispatcher.finish(&call, outcome, code);
        });
    }

    /// Sends a reply or a problem, which it logs; nothing for a request that was canceled or has replied itself.
    async fn reply(&self, call: &Call, client: &Client, result: WorkResult) {
        match result {
            Some(Ok(Some(rendered))) => {
                self.metrics.record_size(call.operation.name, rendered.len());
                send(&self.bus, &call.reply_to, rendered).await;
            }
            Some(Err(problem)) => {
                log(call.operation.name, &call.headers, &problem);
                let overloaded = problem.is_local.then(|| self.stats.id());
                send_problem(client, &call.reply_to, &problem, overloaded).await;
            }
            Some(Ok(None)) | None => {}
        }
    }

    /// Aborts the work on a request that was canceled, or does not begin it.
    pub(crate) fn cancel(&self, reply_to: &str) {
        match self.in_flight.borrow().get(reply_to) {
            Some(work) => work.abort(),
            None => self.canceled.borrow_mut().insert(reply_to.to_owned(), ()),
        }
    }

    fn finish(&self, call: &Call, outcome: Outcome, code: u8) {
        self.in_flight.borrow_mut().remove(call.reply_to.as_str());
        let ended = Instant::now();
        self.load.end(ended);
        let (name, took) = (call.operation.name, ended - call.started);
        self.metrics.record_call(name, code, took);
        self.stats.count(name, took, outcome);
        if self.load.now() == 0 {
            self.idle.notify_waiters();
        }
    }
}

/// Starts requests when others have taken longer, while some wait for that.
async fn start_waiting(dispatcher: Rc<Dispatcher>) {
    while dispatcher.line.waits_for_brief() {
        sleep(BRIEF / 2).await;
        dispatcher.line.start_waiting(Instant::now());
    }
    dispatcher.starts_waiting.set(false);
}

/// Does the work of a request when it has its turn, which is returned with the result.
async fn at_its_turn<T>(
    place: Option<Place>,
    work: impl Future<Output = Result<T, Problem>>,
) -> Result<(Option<Turn>, T), Problem> {
    let turn = match place {
        None => None,
        Some(Place::Now(turn)) => Some(turn),
        Some(Place::Later(turn)) => {
            Some(turn.await.map_err(|_| Problem::unavailable("the replica is stopping"))?)
        }
    };
    Ok((turn, work.await?))
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
