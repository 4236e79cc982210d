//! The actor of one watched question: repeats the read and publishes a changed answer (W1, W5, W7). It lives as
//! long as it has a watcher.

use std::{future::poll_fn, sync::Arc, task::Poll, time::Duration};

use actix::{
    Actor, ActorContext, AsyncContext, Context, SpawnHandle, StreamHandler, WrapFuture, fut::ActorFutureExt,
};
use futures_util::task::AtomicWaker;
use mesh_chassis::changes;
use mesh_problem::Problem;
use parking_lot::{Mutex, MutexGuard};
use tokio::{
    sync::{Notify, futures::Notified},
    time::Instant,
};

use crate::{
    ask::{
        answer::Answer,
        cache::Question,
        heads::{HeadSource, HeadStatus},
    },
    watch::{
        context::WatchContext,
        delivery::Subscribers,
        look_queue::Lane,
        schedule::{LookResult, Schedule},
        state::Latest,
    },
};

/// How often a live query checks that blocks are still announced, and that it has a watcher.
const CHECK_INTERVAL: Duration = Duration::from_secs(3);

/// A watched question; shared by its watchers.
pub(crate) struct LiveQuery {
    question: Arc<Question>,
    source: HeadSource,
    latest: Mutex<Latest>,
    /// Notified after each look, even without a change.
    looked: Notify,
    subscribers: Arc<Subscribers>,
    context: Arc<WatchContext>,
    /// The client whose watch began it, for whom its looks count.
    client: u64,
    lane: Option<Arc<Lane>>,
}

/// A watcher's subscription, until it is dropped: wakes the watcher when the state has changed.
pub(super) struct Subscription {
    query: Arc<LiveQuery>,
    number: u64,
    waker: Arc<AtomicWaker>,
}

impl Subscription {
    /// The question.
    pub(super) fn query(&self) -> &Arc<LiveQuery> {
        &self.query
    }

    /// Resolves once the state has another number than this one.
    pub(super) async fn changed(&self, number: u64) {
        poll_fn(|context| {
            // Registered before the state is read, so that no change is missed.
            self.waker.register(context.waker());
            if self.query.latest.lock().number() == number { Poll::Pending } else { Poll::Ready(()) }
        })
        .await;
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.query.subscribers.remove(self.number);
    }
}

impl LiveQuery {
    /// Starts a live query of a client from an answer read at this height after this number of head resets. It repeats the
    /// read until `remove` has removed the query.
    pub(super) fn start(
        context: Arc<WatchContext>,
        (client, question): (u64, &Arc<Question>),
        source: HeadSource,
        answer: &Answer,
        (height, resets): (u64, u64),
        remove: impl Fn(&Self) -> bool + 'static,
    ) -> Arc<Self> {
        let query = Arc::new(Self {
            question: Arc::clone(question),
            source,
            latest: Mutex::new(Latest::new(question, answer, height, resets, Instant::now())),
            looked: Notify::new(),
            subscribers: Arc::default(),
            lane: context.lane(client, question.operation),
            context,
            client,
        });
        let schedule = Schedule::new(answer.asked_at, (height, resets), LookResult::of(answer));
        Looker { query: Arc::clone(&query), schedule, timer: None, remove: Box::new(remove) }.start();
        query
    }

    /// The question.
    pub(super) fn question(&self) -> &Question {
        &self.question
    }

    /// Subscribes a watcher.
    pub(super) fn subscribe(self: &Arc<Self>) -> Subscription {
        let (number, waker) = self.subscribers.add();
        Subscription { query: Arc::clone(self), number, waker }
    }

    /// Whether there is a watcher.
    pub(super) fn is_watched(&self) -> bool {
        !self.subscribers.is_empty()
    }

