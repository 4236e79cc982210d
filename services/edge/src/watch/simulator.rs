//! Simulates a store (blocks, late rows, outages, resets to an older block), one live query, and watchers that
//! read slowly and reconnect, for many seeds in simulated time. On a stream heights never decrease, no event is
//! older than a plain read before it, and no height is above the store's. At the end every watcher has the
//! state of the store.

mod client;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::Duration,
};

use mesh_bus::{Encoding, Format};
use mesh_problem::Problem;
use rand::{Rng as _, SeedableRng, rngs::SmallRng};
use tokio::time::Instant;

use self::client::Client;
use super::{
    schedule::{BLOCK_INTERVAL, LookResult, QUIET_INTERVAL, Schedule},
    state::Latest,
};
use crate::ask::{
    answer::{Answer, Validity},
    answer_memory::AnswerMemory,
    cache::{FRESH, Question, tests::answer},
    heads::HeadStatus,
};

const SEEDS: u64 = 10_000;

/// Simulated time with faults, and without faults after it, milliseconds.
const BUSY_MS: u64 = 30_000;
const QUIET_MS: u64 = 25_000;

/// The last block, which changes nothing.
const LAST_BLOCK_MS: u64 = BUSY_MS + 4000;

/// How long the backend serves cached answers while the store is unavailable, milliseconds.
const STALE_MS: u64 = 10_000;

const WATCHERS: usize = 4;

/// Shortest and longest time until the edge accepts that the store was reset, milliseconds.
const BELIEVED_MS: std::ops::Range<u64> = 2000..3000;

/// The state of the store that a read returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Seen {
    height: u64,
    content: u64,
}

/// A read in progress: it reads the store half way through.
#[derive(Clone)]
struct Read {
    began_ms: u64,
    head: HeadStatus,
    sees_ms: u64,
    ends_ms: u64,
    seen: Option<Option<Seen>>,
}

impl Read {
    /// Time of its next step.
    fn next_ms(&self) -> u64 {
        if self.seen.is_none() { self.sees_ms } else { self.ends_ms }
    }

    /// The backend's answer: none below the head that was known at the request.
    fn answered(&self) -> Option<Seen> {
        self.seen.flatten().filter(|seen| seen.height >= self.head.height)
    }
}

struct World {
    rng: SmallRng,
    start: Instant,
    template: Answer,
    question: Question,
    now_ms: u64,
    store: Seen,
    is_away: bool,
    /// When the store is reset, in some runs, and when the edge accepts it.
    reset_ms: Option<u64>,
    believed_ms: Option<u64>,
    /// The head known to the edge, and announcements in flight.
    head: HeadStatus,
    announced: Vec<(u64, HeadStatus)>,
    next_block_ms: u64,
    next_late_row_ms: u64,
    next_outage_ms: u64,
    next_plain_ms: u64,
    /// Shortest time between two blocks.
    block_ms: u64,
    plain: Option<Read>,
    /// The content of the edge's cache, and when it was requested.
    cached: Option<(Seen, u64)>,
    look: Option<Read>,
    looked_ms: Option<u64>,
    schedule: Schedule,
    latest: Latest,
    /// The newest state that a plain read has returned.
    shown: Seen,
    clients: Vec<Client>,
    events: u64,
}

impl World {
    fn new(seed: u64, template: &Answer) -> Self {
        let mut rng = SmallRng::seed_from_u64(seed);
        let start = template.asked_at;
        let encoding = Encoding { format: Format::Json, gzip: false };
        let question = Question { operation: "ListThings", encoding, ..Question::default() };
        let store = Seen { height: 1, content: 1 };
        let template = answer_of(template, store, start);
        let latest = Latest::new(&question, &template, store.height, 0, start);
        let block_ms = if rng.random_bool(0.5) { 1000 } else { 60 };
        let reset_ms = rng.random_bool(0.3).then(|| rng.random_range(1..BUSY_MS));
        let client = || Client {
            progress: None,
            opening: None,
            ready_ms: 0,
            received: None,
            last_id: None,
            has_old_id: false,
            comes_back_ms: 0,
        };
        Self {
            start,
            question,
            now_ms: 0,
            store,
            is_away: false,
            reset_ms,
            believed_ms: None,
            head: HeadStatus { height: 1, is_followed: true, resets: 0 },
            announced: Vec::new(),
            next_block_ms: rng.random_range(1..2000),
            next_late_row_ms: rng.random_range(1..9000),
            next_outage_ms: rng.random_range(1..40_000),
            next_plain_ms: 1,
            block_ms,
            plain: None,
            cached: None,
            look: None,
            looked_ms: None,
            schedule: Schedule::new(start, (store.height, 0), LookResult::AtHeight),
            latest,
            shown: store,
            clients: (0..WATCHERS).map(|_| client()).collect(),
            events: 0,
            template,
            rng,
        }
    }

    fn at(&self, ms: u64) -> Instant {
        self.start + Duration::from_millis(ms)
    }

    fn is_busy(&self) -> bool {
        self.now_ms < BUSY_MS
    }

