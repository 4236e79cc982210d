//! The waiting line of a service. A request for which there is no room waits for its turn, as long as the
//! answer can be expected within half of the time that is left; otherwise it is refused at once.
//!
//! The turn goes round the operations, and within one round its clients, so that neither a slow operation nor a client
//! with many requests delays the others. The wait is the number of requests whose turn is earlier, divided by the rate at
//! which requests ended lately.
//!
//! An operation whose requests need much processor time has few [`Places`] for those that have just begun: more at
//! the same time would not end sooner, and delay the other operations. Those that take longer wait for something
//! else, and make place for the next.

use std::{
    cell::{Cell, RefCell},
    ops::Range,
    rc::Rc,
    time::{Duration, Instant},
};

use tokio::sync::oneshot;

use crate::{fair_queue::FairQueue, router::Limits};

/// Most requests of an operation that wait, and most bytes of their messages.
const MAX_WAITING: usize = 4096;
const MAX_WAITING_BYTES: usize = 8 << 20;

/// The last value has one part in this many of a mean duration. The mean begins at zero: while little is known,
/// requests wait.
const DURATIONS: u32 = 16;

/// Time constant of the rate of ends: as long as requests have waited, within these bounds, and at least this many mean
/// durations. With two seconds, a pause of a tenth of a second changes the expected wait by a twentieth.
const MEMORY: Range<Duration> = Duration::from_millis(250)..Duration::from_secs(2);
const MEMORY_DURATIONS: u32 = 8;

/// Longest expected wait of a request that other replicas may have room for.
const SHORT_WAIT: Duration = Duration::from_millis(100);

/// How long a request counts as one that has just begun.
pub(crate) const BRIEF: Duration = Duration::from_millis(25);

/// How many requests of an operation run at the same time.
#[derive(Debug, Clone, Copy)]
pub struct Places {
    /// Most that began less than 25 ms ago.
    pub brief: usize,
    /// Most in all.
    pub all: usize,
}

impl From<usize> for Places {
    fn from(all: usize) -> Self {
        Self { brief: all, all }
    }
}

/// The requests of a service: those that run and those that wait.
#[derive(Debug)]
pub(crate) struct Line {
    limits: Limits,
    running: Cell<usize>,
    operations: RefCell<Vec<Rc<Queue>>>,
    /// The operation that gets the next free place, if it has a waiting request.
    next: Cell<usize>,
}

/// The requests of one operation.
#[derive(Debug)]
pub(crate) struct Queue {
    places: Places,
    /// When those that run began.
    running: RefCell<Vec<Instant>>,
    /// Mean duration of the last requests.
    duration: Cell<Duration>,
    /// Ends per second since requests wait, an exponential moving average; at first [`Queue::first_rate`].
    rate: Cell<f64>,
    /// Since when requests wait.
    waiting_since: Cell<Option<Instant>>,
    /// The last end since then.
    last_end: Cell<Option<Instant>>,
    /// Those that were canceled, or whose deadline has passed, are still in it.
    waiting: RefCell<FairQueue<Waiting>>,
    waiting_bytes: Cell<usize>,
}

#[derive(Debug)]
struct Waiting {
    bytes: usize,
    turn: oneshot::Sender<Turn>,
}

/// What becomes of a request.
#[derive(Debug)]
pub(crate) enum Place {
    /// It runs now.
    Now(Turn),
    /// It runs when this resolves.
    Later(oneshot::Receiver<Turn>),
}

/// The right to run; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    line: Rc<Line>,
    queue: Rc<Queue>,
    started: Instant,
}

/// A request as the line sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrival {
    /// Whose it is.
    pub(crate) client: u64,
    /// Length of its message.
    pub(crate) bytes: usize,
    /// Time until its deadline.
    pub(crate) left: Duration,
    /// Whether it may wait for long, because no other replica has room.
    pub(crate) may_wait: bool,
}

impl Line {
    /// An empty line.
    pub(crate) fn new(limits: Limits) -> Rc<Self> {
        Rc::new(Self { limits, running: Cell::new(0), operations: RefCell::default(), next: Cell::new(0) })
    }

