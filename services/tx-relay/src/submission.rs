//! One submission on its way to the node, until it is settled (contract 5.3). It puts a transaction on the wire once;
//! what may have reached the node is never sent again by itself.

use std::{rc::Rc, time::Duration};

use bytes::Bytes;
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
    fates::{Fate, Strength},
    node::{COMMIT, Failed, Included, Nodes, Refusal, Verdict},
};

/// Pauses before the node is asked again about what it has in its cache: it caches before it checks.
const CACHE_PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_millis(400)];

/// Between two looks for a transaction in the blocks.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// The log of an answer to a transaction that the node knew before.
const ALREADY: &str = "already submitted";

/// A transaction that a client wants in.
#[derive(Debug, Clone)]
pub(crate) struct Submission {
    pub(crate) tx: Bytes,
    pub(crate) hash: TxHash,
    pub(crate) wanted: Strength,
    /// The trace that it is told in.
    pub(crate) span: Span,
}

/// What came of it: an answer, and what is to be remembered.
#[derive(Debug, Clone)]
pub(crate) struct Settled {
    pub(crate) result: Result<SubmitTransactionReply, Problem>,
    pub(crate) learned: Fate,
}

/// What a submission goes through.
pub(crate) struct Way {
    pub(crate) nodes: Nodes,
    pub(crate) rules: Rules,
    /// Room for those that wait for a block.
    pub(crate) commits: Rc<Semaphore>,
}

impl Way {
    /// Takes a submission to the node, of which this much is known.
    pub(crate) async fn settle(&self, submission: &Submission, before: &Fate) -> Settled {
        let Submission { tx, hash, wanted, .. } = submission;
        let case = Case { way: self, tx, hash: *hash, wanted: *wanted, before };
        if *wanted < Strength::Commit {
            return case.hand_over().await;
        }
        match self.commits.try_acquire() {
            Ok(_room) => case.commit().await,
            Err(_) => Settled::failed(Problem::new(
                Code::ResourceExhausted,
                NOT_MAPPED,
                "too many transactions wait for a block",
            )),
        }
    }
}

struct Case<'a> {
    way: &'a Way,
    tx: &'a [u8],
    hash: TxHash,
    wanted: Strength,
    before: &'a Fate,
}

