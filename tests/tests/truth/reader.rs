//! Clients that keep their connections: they read in every form, revalidate what they have, and write down
//! what they were told and when.

use std::{
    collections::HashMap,
    io::Read,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use flate2::read::GzDecoder;
use mesh_tests::raw::{Connection, RawAnswer};
use rand::{Rng, SeedableRng, rngs::SmallRng};
use tokio::time::{sleep, timeout};

use crate::history::{Content, History};

/// Between two reads, milliseconds.
const PAUSE_MS: std::ops::Range<u64> = 1..16;

/// For so long all readers that feel like it ask the same, so that equal reads meet.
const SAME: Duration = Duration::from_millis(100);

/// Longer than the edge may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(15);

/// One read.
#[derive(Debug, Clone)]
pub(crate) struct Reading {
    /// Number of the connection, in the order in which a reader opened them.
    pub(crate) connection: usize,
    pub(crate) edge: usize,
    pub(crate) question: usize,
    pub(crate) form: Form,
    pub(crate) sent: Instant,
    pub(crate) received: Instant,
    pub(crate) told: Told,
}

/// How an answer was wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Form {
    pub(crate) gzip: bool,
    pub(crate) pretty: bool,
}

/// What came back.
#[derive(Debug, Clone)]
pub(crate) enum Told {
    Answer {
        is_304: bool,
        height: u64,
        time_ns: u64,
        etag: Arc<str>,
        content: Content,
    },
    /// An error answer, and whether it says when to come back.
    Refused {
        status: u16,
        says_when: bool,
    },
    /// The connection ended without an answer.
    Broken,
    /// What no client should ever see.
    Odd(String),
}

/// A client with one connection at a time.
pub(crate) struct Reader {
    history: Arc<History>,
    edge: usize,
    url: String,
    random: SmallRng,
    begun: Instant,
    numbers: Arc<AtomicUsize>,
    /// By question: the last tag and what came with it.
    known: HashMap<usize, (Arc<str>, Content)>,
    reads: Vec<Reading>,
}

impl Reader {
    /// A reader of an edge. `numbers` counts the connections of all readers.
    pub(crate) fn new(
        history: Arc<History>,
        (edge, url): (usize, String),
        seed: u64,
        begun: Instant,
        numbers: Arc<AtomicUsize>,
    ) -> Self {
        let random = SmallRng::seed_from_u64(seed);
        Self { history, edge, url, random, begun, numbers, known: HashMap::new(), reads: Vec::new() }
    }

    /// Reads until the time has come; gives everything that it was told.
    pub(crate) async fn read(mut self, until: Instant) -> Vec<Reading> {
        while Instant::now() < until {
            let number = self.numbers.fetch_add(1, Ordering::Relaxed);
            match Connection::open(&self.url).await {
                Ok(connection) => self.use_up(connection, number, until).await,
                Err(error) => panic!("the socket is always there: {error}"),
            }
        }
        self.reads
    }

    /// Reads over one connection until it ends.
    async fn use_up(&mut self, mut connection: Connection, number: usize, until: Instant) {
        while Instant::now() < until {
            sleep(Duration::from_millis(self.random.random_range(PAUSE_MS))).await;
            let (question, form) = self.pick();
            let known = self.known.get(&question).cloned().filter(|_| self.random.random_ratio(1, 3));
            let request = self.request(question, form, known.as_ref().map(|(tag, _)| &**tag));
            let sent = Instant::now();
            let answer = timeout(ANSWER_WITHIN, exchange(&mut connection, &request)).await;
            let received = Instant::now();
            let (told, ends) = match answer {
                Ok(Some(answer)) => {
                    let ends = answer.closes();
                    (self.told(answer, form, known.as_ref()), ends)
                }
                Ok(None) => (Told::Broken, true),
                Err(_) => (Told::Odd(format!("no answer within {ANSWER_WITHIN:?}")), true),
            };
            if let Told::Answer { etag, content, .. } = &told {
                self.known.insert(question, (Arc::clone(etag), *content));
            }
            let edge = self.edge;
            self.reads.push(Reading { connection: number, edge, question, form, sent, received, told });
            if ends {
                return;
            }
        }
    }

    fn pick(&mut self) -> (usize, Form) {
        let questions = self.history.questions.len();
        match self.random.random() {
            true => {
                let turn = self.begun.elapsed().as_millis() / SAME.as_millis();
                let turn = usize::try_from(turn).unwrap_or_default();
                (turn.wrapping_mul(7) % questions, Form { gzip: turn % 2 == 0, pretty: false })
            }
            false => {
                let form = Form { gzip: self.random.random(), pretty: self.random.random_ratio(1, 4) };
                (self.random.random_range(0..questions), form)
            }
        }
    }

    fn request(&self, question: usize, form: Form, tag: Option<&str>) -> String {
        let path = &self.history.questions[question].path;
        let pretty = match (form.pretty, path.contains('?')) {
            (true, true) => "&pretty",
            (true, false) => "?pretty",
            _ => "",
        };
        let gzip = if form.gzip { "Accept-Encoding: gzip\r\n" } else { "" };
        let tag = tag.map(|tag| format!("If-None-Match: {tag}\r\n")).unwrap_or_default();
        format!("GET {path}{pretty} HTTP/1.1\r\nHost: x\r\n{gzip}{tag}\r\n")
    }

    fn told(&self, answer: RawAnswer, form: Form, known: Option<&(Arc<str>, Content)>) -> Told {
        let status = answer.status;
        if status != 200 && status != 304 {
            return Told::Refused { status, says_when: answer.header("retry-after").is_some() };
        }
        let number = |name| answer.header(name).and_then(|value| value.parse::<u64>().ok());
        let (Some(height), Some(time_ns), Some(etag)) =
            (number("x-block-height"), number("x-block-timestamp"), answer.header("etag"))
        else {
            return Told::Odd(format!("a head without height, time or tag: {answer:?}"));
        };
        let etag = Arc::from(etag);
        if status == 304 {
            return match known {
                Some((known, content)) if *known == etag && answer.body.is_empty() => {
                    Told::Answer { is_304: true, height, time_ns, etag, content: *content }
                }
                _ => Told::Odd(format!("a 304 that was not asked for: {answer:?}")),
            };
        }
        let is_packed = answer.header("content-encoding").is_some();
        if is_packed && !form.gzip {
            return Told::Odd("a packed answer that was not asked for".to_owned());
        }
        let body = if is_packed { unpacked(&answer.body) } else { Some(answer.body) };
        let is_pretty = body.as_ref().is_some_and(|body| body.contains(&b'\n'));
        match body.filter(|_| is_pretty == form.pretty).and_then(|body| self.history.content(body)) {
            Some(content) => Told::Answer { is_304: false, height, time_ns, etag, content },
            None => Told::Odd("a body that is no JSON of the form asked for".to_owned()),
        }
    }
}

async fn exchange(connection: &mut Connection, request: &str) -> Option<RawAnswer> {
    connection.send(request.as_bytes()).await.ok()?;
    connection.answer(false).await.ok()?
}

fn unpacked(body: &[u8]) -> Option<Vec<u8>> {
    let mut plain = Vec::new();
    GzDecoder::new(body).read_to_end(&mut plain).ok()?;
    Some(plain)
}
