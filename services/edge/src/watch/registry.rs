//! The live queries of one edge, the limits on watches, and the end of watches at a shutdown.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use mesh_problem::Problem;
use parking_lot::Mutex;
use proto_msgs::{Contract, OperationInfo};
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

use crate::{
    admission::{
        address_limit::{AddressLimit, AddressPermit},
        client_address::Address,
    },
    ask::{
        backend::{Backend, CallContext},
        cache::Question,
        heads::{ChainHeads, HeadSource, HeadStatus},
    },
    config::Config,
    metrics::{LimitKind, Metrics},
    respond::answer::Answer,
    watch::{delivery::Delivery, live_query::LiveQuery, look_queue::LookQueue, watcher::Watcher},
    wire::connection::ConnectionState,
};

/// Longest time over which a shutdown spreads the ends of watches; at most a third of the grace period.
const DRAIN_SPREAD: Duration = Duration::from_secs(3);

/// The watches of one edge.
pub(crate) struct Watches {
    backend: Arc<Backend>,
    heads: Arc<ChainHeads>,
    queries: Mutex<HashMap<Arc<Question>, Arc<LiveQuery>>>,
    limit: AddressLimit,
    /// By operation. The operations of a workload share a queue, so that a hanging workload delays only its own
    /// looks.
    looks: HashMap<&'static str, Arc<LookQueue>>,
    delivery: Delivery,
    answer_time: Duration,
    metrics: Metrics,
    /// Set at a shutdown: when the last watch ends.
    drain: watch::Sender<Option<Instant>>,
    /// Streams so far.
    streams: AtomicU64,
}

impl Watches {
    /// The watches of an edge without any live query.
    pub(crate) fn new(
        backend: Arc<Backend>,
        heads: Arc<ChainHeads>,
        config: &Config,
        metrics: &Metrics,
    ) -> Arc<Self> {
        Arc::new(Self {
            backend,
            heads,
            queries: Mutex::default(),
            limit: AddressLimit::watches(config.watches, config.watches_per_address),
            looks: look_queues(),
            delivery: Delivery::start(),
            answer_time: config.limits.answer_time,
            metrics: metrics.clone(),
            drain: watch::Sender::new(None),
            streams: AtomicU64::new(0),
        })
    }

    /// A permit for one more event stream.
    ///
    /// # Errors
    /// When the edge or the client address has reached its limit.
    pub(crate) fn permit(&self, address: Address) -> Result<AddressPermit, Problem> {
        self.limit.try_acquire(address).inspect_err(|_| {
            self.metrics.limited(LimitKind::Watches).inc();
        })
    }

    /// A watcher of a question, starting with the answer of a plain read.
    ///
    /// # Errors
    /// As [`Backend::read`].
    pub(crate) async fn watch(
        self: &Arc<Self>,
        question: &Arc<Question>,
        source: HeadSource,
        last_id: Option<u64>,
        context: &CallContext,
    ) -> Result<Watcher, Problem> {
        let mut before = self.heads.status(source);
        let mut answer = self.backend.read(question, context).await?;
        if last_id > Some(self.heads.status(source).height) && last_id > answer.height() {
            // Either from before a reset of the network, or of a block that this edge has not yet been sent.
            before = self.heads.status(source);
            answer = self.backend.read_uncached(question, context).await?;
        }
        let height = answer.height().unwrap_or(before.height);
        let mut queries = self.queries.lock();
        let query = match queries.get(question) {
            Some(query) => Arc::clone(query),
            None => {
                let query = LiveQuery::start(self, question, source, &answer, (height, before.resets));
                queries.insert(Arc::clone(question), Arc::clone(&query));
                self.metrics.watched_questions.inc();
                query
            }
        };
        // Under the lock: a query that has a watcher is not removed.
        Ok(Watcher::new(&query, &answer, (height, before.resets), last_id))
    }