    /// Adds an operation with these places.
    pub(crate) fn add(&self, places: Places) -> Rc<Queue> {
        let queue = Rc::new(Queue {
            places,
            running: RefCell::default(),
            duration: Cell::default(),
            rate: Cell::default(),
            waiting_since: Cell::default(),
            last_end: Cell::default(),
            waiting: RefCell::default(),
            waiting_bytes: Cell::new(0),
        });
        self.operations.borrow_mut().push(Rc::clone(&queue));
        queue
    }

    /// A place for a request; `None` when it is refused.
    pub(crate) fn enter(self: &Rc<Self>, queue: &Rc<Queue>, arrival: Arrival, now: Instant) -> Option<Place> {
        if queue.waiting.borrow().is_empty() && self.has_room(queue, now) {
            return Some(Place::Now(self.start(queue, now)));
        }
        if queue.waiting.borrow().is_empty() {
            queue.begin_waiting(now);
        }
        let bytes = queue.waiting_bytes.get() + arrival.bytes;
        let fits = queue.waiting.borrow().len() < MAX_WAITING && bytes <= MAX_WAITING_BYTES;
        let expected = queue.expected_wait(arrival.client, now);
        let is_short = !expected.is_zero() && expected <= SHORT_WAIT;
        if !fits || expected > arrival.left / 2 || !(arrival.may_wait || is_short) {
            return None;
        }
        let (turn, later) = oneshot::channel();
        queue.waiting.borrow_mut().push(arrival.client, Waiting { bytes: arrival.bytes, turn });
        queue.waiting_bytes.set(bytes);
        Some(Place::Later(later))
    }

    /// Whether a request of this operation may run: an operation that has few running may although others fill
    /// the service.
    fn has_room(&self, queue: &Queue, now: Instant) -> bool {
        let own = queue.running.borrow().len();
        let Places { brief, all } = queue.places;
        own < all
            && (own < brief || queue.brief(now) < brief)
            && (self.running.get() < self.limits.in_flight || own < self.limits.reserved())
    }

    fn start(self: &Rc<Self>, queue: &Rc<Queue>, now: Instant) -> Turn {
        self.running.set(self.running.get() + 1);
        queue.running.borrow_mut().push(now);
        Turn { line: Rc::clone(self), queue: Rc::clone(queue), started: now }
    }

    /// Whether requests wait for those that run to take longer than [`BRIEF`].
    pub(crate) fn waits_for_brief(&self) -> bool {
        let waits =
            |queue: &Rc<Queue>| queue.places.brief < queue.places.all && !queue.waiting.borrow().is_empty();
        self.operations.borrow().iter().any(waits)
    }

    /// Lets waiting requests run while there is room for them.
    pub(crate) fn start_waiting(self: &Rc<Self>, now: Instant) {
        while let Some((queue, waiting)) = self.pop(now) {
            queue.waiting_bytes.set(queue.waiting_bytes.get() - waiting.bytes);
            if !waiting.turn.is_closed() {
                let _ = waiting.turn.send(self.start(&queue, now));
            }
        }
    }

    /// The next waiting request that has room.
    fn pop(&self, now: Instant) -> Option<(Rc<Queue>, Waiting)> {
        let operations = self.operations.borrow();
        let first = self.next.get();
        (first..first + operations.len()).find_map(|index| {
            let index = index % operations.len();
            let queue = &operations[index];
            if !self.has_room(queue, now) {
                return None;
            }
            let waiting = queue.waiting.borrow_mut().pop()?;
            self.next.set(index + 1);
            Some((Rc::clone(queue), waiting))
        })
    }
}

impl Queue {
    /// How many have just begun.
    fn brief(&self, now: Instant) -> usize {
        let is_brief = |began: &&Instant| now.saturating_duration_since(**began) < BRIEF;
        self.running.borrow().iter().filter(is_brief).count()
    }

    /// Begins to measure the rate of ends.
    fn begin_waiting(&self, now: Instant) {
        self.rate.set(self.first_rate());
        self.waiting_since.set(Some(now));
        self.last_end.set(Some(now));
    }

    /// The time until a request of this client that arrives now would run; no shorter than none has ended.
    fn expected_wait(&self, client: u64, now: Instant) -> Duration {
        let ahead = (self.waiting.borrow().ahead_of(client) + 1) as f64;
        let wait = Duration::try_from_secs_f64(ahead / self.rate_at(now)).unwrap_or(Duration::MAX);
        wait.max(since(self.last_end.get(), now))
    }

