//! The read load of a drill: an open loop with a fixed request rate, on its own thread.
//!
//! Latency counts from the moment at which a request was due, so that a stall counts in full. Connections are
//! persistent; another one is opened when a request is due and all are waiting for answers.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet, VecDeque},
    net::SocketAddr,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use mesh::failure::{Failure, cannot};
use mesh_testbed::Answer;
use parking_lot::Mutex;
use rand::{Rng as _, SeedableRng as _, rngs::SmallRng};
use tokio::{
    sync::watch,
    task::LocalSet,
    time::{interval, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    connection::{Connection, RequestError, Response},
    heads::HeadObserver,
    samples::{Figures, ReadResult, Sample},
};
use crate::rig::report::{Report, in_ms};

/// Greatest number of idle connections to each edge.
const MAX_IDLE: usize = 48;
/// Client timeout: longer than the edge's own deadline plus the time for which drills freeze it.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Service is normal when all requests of this period succeeded.
const NORMAL_FOR: Duration = Duration::from_secs(1);
/// The p99 of normal service in this period.
pub(crate) const NORMAL_P99: Duration = Duration::from_millis(250);
/// Characters of a failure text that are stored.
const MESSAGE_AT_MOST: usize = 240;

/// A running load. It stops when dropped.
pub(crate) struct Load {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    begun: Instant,
    /// Cancelled when the load is dropped.
    dropped: CancellationToken,
    /// Cancelled when the load sends no more requests: on demand, and when it is dropped.
    finished: CancellationToken,
    /// Due times of the requests in progress.
    waiting: watch::Sender<BTreeSet<Duration>>,
    samples: Mutex<Vec<Sample>>,
    /// Number of requests sent, repetitions included.
    sent: AtomicU64,
    answers: AtomicU64,
}

impl Load {
    /// Starts the load with `rate` requests a second.
    pub(crate) fn start(mix: Vec<RequestClass>, rate: u32, seed: u64) -> Result<Self, Failure> {
        let dropped = CancellationToken::new();
        let shared = Arc::new(Shared {
            begun: Instant::now(),
            finished: dropped.child_token(),
            dropped,
            waiting: watch::Sender::default(),
            samples: Mutex::default(),
            sent: AtomicU64::new(0),
            answers: AtomicU64::new(0),
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| cannot("start the load", &error))?;
        let asking = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("load".to_owned())
            .spawn(move || LocalSet::new().block_on(&runtime, run_load(asking, mix, rate, seed)));
        let thread = thread.map_err(|error| cannot("start the load", &error))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// The longest time for which the store had had a newer head when an answer was requested.
    pub(crate) fn most_outdated(&self, heads: &HeadObserver) -> Duration {
        let of = |sample: &Sample| Some(heads.outdated(sample.height?, self.shared.begun + sample.due));
        self.shared.samples.lock().iter().filter_map(of).max().unwrap_or_default()
    }

    /// Current time on the clock of the samples.
    pub(crate) fn now(&self) -> Duration {
        self.shared.begun.elapsed()
    }

    /// The requests that did not get a correct answer so far.
    pub(crate) fn failed(&self) -> Vec<Sample> {
        self.shared.samples.lock().iter().filter(|sample| !sample.is_fine()).cloned().collect()
    }

    /// Converts a time on the clock of the samples to an [`tokio::time::Instant`].
    pub(crate) fn moment(&self, moment: Duration) -> tokio::time::Instant {
        (self.shared.begun + moment).into()
    }

    /// Numbers of requests sent so far, repetitions included, and of answers received.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.shared.sent.load(Ordering::Relaxed), self.shared.answers.load(Ordering::Relaxed))
    }

    /// Waits until all requests that were due before a moment are finished.
    pub(crate) async fn until_finished(&self, before: Duration) {
        let is_finished = |waiting: &BTreeSet<Duration>| waiting.first().is_none_or(|due| *due >= before);
        // The sender lives as long as `self`, so that this cannot fail.
        let _ = self.shared.waiting.subscribe().wait_for(is_finished).await;
    }

    /// Ends the load after the requests in progress; returns the time of the last one.
    pub(crate) async fn finish(&self) -> Duration {
        let end = self.now();
        self.shared.finished.cancel();
        self.until_finished(end).await;
        end
    }

    /// Waits until all requests of a second succeeded with a p99 below `p99`; returns whether they did in time.
    pub(crate) async fn becomes_normal(&self, p99: Duration, within: Duration) -> bool {
        let (begun, mut ticks) = (self.now(), interval(NORMAL_FOR / 4));
        let normal = async {
            loop {
                ticks.tick().await;
                let to = self.now();
                let Some(from) = to.checked_sub(NORMAL_FOR).filter(|from| *from >= begun) else { continue };
                self.until_finished(to).await;
                let figures = Figures::of(&self.samples(from, to), from, to);
                if figures.requests > 0 && figures.fine == figures.requests && figures.worst_p99 < p99 {
                    return;
                }
            }
        };
        timeout(within, normal).await.is_ok()
    }

    /// Waits for the requests that were due from a moment until now; returns them, their figures and a report.
    pub(crate) async fn report(&self, name: &str, from: Duration) -> (Vec<Sample>, Figures, Report) {
        let to = self.now();
        self.until_finished(to).await;
        let samples = self.samples(from, to);
        let figures = Figures::of(&samples, from, to);
        let mut report = figures.report(name);
        report.messages = self.failure_messages(from, to);
        (samples, figures, report)
    }

    /// The finished requests that were due in `from..to`.
    pub(crate) fn samples(&self, from: Duration, to: Duration) -> Vec<Sample> {
        let samples = self.shared.samples.lock();
        samples.iter().filter(|sample| sample.due >= from && sample.due < to).cloned().collect()
    }

    /// The different failure texts of the requests that were due in `from..to`, with their counts.
    pub(crate) fn failure_messages(&self, from: Duration, to: Duration) -> Vec<String> {
        let mut texts = BTreeMap::new();
        for Sample { due, message, .. } in self.samples(from, to) {
            let Some(message) = message else { continue };
            let (first, count) = texts.entry(message).or_insert((due, 0));
            (*first, *count) = ((*first).min(due), *count + 1);
        }
        let message = |(text, (first, count)): (String, (Duration, usize))| {
            format!("{count} times, first after {}: {text}", in_ms(first.saturating_sub(from)))
        };
        texts.into_iter().map(message).collect()
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.shared.dropped.cancel();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread is not propagated from a destructor.
            let _ = thread.join();
        }
    }
}

/// Idle connections to one edge.
type Idle = Rc<RefCell<VecDeque<Connection>>>;

async fn run_load(shared: Arc<Shared>, mix: Vec<RequestClass>, rate: u32, seed: u64) {
    let period = Duration::from_secs(1) / rate.max(1);
    let mut random = SmallRng::seed_from_u64(seed);
    let pools: Vec<Idle> = mix.iter().map(|_| Idle::default()).collect();
    // Classes with the same edge share its connections.
    let pool_of = |edge: SocketAddr| mix.iter().position(|other| other.edge == edge).unwrap_or_default();
    let mut due = Instant::now();
    while !shared.finished.is_cancelled() {
        while due <= Instant::now() {
            let Some(class) = pick_class(&mix, random.random_range(0..100)) else { return };
            let request = class.requests[random.random_range(0..class.requests.len())].clone();
            let idle = Rc::clone(&pools[pool_of(class.edge)]);
            let since_begun = due.duration_since(shared.begun);
            shared.waiting.send_modify(|waiting| {
                waiting.insert(since_begun);
            });
            tokio::task::spawn_local(ask(Arc::clone(&shared), idle, class.edge, request, due));
            due += period;
        }
        sleep_until(due.into()).await;
    }
    // The requests in progress end with this function.
    shared.dropped.cancelled().await;
}

/// The class that a number below 100 selects.
fn pick_class(mix: &[RequestClass], mut number: u32) -> Option<&RequestClass> {
    for class in mix {
        match number.checked_sub(class.percent) {
            None => return Some(class),
            Some(left) => number = left,
        }
    }
    mix.last()
}

async fn ask(shared: Arc<Shared>, idle: Idle, edge: SocketAddr, request: ReadRequest, due: Instant) {
    let answered = timeout(TIMEOUT, exchange(&shared, &idle, edge, &request)).await;
    let took = due.elapsed();
    let due = due.duration_since(shared.begun);
    let (result, height, again, message) = match answered {
        Ok((Ok((response, result, message)), again)) => (result, response.height, again, message),
        Ok((Err(lost), again)) => (ReadResult::Broken, None, again, Some(lost.to_string())),
        Err(_) => (ReadResult::Silence, None, false, Some(format!("nothing came for {TIMEOUT:?}"))),
    };
    let shorten = |message: String| message.chars().take(MESSAGE_AT_MOST).collect::<String>();
    let message = message.map(|message| format!("{result}: {}", shorten(message)));
    shared.samples.lock().push(Sample { due, took, result, height, again, message });
    shared.waiting.send_modify(|waiting| {
        waiting.remove(&due);
    });
}

/// Sends a request over an idle connection, or a new one. When the edge closes the idle connection at that
/// moment, the request is repeated over a new one, as HTTP clients do. Returns the response with its result and
/// failure text, and whether the request was repeated.
async fn exchange(
    shared: &Shared,
    idle: &Idle,
    edge: SocketAddr,
    request: &ReadRequest,
) -> (Result<(Response, ReadResult, Option<String>), RequestError>, bool) {
    let exchange = async |mut connection: Connection| {
        shared.sent.fetch_add(1, Ordering::Relaxed);
        let (headers, sent) = (request.judge.headers(), Instant::now());
        connection.send(&request.path, &headers).await?;
        let response = connection.receive().await?;
        shared.answers.fetch_add(1, Ordering::Relaxed);
        let (result, message) = judge(&response, request, &headers, sent);
        let mut idle = idle.borrow_mut();
        if !response.raw.closes() && idle.len() < MAX_IDLE {
            idle.push_back(connection);
        }
        Ok((response, result, message))
    };
    let reusable = idle.borrow_mut().pop_front();
    let is_reused = reusable.is_some();
    if let Some(connection) = reusable {
        match exchange(connection).await {
            Err(RequestError::Unanswered) => {}
            other => return (other, false),
        }
        // The other idle connections are most likely closed, too; those that are not are easily replaced.
        idle.borrow_mut().clear();
    }
    match Connection::open(edge).await {
        Ok(connection) => (exchange(connection).await, is_reused),
        Err(error) => (Err(error), is_reused),
    }
}

/// The result of a response, and its failure text.
fn judge(
    response: &Response,
    request: &ReadRequest,
    headers: &str,
    sent: Instant,
) -> (ReadResult, Option<String>) {
    let Answer { status, ref body, .. } = response.raw;
    // An answer as of a block has the height of that block.
    let earlier_height = response.earlier_height.filter(|_| !request.path.contains("atBlock="));
    let wrong = match (status, earlier_height) {
        (_, Some(height)) => Some(format!("shows block {:?} after block {height}", response.height)),
        (200 | 304, None) => request.judge.wrong(&response.raw, headers, sent),
        _ => None,
    };
    if let Some(wrong) = wrong {
        return (ReadResult::Wrong, Some(format!("{}: {wrong}", request.path)));
    }
    let has_retry_after = response.raw.header("retry-after").is_some();
    let message = (!matches!(status, 200 | 304)).then(|| String::from_utf8_lossy(body).into_owned());
    (ReadResult::Status { status, has_retry_after }, message)
}

pub(crate) struct RequestClass {
    pub(crate) percent: u32,
    pub(crate) edge: SocketAddr,
    /// The requests, of which each time one is chosen at random.
    pub(crate) requests: Vec<ReadRequest>,
}

#[derive(Clone)]
pub(crate) struct ReadRequest {
    pub(crate) path: Arc<str>,
    pub(crate) judge: Arc<dyn Judge>,
}

impl From<String> for ReadRequest {
    fn from(path: String) -> Self {
        Self { path: path.into(), judge: Arc::<Vec<String>>::default() }
    }
}

/// Judges the successful answers to one path.
pub(crate) trait Judge: Send + Sync {
    /// Additional header lines of the next request.
    fn headers(&self) -> String {
        String::new()
    }

    /// Why an answer with status 200 or 304 is wrong, if it is. Gets the request's additional header lines and
    /// when it was sent.
    fn wrong(&self, answer: &Answer, headers: &str, sent: Instant) -> Option<String>;
}

/// Texts that every answer must contain.
impl Judge for Vec<String> {
    fn wrong(&self, answer: &Answer, _: &str, _: Instant) -> Option<String> {
        if answer.status == 304 {
            return Some("a 304 that was not asked for".to_owned());
        }
        let text = std::str::from_utf8(&answer.body).unwrap_or_default();
        let missing = self.iter().find(|part| !text.contains(part.as_str()))?;
        Some(format!("{missing} is missing in {text}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_contains_all_that_it_must() {
        let must_contain = vec!["\"id\":\"7\"".to_owned(), "\"amount\":\"49\"".to_owned()];
        let wrong = |must_contain: &Vec<String>, status, body: &str| {
            let answer = Answer { status, headers: http::HeaderMap::new(), body: body.to_owned().into() };
            must_contain.wrong(&answer, "", Instant::now())
        };
        assert_eq!(wrong(&must_contain, 200, r#"{"amount":"49","id":"7"}"#), None);
        let missing = wrong(&must_contain, 200, r#"{"amount":"490","id":"7"}"#);
        assert!(missing.is_some_and(|what| what.starts_with(&must_contain[1])));
        assert!(wrong(&must_contain, 200, "").is_some());
        assert_eq!(wrong(&Vec::new(), 200, "anything"), None);
        assert!(wrong(&Vec::new(), 304, "").is_some());
    }
}
