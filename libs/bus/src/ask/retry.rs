//! Attempts at a request until it ends. When the first attempt fails, it may be retried; when it is late, it
//! may be hedged: sent again while the earlier attempt is unanswered. When a replica or the connection was lost
//! meanwhile, it is sent again in any case; a submission only then, and only to the replica that has it. The first
//! answer is the result.

use std::{slice, sync::Arc, time::Duration};

use futures_util::{StreamExt, future::BoxFuture, stream::FuturesUnordered};
use mesh_problem::{Code, Problem};
use tokio::time::{Instant, sleep, timeout_at};

use super::{
    attempt::{Attempt, AttemptOutcome, AttemptResult},
    request::Request,
    types::Reply,
};

/// Pauses before a retry when no replica listens: replicas that lost the bus subscribe again within
/// milliseconds. Together below the 100 ms after which a missing replica must be reported.
const NO_RESPONDER_PAUSES: [Duration; 2] = [Duration::from_millis(15), Duration::from_millis(45)];

/// Pause before each further retry in a cluster whose replicas have sent heartbeats lately, and the number of these retries.
const REJOIN_PAUSE: Duration = Duration::from_millis(100);
const REJOINS: u32 = 20;

/// With less time left a refusal says nothing of the load.
const TOO_SHORT: Duration = Duration::from_millis(20);

/// The end of the message that no replica can begin a request in time.
const BUSY: &str = "are busy";

/// Whether a problem is that no replica could begin the request in the time of its client, or because that one has too many:
/// another client's may begin.
pub fn is_busy(problem: &Problem) -> bool {
    problem.code == Code::Unavailable
        && problem.details.first().is_some_and(|detail| detail.message.ends_with(BUSY))
}

/// Most hedges of one request while no replica is silent; then one more.
const MAX_HEDGES: u32 = 2;

/// Sends a request and waits for its reply; retries and hedges when that fails or is late.
pub(super) async fn run(request: Request<'_>, started: Instant) -> Result<Reply, Problem> {
    if request.options.repeatable {
        request.bus.shared.retry_budget.deposit();
    }
    let group = &request.target.group;
    let (waits, losses) = (group.has_one(), request.losses());
    let mut first = request.send(request.first_replica(), waits).await?;
    let hedge_at = request.hedge_at(started);
    match timeout_at(hedge_at, first.result()).await {
        Ok(AttemptResult::Answered(result)) => result,
        Ok(result) => {
            let failed = AttemptOutcome { replica: first.replica.clone(), is_hedge: false, result };
            Box::pin(Retries::new(&request, waits, losses, hedge_at).run(Some(failed))).await
        }
        Err(_) => Box::pin(Retries::new(&request, waits, losses, hedge_at).after(first).run(None)).await,
    }
}

/// The attempts at one request after its first.
struct Retries<'r, 'a> {
    request: &'r Request<'a>,
    pending: FuturesUnordered<BoxFuture<'r, AttemptOutcome>>,
    pauses: slice::Iter<'static, Duration>,
    /// The retries of [`REJOINS`] so far.
    rejoins: u32,
    /// When to hedge.
    hedge_at: Instant,
    hedges: u32,
    /// The replica that has a submission, if it was sent to one by name.
    asked: Option<Arc<str>>,
    /// Whether a submission that may be lost could not be sent again.
    was_unheard: bool,
    /// The losses before the last attempt that was no hedge.
    losses: u64,
    /// Replicas that were overloaded.
    overloaded: Vec<Box<str>>,
    /// Those of them that lack something, and would refuse it again.
    lacking: Vec<Box<str>>,
    /// Whether the request waits for its turn: no other replica is there, or none had room.
    waits: bool,
    /// Whether a torn reply was retried.
    was_torn: bool,
}

/// What to do after an attempt.
enum Step {
    /// The request has ended.
    Finish(Result<Reply, Problem>),
    /// Another attempt is still unanswered.
    Wait,
    /// Send the request again, after a pause. `None` = any replica.
    Retry { pause: Duration, replica: Option<Arc<str>> },
}

