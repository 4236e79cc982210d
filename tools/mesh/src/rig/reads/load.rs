//! The load of a drill: so many requests a second whether those before are answered or not, on a thread of its own.
//!
//! Comes in: what may be asked where. Goes out: a sample of each request, its time counted from the moment at which it
//! was due, so that a stall counts in full. Connections are kept, as clients keep them; one more is opened when a
//! request is due and all are waiting for answers.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};
use tokio::task::LocalSet;
use tokio::time::{sleep, sleep_until, timeout};

use super::connection::{Connection, Lost};
use super::samples::{Sample, Seen};
use crate::failure::Failure;
use crate::private::cannot;

/// Connections to each edge that are kept open.
const KEPT: usize = 48;
/// How long an answer may take until its client gives up: longer than the edge's own deadline.
const PATIENCE: Duration = Duration::from_secs(12);
/// Pause of a load that rests.
const REST: Duration = Duration::from_millis(5);
/// How much is kept of what was said.
const SAID_AT_MOST: usize = 240;

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::rig) enum Class {
    /// One of a few questions, again and again.
    Hot,
    /// One row by a random id.
    Point,
    /// A page of a list.
    List,
    /// Something that node-info knows, of the edge that keeps no answers.
    Node,
}

/// Requests of one class.
#[derive(Debug)]
pub(in crate::rig) struct Asked {
    /// What they are.
    pub(in crate::rig) class: Class,
    /// How many of a hundred are of this class.
    pub(in crate::rig) percent: u32,
    /// Which edge they go to.
    pub(in crate::rig) edge: SocketAddr,
    /// The paths, of which each request takes one at random.
    pub(in crate::rig) paths: Vec<Arc<str>>,
}

/// A load that runs. It ends when it is dropped.
pub(in crate::rig) struct Load {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    begun: Instant,
    stop: AtomicBool,
    rests: AtomicBool,
    /// When the requests were due that have come to nothing so far.
    waiting: Mutex<BTreeSet<Duration>>,
    samples: Mutex<Vec<Sample>>,
    said: Mutex<Vec<(Duration, String)>>,
}

