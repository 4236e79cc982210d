//! Asking: a request to any replica of a workload, and its reply or a problem, always within the deadline.

use std::{sync::Arc, time::Duration};

use async_nats::{HeaderMap, HeaderName, Subject};
use bytes::Bytes;
use futures_util::{StreamExt, stream::FuturesUnordered};
use mesh_problem::{Code, NOT_MAPPED, Problem};
use mesh_telemetry::{
    TraceContext,
    span::{self, SpanExt},
};
use prometheus_client::metrics::histogram::Histogram;
use proto_msgs::Operation;
use tokio::time::{Instant, sleep, timeout_at};
use tracing::Instrument;

use crate::{
    answering::{Answer, Head},
    connection::Bus,
    encoding::Encoding,
    headers::{self, ReplyHeader},
    inbox::{Arrived, Expected},
    pace::Pace,
    replicas::{Group, direct_subject},
};

/// Pauses before asking again when nobody listens: replicas that lost the bus subscribe again within
/// milliseconds. Together below the 100 ms in which "no replica" must be said.
const NO_RESPONDER_PAUSES: [Duration; 2] = [Duration::from_millis(15), Duration::from_millis(45)];

/// How often a read is asked again while it is still unanswered.
const EXTRAS_AT_MOST: u32 = 2;

/// How to ask.
#[derive(Debug, Clone)]
pub struct AskOptions {
    /// Form of the reply.
    pub encoding: Encoding,
    /// How long to wait at most; travels with the request.
    pub timeout: Duration,
    /// Id of the outside request, for logs.
    pub request_id: String,
    /// W3C trace context to pass on where no span is recorded here; a span that is goes before.
    pub traceparent: Option<TraceContext>,
    /// Whether the request may be put again when somebody may have got it (never a submission).
    pub repeatable: bool,
}

/// A reply as it came off the bus.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The reply in the form asked for, in pieces that belong end to end.
    pub parts: Vec<Bytes>,
    /// Whether the pieces are one gzip stream.
    pub gzipped: bool,
    /// The newest block at the time of the read.
    pub head: Option<Head>,
    /// Changes with the content, the same for all JSON forms of it. Told of JSON that has a head.
    pub digest: Option<u32>,
}

impl Reply {
    /// Length of the whole reply in bytes.
    pub fn len(&self) -> usize {
        self.parts.iter().map(Bytes::len).sum()
    }

    /// Whether the reply has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// An operation to be asked: its subject, its replicas, how long its replies take. See [`Bus::target`].
#[derive(Debug)]
pub struct Target {
    pub(crate) workload: String,
    pub(crate) operation: String,
    pub(crate) subject: Subject,
    /// Where an asker that no longer waits says so.
    pub(crate) cancel: Subject,
    pub(crate) group: Arc<Group>,
    pace: Pace,
    /// Round trips that brought a reply.
    answered: Histogram,
}

impl Bus {
    /// An operation to be asked. Kept for as long as the bus: what is learned of its replies belongs to it.
    pub fn target(&self, workload: &str, operation: &str) -> Arc<Target> {
        self.listen_for_replicas();
        let subject = self.subject(workload, operation);
        let mut targets = self.shared.targets.lock();
        if let Some(target) = targets.get(&subject) {
            return Arc::clone(target);
        }
        let target = Arc::new(Target {
            workload: workload.to_owned(),
            operation: operation.to_owned(),
            subject: subject.as_str().into(),
            cancel: self.cancel_subject(workload).into(),
            group: self.shared.replicas.group(workload),
            pace: Pace::default(),
            answered: self.shared.asking.calls.histogram(operation.to_owned(), 0),
        });
        targets.insert(subject, Arc::clone(&target));
        target
    }

    /// Asks any replica of a workload. A read that stays unanswered for longer than usual is asked again without
    /// giving the first ask up, as far as its budget goes; the first answer counts.
    ///
    /// # Errors
    /// The service's own problem; `Unavailable` when no replica listens, none has room, or the bus is away;
    /// `DeadlineExceeded` when no reply came in time.
    pub async fn ask(&self, target: &Target, request: Bytes, options: &AskOptions) -> Result<Reply, Problem> {
        self.ask_saying(target, request, options, None).await
    }

    /// Asks with one more header.
    pub(crate) async fn ask_saying(
        &self,
        target: &Target,
        request: Bytes,
        options: &AskOptions,
        more: Option<(HeaderName, String)>,
    ) -> Result<Reply, Problem> {
        let begun = Instant::now();
        let span = span::ask(&target.workload, &target.operation);
        let result = self.put_until(begun, target, request, options, more).instrument(span.clone()).await;
        match &result {
            Ok(_) => {
                target.pace.replied_in(begun.elapsed());
                target.answered.observe(begun.elapsed().as_secs_f64());
            }
            Err(problem) => {
                span.record_failure(problem.code.name());
                let calls = &self.shared.asking.calls;
                let counted = calls.histogram(target.operation.clone(), problem.code.number());
                counted.observe(begun.elapsed().as_secs_f64());
            }
        }
        result
    }