impl Case<'_> {
    /// Submits without waiting for a block.
    async fn hand_over(&self) -> Settled {
        if let Some(settled) = self.was_there_before().await {
            return settled;
        }
        let nodes = &self.way.nodes;
        self.goes(false);
        match self.wanted {
            Strength::Async => match nodes.broadcast_async(self.tx).await {
                Ok(()) => self.accepted(Strength::Async, accepted(String::new(), String::new())),
                Err(Failed::Refused(Refusal::InCache)) => match self.way.rules.node_keeps_refused {
                    true => self.says_nothing(),
                    false => self.already(Strength::Async),
                },
                Err(failed) => self.failed(failed),
            },
            Strength::Sync | Strength::Commit => match nodes.broadcast_sync(self.tx).await {
                Ok(verdict) => self.judged(verdict).await,
                Err(Failed::Refused(Refusal::InCache)) => self.cached().await,
                Err(failed) => self.failed(failed),
            },
        }
    }

    /// Submits and waits for a block; a transaction that is there already is followed into one.
    async fn commit(&self) -> Settled {
        let deadline = Instant::now() + COMMIT;
        if self.before.is_accepted() {
            return self.follow(deadline).await;
        }
        if let Some(settled) = self.was_there_before().await {
            return settled;
        }
        self.goes(false);
        match self.way.nodes.broadcast_commit(self.tx).await {
            Ok((verdict, Some(height))) => self.executed(Included { height, verdict }),
            Ok((verdict, None)) => self.refused(verdict).await,
            Err(Failed::Refused(Refusal::InCache)) => {
                let cached = self.cached().await;
                match &cached.result {
                    Ok(reply) if reply.success => self.follow(deadline).await,
                    _ => cached,
                }
            }
            Err(Failed::Refused(Refusal::NoBlockYet)) => self.no_block_yet(),
            Err(failed) => self.failed(failed),
        }
    }

    /// What came of an earlier submission whose answer was lost, if a block tells.
    async fn was_there_before(&self) -> Option<Settled> {
        if !self.before.may_be_there {
            return None;
        }
        let included = self.way.nodes.find(&self.hash).await.ok()??;
        Some(self.included(included))
    }

    /// The node has it in its cache: either it is there, or its check runs elsewhere at this moment.
    async fn cached(&self) -> Settled {
        if self.way.rules.node_keeps_refused {
            return self.says_nothing();
        }
        for pause in CACHE_PAUSES {
            sleep(pause).await;
            self.goes(true);
            match self.way.nodes.broadcast_sync(self.tx).await {
                Ok(verdict) => return self.judged(verdict).await,
                Err(Failed::Refused(Refusal::InCache)) => {}
                Err(failed) => return self.failed(failed),
            }
        }
        self.already(Strength::Sync)
    }

    /// Says that the transaction goes to the node now, at first or to ask about the node's cache. Drills count it.
    fn goes(&self, asks_again: bool) {
        let kind = self.wanted.name();
        tracing::debug!(hash = %self.hash, kind, asks_again, "a transaction goes to the node");
    }

    async fn judged(&self, verdict: Verdict) -> Settled {
        match verdict.code {
            0 => self.accepted(Strength::Sync, accepted(verdict.data, verdict.log)),
            _ => self.refused(verdict).await,
        }
    }

    /// A refusal, unless it is of a repeat: a node that has forgotten its cache refuses what a block has.
    async fn refused(&self, verdict: Verdict) -> Settled {
        let may_be_there = self.before.may_be_there || self.before.is_accepted();
        let pauses = if may_be_there { &CACHE_PAUSES[..] } else { &[] };
        for pause in std::iter::once(&Duration::ZERO).chain(pauses) {
            sleep(*pause).await;
            if let Ok(Some(included)) = self.way.nodes.find(&self.hash).await {
                return self.included(included);
            }
        }
        let Verdict { code, data, log } = verdict;
        let reply = SubmitTransactionReply { code, data, log, ..SubmitTransactionReply::default() };
        Settled::known(Strength::Sync, reply)
    }

    /// Looks for it in the blocks until it is in one.
    async fn follow(&self, deadline: Instant) -> Settled {
        loop {
            if let Ok(Some(included)) = self.way.nodes.find(&self.hash).await {
                return self.executed(included);
            }
            if Instant::now() + LOOK_EVERY >= deadline {
                return self.no_block_yet();
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// It is in a block, and had been before this submission.
    fn included(&self, included: Included) -> Settled {
        match self.wanted {
            Strength::Commit => self.executed(included),
            Strength::Async | Strength::Sync => self.already(Strength::Sync),
        }
    }

    fn executed(&self, Included { height, verdict: Verdict { code, data, log } }: Included) -> Settled {
        let (success, tx_hash) = match code {
            0 => (true, self.hash.to_string()),
            _ => (false, String::new()),
        };
        Settled::known(Strength::Commit, SubmitTransactionReply { success, tx_hash, code, data, log, height })
    }

    fn accepted(&self, strength: Strength, mut reply: SubmitTransactionReply) -> Settled {
        reply.tx_hash = self.hash.to_string();
        Settled::known(strength, reply)
    }

    fn already(&self, strength: Strength) -> Settled {
        self.accepted(strength, accepted(String::new(), ALREADY.to_owned()))
    }

    fn no_block_yet(&self) -> Settled {
        let problem = self.late("the transaction is in no block so far; it may still be included");
        let fate = self.already(Strength::Sync).learned;
        Settled {
            result: Err(problem),
            learned: if self.before.is_accepted() { Fate::default() } else { fate },
        }
    }

    /// "Already in cache" of a node that keeps refused transactions there.
    fn says_nothing(&self) -> Settled {
        let problem = Problem::new(Code::AlreadyExists, REFUSED, "the node has seen this transaction before");
        Settled::failed(problem.with_inner(self.hash.to_string()))
    }

    fn late(&self, what: &str) -> Problem {
        Problem::new(Code::DeadlineExceeded, NODE, what).with_inner(self.hash.to_string())
    }

    fn failed(&self, failed: Failed) -> Settled {
        match failed {
            Failed::Late => Settled::unknown(
                self.late("the node did not answer in time; the fate of the transaction is unknown"),
            ),
            Failed::Broken(why) => Settled::unknown(
                self.late("the node broke off; the fate of the transaction is unknown").caused_by(why),
            ),
            Failed::Refused(Refusal::Other(text)) => {
                Settled::unknown(problem(Failed::Refused(Refusal::Other(text))))
            }
            failed => Settled::failed(problem(failed)),
        }
    }
}

impl Settled {
    fn known(strength: Strength, reply: SubmitTransactionReply) -> Self {
        Self {
            result: Ok(reply.clone()),
            learned: Fate { answer: Some((strength, reply)), may_be_there: false },
        }
    }

    /// It has not reached the node's mempool.
    fn failed(problem: Problem) -> Self {
        Self { result: Err(problem), learned: Fate::default() }
    }

    /// It may have.
    fn unknown(problem: Problem) -> Self {
        Self { result: Err(problem), learned: Fate { may_be_there: true, ..Fate::default() } }
    }
}

fn accepted(data: String, log: String) -> SubmitTransactionReply {
    SubmitTransactionReply { success: true, data, log, ..SubmitTransactionReply::default() }
}

/// What a client is told of a call that came to nothing.
pub(crate) fn problem(failed: Failed) -> Problem {
    let refused = |code, message| Problem::new(code, REFUSED, message);
    match failed {
        Failed::NotSent(why) => {
            Problem::new(Code::Unavailable, NODE, "the consensus node cannot be reached").caused_by(why)
        }
        Failed::Late => Problem::new(Code::DeadlineExceeded, NODE, "the node did not answer in time"),
        Failed::Broken(why) => {
            Problem::new(Code::DeadlineExceeded, NODE, "the node broke off").caused_by(why)
        }
        Failed::Refused(refusal) => match refusal {
            Refusal::InCache => refused(Code::AlreadyExists, "the node has seen this transaction before"),
            Refusal::Full => refused(Code::ResourceExhausted, "the node's mempool is full"),
            Refusal::TooLarge => refused(Code::InvalidArgument, "the transaction is too large for the node"),
            Refusal::CatchingUp => refused(Code::Unavailable, "the node is catching up"),
            Refusal::NoBlockYet => refused(
                Code::DeadlineExceeded,
                "the transaction is in no block so far; it may still be included",
            ),
            Refusal::NotFound => refused(Code::Internal, "the node knows no such transaction"),
            Refusal::Other(text) => {
                refused(Code::Internal, "the node could not take the transaction").caused_by(text)
            }
        },
    }
}
