//! The actor that executes the actions of the order of work: it asks the node, the decoder and the store.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
    time::{Duration, Instant},
};

use actix::{Actor, ActorFutureExt, AsyncContext, Context, SpawnHandle, StreamHandler, WrapFuture};
use mesh_bus::{Bus, IngestHalt, NodeStatus};
use mesh_chassis::{Failure, Sampler};
use mesh_problem::error_chain;
use mesh_store::{
    append::{AppendError, Appender, NewBlock, StoredHead},
    error::StoreError,
};
use mesh_telemetry::span;
use tokio::time::timeout;
use tracing::{Instrument, Span};

use crate::{
    block::{DecodedBlock, FetchedBlock},
    config::{Config, DecoderKind},
    decode::Decoder,
    failure::{not_decoded, not_fetched},
    metrics::Metrics,
    node::Nodes,
    order::{Action, Event, Halt, Head, Link, NotStored, Order, Ticket},
    standing::Standing,
};

/// Pause between two requests for the node's status.
const STATUS_PAUSE: Duration = Duration::from_secs(1);

/// The same while the node's head is announced.
const ANNOUNCED_STATUS_PAUSE: Duration = Duration::from_secs(5);

/// An announcement repeats the one before at least this often.
const ANNOUNCEMENT_LIFE: Duration = Duration::from_secs(2);

/// Deadline of a connection to the database. Short, because packets to a pod that has vanished are dropped: the
/// next attempt resolves the name again and reaches its successor.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Deadline of a read.
const READ_TIMEOUT: Duration = Duration::from_secs(5);

/// How long the next block waits for something before the log says so.
const WAITED: Duration = Duration::from_secs(5);

/// Deadline of a transaction, longer than the server's own limit of a statement.
const STORE_TIMEOUT: Duration = Duration::from_secs(35);

/// Brings the blocks of a chain into the store.
pub(crate) struct Ingest {
    bus: Bus,
    order: Order,
    began: Instant,
    database_url: Rc<str>,
    nodes: Rc<Nodes>,
    decoder: Rc<Decoder>,
    skip: BTreeSet<u64>,
    sampling: Sampler,
    metrics: Metrics,
    pub(crate) standing: Rc<RefCell<Standing>>,
    /// The session, unless it is in use.
    session: Option<Appender>,
    /// When the operation of the store that is under way began.
    store_began: Option<Instant>,
    /// The newest stored block.
    head: Option<StoredHead>,
    blocks: BTreeMap<u64, Held>,
    has_status_request: bool,
    status_at: Option<Instant>,
    announced_at: Option<Instant>,
    wake_up: Option<SpawnHandle>,
    logged: Option<Halt>,
    waiting: Option<Waiting>,
}

/// What the next block waits for.
struct Waiting {
    /// The newest stored block meanwhile.
    head: Option<u64>,
    since: Instant,
    /// The last cause in the log, up to its first digit: heights and times change with every block.
    logged: Option<String>,
}

/// A block between the node and the store.
struct Held {
    fetched_at: Instant,
    span: Span,
    content: Content,
}

#[derive(Clone)]
enum Content {
    Fetched(Rc<FetchedBlock>),
    Decoded(Rc<DecodedBlock>),
}

/// The result of an action on the store.
struct StoreOutcome {
    session: Option<Appender>,
    event: Event,
    /// The newest block, when it is known.
    head: Option<Option<StoredHead>>,
    blocks: Vec<NewBlock>,
}

impl Ingest {
    /// # Errors
    /// See [`Nodes::new`].
    pub(crate) fn new(config: Config, bus: Bus, metrics: Metrics) -> Result<Self, Failure> {
        let Config { database_url, nodes, decoder, order, skip, sampling, .. } = config;
        let decoder = match decoder {
            DecoderKind::Events(prefix) => Decoder::Events(prefix),
            DecoderKind::Nats => Decoder::Service(bus.clone()),
        };
        let order = Order::new(order);
        let standing = Standing { state: order.check(), heights: order.heights(), store_began: None };
        Ok(Self {
            bus,
            order,
            began: Instant::now(),
            database_url: database_url.into(),
            nodes: Rc::new(Nodes::new(nodes)?),
            decoder: Rc::new(decoder),
            skip,
            sampling,
            metrics,
            standing: Rc::new(RefCell::new(standing)),
            session: None,
            store_began: None,
            head: None,
            blocks: BTreeMap::new(),
            has_status_request: false,
            status_at: None,
            announced_at: None,
            wake_up: None,
            logged: None,
            waiting: None,
        })
    }

