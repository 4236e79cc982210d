//! The steps of one submission (contract 5.3). A transaction that may have reached the node is never sent
//! again without a new request.

use std::{rc::Rc, time::Duration};

use bytes::Bytes;
use mesh_node_rpc::foreign_answer;
use mesh_problem::{Code, NOT_MAPPED, Problem};
use mesh_transaction::TxHash;
use proto_msgs::{
    numbers::submit_transaction::{NODE, REFUSED},
    v2::SubmitTransactionReply,
};
use tokio::{
    sync::Semaphore,
    time::{Instant, sleep},
};
use tracing::Span;

use crate::{
    config::Rules,
    node::{COMMIT_TIMEOUT, CallError, IncludedTx, Nodes, Refusal, TxResult},
    relay::DOUBTED_AFTER,
    result_cache::{Finality, SubmissionState},
};

/// Pauses before a transaction that the node has in its cache is sent again: the node caches before it
/// checks.
const CACHE_PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_millis(400)];

/// Pause between two lookups of a transaction in the blocks.
const LOOKUP_INTERVAL: Duration = Duration::from_millis(250);

/// The log of a reply about a transaction that the node had before.
const ALREADY: &str = "already submitted";

/// A transaction to submit.
#[derive(Debug, Clone)]
pub(crate) struct Submission {
    pub(crate) tx: Bytes,
    pub(crate) hash: TxHash,
    pub(crate) required: Finality,
    /// The span that it is traced in.
    pub(crate) span: Span,
}

/// The answer to a submission, and the state to cache.
#[derive(Debug, Clone)]
pub(crate) struct Outcome {
    pub(crate) result: Result<SubmitTransactionReply, Problem>,
    pub(crate) state: SubmissionState,
}

/// Submits transactions.
pub(crate) struct Submitter {
    pub(crate) nodes: Nodes,
    pub(crate) rules: Rules,
    /// Permits for submissions that wait for a block.
    pub(crate) commits: Rc<Semaphore>,
}

impl Submitter {
    /// Submits a transaction; `earlier` is its cached state, and `is_doubted` whether the node may have lost it since.
    pub(crate) async fn submit(
        &self,
        submission: &Submission,
        earlier: &SubmissionState,
        is_doubted: bool,
    ) -> Outcome {
        let Submission { tx, hash, required, .. } = submission;
        let mut attempt = Attempt {
            submitter: self,
            tx,
            hash: *hash,
            required: *required,
            earlier,
            asked_again: earlier.asked_again,
        };
        if *required < Finality::Commit {
            return match is_doubted {
                true => attempt.ask_again().await,
                false => attempt.broadcast().await,
            };
        }
        match self.commits.try_acquire() {
            Ok(_permit) if earlier.is_accepted() => {
                let doubted_at = Instant::now() + if is_doubted { Duration::ZERO } else { DOUBTED_AFTER };
                attempt.follow(doubted_at).await
            }
            Ok(_permit) => attempt.commit().await,
            Err(_) => Outcome::failed(Problem::new(
                Code::ResourceExhausted,
                NOT_MAPPED,
                "too many transactions wait for a block",
            )),
        }
    }
}

struct Attempt<'a> {
    submitter: &'a Submitter,
    tx: &'a [u8],
    hash: TxHash,
    required: Finality,
    earlier: &'a SubmissionState,
    /// That of the answer.
    asked_again: u32,
}

