//! Serving: subscribes an actor's operations in the workload's queue group and under the replica's name,
//! sends heartbeats, and drains in order.

use std::{
    cell::{Cell, RefCell},
    future::Future,
    mem::replace,
    rc::{Rc, Weak},
    time::Duration,
};

use actix::{Actor, Context};
use async_nats::{Message, Subject, Subscriber};
use bytes::Bytes;
use futures_util::{
    StreamExt,
    future::{LocalBoxFuture, join_all},
};
use quick_cache::unsync::Cache;
use tokio::{
    sync::{Notify, watch},
    task::JoinHandle,
    time::{Instant, sleep_until, timeout},
};

use crate::{
    activity::{AWAKE_FOR, HEARTBEAT_INTERVAL, IDLE_HEARTBEAT_INTERVAL},
    connection::Bus,
    dispatch::{Dispatcher, MAX_CANCELED},
    drain::drain_subscription,
    error::BusError,
    replicas::Heartbeat,
    router::{OperationHandler, Router},
    stats,
    subjects::{self, PROBE, WAKE},
};

/// Longest time for a connected server to process subscriptions. Without a connection they are made at the
/// next one.
const SUBSCRIBE_TIMEOUT: Duration = Duration::from_secs(1);

/// Least time for sending the last replies, even at the end of the grace.
const MIN_FLUSH_TIME: Duration = Duration::from_millis(200);

/// A service that answers. See [`ServiceHandle::drain`].
pub struct ServiceHandle {
    dispatcher: Rc<Dispatcher>,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
}

/// Reports whether a service takes requests. See [`ServiceHandle::readiness`].
#[derive(Clone)]
pub struct Readiness(Rc<Dispatcher>);

impl Readiness {
    /// Whether requests are taken.
    pub fn is_ready(&self) -> bool {
        self.0.is_ready.get()
    }
}

impl ServiceHandle {
    /// Reports whether requests are taken yet.
    pub fn readiness(&self) -> Readiness {
        Readiness(Rc::clone(&self.dispatcher))
    }

    /// Stops taking requests, finishes those in flight (for `grace` at most), and sends every reply.
    pub async fn drain(self, grace: Duration) {
        let deadline = Instant::now() + grace;
        let left = || deadline.saturating_duration_since(Instant::now());
        self.stop.send_replace(true);
        let _ = timeout(left(), self.serving).await;
        let load = &self.dispatcher.load;
        while load.now() > 0 {
            if timeout(left(), self.dispatcher.idle.notified()).await.is_err() {
                tracing::warn!(in_flight = load.now(), "stopping before all requests are answered");
                break;
            }
        }
        self.dispatcher.bus.flush(left().max(MIN_FLUSH_TIME)).await;
    }
}

impl<A: Actor<Context = Context<A>>> Router<A> {
    /// Starts to answer when `ready` resolves: a replica that cannot work yet must not take requests from the
    /// others.
    pub fn serve(self, ready: impl Future<Output = ()> + 'static) -> ServiceHandle {
        let dispatcher = Rc::new(Dispatcher {
            stats: self.stats,
            bus: self.bus,
            limits: self.limits,
            metrics: self.metrics,
            in_flight: RefCell::default(),
            canceled: RefCell::new(Cache::new(MAX_CANCELED)),
            transits: RefCell::default(),
            last_request: Cell::default(),
            load: self.load,
            line: self.line,
            starts_waiting: Cell::new(false),
            idle: Notify::new(),
            is_ready: Cell::new(false),
        });
        start(dispatcher, self.workload, self.operations, self.has_streams, Box::pin(ready))
    }
}

/// [`Router::serve`] without its types, so that it is compiled once and not in every service.
fn start(
    dispatcher: Rc<Dispatcher>,
    workload: &'static str,
    operations: Vec<Rc<OperationHandler>>,
    has_streams: bool,
    ready: LocalBoxFuture<'static, ()>,
) -> ServiceHandle {
    let (stop, stopped) = watch::channel(false);
    let bus = dispatcher.bus.clone();
    let ready = async move {
        ready.await;
        if has_streams && let Err(error) = bus.chunk_connection().await {
            tracing::error!(error = mesh_problem::error_chain(&error), "no connection for chunks");
        }
    };
    let serving = actix::spawn(serve(Rc::clone(&dispatcher), workload, operations, ready, stopped));
    ServiceHandle { dispatcher, stop, serving }
}

