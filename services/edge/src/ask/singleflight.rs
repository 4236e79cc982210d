//! One call for all equal reads: a read joins a call in flight for the same question.

use std::{collections::HashMap, future::Future, sync::Arc};

use futures_util::{
    FutureExt,
    future::{BoxFuture, Shared, WeakShared},
};
use mesh_problem::Problem;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::ask::{
    answer::Answer,
    cache::{FRESH, Question},
};

/// The result of a call.
pub(crate) type CallResult = Result<Arc<Answer>, Problem>;

/// A call in flight; cancelled when its last clone is dropped.
pub(crate) type SharedCall = Shared<BoxFuture<'static, CallResult>>;

/// The calls in flight by their questions.
#[derive(Default)]
pub(crate) struct Singleflight {
    in_flight: Mutex<InFlight>,
}

#[derive(Default)]
struct InFlight {
    calls: HashMap<Arc<Question>, Entry>,
    /// Calls started so far.
    count: u64,
}

struct Entry {
    number: u64,
    started_at: Instant,
    has_full_time: bool,
    call: WeakShared<BoxFuture<'static, CallResult>>,
}

impl Singleflight {
    /// Returns the in-flight call and whether it has the operation's full time. Calls older than [`FRESH`]
    /// are not shared: they may have read an older block.
    pub(crate) fn find(&self, question: &Question, now: Instant) -> Option<(SharedCall, bool)> {
        let in_flight = self.in_flight.lock();
        let entry = in_flight.calls.get(question)?;
        if now.duration_since(entry.started_at) >= FRESH {
            return None;
        }
        Some((entry.call.upgrade()?, entry.has_full_time))
    }

    /// Starts a call that equal reads may join.
    pub(crate) fn start(
        self: &Arc<Self>,
        question: &Arc<Question>,
        has_full_time: bool,
        call: impl Future<Output = CallResult> + Send + 'static,
    ) -> SharedCall {
        let mut in_flight = self.in_flight.lock();
        in_flight.count += 1;
        let number = in_flight.count;
        let remove = RemoveOnDrop { singleflight: Arc::clone(self), question: Arc::clone(question), number };
        let call = async move {
            let _remove = remove;
            call.await
        };
        let call = call.boxed().shared();
        if let Some(weak) = call.downgrade() {
            let entry = Entry { number, started_at: Instant::now(), has_full_time, call: weak };
            in_flight.calls.insert(Arc::clone(question), entry);
        }
        call
    }
}

/// Removes a call from the map when it ends or is cancelled, unless a newer one has replaced it.
struct RemoveOnDrop {
    singleflight: Arc<Singleflight>,
    question: Arc<Question>,
    number: u64,
}

impl Drop for RemoveOnDrop {
    fn drop(&mut self) {
        let mut in_flight = self.singleflight.in_flight.lock();
        if in_flight.calls.get(&self.question).is_some_and(|entry| entry.number == self.number) {
            in_flight.calls.remove(&self.question);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use tokio::sync::oneshot;

    use super::*;
    use crate::cache::tests::{answer, question};

    /// Completes a call, and counts how often it is run and cancelled.
    struct Control {
        complete: oneshot::Sender<CallResult>,
        runs: Arc<AtomicU32>,
        cancelled: Arc<AtomicU32>,
    }

    struct Dropped(Arc<AtomicU32>);

    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn start(calls: &Arc<Singleflight>, question: &Arc<Question>) -> (SharedCall, Control) {
        let (complete, completed) = oneshot::channel();
        let (runs, cancelled) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let (count, dropped) = (Arc::clone(&runs), Dropped(Arc::clone(&cancelled)));
        let call = calls.start(question, true, async move {
            count.fetch_add(1, Ordering::Relaxed);
            let result: CallResult = completed.await.unwrap();
            // The call was not cancelled.
            std::mem::forget(dropped);
            result
        });
        (call, Control { complete, runs, cancelled })
    }

    fn find(calls: &Singleflight, question: &Question) -> Option<SharedCall> {
        calls.find(question, Instant::now()).map(|(call, _)| call)
    }

    #[tokio::test]
    async fn a_thousand_equal_reads_share_one_call() {
        let (calls, question) = (Arc::new(Singleflight::default()), question("a"));
        assert!(find(&calls, &question).is_none());
        let (first, control) = start(&calls, &question);
        let mut waiting = vec![tokio::spawn(first)];
        for _ in 0..1000 {
            waiting.push(tokio::spawn(find(&calls, &question).unwrap()));
        }
        assert!(find(&calls, &self::question("b")).is_none(), "another question");
        tokio::task::yield_now().await;
        let held = find(&calls, &question).unwrap();
        let sent = Arc::new(answer(7, Instant::now(), 0));
        control.complete.send(Ok(Arc::clone(&sent))).unwrap();
        for waiting in waiting {
            assert!(Arc::ptr_eq(&waiting.await.unwrap().unwrap(), &sent));
        }
        assert_eq!(control.runs.load(Ordering::Relaxed), 1);
        assert!(find(&calls, &question).is_none(), "it has ended, although it is held");
        drop(held);
    }

    #[tokio::test]
    async fn a_call_goes_on_without_its_first_reader_and_is_cancelled_without_any() {
        let (calls, question) = (Arc::new(Singleflight::default()), question("a"));
        let (mut first, control) = start(&calls, &question);
        let second = find(&calls, &question).unwrap();
        assert!((&mut first).now_or_never().is_none(), "the first reader polls it");
        let waiting = tokio::spawn(second);
        tokio::task::yield_now().await;
        drop(first);
        assert!(find(&calls, &question).is_some(), "the second reader waits for it");
        control.complete.send(Ok(Arc::new(answer(7, Instant::now(), 0)))).unwrap();
        assert_eq!(waiting.await.unwrap().unwrap().height(), Some(7));
        assert_eq!(control.cancelled.load(Ordering::Relaxed), 0);

        let (mut first, control) = start(&calls, &question);
        let mut second = find(&calls, &question).unwrap();
        assert!((&mut first).now_or_never().is_none() && (&mut second).now_or_never().is_none());
        drop((first, second));
        assert_eq!(control.cancelled.load(Ordering::Relaxed), 1);
        assert!(control.complete.send(Err(Problem::unavailable("too late"))).is_err());
        assert!(find(&calls, &question).is_none(), "a cancelled call cannot be joined");
        assert!(calls.in_flight.lock().calls.is_empty(), "no entry is left");
    }

    #[tokio::test]
    async fn an_old_call_is_not_joined_and_does_not_remove_a_newer_one() {
        let (calls, question) = (Arc::new(Singleflight::default()), question("a"));
        let (old, control) = start(&calls, &question);
        let started_at = calls.in_flight.lock().calls[&question].started_at;
        let almost = FRESH.checked_sub(std::time::Duration::from_millis(1)).unwrap();
        assert!(calls.find(&question, started_at + almost).is_some());
        assert!(calls.find(&question, started_at + FRESH).is_none());
        let (_new, _control) = start(&calls, &question);
        control.complete.send(Ok(Arc::new(answer(7, Instant::now(), 0)))).unwrap();
        old.await.unwrap();
        assert!(find(&calls, &question).is_some(), "the new one is in flight");
    }
}