impl Load {
    /// Begins to ask.
    pub(in crate::rig) fn start(mix: Vec<Asked>, rate: u32, seed: u64) -> Result<Self, Failure> {
        let shared = Arc::new(Shared {
            begun: Instant::now(),
            stop: AtomicBool::new(false),
            rests: AtomicBool::new(false),
            waiting: Mutex::default(),
            samples: Mutex::default(),
            said: Mutex::default(),
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| cannot("start the load", &error))?;
        let asking = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("load".to_owned())
            .spawn(move || LocalSet::new().block_on(&runtime, ask_on(asking, mix, rate, seed)));
        let thread = thread.map_err(|error| cannot("start the load", &error))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// The moment now, on the clock of the samples.
    pub(in crate::rig) fn now(&self) -> Duration {
        self.shared.begun.elapsed()
    }

    /// Asks nothing more until it goes on.
    pub(in crate::rig) fn rest(&self) {
        self.shared.rests.store(true, Ordering::Relaxed);
    }

    /// Goes on after a rest.
    pub(in crate::rig) fn go_on(&self) {
        self.shared.rests.store(false, Ordering::Relaxed);
    }

    /// Waits until whatever was due before a moment has come to something.
    pub(in crate::rig) async fn settled(&self, before: Duration) {
        while lock(&self.shared.waiting).first().is_some_and(|due| *due < before) {
            sleep(REST).await;
        }
    }

    /// The requests that were due from one moment to another and have come to something.
    pub(in crate::rig) fn samples(&self, from: Duration, to: Duration) -> Vec<Sample> {
        let samples = lock(&self.shared.samples);
        samples.iter().filter(|sample| sample.due >= from && sample.due < to).cloned().collect()
    }

    /// What was said to those among these that were not answered as wished: each text, when it was said first, and how
    /// often.
    pub(in crate::rig) fn said(&self, from: Duration, to: Duration) -> BTreeMap<String, (Duration, usize)> {
        let mut texts = BTreeMap::new();
        for (due, text) in lock(&self.shared.said).iter().filter(|(due, _)| *due >= from && *due < to) {
            let (first, count) = texts.entry(text.clone()).or_insert((*due, 0));
            (*first, *count) = ((*first).min(*due), *count + 1);
        }
        texts
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It cannot have panicked where anybody could do something about it.
            let _ = thread.join();
        }
    }
}

/// Idle connections to one edge.
type Idle = Rc<RefCell<VecDeque<Connection>>>;

async fn ask_on(shared: Arc<Shared>, mix: Vec<Asked>, rate: u32, seed: u64) {
    let period = Duration::from_secs(1) / rate.max(1);
    let mut random = SmallRng::seed_from_u64(seed);
    let pools: Vec<Idle> = mix.iter().map(|_| Idle::default()).collect();
    // Classes that go to the same edge share its connections.
    let pool_of = |edge: SocketAddr| mix.iter().position(|other| other.edge == edge).unwrap_or_default();
    let mut due = Instant::now();
    while !shared.stop.load(Ordering::Relaxed) {
        if shared.rests.load(Ordering::Relaxed) {
            sleep(REST).await;
            due = Instant::now();
            continue;
        }
        while due <= Instant::now() {
            let Some(asked) = chosen(&mix, random.random_range(0..100)) else { return };
            let path = asked.paths[random.random_range(0..asked.paths.len())].clone();
            let idle = Rc::clone(&pools[pool_of(asked.edge)]);
            lock(&shared.waiting).insert(due.duration_since(shared.begun));
            tokio::task::spawn_local(ask(Arc::clone(&shared), idle, asked.edge, path, due));
            due += period;
        }
        sleep_until(due.into()).await;
    }
}

/// The class on which a number below a hundred falls.
fn chosen(mix: &[Asked], mut number: u32) -> Option<&Asked> {
    for asked in mix {
        match number.checked_sub(asked.percent) {
            None => return Some(asked),
            Some(left) => number = left,
        }
    }
    mix.last()
}

async fn ask(shared: Arc<Shared>, idle: Idle, edge: SocketAddr, path: Arc<str>, due: Instant) {
    let asked = timeout(PATIENCE, over_some_connection(&idle, edge, &path)).await;
    let took = due.elapsed();
    let due = due.duration_since(shared.begun);
    let (seen, again, said) = match asked {
        Ok((Ok(answer), again)) => {
            let said = (answer.status != 200).then_some(answer.body);
            (Seen::Status { status: answer.status, says_when: answer.retry_after.is_some() }, again, said)
        }
        Ok((Err(lost), again)) => (Seen::Broken, again, Some(lost.to_string())),
        Err(_) => (Seen::Silence, false, Some(format!("nothing came for {PATIENCE:?}"))),
    };
    if let Some(said) = said {
        let said: String = said.chars().take(SAID_AT_MOST).collect();
        lock(&shared.said).push((due, format!("{seen}: {said}")));
    }
    lock(&shared.samples).push(Sample { due, took, seen, again });
    lock(&shared.waiting).remove(&due);
}

/// Asks over an idle connection, or a new one. An edge may close an idle connection just when a request is sent on it;
/// a client then asks again over a new one, as every client of HTTP does. Says whether that was so.
async fn over_some_connection(idle: &Idle, edge: SocketAddr, path: &str) -> (Result<Heard, Lost>, bool) {
    let kept = idle.borrow_mut().pop_front();
    if let Some(connection) = kept {
        match over(connection, idle, path).await {
            Err(Lost::Unasked) => {}
            other => return (other, false),
        }
        // Its like are closed, too, most likely; those that are not are opened again soon enough.
        idle.borrow_mut().clear();
        return (over_a_new_one(idle, edge, path).await, true);
    }
    (over_a_new_one(idle, edge, path).await, false)
}

async fn over_a_new_one(idle: &Idle, edge: SocketAddr, path: &str) -> Result<Heard, Lost> {
    over(Connection::open(edge).await?, idle, path).await
}

/// What of an answer counts.
struct Heard {
    status: u16,
    retry_after: Option<String>,
    body: String,
}

async fn over(mut connection: Connection, idle: &Idle, path: &str) -> Result<Heard, Lost> {
    connection.ask(path).await?;
    let answer = connection.answer().await?;
    let body = match answer.status {
        200 => String::new(),
        _ => String::from_utf8_lossy(connection.body(&answer)).into_owned(),
    };
    let mut idle = idle.borrow_mut();
    if !answer.closes && idle.len() < KEPT {
        idle.push_back(connection);
    }
    Ok(Heard { status: answer.status, retry_after: answer.retry_after, body })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
