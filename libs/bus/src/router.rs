//! The operations that an actor answers.

use std::{
    fmt::Display,
    rc::Rc,
    time::{Duration, Instant},
};

use actix::{Actor, Addr, Context, Handler};
use async_nats::Message;
use futures_util::future::LocalBoxFuture;
use mesh_problem::{MALFORMED, NOT_MAPPED, Problem};
use mesh_telemetry::Registry;
use proto_msgs::Operation;

use crate::{
    answer::{Ask, RequestScope},
    connection::Bus,
    encoding::Encoding,
    line::{Line, Places, Queue},
    load::Load,
    metrics::RequestMetrics,
    reply::Rendered,
    stats::Stats,
};

/// Limits of a service.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Requests that run at the same time. One more waits for its turn or is refused, unless its operation has
    /// fewer than an eighth of them.
    pub in_flight: usize,
    /// Most of them for one operation.
    pub per_operation: usize,
    /// Longest time for one request, also when its deadline is later.
    pub timeout: Duration,
}

impl Limits {
    /// Requests of an operation that run although others fill the service: slow operations do not block the
    /// rest.
    pub(crate) fn reserved(&self) -> usize {
        (self.in_flight / 8).max(1)
    }
}

/// The function of an operation; returns `None` when it has sent its reply itself.
pub(crate) type OperationFn =
    Rc<dyn Fn(Message, Encoding) -> LocalBoxFuture<'static, Result<Option<Rendered>, Problem>>>;

/// An operation with its function.
pub(crate) struct OperationHandler {
    pub(crate) name: &'static str,
    pub(crate) run: OperationFn,
    /// Its requests, those that run and those that wait. `None`: replicas of the same workload request it from
    /// each other by name; it is in no queue group, is not listed by the service convention, and is outside the
    /// limits.
    pub(crate) queue: Option<Rc<Queue>>,
}

/// The operations that an actor answers.
pub struct Router<A: Actor> {
    pub(crate) bus: Bus,
    pub(crate) actor: Addr<A>,
    pub(crate) limits: Limits,
    pub(crate) workload: &'static str,
    pub(crate) metrics: RequestMetrics,
    pub(crate) load: Rc<Load>,
    pub(crate) line: Rc<Line>,
    pub(crate) stats: Rc<Stats>,
    pub(crate) operations: Vec<Rc<OperationHandler>>,
    /// Whether some of them are streams.
    pub(crate) has_streams: bool,
}

impl<A: Actor<Context = Context<A>>> Router<A> {
    /// A router without operations.
    pub fn new(
        bus: Bus,
        workload: &'static str,
        actor: Addr<A>,
        limits: Limits,
        registry: &mut Registry,
    ) -> Self {
        let load = Rc::new(Load::new(Instant::now()));
        let metrics = RequestMetrics::register(registry, &load);
        let stats = Rc::new(Stats::new(&bus.shared.config, workload));
        Self {
            bus,
            actor,
            limits,
            workload,
            metrics,
            load,
            line: Line::new(limits),
            stats,
            operations: Vec::new(),
            has_streams: false,
        }
    }

    /// The name of the replica, new with every start.
    pub fn id(&self) -> &str {
        self.stats.id()
    }

    /// Adds one operation.
    #[must_use]
    pub fn on<R: Operation>(self) -> Self
    where
        A: Handler<Ask<R>>,
    {
        let places = self.limits.per_operation.into();
        self.on_places::<R>(places)
    }

    /// Adds one operation with places of its own, in place of [`Limits::per_operation`].
    #[must_use]
    pub fn on_places<R: Operation>(self, places: Places) -> Self
    where
        A: Handler<Ask<R>>,
    {
        let queue = self.line.add(places);
        self.with::<R>(Some(queue))
    }

    /// Adds an operation that replicas of the same workload request from each other, outside the limits: if
    /// requests that wait for a peer's answer had taken all places, that answer would be refused. The actor
    /// answers it from memory.
    #[must_use]
    pub fn on_peers<R: Operation>(self) -> Self
    where
        A: Handler<Ask<R>>,
    {
        self.with::<R>(None)
    }

    fn with<R: Operation>(mut self, queue: Option<Rc<Queue>>) -> Self
    where
        A: Handler<Ask<R>>,
    {
        debug_assert_eq!(R::WORKLOAD, self.workload, "{} belongs to another workload", R::NAME);
        let (actor, mailbox) = (self.actor.clone(), self.metrics.mailbox.clone());
        let run: OperationFn = Rc::new(move |message: Message, encoding| {
            let (actor, mailbox) = (actor.clone(), mailbox.clone());
            Box::pin(async move {
                let request = R::decode(message.payload).map_err(|error| {
                    Problem::invalid(MALFORMED, "the request does not decode").caused_by(error.to_string())
                })?;
                let ask = Ask(request, RequestScope::queued(&mailbox, encoding.format));
                let answer = actor.send(ask).await.map_err(|error| unfinished(&error))??;
                Rendered::answer(answer, encoding).await.map(Some)
            })
        });
        self.add(R::NAME, run, queue);
        self
    }

    pub(crate) fn add(&mut self, name: &'static str, run: OperationFn, queue: Option<Rc<Queue>>) {
        self.metrics.show(name);
        self.operations.push(Rc::new(OperationHandler { name, run, queue }));
    }
}

/// The problem of a request that ended for a reason within the service.
pub(crate) fn unfinished(cause: &dyn Display) -> Problem {
    Problem::internal(NOT_MAPPED, "the service could not finish this request").caused_by(cause.to_string())
}