    /// Ends per second by Little's law; infinite while nothing is known.
    fn first_rate(&self) -> f64 {
        self.running.borrow().len().max(1) as f64 / self.duration.get().as_secs_f64()
    }

    /// Ends per second if the next is now.
    fn rate_at(&self, now: Instant) -> f64 {
        let silence = since(self.last_end.get(), now).as_secs_f64();
        self.rate.get() * (-silence / self.memory(now)).exp()
    }

    /// Time constant of the rate, seconds.
    fn memory(&self, now: Instant) -> f64 {
        let waiting = since(self.waiting_since.get(), now).clamp(MEMORY.start, MEMORY.end);
        waiting.max(self.duration.get() * MEMORY_DURATIONS).as_secs_f64()
    }

    /// Counts a request that has ended.
    fn end(&self, started: Instant, now: Instant) {
        self.duration.set(mean(self.duration.get(), now.saturating_duration_since(started), DURATIONS));
        let rate = self.rate_at(now) + 1.0 / self.memory(now);
        self.rate.set(if rate.is_finite() { rate } else { self.first_rate() });
        self.last_end.set(Some(now));
        let mut running = self.running.borrow_mut();
        if let Some(index) = running.iter().position(|began| *began == started) {
            running.swap_remove(index);
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let now = Instant::now();
        self.queue.end(self.started, now);
        self.line.running.set(self.line.running.get() - 1);
        self.line.start_waiting(now);
    }
}

fn since(begin: Option<Instant>, now: Instant) -> Duration {
    begin.map_or(Duration::ZERO, |begin| now.saturating_duration_since(begin))
}

/// A moving mean with one more value.
fn mean(before: Duration, last: Duration, values: u32) -> Duration {
    (before * (values - 1) + last) / values
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { in_flight: 4, per_operation: 3, timeout: Duration::from_secs(10) };

    fn arrival(client: u64, left_ms: u64) -> Arrival {
        Arrival { client, bytes: 1, left: Duration::from_millis(left_ms), may_wait: true }
    }

    fn now(place: Option<Place>) -> Turn {
        match place {
            Some(Place::Now(turn)) => turn,
            other => panic!("{other:?}"),
        }
    }

    fn later(place: Option<Place>) -> oneshot::Receiver<Turn> {
        match place {
            Some(Place::Later(turn)) => turn,
            other => panic!("{other:?}"),
        }
    }

    /// A queue whose places are all taken.
    fn full_line(left_ms: u64) -> (Rc<Line>, Rc<Queue>, Vec<Turn>, Instant) {
        let (line, at) = (Line::new(LIMITS), Instant::now());
        let queue = line.add(3.into());
        let running = (0..3).map(|_| now(line.enter(&queue, arrival(1, left_ms), at))).collect();
        (line, queue, running, at)
    }

    #[test]
    fn clients_and_operations_have_their_turn_one_after_the_other() {
        let (line, at) = (Line::new(LIMITS), Instant::now());
        let (one, other) = (line.add(3.into()), line.add(3.into()));
        let mut running: Vec<Turn> = (0..3).map(|_| now(line.enter(&one, arrival(1, 1000), at))).collect();
        running.push(now(line.enter(&other, arrival(1, 1000), at)));
        let mut waiting: Vec<_> = [(&one, 1), (&one, 1), (&one, 2), (&other, 1)]
            .map(|(queue, client)| later(line.enter(queue, arrival(client, 1000), at)))
            .into();
        // The first of the first client, then the other operation, then the second client, then the rest.
        for expected in [0, 3, 2, 1] {
            drop(running.remove(0));
            let ready: Vec<usize> = (0..4).filter(|index| !waiting[*index].is_empty()).collect();
            assert_eq!(ready, [expected]);
            running.push(waiting[expected].try_recv().unwrap());
        }
        drop(running);
        assert_eq!((line.running.get(), one.waiting_bytes.get(), one.waiting.borrow().len()), (0, 0, 0));
    }

    #[test]
    fn a_request_whose_turn_cannot_be_expected_in_time_is_refused_at_once() {
        let (line, queue, _running, at) = full_line(1000);
        queue.duration.set(Duration::from_millis(300));
        // One ends every 100 ms: five turns in half a second.
        let mut waiting: Vec<_> = (0..5).map(|_| later(line.enter(&queue, arrival(1, 1000), at))).collect();
        assert!(line.enter(&queue, arrival(1, 1000), at).is_none());
        waiting.push(later(line.enter(&queue, arrival(1, 2000), at)));
        assert!(line.enter(&queue, Arrival { may_wait: false, ..arrival(1, 9000) }, at).is_none());
        let other = line.add(1.into());
        let _running = now(line.enter(&other, arrival(1, 1000), at));
        let elsewhere = Arrival { may_wait: false, ..arrival(1, 1000) };
        assert!(line.enter(&other, elsewhere, at).is_none(), "nothing is known");
        other.duration.set(Duration::from_millis(60));
        let _waiting = later(line.enter(&other, elsewhere, at));
        assert!(line.enter(&other, elsewhere, at).is_none());
        // None has ended for three seconds.
        let later_on = at + Duration::from_secs(3);
        assert!(line.enter(&queue, arrival(1, 1900), later_on).is_none());
        waiting.push(later(line.enter(&queue, arrival(1, 6000), later_on)));
        assert!(line.enter(&queue, arrival(1, 5900), later_on).is_none());
    }

    #[test]
    fn the_requests_of_one_client_do_not_get_those_of_another_refused() {
        let (line, queue, _running, at) = full_line(1000);
        queue.duration.set(Duration::from_millis(300));
        let enter = |client| line.enter(&queue, arrival(client, 1000), at);
        // Five turns in half a second: the second client has the second turn and the fourth.
        let places = [1, 1, 1, 1, 1, 1, 2, 2, 2].map(enter);
        let has_entered = places.each_ref().map(Option::is_some);
        assert_eq!(has_entered, [true, true, true, true, true, false, true, true, false]);
    }

    #[test]
    fn a_short_pause_hardly_changes_the_expected_wait() {
        let (line, queue, _running, begin) = full_line(9000);
        queue.duration.set(Duration::from_millis(12));
        let _waiting: Vec<_> = (0..1000).map(|_| line.enter(&queue, arrival(1, 9000), begin)).collect();
        // One ends every 4 ms, for four seconds.
        let mut at = begin;
        for _ in 0..1000 {
            at += Duration::from_millis(4);
            queue.end(at - Duration::from_millis(12), at);
        }
        let before = queue.expected_wait(1, at).as_secs_f64();
        assert!((3.9..4.1).contains(&before), "{before}");
        let after = queue.expected_wait(1, at + Duration::from_millis(100)).as_secs_f64() / before;
        assert!((1.04..1.06).contains(&after), "{after}");
        // Four times slower: the rate follows within two seconds.
        for _ in 0..125 {
            at += Duration::from_millis(16);
            queue.end(at - Duration::from_millis(48), at);
        }
        let slower = queue.expected_wait(1, at).as_secs_f64() / before;
        assert!((1.8..2.0).contains(&slower), "{slower}");
    }

    #[test]
    fn a_request_that_has_gone_gives_its_turn_to_the_next() {
        let (line, queue, mut running, at) = full_line(1000);
        drop(later(line.enter(&queue, arrival(1, 1000), at)));
        let mut next = later(line.enter(&queue, arrival(1, 1000), at));
        running.pop();
        assert!(next.try_recv().is_ok());
        assert!(queue.waiting.borrow().is_empty());
    }

    #[test]
    fn requests_that_take_longer_make_place_for_the_next() {
        let (line, at) = (Line::new(LIMITS), Instant::now());
        let queue = line.add(Places { brief: 1, all: 2 });
        let first = now(line.enter(&queue, arrival(1, 1000), at));
        let mut waiting = [(); 2].map(|()| later(line.enter(&queue, arrival(1, 1000), at)));
        line.start_waiting(at + BRIEF / 2);
        assert!(line.waits_for_brief() && waiting[0].is_empty());
        line.start_waiting(at + BRIEF);
        let second = waiting[0].try_recv().unwrap();
        // There are no more places.
        line.start_waiting(at + BRIEF * 3);
        assert!(waiting[1].is_empty());
        drop((first, second));
        assert!(waiting[1].try_recv().is_ok() && !line.waits_for_brief());
    }
}
