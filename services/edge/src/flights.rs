//! One ask for a thousand equal requests: who asks what is being asked already waits for that answer.

use std::{collections::HashMap, future::Future, sync::Arc};

use futures_util::{
    FutureExt,
    future::{BoxFuture, Shared, WeakShared},
};
use mesh_problem::Problem;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::cache::{Answer, FRESH, Question};

/// What an ask comes to.
pub(crate) type Landing = Result<Arc<Answer>, Problem>;

/// An ask under way. It is given up when nobody waits for it any more.
pub(crate) type Flight = Shared<BoxFuture<'static, Landing>>;

/// The asks under way.
#[derive(Default)]
pub(crate) struct Flights {
    under_way: Mutex<UnderWay>,
}

#[derive(Default)]
struct UnderWay {
    flights: HashMap<Arc<Question>, Begun>,
    /// How many have begun.
    count: u64,
}

struct Begun {
    number: u64,
    at: Instant,
    is_patient: bool,
    flight: WeakShared<BoxFuture<'static, Landing>>,
}

impl Flights {
    /// The ask for this question that is under way already; none that began longer ago than answers may be old,
    /// since nobody knows how early in it the store was read. And whether it waits for as long as
    /// anybody would.
    pub(crate) fn under_way(&self, question: &Question, now: Instant) -> Option<(Flight, bool)> {
        let under_way = self.under_way.lock();
        let begun = under_way.flights.get(question)?;
        if now.duration_since(begun.at) >= FRESH {
            return None;
        }
        Some((begun.flight.upgrade()?, begun.is_patient))
    }

    /// Begins an ask that others may wait for, too; a patient one is not given up before its operation's time is over.
    pub(crate) fn begin(
        self: &Arc<Self>,
        question: &Arc<Question>,
        is_patient: bool,
        ask: impl Future<Output = Landing> + Send + 'static,
    ) -> Flight {
        let mut under_way = self.under_way.lock();
        under_way.count += 1;
        let number = under_way.count;
        let landing = Leaving { flights: Arc::clone(self), question: Arc::clone(question), number };
        let flight = async move {
            let _landing = landing;
            ask.await
        };
        let flight = flight.boxed().shared();
        if let Some(weak) = flight.downgrade() {
            let begun = Begun { number, at: Instant::now(), is_patient, flight: weak };
            under_way.flights.insert(Arc::clone(question), begun);
        }
        flight
    }
}