    fn read(&mut self) -> Read {
        let takes = if self.rng.random_bool(0.9) { 8 } else { 400 };
        let sees_ms = self.now_ms + self.rng.random_range(1..takes);
        let ends_ms = sees_ms + self.rng.random_range(1..takes);
        Read { began_ms: self.now_ms, head: self.head, sees_ms, ends_ms, seen: None }
    }

    /// A read through the backend: the cached answer while it is fresh, or a read already in progress.
    fn shared_read(&mut self) -> Read {
        let (now_ms, head) = (self.now_ms, self.head);
        let is_fresh = |(seen, began_ms): &(Seen, u64)| {
            seen.height == head.height && now_ms - began_ms < FRESH.as_millis() as u64
        };
        if let Some((seen, began_ms)) = self.cached.filter(is_fresh) {
            return Read { began_ms, head, sees_ms: now_ms, ends_ms: now_ms + 1, seen: Some(Some(seen)) };
        }
        match &self.plain {
            Some(read) => Read { head, ..read.clone() },
            None => self.read(),
        }
    }

    /// Time of the next simulated action. In loops: chained iterators are slow without optimisation.
    fn next_ms(&self) -> u64 {
        let (now_ms, mut next_ms) = (self.now_ms, u64::MAX);
        let mut consider = |ms: u64| {
            if ms > now_ms {
                next_ms = next_ms.min(ms);
            }
        };
        for read in [&self.plain, &self.look].into_iter().flatten() {
            consider(read.next_ms());
        }
        for client in &self.clients {
            consider(client.ready_ms);
            consider(client.comes_back_ms);
            if let Some(read) = &client.opening {
                consider(read.next_ms());
            }
        }
        for (at, _) in &self.announced {
            consider(*at);
        }
        if self.look.is_none()
            && let Some(due) = self.schedule.due(self.head)
        {
            consider(u64::try_from(due.saturating_duration_since(self.start).as_millis()).unwrap());
        }
        if self.is_busy() {
            for at in [self.next_block_ms, self.next_late_row_ms, self.next_outage_ms, self.next_plain_ms] {
                consider(at);
            }
        }
        for at in [self.reset_ms, self.believed_ms].into_iter().flatten() {
            consider(at);
        }
        consider(BUSY_MS);
        consider(LAST_BLOCK_MS);
        if next_ms == u64::MAX { now_ms + 1 } else { next_ms }
    }

    fn run(mut self) -> u64 {
        while self.now_ms < BUSY_MS + QUIET_MS {
            self.now_ms = self.next_ms();
            self.store_changes();
            self.heads_come();
            self.reads_go_on();
            self.live_query_looks();
            for index in 0..self.clients.len() {
                self.client_reads(index);
            }
        }
        for client in &self.clients {
            assert_eq!(
                client.received.map(|seen| seen.content),
                Some(self.store.content),
                "the last state is received"
            );
        }
        self.events
    }

    /// Like a test network that restarts from genesis: another answer, at a lower height.
    fn reset_to_an_older_block(&mut self) {
        if self.reset_ms.take_if(|at| *at <= self.now_ms).is_some() {
            self.store.height = self.rng.random_range(1..=self.store.height);
            self.store.content += 1;
            self.believed_ms = Some(self.now_ms + self.rng.random_range(BELIEVED_MS));
        }
        if self.believed_ms.take_if(|at| *at <= self.now_ms).is_some() {
            let resets = self.head.resets + 1;
            self.head = HeadStatus { height: self.store.height, is_followed: !self.is_away, resets };
            self.cached = None;
            self.shown = Seen { height: 0, content: 0 };
            self.clients.iter_mut().for_each(|client| client.has_old_id = true);
        }
    }

    fn store_changes(&mut self) {
        self.reset_to_an_older_block();
        if self.now_ms == BUSY_MS {
            self.is_away = false;
            self.announce();
            self.clients.iter_mut().for_each(|client| client.ready_ms = client.ready_ms.min(BUSY_MS));
        }
        if self.now_ms == LAST_BLOCK_MS {
            // A client that resumed with the height of the newest block waits for the next one (W6).
            self.store.height += 1;
            self.announce();
        }
        if !self.is_busy() {
            return;
        }
        if self.now_ms >= self.next_block_ms {
            self.store.height += 1;
            self.store.content += u64::from(self.rng.random_bool(0.5));
            self.next_block_ms = self.now_ms + self.block_ms + self.rng.random_range(0..300);
            self.announce();
        }
        if self.now_ms >= self.next_late_row_ms {
            self.store.content += 1;
            self.next_late_row_ms = self.now_ms + self.rng.random_range(1..9000);
        }
        if self.now_ms >= self.next_outage_ms {
            self.is_away = !self.is_away;
            self.next_outage_ms =
                self.now_ms + self.rng.random_range(1..if self.is_away { 5000 } else { 40_000 });
            self.announce();
        }
    }