/// Subscribes every operation and answers until the service drains.
async fn serve(
    dispatcher: Rc<Dispatcher>,
    workload: &'static str,
    operations: Vec<Rc<OperationHandler>>,
    ready: impl Future<Output = ()>,
    mut stop: watch::Receiver<bool>,
) {
    tokio::select! {
        () = ready => {}
        _ = stop.wait_for(|stop| *stop) => return,
    }
    match subscribe(&dispatcher, workload, operations, &stop).await {
        Ok((readers, wakes)) => {
            let own = format!("{}-itself", dispatcher.stats.id());
            let own = subjects::direct(&dispatcher.bus.subject(workload, PROBE), &own);
            let _ = timeout(SUBSCRIBE_TIMEOUT, await_subscribed(&dispatcher.bus, own)).await;
            dispatcher.is_ready.set(true);
            actix::spawn(send_heartbeats(Rc::downgrade(&dispatcher), workload, wakes, stop));
            join_all(readers).await;
        }
        Err(error) => tracing::error!(error = mesh_problem::error_chain(&error), "cannot take requests"),
    }
}

/// Resolves when the server has processed all earlier subscriptions. Sends a message to itself, because the
/// server handles the commands of one connection in order.
async fn await_subscribed(bus: &Bus, own_subject: Subject) {
    let client = &bus.shared.client;
    if let Ok(mut messages) = client.subscribe(own_subject.clone()).await
        && client.publish(own_subject, Bytes::new()).await.is_ok()
    {
        messages.next().await;
    }
}

/// What a replica reads requests from.
struct Source {
    subject: Subject,
    queue: Option<&'static str>,
    /// Messages to it arrive on this subscription, or on that of another replica of the group.
    markers: Subject,
    own: Subject,
}

/// A subscription, and how often the bus was connected when it was made.
type Requests = (Subscriber, u64);

impl Source {
    async fn open(&self, bus: &Bus) -> Result<Requests, BusError> {
        let (connects, subject, client) = (bus.link_connects(), self.subject.clone(), &bus.shared.client);
        let requests = match self.queue {
            Some(queue) => client.queue_subscribe(subject, queue.to_owned()).await,
            None => client.subscribe(subject).await,
        };
        Ok((requests.map_err(BusError::closed)?, connects))
    }

    /// Replaces a subscription that is older than the connection: the server counts its messages since then, the client since
    /// its beginning, and they would end it at different times. A request may arrive by both.
    async fn renewed(
        &self,
        bus: &Bus,
        requests: &mut Subscriber,
        handle: &impl Fn(Message),
    ) -> Option<Subscriber> {
        let (renewed, _) = self.open(bus).await.ok()?;
        // What the server sent before is here then.
        let _ = timeout(SUBSCRIBE_TIMEOUT, await_subscribed(bus, self.own.clone())).await;
        let _ = requests.unsubscribe().await;
        while let Some(message) = requests.next().await {
            handle(message);
        }
        Some(renewed)
    }
}

async fn subscribe(
    dispatcher: &Rc<Dispatcher>,
    workload: &'static str,
    operations: Vec<Rc<OperationHandler>>,
    stop: &watch::Receiver<bool>,
) -> Result<(Vec<JoinHandle<()>>, Subscriber), BusError> {
    let (bus, client) = (&dispatcher.bus, &dispatcher.bus.shared.client);
    let canceled = client.subscribe(bus.cancel_subject(workload)).await.map_err(BusError::closed)?;
    actix::spawn(cancel_requests(Rc::clone(dispatcher), canceled));
    let mut readers = Vec::new();
    // Where a replica receives messages of its own.
    let own = subjects::direct(&bus.subject(workload, PROBE), dispatcher.stats.id());
    for operation in operations.iter().filter(|operation| operation.queue.is_some()) {
        let subject = bus.subject(workload, operation.name);
        let markers = Subject::from(subject.as_str());
        dispatcher.stats.add(operation.name, subject, workload);
        let operation = Rc::clone(operation);
        let find = move |_: &Message| Some(Rc::clone(&operation));
        let source = Source { subject: markers.clone(), queue: Some(workload), markers, own: own.clone() };
        let requests = source.open(bus).await?;
        readers.push(actix::spawn(read(Rc::clone(dispatcher), find, source, requests, stop.clone())));
    }
    // Under the replica's name, for requests that must not go to another replica.
    let subject = subjects::direct(&bus.subject(workload, "*"), dispatcher.stats.id());
    let source = Source { subject, queue: None, markers: own.clone(), own };
    let requests = source.open(bus).await?;
    let find = move |message: &Message| {
        let name = message.subject.rsplit('.').nth(1)?;
        operations.iter().find(|operation| operation.name == name).cloned()
    };
    readers.push(actix::spawn(read(Rc::clone(dispatcher), find, source, requests, stop.clone())));
    stats::answer(bus, &dispatcher.stats).await?;
    let wakes = client.subscribe(bus.event_subject(WAKE)).await.map_err(BusError::closed)?;
    Ok((readers, wakes))
}