    /// Hands an event to the order of work and starts what follows from it.
    fn on(&mut self, event: Event, context: &mut Context<Self>) {
        let now = self.began.elapsed();
        self.order.on(event, now);
        self.advance(context);
    }

    /// Starts all actions that there are, and waits for the next ones.
    fn advance(&mut self, context: &mut Context<Self>) {
        let now = self.began.elapsed();
        while let Some(action) = self.order.next(now) {
            match action {
                Action::ReadStore => self.read_store(context),
                Action::Fetch(height, ticket) => self.fetch(height, ticket, context),
                Action::Decode(height, ticket) => self.decode(height, ticket, context),
                Action::Store(from, to) => self.store(from, to, context),
            }
        }
        self.blocks.retain(|height, _| self.order.holds(*height));
        if let Some(before) = self.wake_up.take() {
            context.cancel_future(before);
        }
        if let Some(deadline) = self.order.deadline(now) {
            self.wake_up = Some(context.run_later(deadline - now, |ingest, context| {
                ingest.wake_up = None;
                ingest.advance(context);
            }));
        }
        self.show();
    }

    fn show(&mut self) {
        self.metrics.show(&self.order);
        let halt = self.order.halt();
        if halt != self.logged.as_ref() {
            match halt {
                Some(halt) => {
                    let Halt { height, reason, text } = halt;
                    tracing::error!(height, reason = reason.name(), "halted: {text}");
                }
                None => tracing::info!("the halt is over"),
            }
            self.logged = halt.cloned();
        }
        self.log_waiting();
        *self.standing.borrow_mut() = Standing {
            state: self.order.check(),
            heights: self.order.heights(),
            store_began: self.store_began,
        };
    }

    /// Logs what has been waited for for a while, and that it is over. A transaction that fails is tried again after a read
    /// that succeeds, so that one moment without a cause ends nothing.
    fn log_waiting(&mut self) {
        let head = self.head.as_ref().map(|head| head.height);
        let (store, node) = self.order.heights();
        let why = self.order.waits_for();
        let is_over = |waiting: &mut Waiting| waiting.head != head || why.is_ok() && store >= node;
        if self.waiting.take_if(is_over).is_some_and(|waiting| waiting.logged.is_some()) {
            tracing::info!("nothing is missing any more");
        }
        let Err(why) = why else { return };
        let waiting =
            self.waiting.get_or_insert_with(|| Waiting { head, since: Instant::now(), logged: None });
        let words = why.split(|letter: char| letter.is_ascii_digit()).next();
        if waiting.since.elapsed() >= WAITED && waiting.logged.as_deref() != words {
            tracing::warn!("no block is stored: {why}");
            // Causes that alternate are logged every few seconds.
            (waiting.since, waiting.logged) = (Instant::now(), words.map(str::to_owned));
        }
    }

    fn announce_halt(&self, context: &mut Context<Self>) {
        let Some(&Halt { height, reason, .. }) = self.order.halt() else { return };
        let bus = self.bus.clone();
        let announcing = async move { bus.announce(&IngestHalt { height, reason }).await };
        context.spawn(announcing.into_actor(self));
    }

    /// Whether the node's status is due. While its head is announced, announcements say when to look.
    fn needs_status(&self) -> bool {
        let is_younger = |at: Option<Instant>, age| at.is_some_and(|at| at.elapsed() < age);
        !is_younger(self.announced_at, ANNOUNCEMENT_LIFE)
            || !is_younger(self.status_at, ANNOUNCED_STATUS_PAUSE)
    }

