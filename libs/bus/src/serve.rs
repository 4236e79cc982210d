//! Answering: subscribes an actor's operations in the workload's queue group, bounds what is in flight,
//! keeps deadlines, and drains in order.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    future::Future,
    rc::{Rc, Weak},
    time::{Duration, Instant},
};

use actix::{Actor, Addr, Context, Handler};
use async_nats::{Message, Subject, Subscriber};
use bytes::Bytes;
use futures_util::{
    StreamExt,
    future::{AbortHandle, Abortable, LocalBoxFuture, join_all},
};
use mesh_problem::{Code, MALFORMED, NOT_MAPPED, Problem};
use mesh_telemetry::{
    Registry, code_name,
    span::{self, SpanExt},
};
use proto_msgs::Operation;
use tokio::{
    sync::{Notify, watch},
    time::{MissedTickBehavior, interval, timeout},
};
use tracing::Instrument;

use crate::{
    answering::{Ask, RequestScope},
    connection::{Bus, BusError},
    encoding::Encoding,
    headers::RequestHeaders,
    leaving::leave,
    load::Load,
    metrics::{Outcome, RequestMetrics},
    replicas::{BEAT, Beat, PROBE_NAME, direct_subject},
    replying::{Rendered, send, send_problem},
    stats::{self, Stats},
    stream::answers_by,
};

/// How long a server that is there may take to know of subscriptions. One that is away learns of them when it is back.
const KNOWN_WITHIN: Duration = Duration::from_secs(1);

/// Bounds of a service.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Requests worked on at the same time; one more is answered `ResourceExhausted` at once.
    pub in_flight: usize,
    /// Requests of one operation among them; fewer leave room for the others when one of them becomes slow.
    pub per_operation: usize,
    /// Longest time for one request, whatever its asker says.
    pub timeout: Duration,
}

/// What an operation does with a request; it comes to nothing when it has answered by itself.
pub(crate) type Work =
    Rc<dyn Fn(Message, Encoding) -> LocalBoxFuture<'static, Result<Option<Rendered>, Problem>>>;

/// An operation that is answered.
pub(crate) struct Served {
    name: &'static str,
    work: Work,
    /// Requests of it that are being worked on.
    running: Cell<usize>,
}

impl Served {
    pub(crate) fn by(name: &'static str, work: Work) -> Rc<Self> {
        Rc::new(Self { name, work, running: Cell::new(0) })
    }
}

/// The operations that an actor answers.
pub struct Router<A: Actor> {
    pub(crate) bus: Bus,
    pub(crate) actor: Addr<A>,
    limits: Limits,
    pub(crate) workload: &'static str,
    pub(crate) metrics: RequestMetrics,
    load: Rc<Load>,
    pub(crate) operations: Vec<Rc<Served>>,
    /// Whether some of them are streams.
    pub(crate) has_streams: bool,
}

impl<A: Actor<Context = Context<A>>> Router<A> {
    /// No operations yet.
    pub fn new(
        bus: Bus,
        workload: &'static str,
        actor: Addr<A>,
        limits: Limits,
        registry: &mut Registry,
    ) -> Self {
        let load = Rc::new(Load::idle_since(Instant::now()));
        let metrics = RequestMetrics::register(registry, &load);
        Self { bus, actor, limits, workload, metrics, load, operations: Vec::new(), has_streams: false }
    }

    /// Adds one operation.
    #[must_use]
    pub fn on<R: Operation>(mut self) -> Self
    where
        A: Handler<Ask<R>>,
    {
        debug_assert_eq!(R::WORKLOAD, self.workload, "{} belongs to another workload", R::NAME);
        self.metrics.begin(R::NAME);
        let (actor, mailbox) = (self.actor.clone(), self.metrics.mailbox.clone());
        let work: Work = Rc::new(move |message: Message, encoding| {
            let (actor, mailbox) = (actor.clone(), mailbox.clone());
            Box::pin(async move {
                let request = R::decode(message.payload).map_err(|error| {
                    Problem::invalid(MALFORMED, "the request does not decode").caused_by(error.to_string())
                })?;
                let answered = match actor.send(Ask(request, RequestScope::queued(&mailbox))).await {
                    Ok(answer) => answer?,
                    Err(error) => {
                        let problem =
                            Problem::internal(NOT_MAPPED, "the service could not finish this request");
                        return Err(problem.caused_by(error.to_string()));
                    }
                };
                let body = encoding.render(&answered.reply)?;
                // Only what has a head is ever compared with an earlier state of itself.
                let digest = answered.head.and_then(|_| encoding.digest(&answered.reply, &body));
                Ok(Some(Rendered::compressed(body, encoding, answered.head, digest).await))
            })
        });
        self.operations.push(Served::by(R::NAME, work));
        self
    }