impl Attempt<'_> {
    /// Submits without waiting for a block.
    async fn broadcast(&self) -> Outcome {
        if let Some(outcome) = self.find_earlier().await {
            return outcome;
        }
        let nodes = &self.submitter.nodes;
        self.log_send(self.earlier.is_open_refusal());
        match self.required {
            Finality::Async => match nodes.broadcast_async(self.tx).await {
                Ok(()) => self.accepted(Finality::Async, accepted(String::new(), String::new())),
                Err(CallError::Refused(Refusal::InCache)) => match self.submitter.rules.node_keeps_refused {
                    true => self.ambiguous(),
                    false => self.already(Finality::Async),
                },
                Err(failed) => self.failed(failed).await,
            },
            Finality::Sync | Finality::Commit => match nodes.broadcast_sync(self.tx).await {
                Ok(result) => self.checked(result).await,
                Err(CallError::Refused(Refusal::InCache)) => self.resolve_cached().await,
                Err(failed) => self.failed(failed).await,
            },
        }
    }

    /// Gives a transaction that the node has accepted to it once more, unless a block has it. While the node has it, or does
    /// not say, the earlier answer counts.
    async fn ask_again(&mut self) -> Outcome {
        let nodes = &self.submitter.nodes;
        if let Ok(Some(included)) = nodes.find(&self.hash).await {
            return match self.required {
                Finality::Commit => self.executed(included),
                Finality::Async | Finality::Sync => self.as_before(),
            };
        }
        self.log_send(true);
        match nodes.broadcast_sync(self.tx).await {
            Ok(result) | Err(CallError::Refused(Refusal::Invalid(_, result))) => {
                self.asked_again += 1;
                self.checked(result).await
            }
            Err(_) => self.as_before(),
        }
    }

    /// Waits for the block of a transaction that the node has accepted, and gives it to the node once more at a time at which
    /// no block has it.
    async fn follow(&mut self, doubted_at: Instant) -> Outcome {
        let deadline = Instant::now() + COMMIT_TIMEOUT;
        if let Some(executed) = self.look_up_until(doubted_at).await {
            return executed;
        }
        let answered = self.ask_again().await;
        self.until_block(answered, deadline).await
    }

    /// Submits and waits for a block.
    async fn commit(&self) -> Outcome {
        let deadline = Instant::now() + COMMIT_TIMEOUT;
        if let Some(outcome) = self.find_earlier().await {
            return outcome;
        }
        self.log_send(self.earlier.is_open_refusal());
        let answered = match self.submitter.nodes.broadcast_commit(self.tx).await {
            Ok((result, Some(height))) => self.executed(IncludedTx { height, result }),
            Ok((result, None)) => self.refused(result).await,
            Err(CallError::Refused(Refusal::InCache)) => self.resolve_cached().await,
            Err(CallError::Refused(Refusal::NoBlockYet)) => self.no_block_yet(),
            Err(failed) => self.failed(failed).await,
        };
        self.until_block(answered, deadline).await
    }

    /// The outcome in a block, if the answer is that the node has the transaction.
    async fn until_block(&self, answered: Outcome, deadline: Instant) -> Outcome {
        match &answered.result {
            Ok(reply) if reply.success && reply.height == 0 => self.wait_for_block(deadline).await,
            _ => answered,
        }
    }

    /// Whether the node may have the transaction from an earlier submission.
    fn may_have_arrived(&self) -> bool {
        self.earlier.may_have_arrived || self.earlier.is_accepted()
    }

    /// The outcome of an earlier submission whose answer was lost, if a block has it.
    async fn find_earlier(&self) -> Option<Outcome> {
        if !self.earlier.may_have_arrived {
            return None;
        }
        let included = self.submitter.nodes.find(&self.hash).await.ok()??;
        Some(self.included(included))
    }

    /// The outcome of a transaction in the node's cache: it was accepted, or another request's check is
    /// running.
    async fn resolve_cached(&self) -> Outcome {
        if self.submitter.rules.node_keeps_refused {
            return self.ambiguous();
        }
        for pause in CACHE_PAUSES {
            sleep(pause).await;
            self.log_send(true);
            match self.submitter.nodes.broadcast_sync(self.tx).await {
                Ok(result) => return self.checked(result).await,
                Err(CallError::Refused(Refusal::InCache)) => {}
                Err(failed) => return self.failed(failed).await,
            }
        }
        self.already(Finality::Sync)
    }

    /// Logs that the transaction is sent now, for the first time, or again after "already in cache" or an answer that is
    /// open. Drills count these lines.
    fn log_send(&self, asks_again: bool) {
        let kind = self.required.name();
        tracing::debug!(hash = %self.hash, kind, asks_again, "a transaction goes to the node");
    }

    async fn checked(&self, result: TxResult) -> Outcome {
        match result.code {
            0 => self.accepted(Finality::Sync, accepted(result.data, result.log)),
            _ => self.refused(result).await,
        }
    }

    /// A refusal by the check of a node, unless a node may have the transaction from an earlier submission: that node may
    /// be another one, which does not answer now, or one that lost its cache. Mempools are not read for a transaction
    /// that is new to the relay, so that refusals stay cheap.
    async fn refused(&self, result: TxResult) -> Outcome {
        if self.earlier.was_checked() {
            return self.as_before();
        }
        let may_have_arrived = self.may_have_arrived();
        // Before the blocks: a transaction moves from a mempool into a block.
        if may_have_arrived && matches!(self.submitter.nodes.is_waiting(&self.hash).await, Ok(true)) {
            return self.already(Finality::Sync);
        }
        let pauses = if may_have_arrived { &CACHE_PAUSES[..] } else { &[] };
        let mut found = Ok(None);
        for pause in std::iter::once(&Duration::ZERO).chain(pauses) {
            sleep(*pause).await;
            found = self.submitter.nodes.find(&self.hash).await;
            if let Ok(Some(included)) = found {
                return self.included(included);
            }
        }
        let TxResult { code, data, log } = result;
        if self.earlier.may_have_arrived {
            let what = format!(
                "the node refuses the transaction now, with code {code}, but may have it from an earlier submission; \
                 the outcome is unknown"
            );
            return Outcome::unknown(self.late(&what).caused_by(format!("{data} {log}")));
        }
        if let Err(error) = found
            && self.may_be_included(&error)
        {
            let what = "the node refuses the transaction now and does not say whether a block has it; the outcome \
                        is unknown";
            // Nothing of this submission is at a node, so that a later refusal counts.
            return Outcome::failed(self.late(what).caused_by(format!("{error:?}")));
        }
        let reply = SubmitTransactionReply { code, data, log, ..SubmitTransactionReply::default() };
        self.known(Finality::Sync, reply)
    }

    /// Whether a block may have a transaction that the node refuses and that no earlier submission is known to have left
    /// open, although this lookup failed. Another client or another replica may have submitted it before.
    fn may_be_included(&self, lookup: &CallError) -> bool {
        match lookup {
            CallError::Late | CallError::Broken(_) | CallError::TooLong | CallError::NotSent(_) => true,
            CallError::Foreign(status) if status.is_server_error() => true,
            // What was handed over without a check counts as refused when a check refuses it.
            CallError::Refused(Refusal::NoIndex) => false,
            // A proxy may answer so at all times.
            CallError::Foreign(_) | CallError::Refused(_) => self.earlier.is_accepted(),
        }
    }

    /// Looks the transaction up until a block has it or the deadline has passed.
    async fn wait_for_block(&self, deadline: Instant) -> Outcome {
        self.look_up_until(deadline).await.unwrap_or_else(|| self.no_block_yet())
    }

    /// The outcome when a block has the transaction before a time.
    async fn look_up_until(&self, end: Instant) -> Option<Outcome> {
        loop {
            if let Ok(Some(included)) = self.submitter.nodes.find(&self.hash).await {
                return Some(self.executed(included));
            }
            if Instant::now() + LOOKUP_INTERVAL >= end {
                return None;
            }
            sleep(LOOKUP_INTERVAL).await;
        }
    }

    /// The earlier answer.
    fn as_before(&self) -> Outcome {
        match &self.earlier.answer {
            Some((finality, reply)) => self.known(*finality, reply.clone()),
            None => self.already(Finality::Sync),
        }
    }

    /// The outcome when a block had the transaction before this submission.
    fn included(&self, included: IncludedTx) -> Outcome {
        match self.required {
            Finality::Commit => self.executed(included),
            Finality::Async | Finality::Sync => self.already(Finality::Sync),
        }
    }

    fn executed(&self, included: IncludedTx) -> Outcome {
        self.known(Finality::Commit, included.reply(&self.hash))
    }

    /// An answer of the node.
    fn known(&self, finality: Finality, reply: SubmitTransactionReply) -> Outcome {
        let state = SubmissionState {
            answer: Some((finality, reply.clone())),
            asked_again: self.asked_again,
            may_have_arrived: false,
        };
        Outcome { result: Ok(reply), state }
    }

    fn accepted(&self, finality: Finality, mut reply: SubmitTransactionReply) -> Outcome {
        reply.tx_hash = self.hash.to_string();
        self.known(finality, reply)
    }

    fn already(&self, finality: Finality) -> Outcome {
        self.accepted(finality, accepted(String::new(), ALREADY.to_owned()))
    }

    fn no_block_yet(&self) -> Outcome {
        let problem = self.late("the transaction is in no block so far; it may still be included");
        let state = self.already(Finality::Sync).state;
        Outcome {
            result: Err(problem),
            state: if self.earlier.is_accepted() { SubmissionState::default() } else { state },
        }
    }

    /// "Already in cache" from a node that keeps refused transactions there: accepted or refused is unknown.
    fn ambiguous(&self) -> Outcome {
        let problem = Problem::new(Code::AlreadyExists, REFUSED, "the node has seen this transaction before");
        Outcome::failed(problem.with_inner(self.hash.to_string()))
    }

    fn late(&self, what: &str) -> Problem {
        late(&self.hash, what)
    }

    /// The outcome after a failed call. Only after a refusal that is known to come before the check, or when no
    /// byte was sent, the transaction was not taken.
    async fn failed(&self, failed: CallError) -> Outcome {
        let (what, cause) = match failed {
            CallError::Late => ("the node did not answer in time", String::new()),
            CallError::Broken(why) => ("the connection to the node was lost", why),
            CallError::TooLong => ("the node's answer is too long", String::new()),
            CallError::Foreign(status) => {
                ("another server answered instead of the node", foreign_answer(status))
            }
            CallError::Refused(Refusal::Invalid(hash, result)) if hash == self.hash => {
                return self.refused(result).await;
            }
            CallError::Refused(refusal) if !refusal.is_before_check() => {
                ("the node reported an error after it received the transaction", format!("{refusal:?}"))
            }
            CallError::Refused(
                refusal @ (Refusal::Full
                | Refusal::TooManyWaiting
                | Refusal::TooLarge
                | Refusal::Throttled(_)
                | Refusal::Forbidden),
            ) if self.may_have_arrived() => {
                ("the node did not take the transaction again", format!("{refusal:?}"))
            }
            // An unreachable node or one that is catching up says nothing of what was sent before.
            not_taken => return Outcome::failed(not_taken.problem()),
        };
        let what = format!("{what}; the outcome of the transaction is unknown");
        Outcome::unknown(self.late(&what).caused_by(cause))
    }
}

impl Outcome {
    /// This submission has left nothing at a node.
    fn failed(problem: Problem) -> Self {
        Self { result: Err(problem), state: SubmissionState::default() }
    }

    /// The transaction may have reached the mempool.
    fn unknown(problem: Problem) -> Self {
        Self {
            result: Err(problem),
            state: SubmissionState { may_have_arrived: true, ..SubmissionState::default() },
        }
    }
}

fn accepted(data: String, log: String) -> SubmitTransactionReply {
    SubmitTransactionReply { success: true, data, log, ..SubmitTransactionReply::default() }
}

/// The problem of a submission whose outcome is open.
fn late(hash: &TxHash, what: &str) -> Problem {
    Problem::new(Code::DeadlineExceeded, NODE, what).with_inner(hash.to_string())
}

/// The problem of a submission that was in flight when the relay stopped.
pub(crate) fn abandoned(hash: &TxHash) -> Problem {
    late(hash, "the relay stopped; the outcome of the transaction is unknown")
}