    fn request_status(&mut self, context: &mut Context<Self>) {
        if std::mem::replace(&mut self.has_status_request, true) {
            return;
        }
        let nodes = Rc::clone(&self.nodes);
        let request = async move { nodes.status().await }.into_actor(self);
        context.spawn(request.map(|status, ingest, context| {
            ingest.has_status_request = false;
            ingest.status_at = status.is_ok().then(Instant::now);
            let event = match status {
                Ok(status) => Event::Node(status.chain_id, status.earliest, status.latest),
                Err(error) => Event::NodeUnavailable(error.to_string()),
            };
            ingest.on(event, context);
        }));
    }

    fn fetch(&mut self, height: u64, ticket: Ticket, context: &mut Context<Self>) {
        let span = match span::is_enabled() && self.sampling.should_sample(None) {
            true => span::block(height),
            false => Span::none(),
        };
        let (nodes, step) = (Rc::clone(&self.nodes), span::block_step(&span, "fetch"));
        let fetching = async move { nodes.fetch(height).await }.instrument(step).into_actor(self);
        context.spawn(fetching.map(move |fetched, ingest, context| {
            let event = match fetched {
                Ok(block) => {
                    let link = Link {
                        chain_id: block.chain_id.clone(),
                        hash: block.hash.clone(),
                        parent: block.parent.clone(),
                        bytes: block.bytes(),
                    };
                    if ingest.order.expects(height, ticket) {
                        let (fetched_at, content) = (Instant::now(), Content::Fetched(Rc::new(block)));
                        ingest.blocks.insert(height, Held { fetched_at, span, content });
                    }
                    Event::Fetched(height, ticket, link)
                }
                Err(error) => Event::NotFetched(height, ticket, not_fetched(height, &error)),
            };
            ingest.on(event, context);
        }));
    }

    fn decode(&mut self, height: u64, ticket: Ticket, context: &mut Context<Self>) {
        let Some(Held { content: Content::Fetched(block), span, .. }) = self.blocks.get(&height) else {
            return;
        };
        let is_skipped = self.skip.contains(&height);
        if is_skipped {
            tracing::warn!(height, "the block is stored without rows, as MESH_INGEST_SKIP says");
        }
        let (block, decoder) = (Rc::clone(block), Rc::clone(&self.decoder));
        let step = span::block_step(span, "decode");
        let decoding = async move {
            let rows = if is_skipped { Ok(Vec::new()) } else { decoder.decode(&block).await };
            rows.map(|rows| DecodedBlock::new(&block, rows))
        };
        context.spawn(decoding.instrument(step).into_actor(self).map(move |decoded, ingest, context| {
            let event = match decoded {
                Ok(block) => {
                    let rows = block.rows.len();
                    if ingest.order.expects(height, ticket)
                        && let Some(held) = ingest.blocks.get_mut(&height)
                    {
                        held.content = Content::Decoded(Rc::new(block));
                    }
                    Event::Decoded(height, ticket, rows)
                }
                Err(error) => Event::NotDecoded(height, ticket, not_decoded(error)),
            };
            ingest.on(event, context);
        }));
    }

    fn read_store(&mut self, context: &mut Context<Self>) {
        let (session, url) = (self.session.take(), Rc::clone(&self.database_url));
        let reading = async move {
            let session = match session {
                Some(session) => Ok(session),
                None => within(CONNECT_TIMEOUT, Appender::connect(&url)).await,
            };
            let read = match session {
                Ok(session) => within(READ_TIMEOUT, session.chain()).await.map(|chain| (session, chain)),
                Err(error) => Err(error),
            };
            match read {
                Ok((session, chain)) => {
                    let head = chain.head.as_ref();
                    let head = head.map(|head| Head { height: head.height, hash: head.hash.clone() });
                    StoreOutcome {
                        session: Some(session),
                        event: Event::Store(chain.chain_id, head),
                        head: Some(chain.head),
                        blocks: Vec::new(),
                    }
                }
                Err(error) => {
                    let event = Event::StoreUnavailable(error);
                    StoreOutcome { session: None, event, head: None, blocks: Vec::new() }
                }
            }
        };
        self.store_began = Some(Instant::now());
        context.spawn(reading.into_actor(self).map(Self::on_store_outcome));
    }