    /// Begins to answer as soon as `ready` comes: a replica that cannot work yet takes no request from one that
    /// can.
    pub fn serve(self, ready: impl Future<Output = ()> + 'static) -> ServiceHandle {
        let (stop, stopped) = watch::channel(false);
        let (bus, has_streams) = (self.bus.clone(), self.has_streams);
        let ready = async move {
            ready.await;
            if has_streams && let Err(error) = bus.bulk().await {
                tracing::error!(error = &error as &dyn std::error::Error, "no connection for chunks");
            }
        };
        let desk = Rc::new(Desk {
            bus: self.bus.clone(),
            limits: self.limits,
            metrics: self.metrics.clone(),
            running: RefCell::default(),
            load: self.load,
            idle: Notify::new(),
            stats: Rc::new(Stats::new(&self.bus.shared.config, self.workload)),
            open: Cell::new(false),
        });
        let answering =
            actix::spawn(answer(Rc::clone(&desk), self.workload, self.operations, ready, stopped));
        ServiceHandle { desk, stop, answering }
    }
}

/// Subscribes every operation and answers until the service drains.
async fn answer(
    desk: Rc<Desk>,
    workload: &'static str,
    operations: Vec<Rc<Served>>,
    ready: impl Future<Output = ()>,
    mut stop: watch::Receiver<bool>,
) {
    tokio::select! {
        () = ready => {}
        _ = stop.wait_for(|stop| *stop) => return,
    }
    match subscribe(&desk, workload, operations, &stop).await {
        Ok(readers) => {
            let itself = format!("{}-itself", desk.stats.id());
            let itself = direct_subject(&desk.bus.subject(workload, PROBE_NAME), &itself);
            let _ = timeout(KNOWN_WITHIN, hear_itself(&desk.bus, itself)).await;
            desk.open.set(true);
            actix::spawn(beat(Rc::downgrade(&desk), workload, stop));
            join_all(readers).await;
        }
        Err(error) => tracing::error!(error = &error as &dyn std::error::Error, "cannot take requests"),
    }
}

/// Comes when the server knows of every subscription made before: it takes what comes over one connection in order.
async fn hear_itself(bus: &Bus, itself: Subject) {
    let client = &bus.shared.client;
    if let Ok(mut heard) = client.subscribe(itself.clone()).await
        && client.publish(itself, Bytes::new()).await.is_ok()
    {
        heard.next().await;
    }
}

async fn subscribe(
    desk: &Rc<Desk>,
    workload: &'static str,
    operations: Vec<Rc<Served>>,
    stop: &watch::Receiver<bool>,
) -> Result<Vec<tokio::task::JoinHandle<()>>, BusError> {
    let closed = |error: async_nats::SubscribeError| BusError::Closed(error.into());
    let client = &desk.bus.shared.client;
    let canceled = client.subscribe(desk.bus.cancel_subject(workload)).await.map_err(closed)?;
    actix::spawn(cancel(Rc::clone(desk), canceled));
    let mut readers = Vec::new();
    for served in &operations {
        let subject = desk.bus.subject(workload, served.name);
        let requests = client.queue_subscribe(subject.clone(), workload.to_owned()).await.map_err(closed)?;
        let fence = Subject::from(subject.as_str());
        desk.stats.add(served.name, subject, workload);
        let served = Rc::clone(served);
        let pick = move |_: &Message| Some(Rc::clone(&served));
        readers.push(actix::spawn(read(Rc::clone(desk), pick, requests, fence, stop.clone())));
    }
    // By name: for askers that know of a replica which must not be asked.
    let by_name = direct_subject(&desk.bus.subject(workload, "*"), desk.stats.id());
    let requests = client.subscribe(by_name).await.map_err(closed)?;
    let pick = move |message: &Message| {
        let asked = message.subject.rsplit('.').nth(1)?;
        operations.iter().find(|served| served.name == asked).cloned()
    };
    let fence = direct_subject(&desk.bus.subject(workload, PROBE_NAME), desk.stats.id());
    readers.push(actix::spawn(read(Rc::clone(desk), pick, requests, fence, stop.clone())));
    stats::answer(&desk.bus, &desk.stats).await?;
    Ok(readers)
}