    /// Removes a query without watchers. Returns whether it was removed.
    pub(super) fn remove_unwatched(&self, query: &LiveQuery) -> bool {
        let mut queries = self.queries.lock();
        let is_removed = !query.is_watched() && queries.remove(query.question()).is_some();
        if is_removed {
            self.metrics.watched_questions.dec();
        }
        is_removed
    }

    /// Reads an answer for a live query.
    pub(super) async fn look(&self, question: &Arc<Question>) -> Result<Arc<Answer>, Problem> {
        let _place = match self.looks.get(question.operation) {
            Some(looks) => looks.place().await,
            None => None,
        };
        let context = CallContext {
            request_id: nuid::next().to_string(),
            traceparent: None,
            deadline: Instant::now() + self.answer_time,
            has_full_time: true,
            connection: Arc::default(),
        };
        self.backend.read(question, &context).await
    }

    /// Wakes the watchers of a query whose state has changed.
    pub(super) fn deliver(&self, query: &Arc<LiveQuery>) {
        self.delivery.push(query);
    }

    pub(super) fn head(&self, source: HeadSource) -> HeadStatus {
        self.heads.status(source)
    }

    pub(super) fn head_changes(&self, source: HeadSource) -> watch::Receiver<()> {
        self.heads.changes(source)
    }

    pub(super) fn count_event(&self, skipped: u64) {
        self.metrics.watch_events.inc();
        self.metrics.watch_events_skipped.inc_by(skipped);
    }

    /// Ends all open and new watches, spread over a part of the grace period, so that their clients do not all
    /// reconnect to other edges at once (W8).
    pub(crate) fn drain(&self, grace: Duration) {
        self.drain.send_replace(Some(Instant::now() + DRAIN_SPREAD.min(grace / 3)));
    }

    /// Resolves when the next stream has to end.
    fn ending(&self) -> impl Future<Output = ()> + Send + 'static + use<> {
        // Multiples of the golden ratio fill an interval evenly for any number of streams.
        let number = self.streams.fetch_add(1, Ordering::Relaxed);
        let place = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let mut drain = self.drain.subscribe();
        async move {
            let last = match drain.wait_for(Option::is_some).await {
                Ok(last) => (*last).unwrap_or_else(Instant::now),
                Err(_) => return,
            };
            let left = last.saturating_duration_since(Instant::now());
            sleep_until(last - left.mul_f64(place as f64 / f64::from(u32::MAX))).await;
        }
    }
}

/// Counts an open stream; holds its permit.
pub(crate) struct OpenStream {
    watches: Arc<Watches>,
    connection: Arc<ConnectionState>,
    _permit: AddressPermit,
}

impl OpenStream {
    /// Counts a stream on this connection.
    pub(crate) fn new(
        watches: &Arc<Watches>,
        connection: &Arc<ConnectionState>,
        permit: AddressPermit,
    ) -> Self {
        watches.metrics.watches.inc();
        Self { watches: Arc::clone(watches), connection: Arc::clone(connection), _permit: permit }
    }

    /// The connection that the stream is on.
    pub(crate) fn connection(&self) -> &Arc<ConnectionState> {
        &self.connection
    }

    /// Resolves when the stream has to end.
    pub(crate) fn ending(&self) -> impl Future<Output = ()> + Send + 'static + use<> {
        self.watches.ending()
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let metrics = &self.watches.metrics;
        metrics.watches.dec();
        if self.connection.has_stalled() {
            metrics.watches_cut.inc();
        }
    }
}

/// The queues of looks by operation.
fn look_queues() -> HashMap<&'static str, Arc<LookQueue>> {
    let mut of_workloads = HashMap::<_, Arc<LookQueue>>::new();
    let queue_of = |operation: &'static OperationInfo| {
        let queue = of_workloads.entry(operation.workload.as_str()).or_default();
        (operation.name.as_str(), Arc::clone(queue))
    };
    Contract::get().operations().iter().map(queue_of).collect()
}