    /// The newest state.
    pub(super) fn latest(&self) -> MutexGuard<'_, Latest> {
        self.latest.lock()
    }

    /// Resolves after the next look.
    pub(super) fn looked(&self) -> Notified<'_> {
        self.looked.notified()
    }

    /// The status of the head that the answer depends on.
    pub(super) fn head(&self) -> HeadStatus {
        self.context.heads.status(self.source)
    }

    /// Counts a sent event and the older ones that it replaced.
    pub(super) fn count_event(&self, skipped: u64) {
        self.context.metrics.watch_events.inc();
        self.context.metrics.watch_events_skipped.inc_by(skipped);
    }

    /// Publishes an answer read at this height, if it has changed or is the first one since the head was reset.
    fn publish(self: &Arc<Self>, answer: &Answer, height: u64, resets: u64) {
        let now = Instant::now();
        let is_new = self.latest.lock().publish(&self.question, answer, height, resets, now);
        self.tell(is_new);
    }

    /// Publishes that the read fails at present.
    fn publish_problem(self: &Arc<Self>, problem: &Problem, asked_at: Instant) {
        let is_new = self.latest.lock().publish_problem(&self.question, problem, asked_at);
        self.tell(is_new);
    }

    fn tell(self: &Arc<Self>, is_new: bool) {
        if is_new {
            self.context.delivery.push(&self.subscribers);
        }
        self.looked.notify_waiters();
    }
}

/// The actor that repeats the read.
struct Looker {
    query: Arc<LiveQuery>,
    schedule: Schedule,
    timer: Option<SpawnHandle>,
    /// Removes the query when it has no watcher; returns whether it did.
    remove: Box<dyn Fn(&LiveQuery) -> bool>,
}

impl LookResult {
    fn of(answer: &Answer) -> Self {
        if answer.height().is_some() { Self::AtHeight } else { Self::Unknown }
    }
}

/// The head has changed.
#[derive(Clone, Copy)]
struct HeadChanged;

impl Actor for Looker {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Self::Context) {
        let heads = self.query.context.heads.changes(self.query.source);
        context.add_stream(changes(heads, HeadChanged));
        self.look_or_wait(context);
    }
}

impl StreamHandler<HeadChanged> for Looker {
    fn handle(&mut self, _: HeadChanged, context: &mut Self::Context) {
        self.look_or_wait(context);
    }
}

impl Looker {
    /// Starts a look if one is due, else waits until it is.
    fn look_or_wait(&mut self, context: &mut Context<Self>) {
        if let Some(timer) = self.timer.take() {
            context.cancel_future(timer);
        }
        if (self.remove)(&self.query) {
            return context.stop();
        }
        let (now, head) = (Instant::now(), self.query.head());
        let Some(due) = self.schedule.due(head) else { return };
        if due > now {
            let wait = (due - now).min(CHECK_INTERVAL);
            self.timer = Some(context.run_later(wait, |looker, context| looker.look_or_wait(context)));
            return;
        }
        self.schedule.begin(now, head);
        let query = Arc::clone(&self.query);
        let look =
            async move { query.context.look(&query.question, (query.client, query.lane.as_deref())).await };
        let ended = look.into_actor(self).map(move |result, looker, context| {
            looker.end_look(result, now, head);
            looker.look_or_wait(context);
        });
        context.spawn(ended);
    }

    fn end_look(&mut self, result: Result<Arc<Answer>, Problem>, began_at: Instant, head: HeadStatus) {
        match result {
            Ok(answer) => {
                let height = answer.height().unwrap_or(head.height);
                self.query.publish(&answer, height, head.resets);
                // Without memory for the answer, it is read again soon.
                let is_problem = self.query.latest().is_problem();
                self.schedule.end(if is_problem { LookResult::Failed } else { LookResult::of(&answer) });
            }
            Err(problem) => {
                // A single failure may be a replica that has just stopped. A permanent rejection is an answer.
                let is_answer = !problem.code.is_passing();
                let result = if is_answer { LookResult::Unknown } else { LookResult::Failed };
                if self.schedule.end(result) || is_answer {
                    self.query.publish_problem(&problem, began_at);
                }
            }
        }
    }
}