/// A service that answers. See [`ServiceHandle::drain`].
pub struct ServiceHandle {
    desk: Rc<Desk>,
    stop: watch::Sender<bool>,
    answering: tokio::task::JoinHandle<()>,
}

/// Tells whether a service takes requests. See [`ServiceHandle::readiness`].
#[derive(Clone)]
pub struct Readiness(Rc<Desk>);

impl Readiness {
    /// Whether requests are taken.
    pub fn is_ready(&self) -> bool {
        self.0.open.get()
    }
}

impl ServiceHandle {
    /// A view of whether requests are taken yet.
    pub fn readiness(&self) -> Readiness {
        Readiness(Rc::clone(&self.desk))
    }

    /// Stops taking requests, finishes those that run (at most this long), and sends every reply.
    pub async fn drain(self, grace: Duration) {
        let deadline = Instant::now() + grace;
        let left = || deadline.saturating_duration_since(Instant::now());
        self.stop.send_replace(true);
        let _ = timeout(left(), self.answering).await;
        while self.desk.load.now() > 0 {
            if timeout(left(), self.desk.idle.notified()).await.is_err() {
                tracing::warn!(in_flight = self.desk.load.now(), "stopping before all requests are answered");
                break;
            }
        }
        self.desk.bus.flush(left().max(Duration::from_millis(200))).await;
    }
}

/// What all operations of a process share.
struct Desk {
    bus: Bus,
    limits: Limits,
    metrics: RequestMetrics,
    /// Requests being worked on, by where their replies go.
    running: RefCell<HashMap<String, AbortHandle>>,
    load: Rc<Load>,
    idle: Notify,
    stats: Rc<Stats>,
    /// Whether requests are taken.
    open: Cell<bool>,
}

/// Says that this replica lives, for as long as it does.
async fn beat(desk: Weak<Desk>, workload: &'static str, stop: watch::Receiver<bool>) {
    let mut beats = interval(BEAT);
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while let Some(desk) = desk.upgrade() {
        let is_taking = !*stop.borrow();
        let id = desk.stats.id().to_owned();
        desk.bus.beat(workload, &Beat { id, is_taking }).await;
        drop(desk);
        beats.tick().await;
    }
}

/// Takes the requests of a subscription until the service drains; `pick` finds the operation of each. What is published
/// to `fence` comes over this subscription, or over that of another replica.
async fn read(
    desk: Rc<Desk>,
    pick: impl Fn(&Message) -> Option<Rc<Served>>,
    mut requests: Subscriber,
    fence: Subject,
    mut stop: watch::Receiver<bool>,
) {
    let take = |message: Message| {
        if let Some(served) = pick(&message) {
            take(&desk, served, message);
        }
    };
    let mut received = 0;
    loop {
        tokio::select! {
            message = requests.next() => match message {
                Some(message) => {
                    received += 1;
                    take(message);
                }
                None => return,
            },
            _ = stop.wait_for(|stop| *stop) => break,
        }
    }
    if leave(&desk.bus, &mut requests, received, fence, &take).await {
        return;
    }
    // What the server had sent already is still answered, mostly; the stream ends behind it.
    if requests.drain().await.is_ok() {
        while let Some(message) = requests.next().await {
            take(message);
        }
    }
}