/// Sends the replica's heartbeats until it has stopped: often while it was woken lately, seldom otherwise, and
/// at once when it is woken or begins to drain.
async fn send_heartbeats(
    dispatcher: Weak<Dispatcher>,
    workload: &'static str,
    mut wakes: Subscriber,
    mut stop: watch::Receiver<bool>,
) {
    // Those that have just begun to listen are to know it soon, too.
    let mut awake_until = Instant::now() + AWAKE_FOR;
    let mut is_taking = true;
    while let Some(dispatcher) = dispatcher.upgrade() {
        is_taking &= !*stop.borrow();
        // Requests keep it awake, too: their sender may be of a release that does not wake replicas.
        let last_request = dispatcher.last_request.get().map(Instant::from_std);
        awake_until = last_request.map_or(awake_until, |at| awake_until.max(at + AWAKE_FOR));
        let id = dispatcher.stats.id().to_owned();
        let connects = dispatcher.bus.connects();
        dispatcher.bus.send_heartbeat(workload, &Heartbeat { id, is_taking, connects }).await;
        drop(dispatcher);
        let now = Instant::now();
        let next = now + if now < awake_until { HEARTBEAT_INTERVAL } else { IDLE_HEARTBEAT_INTERVAL };
        loop {
            tokio::select! {
                () = sleep_until(next) => break,
                Ok(_) = stop.wait_for(|stop| *stop), if is_taking => break,
                Some(_) = wakes.next() => {
                    let was_awake = replace(&mut awake_until, Instant::now() + AWAKE_FOR) > now;
                    if !was_awake {
                        break;
                    }
                }
            }
        }
    }
}

/// Reads the requests of a subscription until the service drains. `find` finds the operation of each.
async fn read(
    dispatcher: Rc<Dispatcher>,
    find: impl Fn(&Message) -> Option<Rc<OperationHandler>>,
    source: Source,
    (mut requests, connects): Requests,
    mut stop: watch::Receiver<bool>,
) {
    let handle = |message: Message| {
        if let Some(operation) = find(&message) {
            dispatcher.dispatch(operation, message);
        }
    };
    let mut received = 0;
    loop {
        tokio::select! {
            message = requests.next() => match message {
                Some(message) => {
                    received += 1;
                    handle(message);
                }
                None => return,
            },
            _ = stop.wait_for(|stop| *stop) => break,
        }
    }
    if dispatcher.bus.link_connects() != connects
        && let Some(renewed) = source.renewed(&dispatcher.bus, &mut requests, &handle).await
    {
        (requests, received) = (renewed, 0);
    }
    if drain_subscription(&dispatcher.bus, &mut requests, received, source.markers, &handle).await {
        return;
    }
    // The messages that the server sent before are still answered, as far as the client has them. Without a connection
    // nothing would end the subscription.
    if dispatcher.bus.is_connected() && requests.drain().await.is_ok() {
        while let Some(message) = requests.next().await {
            handle(message);
        }
    }
}

/// Aborts the work on canceled requests.
async fn cancel_requests(dispatcher: Rc<Dispatcher>, mut canceled: Subscriber) {
    while let Some(message) = canceled.next().await {
        if let Ok(reply_to) = std::str::from_utf8(&message.payload) {
            dispatcher.cancel(reply_to);
        }
    }
}
