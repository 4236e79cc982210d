//! The actor that gives each transaction one fate: equal submissions in flight share one way to the node, and what
//! came of it is remembered. It holds the table; the waiting happens outside, so that its mailbox never waits.

use std::{collections::HashMap, rc::Rc};

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
    fates::{Fate, Fates, Strength},
    metrics::{Ended, Metrics},
    node::Nodes,
    submission::{Settled, Submission, Way},
};

/// How many submissions may be under way whose askers have gone, per one that is asked for.
const ABANDONED: usize = 4;

/// Takes transactions to the node.
pub(crate) struct Relay {
    pub(crate) nodes: Nodes,
    pub(crate) signatures: Option<Rc<Signatures>>,
    pub(crate) rules: Rules,
    way: Rc<Way>,
    fates: Fates,
    under_way: HashMap<TxHash, UnderWay>,
    metrics: Metrics,
    in_flight: usize,
}

/// A submission on its way to the node, and who waits for it.
struct UnderWay {
    strength: Strength,
    landing: Landing,
}

type Landing = Shared<oneshot::Receiver<Settled>>;

impl Relay {
    pub(crate) fn new(
        nodes: Nodes,
        rules: Rules,
        signatures: Option<Signatures>,
        (in_flight, commits): (usize, usize),
        metrics: Metrics,
    ) -> Self {
        let commits = Rc::new(Semaphore::new(commits));
        Self {
            way: Rc::new(Way { nodes: nodes.clone(), rules, commits }),
            nodes,
            signatures: signatures.map(Rc::new),
            rules,
            fates: Fates::new(rules.remember, rules.remember_at_most),
            under_way: HashMap::new(),
            metrics,
            in_flight,
        }
    }

    /// Answers from memory, joins a submission that is under way, or begins one.
    fn begin(&mut self, submission: Submission, context: &mut Context<Self>) -> Step {
        let Submission { hash, wanted, .. } = submission;
        let fate = self.fates.of(&hash, Instant::now());
        if let Some(reply) = fate.and_then(|fate| fate.answer_to(wanted)) {
            self.metrics.ended(wanted, Ended::Remembered);
            return Step::Known(reply.clone());
        }
        if let Some(UnderWay { strength, landing }) = self.under_way.get(&hash) {
            self.metrics.ended(wanted, Ended::Shared);
            return Step::Wait { landing: landing.clone(), is_enough: *strength >= wanted };
        }
        if self.under_way.len() >= self.in_flight * ABANDONED {
            return Step::Busy;
        }
        let before = fate.cloned().unwrap_or_default();
        let (land, landing) = oneshot::channel();
        let landing = landing.shared();
        self.under_way.insert(hash, UnderWay { strength: wanted, landing: landing.clone() });
        let (way, relay) = (Rc::clone(&self.way), context.address());
        // It is told in the trace of the one who began it.
        let span = submission.span.clone();
        // What may have reached the node is remembered, whether or not anybody waits. Not a future of the actor's own
        // context: that one polls all of them whenever one of them moves.
        let settling = async move {
            let settled = way.settle(&submission, &before).await;
            // Nobody asks any more for what an actor that has gone would have learned.
            let _ = relay.send(Settle { hash, wanted, settled, land }).await;
        };
        actix::spawn(settling.instrument(span));
        Step::Wait { landing, is_enough: true }
    }

    /// Learns what came of a submission, and tells those who wait for it.
    fn settle(&mut self, Settle { hash, wanted, settled, land }: Settle) {
        self.under_way.remove(&hash);
        let ended = Ended::of(&settled.result);
        self.metrics.ended(wanted, ended);
        tracing::debug!(%hash, kind = wanted.name(), outcome = ended.name(), "a submission is settled");
        if settled.learned != Fate::default() {
            self.fates.learn(hash, settled.learned.clone(), Instant::now());
        }
        self.metrics.remembers(self.fates.len());
        // Nobody may wait any more.
        let _ = land.send(settled);
    }
}

impl Actor for Relay {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Self::Context) {
        // Each request comes three times: as what was asked, as the submission that it turned out to be, and as what
        // came of that.
        context.set_mailbox_capacity(self.in_flight * 3);
    }
}

/// How a submission goes on.
pub(crate) enum Step {
    /// It is known what became of it.
    Known(SubmitTransactionReply),
    /// It is under way; what comes of it may not be enough for what is wanted.
    Wait {
        /// What comes of it.
        landing: Landing,
        /// Whether that answers what is wanted.
        is_enough: bool,
    },
    /// There is no room.
    Busy,
}

/// Asks the relay for the next step of a submission.
struct Begin(Submission);

impl Message for Begin {
    type Result = Step;
}

impl Handler<Begin> for Relay {
    type Result = MessageResult<Begin>;

    fn handle(&mut self, Begin(submission): Begin, context: &mut Context<Self>) -> Self::Result {
        MessageResult(self.begin(submission, context))
    }
}

/// Tells the relay what came of a submission that it began.
struct Settle {
    hash: TxHash,
    wanted: Strength,
    settled: Settled,
    land: oneshot::Sender<Settled>,
}

impl Message for Settle {
    type Result = ();
}

impl Handler<Settle> for Relay {
    type Result = ();

    fn handle(&mut self, settle: Settle, _: &mut Context<Self>) {
        self.settle(settle);
    }
}

/// Asks the relay what it remembers of a transaction.
pub(crate) struct Recall(pub(crate) TxHash);

impl Message for Recall {
    type Result = Option<Fate>;
}

impl Handler<Recall> for Relay {
    type Result = MessageResult<Recall>;

    fn handle(&mut self, Recall(hash): Recall, _: &mut Context<Self>) -> Self::Result {
        MessageResult(self.fates.of(&hash, Instant::now()).cloned())
    }
}

/// Submits and waits for what becomes of it.
pub(crate) async fn submit(
    relay: &Addr<Relay>,
    submission: Submission,
) -> Result<SubmitTransactionReply, Problem> {
    let gone = |_| Problem::unavailable("the relay is stopping");
    loop {
        match relay.send(Begin(submission.clone())).await.map_err(gone)? {
            Step::Known(reply) => return Ok(reply),
            Step::Wait { landing, is_enough } => {
                let settled = landing.await.map_err(|_| Problem::unavailable("the relay is stopping"))?;
                // What failed for a weaker one has failed for this one, too.
                if is_enough || settled.result.is_err() {
                    return settled.result;
                }
            }
            Step::Busy => return Err(Problem::unavailable("too many submissions are under way")),
        }
    }
}