    /// The decoded blocks of these heights up to the first that cannot be stored, the head after them, and what is
    /// wrong with that one.
    fn prepare(&self, from: u64, to: u64) -> (Vec<NewBlock>, Option<StoredHead>, String) {
        let (mut prepared, mut head) = (Vec::new(), self.head.clone());
        for (_, held) in self.blocks.range(from..=to) {
            let Content::Decoded(block) = &held.content else { break };
            match block.prepare(head.as_ref()) {
                Ok((block, after)) => {
                    prepared.push(block);
                    head = Some(after);
                }
                Err(fault) => return (prepared, head, fault.to_string()),
            }
        }
        (prepared, head, String::new())
    }

    fn store(&mut self, from: u64, to: u64, context: &mut Context<Self>) {
        let (prepared, head, fault) = self.prepare(from, to);
        let Some(last) = prepared.last().map(|block| block.height) else {
            let event = Event::NotStored(NotStored::Unfit(fault));
            return self.order.on(event, self.began.elapsed());
        };
        let Some(Held { span, content: Content::Decoded(first), .. }) = self.blocks.get(&from) else {
            return;
        };
        let (session, url) = (self.session.take(), Rc::clone(&self.database_url));
        let (chain_id, before) = (first.chain_id.clone(), self.head.clone());
        let step = span::block_step(span, "commit");
        let storing = async move {
            let begun = Instant::now();
            let work = async {
                let mut session = match session {
                    Some(session) => session,
                    None => Appender::connect(&url).await?,
                };
                match session.append(&chain_id, before.as_ref(), &prepared).await {
                    Err(AppendError::Store(error)) => Err(error),
                    appended => Ok((session, appended)),
                }
            };
            let (session, error) = match within(STORE_TIMEOUT, work).await {
                Ok((session, Ok(()))) => {
                    let (session, event) = (Some(session), Event::Stored(last, begun.elapsed()));
                    return StoreOutcome { session, event, head: Some(head), blocks: prepared };
                }
                Ok((session, Err(AppendError::Moved))) => (Some(session), NotStored::Moved),
                Ok((session, Err(AppendError::Busy))) => (Some(session), NotStored::Busy),
                Ok((session, Err(error))) => (Some(session), NotStored::Refused(error.to_string())),
                Err(error) => (None, NotStored::Unavailable(error)),
            };
            StoreOutcome { session, event: Event::NotStored(error), head: None, blocks: Vec::new() }
        };
        self.store_began = Some(Instant::now());
        context.spawn(storing.instrument(step).into_actor(self).map(Self::on_store_outcome));
    }

    fn on_store_outcome(outcome: StoreOutcome, ingest: &mut Self, context: &mut Context<Self>) {
        let StoreOutcome { session, event, head, blocks } = outcome;
        (ingest.session, ingest.store_began) = (session, None);
        if let Some(head) = head {
            ingest.head = head;
        }
        for block in &blocks {
            if let Some(held) = ingest.blocks.get(&block.height) {
                ingest.metrics.block_duration.observe(held.fetched_at.elapsed().as_secs_f64());
            }
        }
        ingest.metrics.stored(&blocks);
        ingest.on(event, context);
    }
}

/// The result of `work`, or what the log says of its failure.
async fn within<T>(limit: Duration, work: impl Future<Output = Result<T, StoreError>>) -> Result<T, String> {
    match timeout(limit, work).await {
        Ok(result) => result.map_err(|error| error_chain(&error)),
        Err(_) => Err(format!("no reply within {} s", limit.as_secs())),
    }
}

impl Actor for Ingest {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Self::Context) {
        self.request_status(context);
        context.run_interval(STATUS_PAUSE, |ingest, context| {
            if ingest.needs_status() {
                ingest.request_status(context);
            }
            ingest.announce_halt(context);
        });
        self.advance(context);
    }
}

impl StreamHandler<NodeStatus> for Ingest {
    fn handle(&mut self, NodeStatus { height }: NodeStatus, context: &mut Self::Context) {
        self.announced_at = Some(Instant::now());
        self.on(Event::Announced(height), context);
    }

    fn finished(&mut self, _: &mut Self::Context) {
        // Without announcements new blocks are found by the status.
    }
}