    async fn put_until(
        &self,
        begun: Instant,
        target: &Target,
        request: Bytes,
        options: &AskOptions,
        more: Option<(HeaderName, String)>,
    ) -> Result<Reply, Problem> {
        let deadline = begun + options.timeout;
        let question = Question { bus: self, target, request, options, more, deadline };
        if options.repeatable {
            self.shared.asking.budget.earn();
        }
        let mut first = question.put(target.group.instead_of_queue()).await?;
        let again_at = question.again_at(begun);
        match timeout_at(again_at, first.arrive()).await {
            Ok(Said::Result(result)) => result,
            Ok(said) => Box::pin(question.insist(first, Some(said), again_at)).await,
            Err(_) => Box::pin(question.insist(first, None, again_at)).await,
        }
    }

    /// Asks in the types of the contract.
    ///
    /// # Errors
    /// As [`Bus::ask`].
    pub async fn ask_typed<R: Operation>(
        &self,
        request: &R,
        timeout: Duration,
    ) -> Result<Answer<R::Reply>, Problem> {
        let options = AskOptions {
            encoding: Encoding::default(),
            timeout,
            request_id: nuid::next().to_string(),
            traceparent: None,
            repeatable: true,
        };
        let target = self.target(R::WORKLOAD, R::NAME);
        let reply = self.ask(&target, request.encode_to_vec().into(), &options).await?;
        let whole: Vec<u8> = reply.parts.concat();
        let message = prost::Message::decode(whole.as_slice()).map_err(|error| {
            Problem::internal(NOT_MAPPED, "the reply does not decode").caused_by(error.to_string())
        })?;
        Ok(Answer { reply: message, head: reply.head })
    }
}

/// One request of a client, however often it is put.
struct Question<'a> {
    bus: &'a Bus,
    target: &'a Target,
    request: Bytes,
    options: &'a AskOptions,
    more: Option<(HeaderName, String)>,
    deadline: Instant,
}

impl<'a> Question<'a> {
    /// Puts the question on the bus: to one replica by name, or to the queue group.
    async fn put(&self, replica: Option<Arc<str>>) -> Result<Put<'a>, Problem> {
        let shared = &self.bus.shared;
        if !self.bus.is_connected_again(self.deadline).await {
            return Err(Problem::unavailable("the message bus is away"));
        }
        let expected = shared.inbox.expect(&self.target.workload);
        let mut headers = request_headers(self.options, self.deadline);
        if let Some((name, value)) = &self.more {
            headers.insert(name.clone(), value.as_str());
        }
        let subject = match &replica {
            Some(id) => direct_subject(&self.target.subject, id),
            None => self.target.subject.clone(),
        };
        let reply_to = expected.reply_to.clone();
        let sent =
            shared.client.publish_with_reply_and_headers(subject, reply_to, headers, self.request.clone());
        match timeout_at(self.deadline, sent).await {
            Ok(Ok(())) => {
                Ok(Put { bus: self.bus, target: self.target, expected, replica, is_answered: false })
            }
            Ok(Err(error)) => {
                let problem = Problem::unavailable("the request could not be put on the message bus");
                Err(problem.caused_by(error.to_string()))
            }
            Err(_) => Err(Problem::deadline_exceeded("the message bus did not take the request in time")),
        }
    }

    /// When to ask again at the earliest; a submission never is.
    fn again_at(&self, from: Instant) -> Instant {
        match self.options.repeatable {
            true => self.deadline.min(from + self.target.pace.patience()),
            false => self.deadline,
        }
    }

    fn late(&self) -> Problem {
        let workload = &self.target.workload;
        Problem::deadline_exceeded(match self.options.repeatable {
            true => format!("{workload} did not answer in time"),
            false => format!("{workload} did not answer in time; what became of the request is unknown"),
        })
    }

    fn nobody(&self) -> Problem {
        Problem::unavailable(format!("no replica of {} answers this operation", self.target.workload))
    }

    /// Goes on after the first ask came to nothing, or has not been answered so far.
    async fn insist(
        &self,
        first: Put<'a>,
        said: Option<Said>,
        mut again_at: Instant,
    ) -> Result<Reply, Problem> {
        let (workload, asking) = (&self.target.workload, &self.bus.shared.asking);
        let mut waiting = FuturesUnordered::new();
        let mut heard = None;
        match said {
            Some(said) => heard = Some(Heard { replica: first.replica.clone(), is_extra: false, said }),
            None => waiting.push(first.heard(false)),
        }
        let mut pauses = NO_RESPONDER_PAUSES.iter();
        let (mut extras, mut busy, mut was_torn) = (0, Vec::new(), false);
        loop {
            let mut next = None;
            let answer = async {
                match heard.take() {
                    Some(heard) => heard,
                    None => waiting.select_next_some().await,
                }
            };
            let Ok(Heard { replica, is_extra, said }) = timeout_at(again_at, answer).await else {
                let now = Instant::now();
                if now >= self.deadline {
                    return Err(self.late());
                }
                again_at = self.again_at(now);
                if extras < EXTRAS_AT_MOST && asking.budget.spend() {
                    extras += 1;
                    asking.extras.inc();
                    waiting.push(self.put(self.target.group.liveliest(now)).await?.heard(true));
                } else if self.bus.shared.replicas.have_left(&self.target.group) {
                    return Err(self.nobody());
                }
                continue;
            };
            match said {
                Said::Result(result) => {
                    if is_extra {
                        asking.extras_won.inc();
                    }
                    return result;
                }
                Said::NoResponder => {
                    if let Some(id) = &replica {
                        self.target.group.takes_no_more(id);
                    }
                    if is_extra {
                        extras -= 1;
                        asking.budget.refund();
                    }
                    // One that is stopping takes nothing and answers what it has.
                    if !waiting.is_empty() && !self.bus.shared.replicas.have_left(&self.target.group) {
                        continue;
                    }
                    // Nobody has got it, so that it may be put again, whatever it is.
                    match pauses.next() {
                        Some(pause) => sleep(*pause).await,
                        None => return Err(self.nobody()),
                    }
                }
                Said::Overloaded { by } => {
                    busy.push(by);
                    next = self.target.group.other_than(&busy, Instant::now());
                    if next.is_none() && busy.len() > 1 {
                        if !waiting.is_empty() {
                            continue;
                        }
                        return Err(Problem::unavailable(format!("all replicas of {workload} are busy")));
                    }
                }
                Said::Torn if !was_torn && self.options.repeatable => was_torn = true,
                Said::Torn if !waiting.is_empty() => continue,
                Said::Torn => {
                    return Err(Problem::unavailable("parts of the reply were lost on the message bus"));
                }
            }
            let next = next.or_else(|| self.target.group.instead_of_queue());
            waiting.push(self.put(next).await?.heard(false));
        }
    }
}

