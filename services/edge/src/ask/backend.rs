//! Calls of the services: reads from the cache while it is fresh, else over the bus, one call for all equal
//! reads; submissions and downloads over the bus, each by itself.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use http::{HeaderMap, HeaderValue};
use mesh_bus::{Bus, OpenReply, PullStream, Target, is_busy};
use mesh_problem::{ABOVE_HEAD, Code, NOT_MAPPED, Problem};
use mesh_telemetry::span;
use prost_reflect::prost::Message;
use proto_msgs::{
    Contract, Method, Operation, OperationInfo,
    numbers::{submit_raw_transaction, submit_transaction},
    v2::{SubmitRawTransactionRequest, SubmitTransactionRequest},
};
use sha2::{Digest, Sha256};
use tokio::{
    sync::watch,
    time::{Instant, sleep},
};
use tracing::Instrument;

use crate::{
    ask::{
        answer::{Answer, caching_of_newest},
        answer_memory::{AnswerMemory, Held, is_share_refusal},
        block_wait::BlockWait,
        cache::{Cache, HttpQuestion, Question},
        call_context::CallContext,
        heads::ChainHeads,
        singleflight::{CallResult, Singleflight},
    },
    config::Config,
    metrics::{Metrics, OperationMetrics, ReadSource},
};

/// Most calls for a read whose answer is older than a block that is known: from a database replica that lags,
/// or by a shared call that began earlier.
const MAX_CALLS: u32 = 4;

/// Pause between two of those calls.
const PAUSE: Duration = Duration::from_millis(10);

/// Why requests are shed for which there is no memory, in the metrics.
pub(crate) const NO_MEMORY: &str = "memory";

/// The reply to a submission that is still waiting when the edge stops.
const STOPPED: &str = "the relay did not answer in time; what became of the request is unknown";

/// Calls the services for all requests of an edge.
pub(crate) struct Backend {
    bus: Bus,
    heads: Arc<ChainHeads>,
    cache: Arc<Cache>,
    calls: Arc<Singleflight>,
    operations: HashMap<&'static str, Arc<OperationHandle>>,
    /// Headers that every answer begins with.
    base_headers: Arc<HeaderMap>,
    caching_of_newest: HeaderValue,
    memory: AnswerMemory,
    metrics: Metrics,
    /// Turns true when a shutdown leaves no more time to wait for a submission.
    stopping: watch::Receiver<bool>,
}

/// What is needed to call one operation.
struct OperationHandle {
    target: Arc<Target>,
    /// Whether its replies carry a block height, as far as seen. Without one, equal calls are not shared:
    /// their answers could not be ordered by age.
    has_height: AtomicBool,
    /// Of the fast path; `None` for a submission.
    metrics: Option<Arc<OperationMetrics>>,
}

