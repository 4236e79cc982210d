//! The actor that submits each transaction once: equal submissions in flight share one call to the node, and
//! the result is cached. The actor holds the tables; the calls run in tasks of their own, so that its mailbox
//! never waits.

use std::{collections::HashMap, rc::Rc, time::Duration};

use actix::{Actor, Addr, AsyncContext, Context, Handler, Message, MessageResult};
use futures_util::{FutureExt, future::Shared};
use mesh_problem::Problem;
use mesh_transaction::TxHash;
use proto_msgs::v2::SubmitTransactionReply;
use tokio::{
    sync::{Semaphore, oneshot},
    time::Instant,
};
use tracing::Instrument;

use crate::{
    config::{Rules, Signatures},
    metrics::{Metrics, OutcomeLabel},
    node::Nodes,
    peers::Peers,
    result_cache::{Finality, ResultCache, SubmissionState},
    submission::{self, Outcome, Submission, Submitter},
};

/// Most submissions in flight per allowed request. More than one, because a submission continues when its
/// callers have gone.
const ABANDONED_FACTOR: usize = 4;

/// Age at which an accepted transaction that no block is known to have may be lost: a node that restarts loses its mempool.
pub(crate) const DOUBTED_AFTER: Duration = Duration::from_secs(5);

/// Submits transactions to the nodes.
pub(crate) struct Relay {
    pub(crate) nodes: Nodes,
    pub(crate) signatures: Option<Rc<Signatures>>,
    pub(crate) rules: Rules,
    submitter: Rc<Submitter>,
    pub(crate) peers: Peers,
    results: ResultCache,
    /// States that clients received and that no submission of this replica found.
    reported: ResultCache,
    in_flight: HashMap<FlightKey, InFlight>,
    metrics: Metrics,
    max_requests: usize,
}

/// Names a submission in flight. A transaction has at most two: one that the node is asked about, and one
/// that the node has accepted and that is looked up in the blocks until it is in one. A check does not join
/// the latter: the node answers it at once.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct FlightKey {
    hash: TxHash,
    is_lookup: bool,
}

/// A submission in flight.
struct InFlight {
    finality: Finality,
    pending: PendingOutcome,
}

type PendingOutcome = Shared<oneshot::Receiver<Outcome>>;

impl Relay {
    pub(crate) fn new(
        nodes: Nodes,
        peers: Peers,
        rules: Rules,
        signatures: Option<Signatures>,
        (max_requests, commits): (usize, usize),
        metrics: Metrics,
    ) -> Self {
        let commits = Rc::new(Semaphore::new(commits));
        Self {
            submitter: Rc::new(Submitter { nodes: nodes.clone(), rules, commits }),
            nodes,
            signatures: signatures.map(Rc::new),
            rules,
            peers,
            results: ResultCache::new(rules.result_ttl, rules.max_results),
            reported: ResultCache::new(rules.result_ttl, rules.max_results),
            in_flight: HashMap::new(),
            metrics,
            max_requests,
        }
    }

    /// Answers from the cache, joins an equal submission in flight, or starts one.
    fn begin(&mut self, submission: Submission, context: &mut Context<Self>) -> Step {
        let Submission { hash, required, .. } = submission;
        let now = Instant::now();
        let state = self.results.get(&hash, now);
        let is_doubted = state.is_some_and(SubmissionState::is_pending)
            && self.results.is_older(&hash, DOUBTED_AFTER, now);
        if let Some(reply) = state.and_then(|state| state.answer_to(required))
            && !is_doubted
        {
            self.metrics.count_submission(required, OutcomeLabel::Cached);
            return Step::Done(reply.clone());
        }
        let is_lookup = required == Finality::Commit && state.is_some_and(SubmissionState::is_accepted);
        let key = FlightKey { hash, is_lookup };
        let asked = self.in_flight.get(&FlightKey { hash, is_lookup: false });
        if let Some(InFlight { finality, pending }) = asked.or_else(|| self.in_flight.get(&key)) {
            self.metrics.count_submission(required, OutcomeLabel::Shared);
            return Step::Wait { pending: pending.clone(), is_enough: *finality >= required };
        }
        if self.in_flight.len() >= self.max_requests * ABANDONED_FACTOR {
            return Step::Busy;
        }
        let earlier = state.cloned().unwrap_or_default();
        let (sender, pending) = oneshot::channel();
        let pending = pending.shared();
        self.in_flight.insert(key, InFlight { finality: required, pending: pending.clone() });
        let (submitter, peers, relay) = (Rc::clone(&self.submitter), self.peers.clone(), context.address());
        // Traced as a part of the request that started it.
        let span = submission.span.clone();
        // A task, so that it ends although all callers leave: its outcome must be cached, since the
        // transaction may have reached the node. Not a future of the actor's context, which polls all its
        // futures whenever one of them wakes.
        let submitting = async move {
            let outcome = submitter.submit(&submission, &earlier, is_doubted).await;
            if outcome.state != SubmissionState::default() {
                // Before the client is answered: the others know it when the client asks them.
                peers.share(&submission.hash, &outcome.state, false).await;
            }
            // Fails only when the actor has stopped: then there is no cache to update.
            let _ = relay.send(Finish { key, required, outcome, sender }).await;
        };
        actix::spawn(submitting.instrument(span));
        Step::Wait { pending, is_enough: true }
    }

    /// This replica's result for a transaction.
    pub(crate) fn state(&self, hash: &TxHash) -> SubmissionState {
        let now = Instant::now();
        let mut state = self.results.get(hash, now).cloned().unwrap_or_default();
        state.merge(self.reported.get(hash, now).cloned().unwrap_or_default());
        state
    }

