//! An event of a watch: a state of an answer, encoded once for all watchers of its question.

use std::{
    hash::{DefaultHasher, Hasher},
    sync::Arc,
};

use bytes::Bytes;
use mesh_bus::Format;
use mesh_problem::Problem;
use prost_reflect::{prost::Message, prost_types::Any};
use proto_msgs::{Contract, google::rpc, v2::WatchReply};
use tokio::time::Instant;

use crate::{
    ask::{answer::Answer, cache::Question},
    respond::rpc_status,
};

/// The kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventKind {
    /// The answer.
    Answer,
    /// Why the read fails at present (W5).
    Problem,
}

/// A state of an answer.
#[derive(Debug)]
pub(crate) struct Event {
    kind: EventKind,
    is_text: bool,
    /// Height of the head at the read; for a problem, height of the last answer.
    pub(crate) height: u64,
    /// Time of that block, nanoseconds since the Unix epoch; 0 for a problem or an answer without a time.
    pub(crate) time_ns: i64,
    /// When the request was sent.
    pub(crate) asked_at: Instant,
    /// Equal for equal bodies.
    pub(crate) digest: u64,
    /// The encoded event for its own height: lines of text, or an encoded `WatchReply`.
    whole: Bytes,
    /// Offset of the part that is the same for every height and name.
    data_at: usize,
}

/// An event for one watcher.
#[derive(Debug)]
pub(crate) struct Emission {
    pub(crate) event: Arc<Event>,
    /// Height sent to the watcher: at least the event's; the answer was unchanged up to it.
    pub(crate) height: u64,
    /// Time of that block, as in an event.
    pub(crate) time_ns: i64,
}

impl Emission {
    /// The encoded event, in one or two pieces. `index`: of the read on a stream with several (W10).
    pub(crate) fn bytes(&self, index: Option<usize>) -> Vec<Bytes> {
        let Self { event, height, time_ns } = self;
        if *height == event.height && index.is_none() {
            return vec![event.whole.clone()];
        }
        vec![event.head(*height, *time_ns, index), event.whole.slice(event.data_at..)]
    }
}

impl Event {
    /// The event of an answer read at this height; that of a problem while there is no memory for it.
    pub(crate) fn of_answer(question: &Question, answer: &Answer, height: u64) -> Self {
        let event = Self::copy_of(question, answer, height);
        match answer.memory.hold_watched(answer.client, vec![event.whole.clone()]) {
            Ok(whole) => Self { whole: whole.into_iter().next().unwrap_or_default(), ..event },
            Err(problem) => Self::of_problem(question, &problem, height, answer.asked_at),
        }
    }

    fn copy_of(question: &Question, answer: &Answer, height: u64) -> Self {
        let head = (height, answer.time_ns());
        let event = Self::new(EventKind::Answer, question, head, answer.asked_at, digest(answer));
        if event.is_text {
            return event.with_data([&[DATA], &*answer.parts, &[END]].concat());
        }
        let mut operations = Contract::get().operations().iter();
        let operation = operations.find(|operation| operation.name == question.operation);
        let name = operation.map_or("", |operation| operation.reply.full_name()).to_owned();
        event.with_data(vec![reply(&name, answer.parts.concat())])
    }

    /// The event of a problem of a request sent at this time.
    pub(crate) fn of_problem(question: &Question, problem: &Problem, height: u64, asked_at: Instant) -> Self {
        let body = problem.to_json();
        let mut hasher = DefaultHasher::new();
        hasher.write(&body);
        // No answer has the digest of a problem.
        hasher.write_u8(1);
        let event = Self::new(EventKind::Problem, question, (height, 0), asked_at, hasher.finish());
        if event.is_text {
            return event.with_data(vec![DATA, body.into(), END]);
        }
        let status: rpc::Status = rpc_status::message(problem);
        event.with_data(vec![reply("google.rpc.Status", status.encode_to_vec())])
    }

    fn new(
        kind: EventKind,
        question: &Question,
        (height, time_ns): (u64, i64),
        asked_at: Instant,
        digest: u64,
    ) -> Self {
        let is_text = question.encoding.format != Format::Protobuf;
        Self { kind, is_text, height, time_ns, asked_at, digest, whole: Bytes::new(), data_at: 0 }
    }

    fn with_data(self, data: Vec<Bytes>) -> Self {
        let head = self.head(self.height, self.time_ns, None);
        let data_at = head.len();
        Self { whole: [vec![head], data].concat().concat().into(), data_at, ..self }
    }

    /// Whether the event is a problem.
    pub(crate) fn is_problem(&self) -> bool {
        self.kind == EventKind::Problem
    }

    /// The data of an event of text: the answer's body, or that of the error.
    pub(crate) fn json(&self) -> Bytes {
        self.whole.slice(self.data_at + DATA.len()..self.whole.len() - END.len())
    }

    /// The part before the data, for this block.
    fn head(&self, height: u64, time_ns: i64, index: Option<usize>) -> Bytes {
        if !self.is_text {
            // Fields of one message may be encoded in pieces.
            return WatchReply { height, timestamp: time_ns, answer: None }.encode_to_vec().into();
        }
        let (id, name) = match self.kind {
            EventKind::Answer => (format!("id: {height}\n"), "answer"),
            EventKind::Problem => (String::new(), "problem"),
        };
        let index = index.map(|index| format!("-{index}")).unwrap_or_default();
        format!("{id}event: {name}{index}\n").into()
    }
}

/// The name of an event's data in its text.
const DATA: Bytes = Bytes::from_static(b"data: ");

/// The end of an event's text.
const END: Bytes = Bytes::from_static(b"\n\n");

/// An encoded `WatchReply` without its block.
fn reply(name: &str, value: Vec<u8>) -> Bytes {
    let answer = Any { type_url: format!("type.googleapis.com/{name}"), value };
    WatchReply { answer: Some(answer), ..WatchReply::default() }.encode_to_vec().into()
}

/// A number that is equal for equal bodies.
pub(crate) fn digest(answer: &Answer) -> u64 {
    let mut hasher = DefaultHasher::new();
    answer.parts.iter().for_each(|part| hasher.write(part));
    hasher.write_u8(0);
    hasher.finish()
}
