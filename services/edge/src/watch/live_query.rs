//! The actor of one watched question: repeats the read and publishes a changed answer (W1, W5, W7). It lives as
//! long as it has a watcher.

use std::{collections::HashMap, future::poll_fn, sync::Arc, task::Poll, time::Duration};

use actix::{
    Actor, ActorContext, AsyncContext, Context, SpawnHandle, StreamHandler, WrapFuture, fut::ActorFutureExt,
};
use futures_util::{Stream, stream, task::AtomicWaker};
use mesh_problem::Problem;
use parking_lot::{Mutex, MutexGuard};
use tokio::{
    sync::{Notify, futures::Notified, watch},
    time::Instant,
};

use crate::{
    ask::{
        cache::Question,
        heads::{HeadSource, HeadStatus},
    },
    respond::answer::Answer,
    watch::{
        delivery::Pending,
        registry::Watches,
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
    watchers: Mutex<Watchers>,
    pending: Pending,
    watches: Arc<Watches>,
}

/// The watchers of a question.
#[derive(Default)]
struct Watchers {
    wakers: HashMap<u64, Arc<AtomicWaker>>,
    /// Watchers so far.
    count: u64,
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
        self.query.watchers.lock().wakers.remove(&self.number);
    }
}

impl LiveQuery {
    /// Starts a live query from an answer read at this height after this number of head resets.
    pub(super) fn start(
        watches: &Arc<Watches>,
        question: &Arc<Question>,
        source: HeadSource,
        answer: &Answer,
        (height, resets): (u64, u64),
    ) -> Arc<Self> {
        let query = Arc::new(Self {
            question: Arc::clone(question),
            source,
            latest: Mutex::new(Latest::new(question, answer, height, resets, Instant::now())),
            looked: Notify::new(),
            watchers: Mutex::default(),
            pending: Pending::default(),
            watches: Arc::clone(watches),
        });
        let schedule = Schedule::new(answer.asked_at, (height, resets), LookResult::of(answer));
        Looker { query: Arc::clone(&query), schedule, timer: None }.start();
        query
    }

    /// The question.
    pub(super) fn question(&self) -> &Question {
        &self.question
    }

    /// Subscribes a watcher.
    pub(super) fn subscribe(self: &Arc<Self>) -> Subscription {
        let (mut watchers, waker) = (self.watchers.lock(), Arc::new(AtomicWaker::new()));
        watchers.count += 1;
        let number = watchers.count;
        watchers.wakers.insert(number, Arc::clone(&waker));
        Subscription { query: Arc::clone(self), number, waker }
    }

    /// Whether there is a watcher.
    pub(super) fn is_watched(&self) -> bool {
        !self.watchers.lock().wakers.is_empty()
    }

    /// The wakers of all watchers.
    pub(super) fn wakers(&self) -> Vec<Arc<AtomicWaker>> {
        self.watchers.lock().wakers.values().cloned().collect()
    }

    /// Whether the query is queued for delivery.
    pub(super) fn pending(&self) -> &Pending {
        &self.pending
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
        self.watches.head(self.source)
    }

    /// Counts a sent event and the older ones that it replaced.
    pub(super) fn count_event(&self, skipped: u64) {
        self.watches.count_event(skipped);
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
            self.watches.deliver(self);
        }
        self.looked.notify_waiters();
    }
}

/// The actor that repeats the read.
struct Looker {
    query: Arc<LiveQuery>,
    schedule: Schedule,
    timer: Option<SpawnHandle>,
}

impl LookResult {
    fn of(answer: &Answer) -> Self {
        if answer.height().is_some() { Self::AtHeight } else { Self::Unknown }
    }
}

/// The head has changed.
struct HeadChanged;

/// The changes of a head as a stream.
fn head_changes(changes: watch::Receiver<()>) -> impl Stream<Item = HeadChanged> {
    stream::unfold(changes, |mut changes| async move {
        changes.changed().await.ok()?;
        Some((HeadChanged, changes))
    })
}

impl Actor for Looker {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Self::Context) {
        context.add_stream(head_changes(self.query.watches.head_changes(self.query.source)));
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
        if self.query.watches.remove_unwatched(&self.query) {
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
        let look = async move { query.watches.look(&query.question).await };
        let ended = look.into_actor(self).map(move |result, looker, context| {
            looker.end_look(result, now, head);
            looker.look_or_wait(context);
        });
        context.spawn(ended);
    }

    fn end_look(&mut self, result: Result<Arc<Answer>, Problem>, began_at: Instant, head: HeadStatus) {
        match result {
            Ok(answer) => {
                self.schedule.end(LookResult::of(&answer));
                let height = answer.height().unwrap_or(head.height);
                self.query.publish(&answer, height, head.resets);
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