/// Takes an ask off the list when it ends, however it ends, unless another one has taken its place.
struct Leaving {
    flights: Arc<Flights>,
    question: Arc<Question>,
    number: u64,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        let mut under_way = self.flights.under_way.lock();
        if under_way.flights.get(&self.question).is_some_and(|begun| begun.number == self.number) {
            under_way.flights.remove(&self.question);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use tokio::sync::oneshot;

    use super::*;
    use crate::cache::tests::{answer, question};

    /// An ask that lands when it is told to, and counts how often it is polled to the end and how often it is given
    /// up.
    struct Ask {
        land: oneshot::Sender<Landing>,
        begun: Arc<AtomicU32>,
        given_up: Arc<AtomicU32>,
    }

    struct Dropped(Arc<AtomicU32>);

    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn begin(flights: &Arc<Flights>, question: &Arc<Question>) -> (Flight, Ask) {
        let (land, landed) = oneshot::channel();
        let (begun, given_up) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let (count, dropped) = (Arc::clone(&begun), Dropped(Arc::clone(&given_up)));
        let flight = flights.begin(question, true, async move {
            count.fetch_add(1, Ordering::Relaxed);
            let landing: Landing = landed.await.unwrap();
            // It was not given up.
            std::mem::forget(dropped);
            landing
        });
        (flight, Ask { land, begun, given_up })
    }

    fn joined(flights: &Flights, question: &Question) -> Option<Flight> {
        flights.under_way(question, Instant::now()).map(|(flight, _)| flight)
    }

    #[tokio::test]
    async fn many_who_ask_the_same_ask_once() {
        let (flights, question) = (Arc::new(Flights::default()), question("a"));
        assert!(joined(&flights, &question).is_none());
        let (first, ask) = begin(&flights, &question);
        let mut waiting = vec![tokio::spawn(first)];
        for _ in 0..1000 {
            waiting.push(tokio::spawn(joined(&flights, &question).unwrap()));
        }
        assert!(joined(&flights, &self::question("b")).is_none(), "another question");
        tokio::task::yield_now().await;
        let landed = Arc::new(answer(7, Instant::now(), 0));
        ask.land.send(Ok(Arc::clone(&landed))).unwrap();
        for waiting in waiting {
            assert!(Arc::ptr_eq(&waiting.await.unwrap().unwrap(), &landed));
        }
        assert_eq!(ask.begun.load(Ordering::Relaxed), 1);
        assert!(joined(&flights, &question).is_none(), "it has landed");
    }

    #[tokio::test]
    async fn it_goes_on_when_the_first_leaves_and_is_given_up_when_all_have_left() {
        let (flights, question) = (Arc::new(Flights::default()), question("a"));
        let (mut first, ask) = begin(&flights, &question);
        let second = joined(&flights, &question).unwrap();
        assert!((&mut first).now_or_never().is_none(), "the first one carries it");
        let waiting = tokio::spawn(second);
        tokio::task::yield_now().await;
        drop(first);
        assert!(joined(&flights, &question).is_some(), "somebody waits for it");
        ask.land.send(Ok(Arc::new(answer(7, Instant::now(), 0)))).unwrap();
        assert_eq!(waiting.await.unwrap().unwrap().height(), Some(7));
        assert_eq!(ask.given_up.load(Ordering::Relaxed), 0);

        let (mut first, ask) = begin(&flights, &question);
        let mut second = joined(&flights, &question).unwrap();
        assert!((&mut first).now_or_never().is_none() && (&mut second).now_or_never().is_none());
        drop((first, second));
        assert_eq!(ask.given_up.load(Ordering::Relaxed), 1);
        assert!(ask.land.send(Err(Problem::unavailable("too late"))).is_err());
        assert!(joined(&flights, &question).is_none(), "nobody can join what was given up");
    }

    #[tokio::test]
    async fn it_leaves_the_list_however_it_ends() {
        let (flights, question) = (Arc::new(Flights::default()), question("a"));
        for landing in [Ok(Arc::new(answer(7, Instant::now(), 0))), Err(Problem::unavailable("nobody there"))]
        {
            let (flight, ask) = begin(&flights, &question);
            let is_ok = landing.is_ok();
            ask.land.send(landing).unwrap();
            let late = joined(&flights, &question).unwrap();
            assert_eq!(flight.await.is_ok(), is_ok);
            assert!(joined(&flights, &question).is_none(), "although somebody still holds it");
            assert_eq!(late.await.is_ok(), is_ok);
        }
        let (flight, _ask) = begin(&flights, &question);
        drop(flight);
        assert!(joined(&flights, &question).is_none());
        assert!(flights.under_way.lock().flights.is_empty(), "nothing stays behind");
    }

    #[tokio::test]
    async fn one_that_began_long_ago_is_not_joined_and_takes_no_other_off_the_list() {
        let (flights, question) = (Arc::new(Flights::default()), question("a"));
        let (old, ask) = begin(&flights, &question);
        let begun = flights.under_way.lock().flights[&question].at;
        let almost = FRESH.checked_sub(std::time::Duration::from_millis(1)).unwrap();
        assert!(flights.under_way(&question, begun + almost).is_some());
        assert!(flights.under_way(&question, begun + FRESH).is_none());
        let (_new, _other) = begin(&flights, &question);
        ask.land.send(Ok(Arc::new(answer(7, Instant::now(), 0)))).unwrap();
        old.await.unwrap();
        assert!(joined(&flights, &question).is_some(), "the new one is still under way");
    }
}
