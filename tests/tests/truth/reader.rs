//! Clients with persistent connections: they read in every encoding, revalidate with `If-None-Match`, and
//! record each answer with its times.

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
use mesh_testbed::http1::{Connection, RawAnswer};
use rand::{Rng, SeedableRng, rngs::SmallRng};
use tokio::time::{sleep, timeout};

use crate::history::{Content, History};

/// Pause between two reads, milliseconds.
const PAUSE_MS: std::ops::Range<u64> = 1..16;

/// Readers that choose the common question all ask the same one during each such interval, so that equal
/// reads are concurrent.
const COMMON_INTERVAL: Duration = Duration::from_millis(100);

/// Client timeout: longer than any deadline of the edge.
const ANSWER_WITHIN: Duration = Duration::from_secs(15);

/// One read and its result.
#[derive(Debug, Clone)]
pub(crate) struct ReadRecord {
    /// Number of the connection, unique over all readers, in order of opening.
    pub(crate) connection: usize,
    pub(crate) edge: usize,
    pub(crate) question: usize,
    pub(crate) encoding: Encoding,
    pub(crate) sent: Instant,
    pub(crate) received: Instant,
    pub(crate) result: ReadResult,
}

/// The encoding that was requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Encoding {
    pub(crate) gzip: bool,
    pub(crate) pretty: bool,
}

/// The result of one read.
#[derive(Debug, Clone)]
pub(crate) enum ReadResult {
    Answer {
        is_304: bool,
        height: u64,
        time_ns: u64,
        etag: Arc<str>,
        content: Content,
    },
    /// An error answer, and whether it has a `Retry-After` header.
    Refused {
        status: u16,
        has_retry_after: bool,
    },
    /// The connection ended without an answer.
    Broken,
    /// An answer that violates the contract.
    Odd(String),
}

/// A client with one connection at a time.
pub(crate) struct Reader {
    history: Arc<History>,
    edge: usize,
    url: String,
    random: SmallRng,
    begun: Instant,
    connection_count: Arc<AtomicUsize>,
    /// By question: the last entity tag and the content it belongs to.
    known: HashMap<usize, (Arc<str>, Content)>,
    reads: Vec<ReadRecord>,
}

impl Reader {
    /// Creates a reader of one edge. `numbers` counts the connections of all readers.
    pub(crate) fn new(
        history: Arc<History>,
        (edge, url): (usize, String),
        seed: u64,
        begun: Instant,
        connection_count: Arc<AtomicUsize>,
    ) -> Self {
        let random = SmallRng::seed_from_u64(seed);
        Self { history, edge, url, random, begun, connection_count, known: HashMap::new(), reads: Vec::new() }
    }

    /// Reads until the given time; returns all records.
    pub(crate) async fn read(mut self, until: Instant) -> Vec<ReadRecord> {
        while Instant::now() < until {
            let number = self.connection_count.fetch_add(1, Ordering::Relaxed);
            match Connection::open(&self.url).await {
                Ok(connection) => self.read_over(connection, number, until).await,
                Err(error) => panic!("the socket is always there: {error}"),
            }
        }
        self.reads
    }

    /// Reads over one connection until it is closed or the time is over.
    async fn read_over(&mut self, mut connection: Connection, number: usize, until: Instant) {
        while Instant::now() < until {
            sleep(Duration::from_millis(self.random.random_range(PAUSE_MS))).await;
            let (question, encoding) = self.pick();
            let known = self.known.get(&question).cloned().filter(|_| self.random.random_ratio(1, 3));
            let request = self.request(question, encoding, known.as_ref().map(|(tag, _)| &**tag));
            let sent = Instant::now();
            let answer = timeout(ANSWER_WITHIN, exchange(&mut connection, &request)).await;
            let received = Instant::now();
            let (result, ends) = match answer {
                Ok(Some(answer)) => {
                    let ends = answer.closes();
                    (self.classify(answer, encoding, known.as_ref()), ends)
                }
                Ok(None) => (ReadResult::Broken, true),
                Err(_) => (ReadResult::Odd(format!("no answer within {ANSWER_WITHIN:?}")), true),
            };
            if let ReadResult::Answer { etag, content, .. } = &result {
                self.known.insert(question, (Arc::clone(etag), *content));
            }
            let edge = self.edge;
            self.reads.push(ReadRecord {
                connection: number,
                edge,
                question,
                encoding,
                sent,
                received,
                result,
            });
            if ends {
                return;
            }
        }
    }

    fn pick(&mut self) -> (usize, Encoding) {
        let questions = self.history.questions.len();
        match self.random.random() {
            true => {
                let turn = self.begun.elapsed().as_millis() / COMMON_INTERVAL.as_millis();
                let turn = usize::try_from(turn).unwrap_or_default();
                (turn.wrapping_mul(7) % questions, Encoding { gzip: turn % 2 == 0, pretty: false })
            }
            false => {
                let encoding =
                    Encoding { gzip: self.random.random(), pretty: self.random.random_ratio(1, 4) };
                (self.random.random_range(0..questions), encoding)
            }
        }
    }

    fn request(&self, question: usize, encoding: Encoding, tag: Option<&str>) -> String {
        let path = &self.history.questions[question].path;
        let pretty = match (encoding.pretty, path.contains('?')) {
            (true, true) => "&pretty",
            (true, false) => "?pretty",
            _ => "",
        };
        let gzip = if encoding.gzip { "Accept-Encoding: gzip\r\n" } else { "" };
        let tag = tag.map(|tag| format!("If-None-Match: {tag}\r\n")).unwrap_or_default();
        format!("GET {path}{pretty} HTTP/1.1\r\nHost: x\r\n{gzip}{tag}\r\n")
    }

    fn classify(
        &self,
        answer: RawAnswer,
        encoding: Encoding,
        known: Option<&(Arc<str>, Content)>,
    ) -> ReadResult {
        let status = answer.status;
        if status != 200 && status != 304 {
            return ReadResult::Refused { status, has_retry_after: answer.header("retry-after").is_some() };
        }
        let number = |name| answer.header(name).and_then(|value| value.parse::<u64>().ok());
        let (Some(height), Some(time_ns), Some(etag)) =
            (number("x-block-height"), number("x-block-timestamp"), answer.header("etag"))
        else {
            return ReadResult::Odd(format!("a head without height, time or tag: {answer:?}"));
        };
        let etag = Arc::from(etag);
        if status == 304 {
            return match known {
                Some((known, content)) if *known == etag && answer.body.is_empty() => {
                    ReadResult::Answer { is_304: true, height, time_ns, etag, content: *content }
                }
                _ => ReadResult::Odd(format!("a 304 that was not asked for: {answer:?}")),
            };
        }
        let is_packed = answer.header("content-encoding").is_some();
        if is_packed && !encoding.gzip {
            return ReadResult::Odd("a packed answer that was not asked for".to_owned());
        }
        let body = if is_packed { unpacked(&answer.body) } else { Some(answer.body) };
        let is_pretty = body.as_ref().is_some_and(|body| body.contains(&b'\n'));
        match body.filter(|_| is_pretty == encoding.pretty).and_then(|body| self.history.content(body)) {
            Some(content) => ReadResult::Answer { is_304: false, height, time_ns, etag, content },
            None => ReadResult::Odd("a body that is no JSON of the form asked for".to_owned()),
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