/// A question on its way. Dropped before its answer, it tells the replicas to stop working on it.
struct Put<'a> {
    bus: &'a Bus,
    target: &'a Target,
    expected: Expected,
    /// The replica that was asked by name.
    replica: Option<Arc<str>>,
    is_answered: bool,
}

/// What came of an ask that was put.
struct Heard {
    replica: Option<Arc<str>>,
    /// Whether it was put beside another one that was still unanswered.
    is_extra: bool,
    said: Said,
}

enum Said {
    Result(Result<Reply, Problem>),
    /// A replica had no room.
    Overloaded {
        by: Box<str>,
    },
    /// Nobody listens.
    NoResponder,
    /// Parts of the reply are missing.
    Torn,
}

impl Put<'_> {
    /// Waits for what comes of it. Cancel-safe.
    async fn arrive(&mut self) -> Said {
        let arrived = self.expected.arrive().await;
        self.is_answered = true;
        match arrived {
            Arrived::NoResponder => Said::NoResponder,
            Arrived::Torn => Said::Torn,
            Arrived::Reply { headers, said, parts } => read_reply(&headers, said, parts),
        }
    }

    async fn heard(mut self, is_extra: bool) -> Heard {
        let said = self.arrive().await;
        Heard { replica: self.replica.take(), is_extra, said }
    }
}

impl Drop for Put<'_> {
    fn drop(&mut self) {
        if self.is_answered {
            return;
        }
        let client = self.bus.shared.client.clone();
        let subject = self.target.cancel.clone();
        let reply_to = Bytes::copy_from_slice(self.expected.reply_to.as_bytes());
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let _ = client.publish(subject, reply_to).await;
            });
        }
    }
}

fn request_headers(options: &AskOptions, deadline: Instant) -> HeaderMap {
    let left = deadline.saturating_duration_since(Instant::now());
    let mut headers = HeaderMap::new();
    headers.insert(headers::ASK, headers::ask(options.encoding, left, &options.request_id));
    headers::write_trace(&mut headers, span::current_context().as_ref().or(options.traceparent.as_ref()));
    headers
}

fn read_reply(headers: &HeaderMap, said: ReplyHeader, parts: Vec<Bytes>) -> Said {
    let body = parts.first().map(Bytes::as_ref).unwrap_or_default();
    if let Some(problem) = headers::read_problem(headers, body) {
        return match headers.get(headers::OVERLOADED) {
            Some(by) if problem.code == Code::ResourceExhausted => {
                Said::Overloaded { by: by.as_str().into() }
            }
            _ => Said::Result(Err(problem)),
        };
    }
    let ReplyHeader { head, digest, gzipped, .. } = said;
    Said::Result(Ok(Reply { parts, gzipped, head, digest }))
}
