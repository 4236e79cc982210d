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
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

use crate::{
    admission::{
        ClientContext,
        client_limit::{ClientLimit, ClientPermit},
    },
    ask::{
        backend::Backend,
        cache::Question,
        call_context::CallContext,
        heads::{ChainHeads, HeadSource},
    },
    config::Config,
    connection::ConnectionState,
    keys::{self, ClientKey, KeyRefusal},
    metrics::{LimitKind, Metrics},
    watch::{context::WatchContext, live_query::LiveQuery, watcher::Watcher},
};

/// Longest time over which a shutdown spreads the ends of watches; at most a third of the grace period.
const DRAIN_SPREAD: Duration = Duration::from_secs(3);

/// The watches of one edge.
pub(crate) struct Watches {
    context: Arc<WatchContext>,
    queries: Mutex<HashMap<Arc<Question>, Arc<LiveQuery>>>,
    limit: ClientLimit,
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
            context: WatchContext::start(backend, heads, config, metrics),
            queries: Mutex::default(),
            limit: ClientLimit::watches(config.watches, config.watches_per_address),
            drain: watch::Sender::new(None),
            streams: AtomicU64::new(0),
        })
    }

    /// A permit for one more event stream.
    ///
    /// # Errors
    /// When the edge or the client has reached its limit.
    pub(crate) fn permit(&self, client: &ClientContext) -> Result<ClientPermit, Problem> {
        self.limit.permit(client).inspect_err(|_| {
            self.context.metrics.limited(LimitKind::Watches).inc();
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
        let WatchContext { backend, heads, metrics, .. } = &*self.context;
        let mut before = heads.status(source);
        let mut answer = backend.read(question, context).await?;
        if let Some(last_id) = last_id.filter(|last_id| *last_id > heads.status(source).height)
            && Some(last_id) > answer.height()
        {
            // Either from before a reset of the network, or of a block that this edge has not yet been sent. A reply
            // without a height tells nothing of the head.
            if answer.height().is_none() {
                heads.until_at(source, last_id).await;
            }
            before = heads.status(source);
            answer = backend.read_uncached(question, context).await?;
        }
        let height = answer.height().unwrap_or(before.height);
        let mut queries = self.queries.lock();
        let query = match queries.get(question) {
            Some(query) => Arc::clone(query),
            None => {
                let client = context.client;
                let (context, watches) = (Arc::clone(&self.context), Arc::clone(self));
                let begin = (height, before.resets);
                let remove = move |query: &LiveQuery| watches.remove_unwatched(query);
                let query = LiveQuery::start(context, (client, question), source, &answer, begin, remove);
                queries.insert(Arc::clone(question), Arc::clone(&query));
                metrics.watched_questions.inc();
                query
            }
        };
        // Under the lock: a query that has a watcher is not removed.
        Ok(Watcher::new(&query, &answer, (height, before.resets), last_id))
    }

    /// Removes a query without watchers. Returns whether it was removed.
    fn remove_unwatched(&self, query: &LiveQuery) -> bool {
        let mut queries = self.queries.lock();
        let is_removed = !query.is_watched() && queries.remove(query.question()).is_some();
        if is_removed {
            self.context.metrics.watched_questions.dec();
        }
        is_removed
    }

    /// Ends all open and new watches, spread over a part of the grace period, so that their clients do not all
    /// reconnect to other edges at once (W8).
    pub(crate) fn drain(&self, grace: Duration) {
        self.drain.send_replace(Some(Instant::now() + DRAIN_SPREAD.min(grace / 3)));
    }

    /// Resolves when the next stream or connection of a client has to end, with the reason: a shutdown, or a key that is
    /// no longer in force.
    pub(crate) fn ending(
        &self,
        key: Option<Arc<ClientKey>>,
    ) -> impl Future<Output = Problem> + Send + 'static + use<> {
        // Multiples of the golden ratio fill an interval evenly for any number of streams.
        let number = self.streams.fetch_add(1, Ordering::Relaxed);
        let place = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let mut drain = self.drain.subscribe();
        let stopping = async move {
            let last = match drain.wait_for(Option::is_some).await {
                Ok(last) => (*last).unwrap_or_else(Instant::now),
                Err(_) => return,
            };
            let left = last.saturating_duration_since(Instant::now());
            sleep_until(last - left.mul_f64(place as f64 / f64::from(u32::MAX))).await;
        };
        async move {
            tokio::select! {
                () = stopping => Problem::unavailable("the edge is stopping"),
                () = keys::ended(key) => KeyRefusal::Unknown.problem(),
            }
        }
    }
}

/// Counts an open stream; holds its permit.
pub(crate) struct OpenStream {
    watches: Arc<Watches>,
    connection: Arc<ConnectionState>,
    permit: ClientPermit,
}

impl OpenStream {
    /// Counts a stream on this connection.
    pub(crate) fn new(
        watches: &Arc<Watches>,
        connection: &Arc<ConnectionState>,
        permit: ClientPermit,
    ) -> Self {
        watches.context.metrics.watches.inc();
        Self { watches: Arc::clone(watches), connection: Arc::clone(connection), permit }
    }

    /// The connection that the stream is on.
    pub(crate) fn connection(&self) -> &Arc<ConnectionState> {
        &self.connection
    }

    /// Counts the stream as cut, when its client takes nothing of it alone.
    pub(crate) fn on_stall(&self) -> impl FnOnce() + Send + 'static + use<> {
        let cut = self.watches.context.metrics.watches_cut.clone();
        move || {
            cut.inc();
        }
    }

    /// Resolves when the stream has to end, with the reason.
    pub(crate) fn ending(&self) -> impl Future<Output = Problem> + Send + 'static + use<> {
        self.watches.ending(self.permit.key())
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let metrics = &self.watches.context.metrics;
        metrics.watches.dec();
        if self.connection.has_stalled() {
            metrics.watches_cut.inc();
        }
    }
}