impl<'r, 'a: 'r> Retries<'r, 'a> {
    fn new(request: &'r Request<'a>, waits: bool, losses: u64, hedge_at: Instant) -> Self {
        Self {
            request,
            pending: FuturesUnordered::new(),
            pauses: NO_RESPONDER_PAUSES.iter(),
            rejoins: 0,
            hedge_at,
            hedges: 0,
            asked: None,
            was_unheard: false,
            losses,
            overloaded: Vec::new(),
            lacking: Vec::new(),
            waits,
            was_torn: false,
        }
    }

    /// Adds the first attempt, which is late but still unanswered.
    fn after(mut self, late: Attempt<'a>) -> Self {
        self.asked.clone_from(&late.replica);
        self.pending.push(Box::pin(late.outcome()));
        self
    }

    /// Runs until the request has ended. `failed`: an attempt that failed already.
    async fn run(mut self, mut failed: Option<AttemptOutcome>) -> Result<Reply, Problem> {
        loop {
            let outcome = match failed.take() {
                Some(outcome) => outcome,
                None => match timeout_at(self.hedge_at, self.pending.select_next_some()).await {
                    Ok(outcome) => outcome,
                    Err(_) => {
                        self.on_late().await?;
                        continue;
                    }
                },
            };
            match self.next_step(outcome) {
                Step::Finish(result) => return result,
                Step::Wait => {}
                Step::Retry { pause, replica } => {
                    if !pause.is_zero() {
                        sleep(pause).await;
                    }
                    self.send(replica).await?;
                }
            }
        }
    }

    /// Sends the request again when the earlier attempts may be lost, or as a hedge when the budget has one;
    /// otherwise keeps waiting while any replica is left.
    async fn on_late(&mut self) -> Result<(), Problem> {
        let (request, now) = (self.request, Instant::now());
        let (shared, group) = (&request.bus.shared, &request.target.group);
        let has_silent = group.has_silent();
        if now >= request.deadline {
            return Err(request.deadline_exceeded());
        }
        self.hedge_at = request.hedge_at(now);
        // A connection that waits is as busy as one that sends: it has to notice that the replica is gone.
        request.bus.record_request().await;
        if !request.options.repeatable {
            self.ask_for_outcome().await;
            return Ok(());
        }
        if self.losses != request.losses() {
            // It waits for its turn at any replica: what was lost costs none of them anything. By name, because the
            // queue group may still have the subscriptions that replicas had at a lost server of a cluster.
            self.waits = true;
            self.send(group.pick_excluding(&[], now)).await?;
        } else if self.hedges < MAX_HEDGES + u32::from(has_silent) && shared.retry_budget.withdraw() {
            self.hedges += 1;
            shared.asks.hedges.inc();
            // A silent replica may hold the earlier attempt: then the hedge waits for its turn.
            let mut hedge = request.send(group.pick_most_recent(now), has_silent).await?;
            hedge.is_hedge = true;
            self.pending.push(Box::pin(hedge.outcome()));
        } else if shared.replicas.are_gone(group) {
            return Err(request.target.no_replica());
        }
        Ok(())
    }

    /// Sends a submission again when it or its reply may be lost, to the replica that has it: that one answers what became of
    /// it.
    async fn ask_for_outcome(&mut self) {
        if self.losses != self.request.losses() || self.was_unheard {
            let Some(replica) = self.asked.clone() else { return };
            self.waits = true;
            self.was_unheard = self.send(Some(replica)).await.is_err();
        }
    }

    async fn send(&mut self, replica: Option<Arc<str>>) -> Result<(), Problem> {
        self.losses = self.request.losses();
        let replica = replica.or_else(|| self.request.first_replica());
        let attempt = self.request.send(replica, self.waits).await?;
        self.asked.clone_from(&attempt.replica);
        self.pending.push(Box::pin(attempt.outcome()));
        Ok(())
    }

    fn next_step(&mut self, outcome: AttemptOutcome) -> Step {
        match outcome.result {
            AttemptResult::Answered(result) => {
                if outcome.is_hedge {
                    self.request.bus.shared.asks.hedges_won.inc();
                }
                Step::Finish(result)
            }
            AttemptResult::NoResponder => self.on_no_responder(outcome.replica.as_deref(), outcome.is_hedge),
            AttemptResult::Overloaded(replica, problem) => self.on_overloaded(replica, problem),
            AttemptResult::Torn => self.on_torn(),
        }
    }

    /// No replica has received the attempt, so that even a submission may be sent again.
    fn on_no_responder(&mut self, replica: Option<&str>, is_hedge: bool) -> Step {
        let (shared, group) = (&self.request.bus.shared, &self.request.target.group);
        if let Some(id) = replica {
            group.mark_draining(id);
        }
        if !self.request.options.repeatable && !self.pending.is_empty() {
            // The replica that has it may be draining, or subscribe again in a moment.
            self.was_unheard = true;
            return match replica.is_some_and(|id| shared.replicas.is_known(id)) {
                true => Step::Wait,
                false => Step::Finish(Err(self.request.deadline_exceeded())),
            };
        }
        if is_hedge {
            self.hedges -= 1;
            shared.retry_budget.refund();
        }
        // A draining replica takes no new requests, but may still answer an earlier attempt.
        if !self.pending.is_empty() && !shared.replicas.are_gone(group) {
            return Step::Wait;
        }
        // Another one is picked, or the queue group once none is left: several may have gone since their last
        // heartbeats.
        if replica.is_some() {
            return Step::Retry { pause: Duration::ZERO, replica: None };
        }
        match self.pauses.next() {
            Some(pause) => Step::Retry { pause: *pause, replica: None },
            // The other servers drop a lost one before its clients have gone to them.
            None if self.rejoins < REJOINS
                && self.request.bus.has_several_servers()
                && group.is_taking(Instant::now()) =>
            {
                self.rejoins += 1;
                Step::Retry { pause: REJOIN_PAUSE, replica: None }
            }
            None => Step::Finish(Err(self.request.target.no_replica())),
        }
    }

    /// Retries with a replica that was not overloaded; when there is none, waits for its turn at any. A request whose
    /// replica lacks something is retried also when only that one was known at first.
    fn on_overloaded(&mut self, replica: Box<str>, problem: Problem) -> Step {
        if !self.pending.is_empty() {
            self.was_unheard = true;
            return Step::Wait;
        }
        let is_lacking = problem.code == Code::Unavailable;
        if is_lacking {
            // It has begun to work on a submission.
            if !self.request.options.repeatable {
                return Step::Finish(Err(problem));
            }
            self.lacking.push(replica.clone());
        }
        self.overloaded.push(replica);
        let group = &self.request.target.group;
        let other = group.pick_excluding(&self.overloaded, Instant::now());
        if other.is_some() && (is_lacking || !self.waits) {
            return Step::Retry { pause: Duration::ZERO, replica: other };
        }
        if !self.waits {
            self.waits = true;
            let replica = match self.lacking.is_empty() {
                true => None,
                false => group.pick_excluding(&self.lacking, Instant::now()),
            };
            return Step::Retry { pause: Duration::ZERO, replica };
        }
        if is_lacking {
            return Step::Finish(Err(problem));
        }
        // A replica refuses what it cannot begin in the time that its client gives it, too.
        let left = self.request.deadline.saturating_duration_since(Instant::now());
        if self.request.options.repeatable && left < TOO_SHORT {
            return Step::Finish(Err(self.request.deadline_exceeded()));
        }
        let workload = &self.request.target.workload;
        Step::Finish(Err(Problem::unavailable(format!("all replicas of {workload} {BUSY}"))))
    }

    /// Retries a read once.
    fn on_torn(&mut self) -> Step {
        if !self.was_torn && self.request.options.repeatable {
            self.was_torn = true;
            return Step::Retry { pause: Duration::ZERO, replica: None };
        }
        if !self.pending.is_empty() {
            return Step::Wait;
        }
        let lost = "parts of the reply were lost on the message bus";
        Step::Finish(Err(match self.request.options.repeatable {
            true => Problem::unavailable(lost),
            // The replica has done what was requested.
            false => Problem::deadline_exceeded(format!("{lost}; what became of the request is unknown")),
        }))
    }
}