    /// This replica's results for all submissions, the newest first.
    pub(crate) fn newest_results(&self) -> impl Iterator<Item = (&TxHash, &SubmissionState)> {
        self.results.newest(Instant::now())
    }

    /// The states of transactions in the node's mempool that clients received, the newest first.
    pub(crate) fn reported_pending(&self) -> impl Iterator<Item = (&TxHash, &SubmissionState)> {
        self.reported.newest(Instant::now()).filter(|(_, state)| state.is_pending())
    }

    /// Caches the outcome of a submission and sends it to its callers.
    fn finish(&mut self, Finish { key, required, outcome, sender }: Finish) {
        let FlightKey { hash, .. } = key;
        self.in_flight.remove(&key);
        let label = OutcomeLabel::from_result(&outcome.result);
        self.metrics.count_submission(required, label);
        tracing::debug!(%hash, kind = required.name(), outcome = label.name(), "a submission is settled");
        if outcome.state != SubmissionState::default() {
            self.results.insert(hash, outcome.state.clone(), Instant::now());
        }
        self.metrics.set_cached_results(self.results.len());
        // Fails only when all callers have gone.
        let _ = sender.send(outcome);
    }
}

impl Actor for Relay {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Self::Context) {
        // Each request sends at most four messages: a submission itself, `Begin` and `Finish`; a status itself,
        // two `GetState` and `Reported`.
        context.set_mailbox_capacity(self.max_requests * 4);
    }
}

/// The next step of a submission.
pub(crate) enum Step {
    /// The answer is known.
    Done(SubmitTransactionReply),
    /// It is in flight.
    Wait {
        /// Its outcome.
        pending: PendingOutcome,
        /// Whether the outcome will be final enough for the caller.
        is_enough: bool,
    },
    /// Too many are in flight.
    Busy,
}

/// Asks the relay for the next step of a submission.
#[derive(Message)]
#[rtype(result = "Step")]
struct Begin(Submission);

impl Handler<Begin> for Relay {
    type Result = MessageResult<Begin>;

    fn handle(&mut self, Begin(submission): Begin, context: &mut Context<Self>) -> Self::Result {
        MessageResult(self.begin(submission, context))
    }
}

/// Reports the outcome of a submission to the relay.
#[derive(Message)]
#[rtype(result = "()")]
struct Finish {
    key: FlightKey,
    required: Finality,
    outcome: Outcome,
    sender: oneshot::Sender<Outcome>,
}

impl Handler<Finish> for Relay {
    type Result = ();

    fn handle(&mut self, finish: Finish, _: &mut Context<Self>) {
        self.finish(finish);
    }
}

/// Requests this replica's result for a transaction.
#[derive(Message)]
#[rtype(result = "SubmissionState")]
pub(crate) struct GetState(pub(crate) TxHash);

impl Handler<GetState> for Relay {
    type Result = MessageResult<GetState>;

    fn handle(&mut self, GetState(hash): GetState, _: &mut Context<Self>) -> Self::Result {
        MessageResult(self.state(&hash))
    }
}

/// Caches the state of a transaction that a client receives.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Reported(pub(crate) TxHash, pub(crate) SubmissionState);

impl Handler<Reported> for Relay {
    type Result = ();

    fn handle(&mut self, Reported(hash, state): Reported, _: &mut Context<Self>) {
        // Not among the results, which a client that asks for many old transactions would evict.
        self.reported.learn(hash, state, Instant::now());
    }
}

/// A state that another replica knows.
pub(crate) struct Learned {
    pub(crate) hash: TxHash,
    pub(crate) state: SubmissionState,
    /// Whether the transaction was read and not submitted.
    pub(crate) is_reported: bool,
}

/// Reports other replicas' results.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Learn {
    pub(crate) states: Vec<Learned>,
    /// Whether transactions that this replica does not know are left out.
    pub(crate) is_for_known: bool,
}

impl Handler<Learn> for Relay {
    type Result = ();

    fn handle(&mut self, Learn { states, is_for_known }: Learn, _: &mut Context<Self>) {
        let now = Instant::now();
        for Learned { hash, state, is_reported } in states {
            if self.results.get(&hash, now).is_some() || !is_for_known && !is_reported {
                self.results.learn(hash, state, now);
            } else if is_reported || self.reported.get(&hash, now).is_some() {
                self.reported.learn(hash, state, now);
            }
        }
        self.metrics.set_cached_results(self.results.len());
    }
}

/// Submits a transaction and waits for its outcome.
pub(crate) async fn submit(
    relay: &Addr<Relay>,
    submission: Submission,
) -> Result<SubmitTransactionReply, Problem> {
    let stopped = |_| Problem::unavailable("the relay is stopping");
    loop {
        match relay.send(Begin(submission.clone())).await.map_err(stopped)? {
            Step::Done(reply) => return Ok(reply),
            Step::Wait { pending, is_enough } => {
                let outcome = pending.await.map_err(|_| submission::abandoned(&submission.hash))?;
                // A failure is also the result for callers that wait for a later step, and a step before it the
                // result for those who wait for no more.
                match (outcome.result, outcome.state.answer_to(submission.required)) {
                    (Ok(reply), _) if is_enough => return Ok(reply),
                    (Ok(_), _) => {}
                    (Err(_), Some(reply)) => return Ok(reply.clone()),
                    (Err(problem), None) => return Err(problem),
                }
            }
            Step::Busy => return Err(Problem::unavailable("too many submissions are in flight")),
        }
    }
}