/// Stops the work of askers that have gone away.
async fn cancel(desk: Rc<Desk>, mut canceled: Subscriber) {
    while let Some(message) = canceled.next().await {
        if let Ok(reply_to) = std::str::from_utf8(&message.payload)
            && let Some(work) = desk.running.borrow().get(reply_to)
        {
            work.abort();
        }
    }
}

fn take(desk: &Rc<Desk>, served: Rc<Served>, message: Message) {
    let name = served.name;
    let Some(reply_to) = message.reply.clone() else { return };
    let started = Instant::now();
    let request = RequestHeaders::read(message.headers.as_ref(), desk.limits.timeout);
    let Some(left) = request.left else {
        desk.metrics.ended(name, Code::DeadlineExceeded.number(), Duration::ZERO);
        return;
    };
    if desk.load.now() >= desk.limits.in_flight || served.running.get() >= desk.limits.per_operation {
        desk.metrics.shed.inc();
        desk.metrics.ended(name, Code::ResourceExhausted.number(), Duration::ZERO);
        actix::spawn(refuse(Rc::clone(desk), reply_to));
        return;
    }
    let (abort, registration) = AbortHandle::new_pair();
    desk.running.borrow_mut().insert(reply_to.to_string(), abort);
    desk.load.begins(started);
    served.running.set(served.running.get() + 1);
    let client = answers_by(&desk.bus, message.headers.as_ref()).clone();
    let span = span::answer(request.trace.as_ref(), desk.stats.name(), name, &request.request_id);
    // The work's own future is made inside of the span, too.
    let work = span.in_scope(|| (served.work)(message, request.encoding)).instrument(span.clone());
    let work = Abortable::new(work, registration);
    let desk = Rc::clone(desk);
    actix::spawn(async move {
        let result = match timeout(left, work).await {
            Ok(Ok(result)) => Some(result),
            Ok(Err(_aborted)) => None,
            Err(_elapsed) => Some(Err(Problem::deadline_exceeded("the request took too long"))),
        };
        let (outcome, code) = (outcome(result.as_ref()), code(result.as_ref()));
        if outcome == Outcome::Failed || outcome == Outcome::Canceled {
            span.record_failure(code_name(code));
        }
        drop(span);
        match result {
            Some(Ok(Some(rendered))) => {
                desk.metrics.replied(name, rendered.len());
                send(&desk.bus, &reply_to, rendered).await;
            }
            Some(Err(problem)) => {
                log(name, &request, &problem);
                send_problem(&client, &reply_to, &problem, None).await;
            }
            Some(Ok(None)) | None => {}
        }
        desk.running.borrow_mut().remove(reply_to.as_str());
        let ended = Instant::now();
        desk.load.ends(ended);
        served.running.set(served.running.get() - 1);
        desk.metrics.ended(name, code, ended - started);
        desk.stats.count(name, ended - started, outcome);
        if desk.load.now() == 0 {
            desk.idle.notify_waiters();
        }
    });
}

fn outcome(result: Option<&Result<Option<Rendered>, Problem>>) -> Outcome {
    match result {
        Some(Ok(_)) => Outcome::Ok,
        None => Outcome::Canceled,
        Some(Err(problem)) => match problem.code {
            Code::Internal | Code::Unknown | Code::Unavailable | Code::DeadlineExceeded => Outcome::Failed,
            _ => Outcome::Refused,
        },
    }
}

/// The gRPC code of it.
fn code(result: Option<&Result<Option<Rendered>, Problem>>) -> u8 {
    match result {
        Some(Ok(_)) => 0,
        Some(Err(problem)) => problem.code.number(),
        None => Code::Canceled.number(),
    }
}

/// The one place where a failed request is logged: what its client may not see stands only here.
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

async fn refuse(desk: Rc<Desk>, reply_to: Subject) {
    let problem =
        Problem::new(Code::ResourceExhausted, NOT_MAPPED, "the replica has no room for this request");
    send_problem(&desk.bus.shared.client, &reply_to, &problem, Some(desk.stats.id())).await;
}