impl Backend {
    /// The services of this bus. Every answer begins with `base_headers`.
    pub(crate) fn new(
        bus: Bus,
        heads: Arc<ChainHeads>,
        cache: Arc<Cache>,
        metrics: &Metrics,
        base_headers: HeaderMap,
        config: &Config,
        stopping: watch::Receiver<bool>,
    ) -> Self {
        let handle = |operation: &'static OperationInfo| {
            let target = bus.target(&operation.workload, &operation.name);
            if operation.has_rows() {
                target.expect_long_replies();
            }
            let metrics = (operation.method == Method::Get).then(|| metrics.of_read(&operation.name));
            OperationHandle { target, has_height: AtomicBool::new(false), metrics }
        };
        let operations = Contract::get().operations().iter();
        let operations =
            operations.map(|operation| (operation.name.as_str(), Arc::new(handle(operation)))).collect();
        Self {
            bus,
            heads,
            cache,
            calls: Arc::default(),
            operations,
            base_headers: Arc::new(base_headers),
            caching_of_newest: caching_of_newest(config.shared_max_age_s),
            // Answers in the cache count for their clients, too, of whom one may have half.
            memory: AnswerMemory::new(
                config.cache_bytes.saturating_mul(2).saturating_add(config.answer_bytes),
            ),
            metrics: metrics.clone(),
            stopping,
        }
    }

    /// Answers a read over HTTP as [`read_when_stored`](Self::read_when_stored) does, and stores the answer under
    /// its target.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub(crate) async fn read_target(
        &self,
        path_and_query: &str,
        question: &HttpQuestion,
        context: CallContext,
        wait: Option<&mut BlockWait>,
    ) -> Result<Arc<Answer>, Problem> {
        let answer = self.read_when_stored(&question.question, context, wait).await?;
        if answer.head.is_some() {
            self.cache.insert_target(path_and_query, question, &answer);
        }
        Ok(answer)
    }

    /// Answers a read, which may wait for its block. It is read before each wait: a request that is wrong in another
    /// way is refused at once, and a block may be stored that no announcement has named yet. The deadline of a call
    /// does not include the wait.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub(crate) async fn read_when_stored(
        &self,
        question: &Arc<Question>,
        mut context: CallContext,
        wait: Option<&mut BlockWait>,
    ) -> Result<Arc<Answer>, Problem> {
        let Some(wait) = wait else { return self.read(question, &context).await };
        let answer_time = context.deadline.saturating_duration_since(Instant::now());
        loop {
            if context.has_full_time {
                context.deadline = Instant::now() + answer_time;
            }
            match self.read(question, &context).await {
                Err(problem) if problem.number() == ABOVE_HEAD && !wait.is_over() => {
                    wait.before_next_read(&self.heads).await;
                }
                result => return result,
            }
        }
    }

    /// Answers a read. An answer of the newest block is at most a second old while the store is reachable, and
    /// never older than one that was given on the same connection.
    ///
    /// # Errors
    /// The service's problem, or `unavailable` and `deadline exceeded` of the bus.
    pub(crate) async fn read(
        &self,
        question: &Arc<Question>,
        context: &CallContext,
    ) -> Result<Arc<Answer>, Problem> {
        let answer = match self.cache.fresh(question, Instant::now()) {
            Some(answer) => {
                self.metrics.read(ReadSource::Cache).inc();
                answer
            }
            None => return self.read_uncached(question, context).await,
        };
        if let Some(height) = answer.newest_height() {
            context.connection.raise_min_height(height);
        }
        Ok(answer)
    }

    /// Answers a read by a call to the service, bypassing the cache.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub(crate) async fn read_uncached(
        &self,
        question: &Arc<Question>,
        context: &CallContext,
    ) -> Result<Arc<Answer>, Problem> {
        let answer = self.call_until_current(question, context).await?;
        if let Some(height) = answer.newest_height() {
            context.connection.raise_min_height(height);
        }
        Ok(answer)
    }

    /// Calls the service, or joins an equal call, until the answer is as new as the newest block known; once for an
    /// answer as of a block.
    async fn call_until_current(
        &self,
        question: &Arc<Question>,
        context: &CallContext,
    ) -> Result<Arc<Answer>, Problem> {
        let newest = self.heads.newest();
        let mut may_share = true;
        let mut calls_left = MAX_CALLS;
        while calls_left > 0 {
            let (result, joined) = self.call_or_join(question, context, may_share).await;
            let (is_shared, has_short_time) = (joined.is_some(), joined == Some(false));
            match result {
                Ok(answer)
                    if question.at_block.is_some()
                        || answer.height() >= Some(newest)
                        || (answer.head.is_none() && !is_shared) =>
                {
                    let source = if is_shared { ReadSource::Shared } else { ReadSource::Service };
                    self.metrics.read(source).inc();
                    return Ok(answer);
                }
                Ok(_) if is_shared => {}
                Ok(_) => sleep(PAUSE).await,
                // The client that started the call holds too much.
                Err(problem) if is_shared && is_share_refusal(&problem) => may_share = false,
                // The client that started the call had less time, or too many requests. The last call is its own.
                Err(problem)
                    if has_short_time && problem.code == Code::DeadlineExceeded
                        || is_shared && is_busy(&problem) =>
                {
                    may_share = calls_left > 2;
                }
                Err(problem) if problem.code.is_passing() => {
                    return self.stale(question, context).await.ok_or(problem);
                }
                Err(problem) if !is_shared => return Err(problem),
                // A shared call's error belongs to the request that started it.
                Err(_) => may_share = false,
            }
            calls_left -= 1;
        }
        Err(Problem::unavailable("the database that was read is behind"))
    }

    /// Joins an equal call, if that is allowed and there is one; otherwise calls the service. Also returns whether a
    /// joined call has the operation's full time.
    async fn call_or_join(
        &self,
        question: &Arc<Question>,
        context: &CallContext,
        may_share: bool,
    ) -> (CallResult, Option<bool>) {
        if may_share && let Some((call, has_full_time)) = self.calls.find(question, Instant::now()) {
            return (call.await, Some(has_full_time));
        }
        let handle = &self.operations[question.operation];
        let result = if may_share && handle.has_height.load(Ordering::Relaxed) {
            let call = self.call(handle, question, context);
            self.calls.start(question, context.has_full_time, call).await
        } else {
            self.call(handle, question, context).await
        };
        (result, None)
    }

    /// The last answer, while the store is unavailable.
    async fn stale(&self, question: &Question, context: &CallContext) -> Option<Arc<Answer>> {
        let answer = self.cache.stale(question, context.connection.min_height())?;
        let is_shown = self.heads.is_store_away().await;
        if is_shown {
            self.metrics.read(ReadSource::Stale).inc();
        }
        is_shown.then_some(answer)
    }

    fn call(
        &self,
        handle: &Arc<OperationHandle>,
        question: &Arc<Question>,
        context: &CallContext,
    ) -> impl Future<Output = CallResult> + Send + 'static {
        let options = context.ask_options(question.encoding, true);
        let (bus, heads, cache) = (self.bus.clone(), Arc::clone(&self.heads), Arc::clone(&self.cache));
        let (handle, question) = (Arc::clone(handle), Arc::clone(question));
        let (base_headers, caching) = (Arc::clone(&self.base_headers), self.caching_of_newest.clone());
        let (memory, metrics_of_edge) = (self.memory.clone(), self.metrics.clone());
        let (client, is_look) = (context.client, context.is_look);
        let work = async move {
            let asked_at = Instant::now();
            let mut reply = bus.ask(&handle.target, question.message.clone(), &options).await?;
            let held = match is_look {
                true => memory.hold_watched(client, reply.parts),
                false => memory.hold(client, reply.parts),
            };
            reply.parts = held.inspect_err(|_| _ = metrics_of_edge.shed(NO_MEMORY).inc())?;
            let metrics = handle.metrics.clone();
            let answer = Answer::of_read(&base_headers, &caching, reply, &question, asked_at, metrics);
            let answer = Arc::new(Answer { memory, client, ..answer });
            if question.at_block.is_some() && question.at_block != answer.height() {
                // A replica of a release without `atBlock` ignores it.
                return Err(Problem::unavailable("the replica that was called cannot read as of a block"));
            }
            if let Some(height) = answer.height() {
                handle.has_height.store(true, Ordering::Relaxed);
                if !heads.was_reset_since(asked_at) {
                    heads.observe(height);
                    cache.insert(&question, &answer);
                }
            }
            Ok(answer)
        };
        // A shared call belongs to the trace of the request that started it.
        work.instrument(span::current())
    }

    /// Sends a submission once. If it is still waiting when the edge stops, the client gets an error reply, too: a
    /// closed connection would not name the transaction.
    ///
    /// # Errors
    /// The relay's problem. `deadline exceeded` with the hash of the transaction, when the relay gave no answer or the
    /// edge stops.
    pub(crate) async fn submit(&self, question: &Question, context: &CallContext) -> Result<Answer, Problem> {
        let handle = &self.operations[question.operation];
        let options = context.ask_options(question.encoding, false);
        let mut stopping = self.stopping.clone();
        let reply = tokio::select! {
            biased;
            reply = self.bus.ask(&handle.target, question.message.clone(), &options) => reply,
            Ok(_) = stopping.wait_for(|is_stopping| *is_stopping) => Err(Problem::deadline_exceeded(STOPPED)),
        };
        let reply = reply.map_err(|problem| with_hash(problem, question))?;
        Ok(Answer::of_reply(&self.base_headers, reply, question))
    }

    /// Counts the bytes of a request's body while they are received.
    ///
    /// # Errors
    /// Unavailable, when there is no room for them.
    pub(crate) fn hold_body(&self, client: u64, bytes: usize) -> Result<Option<Held>, Problem> {
        self.memory.take(client, bytes).inspect_err(|_| _ = self.metrics.shed(NO_MEMORY).inc())
    }

    /// Opens a download at a byte.
    ///
    /// # Errors
    /// The service's problem, or `unavailable` and `deadline exceeded` of the bus.
    pub(crate) async fn open(
        &self,
        question: &Question,
        context: &CallContext,
        from_byte: u64,
    ) -> Result<OpenReply, Problem> {
        let target = &self.operations[question.operation].target;
        let options = context.ask_options(question.encoding, true);
        self.bus.open(target, question.message.clone(), from_byte, &options).await
    }

    /// Pulls an opened download up to a byte, or to its end.
    ///
    /// # Errors
    /// When the stream cannot be pulled.
    pub(crate) async fn pull(
        &self,
        question: &Question,
        context: &CallContext,
        opened: &OpenReply,
        to_byte: Option<u64>,
    ) -> Result<PullStream, Problem> {
        let target = &self.operations[question.operation].target;
        self.bus.pull(target, question.message.clone(), opened, context.pull_options(to_byte)).await
    }
}

/// The problem of a submission. If the relay gave no answer, the outcome is as open as when the node gives none, and the
/// client gets the same answer (contract 5.3): the hash with which to look for the transaction.
fn with_hash(mut problem: Problem, question: &Question) -> Problem {
    if problem.code != Code::DeadlineExceeded || problem.number() != NOT_MAPPED {
        return problem;
    }
    let request = question.message.clone();
    let (number, tx) = match question.operation {
        SubmitTransactionRequest::NAME => {
            let tx = SubmitTransactionRequest::decode(request).ok().and_then(|request| request.tx);
            (submit_transaction::NODE, tx.map(|tx| tx.encode_to_vec().into()))
        }
        SubmitRawTransactionRequest::NAME => {
            let tx = SubmitRawTransactionRequest::decode(request).ok().map(|request| request.tx);
            (submit_raw_transaction::NODE, tx)
        }
        _ => return problem,
    };
    if let (Some(tx), Some(detail)) = (tx, problem.details.first_mut()) {
        detail.number = number;
        detail.inner = format!("{:X}", Sha256::digest(&tx));
    }
    problem
}