    /// Sends an announcement; some are late, and some are lost.
    fn announce(&mut self) {
        let news = HeadStatus { height: self.store.height, is_followed: !self.is_away, resets: 0 };
        if self.is_busy() && self.rng.random_bool(0.05) {
            return;
        }
        let late = if self.rng.random_bool(0.9) { 5 } else { 300 };
        self.announced.push((self.now_ms + self.rng.random_range(1..late), news));
    }

    fn heads_come(&mut self) {
        let now_ms = self.now_ms;
        let head = &mut self.head;
        self.announced.retain(|(at, news)| {
            if *at <= now_ms {
                *head = HeadStatus {
                    height: head.height.max(news.height),
                    is_followed: news.is_followed,
                    ..*head
                };
            }
            *at > now_ms
        });
    }

    fn reads_go_on(&mut self) {
        let seen = (!self.is_away).then_some(self.store);
        let openings = self.clients.iter_mut().map(|client| &mut client.opening);
        for read in [&mut self.plain, &mut self.look].into_iter().chain(openings).flatten() {
            if self.now_ms >= read.sees_ms && read.seen.is_none() {
                read.seen = Some(seen);
            }
        }
        if self.is_busy() && self.now_ms >= self.next_plain_ms && self.plain.is_none() {
            self.next_plain_ms = self.now_ms + self.rng.random_range(1..400);
            self.plain = Some(self.read());
        }
        if let Some(read) = self.plain.take_if(|read| self.now_ms >= read.ends_ms) {
            self.plain_read_ends(&read);
        }
    }

    /// The answer that a client receives.
    fn plain_read_ends(&mut self, read: &Read) -> Option<Seen> {
        let seen = read.answered()?;
        self.head.height = self.head.height.max(seen.height);
        self.cache(seen, read.began_ms);
        self.shown = self.shown.max(seen);
        Some(seen)
    }

    /// Stores an answer unless it is older than the known head, like the real cache.
    fn cache(&mut self, seen: Seen, began_ms: u64) {
        let is_older =
            self.cached.is_some_and(|(other, began)| (seen.height, began_ms) < (other.height, began));
        if seen.height >= self.head.height && !is_older {
            self.cached = Some((seen, began_ms));
        }
    }

    /// The cached answer that the backend serves while the store is unavailable; it may be older than the last
    /// look.
    fn stale(&self) -> Option<(Seen, u64)> {
        self.cached.filter(|(_, began_ms)| self.is_away && self.now_ms - began_ms < STALE_MS)
    }

    fn live_query_looks(&mut self) {
        if let Some(read) = self.look.take_if(|read| self.now_ms >= read.ends_ms) {
            match read.answered().map(|seen| (seen, read.began_ms)).or_else(|| self.stale()) {
                Some((seen, began_ms)) => {
                    self.head.height = self.head.height.max(seen.height);
                    self.schedule.end(LookResult::AtHeight);
                    let answer = answer_of(&self.template, seen, self.at(began_ms));
                    let now = self.at(self.now_ms);
                    let resets = read.head.resets;
                    self.latest.publish(&self.question, &answer, seen.height, resets, now);
                    self.cache(seen, began_ms);
                }
                None => {
                    if self.schedule.end(LookResult::Failed) {
                        let problem = Problem::unavailable("the store is unavailable");
                        let asked_at = self.at(read.began_ms);
                        self.latest.publish_problem(&self.question, &problem, asked_at);
                    }
                }
            }
        }
        if self.look.is_some() || self.schedule.due(self.head).is_none_or(|due| due > self.at(self.now_ms)) {
            return;
        }
        let interval = self.looked_ms.replace(self.now_ms).map(|ms| Duration::from_millis(self.now_ms - ms));
        assert!(interval.is_none_or(|interval| interval >= BLOCK_INTERVAL), "a look after {interval:?}");
        self.schedule.begin(self.at(self.now_ms), self.head);
        self.look = Some(self.shared_read());
    }
}

/// An answer with this state as its body.
fn answer_of(template: &Answer, seen: Seen, asked_at: Instant) -> Answer {
    Answer {
        head: template.head.map(|head| mesh_bus::Head { height: seen.height, ..head }),
        validity: Validity::Newest,
        etag: None,
        headers: http::HeaderMap::new(),
        parts: vec![seen.content.to_string().into()],
        asked_at,
        metrics: None,
        memory: AnswerMemory::default(),
        client: 0,
    }
}

#[test]
fn whatever_happens_a_watch_is_true_and_complete() {
    let template = answer(1, Instant::now(), 0);
    let (next, events) = (AtomicU64::new(0), AtomicU64::new(0));
    let run = || {
        while let seed @ 0..SEEDS = next.fetch_add(1, Ordering::Relaxed) {
            let ran = catch_unwind(AssertUnwindSafe(|| World::new(seed, &template).run()));
            events.fetch_add(ran.unwrap_or_else(|_| panic!("seed {seed}")), Ordering::Relaxed);
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(run))));
    let events = events.into_inner();
    assert!(events > SEEDS * 20, "the simulation itself must be worth something: {events} events");
    assert!(QUIET_INTERVAL < Duration::from_millis(QUIET_MS / 2));
}
