//! Asking: a request to any replica of a workload, and its reply or a problem, always within the deadline.

use std::time::Duration;

use async_nats::HeaderMap;
use bytes::Bytes;
use mesh_problem::{Code, NOT_MAPPED, Problem};
use proto_msgs::Operation;
use tokio::time::{Instant, sleep, timeout_at};

use crate::{
    answering::{Answered, Head},
    connection::Bus,
    encoding::Encoding,
    headers,
    inbox::Arrived,
};

/// Pauses before asking again when nobody listens: replicas that lost the bus subscribe again within
/// milliseconds. Together below the 100 ms in which "no replica" must be said.
const NO_RESPONDER_PAUSES: [Duration; 2] = [Duration::from_millis(15), Duration::from_millis(45)];

/// How to ask.
#[derive(Debug, Clone)]
pub struct AskOptions {
    /// Form of the reply.
    pub encoding: Encoding,
    /// How long to wait at most; travels with the request.
    pub timeout: Duration,
    /// Id of the outside request, for logs.
    pub request_id: String,
    /// W3C trace context to continue.
    pub traceparent: Option<String>,
    /// Whether the request may be sent again after bytes of it have left (never a submission).
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

enum Tried {
    Done(Result<Reply, Problem>),
    /// A replica had no room.
    Overloaded,
    /// Nobody listens.
    NoResponder,
}

impl Bus {
    /// Asks any replica of a workload.
    ///
    /// # Errors
    /// The service's own problem; `Unavailable` when no replica listens, none has room, or the bus is away;
    /// `DeadlineExceeded` when no reply came in time.
    pub async fn ask(
        &self,
        workload: &str,
        operation: &str,
        request: Bytes,
        options: &AskOptions,
    ) -> Result<Reply, Problem> {
        let deadline = Instant::now() + options.timeout;
        let mut pauses = NO_RESPONDER_PAUSES.iter();
        let mut overloads = 0;
        loop {
            if !self.is_connected() {
                return Err(Problem::unavailable("the message bus is away"));
            }
            match self.ask_once(workload, operation, request.clone(), options, deadline).await {
                Tried::Done(result) => return result,
                Tried::NoResponder => match pauses.next() {
                    Some(pause) if options.repeatable => sleep(*pause).await,
                    _ => {
                        return Err(Problem::unavailable(format!(
                            "no replica of {workload} answers this operation"
                        )));
                    }
                },
                Tried::Overloaded if overloads == 0 => overloads += 1,
                Tried::Overloaded => {
                    return Err(Problem::unavailable(format!("all replicas of {workload} are busy")));
                }
            }
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
    ) -> Result<Answered<R::Reply>, Problem> {
        let options = AskOptions {
            encoding: Encoding::default(),
            timeout,
            request_id: nuid::next().to_string(),
            traceparent: None,
            repeatable: true,
        };
        let reply = self.ask(R::WORKLOAD, R::NAME, request.encode_to_vec().into(), &options).await?;
        let whole: Vec<u8> = reply.parts.concat();
        let message = prost::Message::decode(whole.as_slice()).map_err(|error| {
            Problem::internal(NOT_MAPPED, "the reply does not decode").caused_by(error.to_string())
        })?;
        Ok(Answered { reply: message, head: reply.head })
    }

    async fn ask_once(
        &self,
        workload: &str,
        operation: &str,
        request: Bytes,
        options: &AskOptions,
        deadline: Instant,
    ) -> Tried {
        let mut expected = self.shared.inbox.expect();
        let headers = request_headers(options, deadline);
        let subject = self.subject(workload, operation);
        let reply_to = expected.reply_to.clone();
        let sent = self.shared.client.publish_with_reply_and_headers(subject, reply_to, headers, request);
        match timeout_at(deadline, sent).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                let problem = Problem::unavailable("the request could not be put on the message bus");
                return Tried::Done(Err(problem.caused_by(error.to_string())));
            }
            Err(_) => {
                return Tried::Done(Err(Problem::deadline_exceeded(
                    "the message bus did not take the request in time",
                )));
            }
        }
        let reply_to = expected.reply_to.clone();
        let mut unanswered = Unanswered { bus: Some(self), workload, reply_to: &reply_to };
        let arrived = timeout_at(deadline, expected.arrive()).await;
        let Ok(arrived) = arrived else {
            return Tried::Done(Err(Problem::deadline_exceeded(format!(
                "{workload} did not answer in time"
            ))));
        };
        unanswered.bus = None;
        match arrived {
            Arrived::NoResponder => Tried::NoResponder,
            Arrived::Torn => {
                Tried::Done(Err(Problem::unavailable("parts of the reply were lost on the message bus")))
            }
            Arrived::Reply { headers, parts } => read_reply(&headers, parts),
        }
    }
}

fn request_headers(options: &AskOptions, deadline: Instant) -> HeaderMap {
    let left = deadline.saturating_duration_since(Instant::now());
    let mut headers = HeaderMap::new();
    headers.insert(headers::ACCEPT, options.encoding.as_str());
    headers.insert(headers::TIMEOUT_MS, left.as_millis().to_string());
    headers.insert(headers::SENT_MS, headers::now_ms().to_string());
    headers.insert(headers::REQUEST_ID, options.request_id.as_str());
    if let Some(traceparent) = &options.traceparent {
        headers.insert(headers::TRACEPARENT, traceparent.as_str());
    }
    headers
}

fn read_reply(headers: &HeaderMap, parts: Vec<Bytes>) -> Tried {
    let body = parts.first().map(Bytes::as_ref).unwrap_or_default();
    if let Some(problem) = headers::read_problem(headers, body) {
        let overloaded =
            problem.code == Code::ResourceExhausted && headers.get(headers::OVERLOADED).is_some();
        return if overloaded { Tried::Overloaded } else { Tried::Done(Err(problem)) };
    }
    Tried::Done(Ok(Reply {
        gzipped: headers.get(headers::CONTENT_ENCODING).is_some(),
        head: headers::read_head(headers),
        parts,
    }))
}

/// Tells the replicas to stop working when the asker goes away, or gives up, before the reply came.
struct Unanswered<'a> {
    bus: Option<&'a Bus>,
    workload: &'a str,
    reply_to: &'a str,
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        let Some(bus) = self.bus else { return };
        let client = bus.shared.client.clone();
        let subject = bus.cancel_subject(self.workload);
        let reply_to = Bytes::copy_from_slice(self.reply_to.as_bytes());
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let _ = client.publish(subject, reply_to).await;
            });
        }
    }
}
