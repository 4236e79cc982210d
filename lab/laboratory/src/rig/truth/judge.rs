//! Checks answers against the history of the store: content, height, time, entity tag, encoding and age; and the
//! states that watchers received.

use std::{
    collections::HashMap,
    io::Read as _,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use flate2::read::GzDecoder;
use mesh_testbed::Answer;
use parking_lot::Mutex;

use super::{
    LIMITS, blocks_store,
    history::{Answered, Content, History},
    may_cause,
    writer::{FINAL_BLOCKS, time_s},
};
use crate::rig::{
    clients::load::{Judge, ReadRequest},
    faults::explanation::{FailedRequest, FailureKind, FaultSpan, is_explained},
    report::Report,
    watching::{
        judge::BACK_WITHIN,
        watchers::{MAX_READS, Over, State, Watch, WatchRecord},
    },
};

/// Greatest age of an answer while the store is reachable, and while it is unreachable.
pub(super) const AGE: Duration = Duration::from_secs(1);
pub(super) const AGE_AWAY: Duration = Duration::from_secs(10);
const GZIP: &str = "Accept-Encoding: gzip\r\n";

/// What all judges of a run have observed.
pub(super) struct Observations {
    history: Arc<History>,
    /// By question: the last entity tag.
    last_tags: Mutex<HashMap<usize, Arc<str>>>,
    tags: Mutex<HashMap<(usize, Arc<str>), Content>>,
    /// Answers older than [`AGE`].
    pub(super) old: Mutex<Vec<OldAnswer>>,
    /// Number of answers without a body, because the client has it.
    pub(super) not_modified: AtomicUsize,
    /// Number of right answers as of a block.
    pub(super) past: AtomicUsize,
}

/// An answer that only an outage of the store allows.
#[derive(Clone, Debug)]
pub(super) struct OldAnswer {
    /// When the request was sent, and when the answer was complete.
    pub(super) when: (tokio::time::Instant, tokio::time::Instant),
    /// Description of the answer.
    pub(super) what: String,
}

impl Observations {
    pub(super) fn new(history: Arc<History>) -> Arc<Self> {
        Arc::new(Self {
            history,
            last_tags: Mutex::default(),
            tags: Mutex::default(),
            old: Mutex::default(),
            not_modified: AtomicUsize::default(),
            past: AtomicUsize::default(),
        })
    }

    /// Requests for all questions whose path satisfies `predicate`: one in four is for the pretty form. Each
    /// judge requests gzip and revalidates in turn. Every second question is also requested as of a block.
    pub(super) fn requests(self: &Arc<Self>, predicate: impl Fn(&str) -> bool) -> Vec<ReadRequest> {
        let mut requests = Vec::new();
        for (question, path) in self.history.questions.iter().enumerate() {
            if !predicate(path) {
                continue;
            }
            let request = |path: &str, is_pretty| {
                let (observations, asked) = (Arc::clone(self), AtomicUsize::new(question));
                let judge = Arc::new(QuestionJudge { observations, question, is_pretty, asked });
                ReadRequest { path: path.into(), judge }
            };
            requests.resize(requests.len() + 3, request(path, false));
            let separator = if path.contains('?') { '&' } else { '?' };
            requests.push(request(&format!("{path}{separator}pretty"), true));
            if question.is_multiple_of(2) {
                let height = 1 + question as u64 % FINAL_BLOCKS.unsigned_abs();
                let judge = Arc::new(PastJudge { observations: Arc::clone(self), question, height });
                requests
                    .push(ReadRequest { path: format!("{path}{separator}atBlock={height}").into(), judge });
            }
        }
        requests
    }
}

/// Judges the answers to one question as of a block.
struct PastJudge {
    observations: Arc<Observations>,
    question: usize,
    height: u64,
}

impl Judge for PastJudge {
    fn wrong(&self, answer: &Answer, _: &str, _: Instant) -> Option<String> {
        let history = &self.observations.history;
        if answer.header("x-block-height") != Some(&*self.height.to_string()) {
            return Some(format!("as of another block than {}: {answer:?}", self.height));
        }
        let Some(content) = history.content(answer.body.to_vec()) else {
            return Some("a body that is no JSON".to_owned());
        };
        let checked = history.check_past(self.question, self.height, content);
        checked.map(|()| self.observations.past.fetch_add(1, Ordering::Relaxed)).err()
    }
}

struct QuestionJudge {
    observations: Arc<Observations>,
    question: usize,
    is_pretty: bool,
    /// Number of requests; the first ones have different headers for different questions.
    asked: AtomicUsize,
}

impl Judge for QuestionJudge {
    fn headers(&self) -> String {
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        let last_tag = self.observations.last_tags.lock().get(&self.question).cloned();
        let tag = last_tag.filter(|_| number.is_multiple_of(3)).map(|tag| if_none_match(&tag));
        let gzip = if number.is_multiple_of(2) { GZIP } else { "" };
        format!("{gzip}{}", tag.unwrap_or_default())
    }

    fn wrong(&self, answer: &Answer, headers: &str, sent: Instant) -> Option<String> {
        self.check(answer, headers, (sent, Instant::now())).err()
    }
}

impl QuestionJudge {
    fn check(&self, answer: &Answer, headers: &str, when: (Instant, Instant)) -> Result<(), String> {
        let Observations { history, last_tags, tags, old, .. } = &*self.observations;
        let number = |name| answer.header(name).and_then(|value| value.parse::<u64>().ok());
        let (Some(height), Some(time_ns), Some(tag)) =
            (number("x-block-height"), number("x-block-timestamp"), answer.header("etag"))
        else {
            return Err(format!("a head without height, time or tag: {answer:?}"));
        };
        let expected_ns = time_s(height.cast_signed()).unsigned_abs() * 1_000_000_000;
        if time_ns != expected_ns {
            return Err(format!("the time of another block: {time_ns} and not {expected_ns}"));
        }
        let (question, tag) = (self.question, Arc::<str>::from(tag));
        let content = match answer.status {
            304 => self.content_of_304(answer, headers, &tag)?,
            _ => self.content_of_200(answer, headers)?,
        };
        if *tags.lock().entry((question, Arc::clone(&tag))).or_insert(content) != content {
            return Err(format!("one tag for two contents: {tag}"));
        }
        last_tags.lock().insert(question, tag);
        let age = history.age(&Answered { question, height, content, when })?;
        let what = || format!("{}: block {height}, too old by {age:?}", history.questions[question]);
        if age > AGE_AWAY {
            return Err(what());
        }
        if age > AGE {
            let when = (when.0.into(), when.1.into());
            old.lock().push(OldAnswer { when, what: what() });
        }
        Ok(())
    }

    fn content_of_304(&self, answer: &Answer, headers: &str, tag: &Arc<str>) -> Result<Content, String> {
        let known = self.observations.tags.lock().get(&(self.question, Arc::clone(tag))).copied();
        match known.filter(|_| answer.body.is_empty() && headers.contains(&if_none_match(tag))) {
            Some(content) => {
                self.observations.not_modified.fetch_add(1, Ordering::Relaxed);
                Ok(content)
            }
            None => Err(format!("a 304 that was not asked for: {answer:?}")),
        }
    }

    fn content_of_200(&self, answer: &Answer, headers: &str) -> Result<Content, String> {
        let mut body = answer.body.to_vec();
        if answer.header("content-encoding").is_some() {
            if !headers.contains(GZIP) {
                return Err("gzip that was not asked for".to_owned());
            }
            let mut plain = Vec::new();
            let unpacked = GzDecoder::new(&body[..]).read_to_end(&mut plain);
            unpacked.map_err(|error| format!("gzip that cannot be unpacked: {error}"))?;
            body = plain;
        }
        if body.contains(&b'\n') != self.is_pretty {
            return Err("the other form of JSON".to_owned());
        }
        self.observations.history.content(body).ok_or_else(|| "a body that is no JSON".to_owned())
    }
}

fn if_none_match(tag: &str) -> String {
    format!("If-None-Match: {tag}\r\n")
}

/// Time from the read of an answer in the store to its receipt by the watching client.
const ON_ITS_WAY: Duration = Duration::from_millis(500);

/// Two clients for every question, and two for several questions together: over an event stream and over a
/// WebSocket.
pub(super) fn watches(history: &History) -> Vec<Watch> {
    let reads: Vec<Arc<str>> = history.questions.iter().map(|path| path.as_str().into()).collect();
    let together = reads.iter().map(std::slice::from_ref).chain(reads.chunks(MAX_READS));
    let watch = |reads: &[Arc<str>], over| Watch { reads: reads.to_vec(), over };
    let both = [Over::EventStream, Over::WebSocket];
    together.flat_map(|reads| both.map(|over| watch(reads, over))).collect()
}

pub(super) fn watches_hold(
    report: &mut Report,
    history: &History,
    record: &WatchRecord,
    differences: &[String],
    spans: &[FaultSpan],
    (after, slack): (Duration, u32),
) {
    let (wrong, old) = judge(history, record, spans, after, slack);
    let received = record.answers();
    let watchers = record.watches.len();
    let what =
        format!("states sent to {watchers} watchers that the store never had, out of order, or too old");
    report.bar_none_of(&what, wrong.len() + old.len(), received);
    report.bar_none("watchers that end with another answer than a plain read", differences.len());
    let unexplained = unexplained(record, spans, after);
    let what = format!(
        "streams that ended, were rejected or took more than {BACK_WITHIN:?} to resume, and problems received, that \
         no fault explains"
    );
    report.bar_none_of(&what, unexplained.len(), record.streams.len());
    report
        .messages
        .extend(wrong.into_iter().chain(old).chain(differences.iter().cloned()).chain(unexplained));
}

/// The wrong states, and the late ones.
fn judge(
    history: &History,
    record: &WatchRecord,
    spans: &[FaultSpan],
    after: Duration,
    slack: u32,
) -> (Vec<String>, Vec<String>) {
    let question_of = |path: &str| history.questions.iter().position(|question| question == path);
    let may_have_changed = |path: &str, from: tokio::time::Instant, to: tokio::time::Instant| {
        // Another edge may have had the previous answer.
        let from = from.checked_sub(AGE + ON_ITS_WAY).unwrap_or(from);
        question_of(path).is_none_or(|question| !history.is_unchanged(question, from.into(), to.into()))
    };
    let (mut wrong, mut old) = (record.contradictions(may_have_changed), Vec::new());
    let outages: Vec<&FaultSpan> = spans.iter().filter(|span| blocks_store(span.fault)).collect();
    for stream in &record.streams {
        let reads = &record.watches[stream.client].reads;
        let mut positions = vec![0; reads.len()];
        for received in &stream.received {
            let State::Answer { height, content } = received.what else { continue };
            let path = &reads[received.read];
            let Some(question) = question_of(path) else { continue };
            let from = positions[received.read];
            match history.find_event((question, height, content), from, received.at.into()) {
                Err(what) => wrong.push(format!("{path} to client {}: {what}", stream.client)),
                Ok((place, age)) => {
                    positions[received.read] = place;
                    let is_away = outages
                        .iter()
                        .any(|span| span.when.0 <= received.at && received.at <= span.when.1 + after);
                    let most = if is_away { AGE_AWAY } else { AGE } + ON_ITS_WAY * slack;
                    if age > most {
                        old.push(format!(
                            "{path} to client {}: block {height}, too old by {age:?}",
                            stream.client
                        ));
                    }
                }
            }
        }
    }
    (wrong, old)
}

fn unexplained(record: &WatchRecord, spans: &[FaultSpan], after: Duration) -> Vec<String> {
    let is_unexplained = |miss: &&FailedRequest| {
        let is_limits = miss.message.contains(LIMITS);
        let causes = spans.iter().filter(|span| match miss.failure {
            // An edge ends its streams in order only when it stops.
            FailureKind::Ended => true,
            failure => may_cause(span.fault, failure, is_limits),
        });
        !is_explained(miss, &causes.copied().collect::<Vec<_>>(), after)
    };
    record
        .misses()
        .iter()
        .filter(is_unexplained)
        .map(|miss| format!("{:?}: {}", miss.failure, miss.message))
        .collect()
}
