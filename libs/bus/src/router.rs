//! The operations that an actor answers.

use std::{
    cell::Cell,
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
    load::Load,
    metrics::RequestMetrics,
    reply::Rendered,
    stats::Stats,
};

/// Limits of a service.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Requests in flight; one more is answered `ResourceExhausted` at once, unless its operation has fewer
    /// than an eighth of them.
    pub in_flight: usize,
    /// Most of them for one operation.
    pub per_operation: usize,
    /// Longest time for one request, also when its deadline is later.
    pub timeout: Duration,
}

impl Limits {
    /// Requests of an operation that are taken although others fill the service: slow operations do not block
    /// the rest.
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
    /// Its requests in flight.
    pub(crate) in_flight: Cell<usize>,
    /// Whether replicas of the same workload request it from each other by name: it is in no queue group, is not
    /// listed by the service convention, and is outside the limits.
    pub(crate) is_for_peers: bool,
}

/// The operations that an actor answers.
pub struct Router<A: Actor> {
    pub(crate) bus: Bus,
    pub(crate) actor: Addr<A>,
    pub(crate) limits: Limits,
    pub(crate) workload: &'static str,
    pub(crate) metrics: RequestMetrics,
    pub(crate) load: Rc<Load>,
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
        self.with::<R>(false)
    }

    /// Adds an operation that replicas of the same workload request from each other, outside the limits: if
    /// requests that wait for a peer's answer had taken all places, that answer would be refused. The actor
    /// answers it from memory.
    #[must_use]
    pub fn on_peers<R: Operation>(self) -> Self
    where
        A: Handler<Ask<R>>,
    {
        self.with::<R>(true)
    }

    fn with<R: Operation>(mut self, is_for_peers: bool) -> Self
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
                let answer =
                    match actor.send(Ask(request, RequestScope::queued(&mailbox, encoding.format))).await {
                        Ok(answer) => answer?,
                        Err(error) => {
                            let problem =
                                Problem::internal(NOT_MAPPED, "the service could not finish this request");
                            return Err(problem.caused_by(error.to_string()));
                        }
                    };
                let body = encoding.render(&answer.reply)?;
                // Only replies with a head are compared with earlier ones.
                let digest = answer.head.and_then(|_| encoding.digest(&answer.reply, &body));
                Ok(Some(Rendered::compressed(body, encoding, answer.head, digest).await))
            })
        });
        self.add(R::NAME, run, is_for_peers);
        self
    }

    pub(crate) fn add(&mut self, name: &'static str, run: OperationFn, is_for_peers: bool) {
        self.metrics.show(name);
        self.operations.push(Rc::new(OperationHandler { name, run, in_flight: Cell::new(0), is_for_peers }));
    }
}
