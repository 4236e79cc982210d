//! The messages between bus and actors: a request, and its answer as a future that is dropped when the sender
//! of the request no longer waits.

use std::{future::Future, pin::Pin};

use actix::{
    Actor, Message,
    dev::{MessageResponse, OneshotSender},
};
use mesh_problem::Problem;
use mesh_telemetry::span;
use prometheus_client::metrics::gauge::Gauge;
use proto_msgs::Operation;
use tracing::{Instrument, Span};

use crate::encoding::Format;

/// A request of the contract as a message to an actor.
#[derive(Debug)]
pub struct Ask<R>(pub R, pub RequestScope);

/// The trace of a message to an actor and the form of its answer. Until its work [runs](Self::run), the message
/// counts in the gauge of the mailbox.
#[derive(Debug)]
pub struct RequestScope {
    span: Span,
    mailbox: Option<Gauge>,
    format: Format,
}

impl RequestScope {
    /// The scope of a message in the current trace, counted in `mailbox` until it runs.
    pub(crate) fn queued(mailbox: &Gauge, format: Format) -> Self {
        mailbox.inc();
        Self { span: span::current(), mailbox: Some(mailbox.clone()), format }
    }

    /// The form of the answer; protobuf for clients of gRPC.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Runs the work of the message in the trace of its request.
    pub fn run<T>(mut self, work: impl Future<Output = T> + 'static) -> CancelOnDrop<T> {
        let span = std::mem::replace(&mut self.span, Span::none());
        drop(self);
        CancelOnDrop::new(work.instrument(span))
    }
}

impl Default for RequestScope {
    /// A scope without trace and mailbox, e.g. for tests, of an answer in JSON.
    fn default() -> Self {
        Self { span: Span::none(), mailbox: None, format: Format::Json }
    }
}

impl Drop for RequestScope {
    fn drop(&mut self) {
        if let Some(mailbox) = self.mailbox.take() {
            mailbox.dec();
        }
    }
}

/// The result of a handler.
pub type AnswerResult<R> = Result<Answer<R>, Problem>;

impl<R: Operation> Message for Ask<R> {
    type Result = AnswerResult<R::Reply>;
}

/// A reply and how fresh it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer<R> {
    /// The reply message.
    pub reply: R,
    /// The newest block at the time of the read, when the reply was read from the store and it has one.
    pub head: Option<Head>,
    /// Whether every later reply to the same request is the same, byte by byte.
    pub is_final: bool,
}

impl<R> Answer<R> {
    /// A reply that was read at this head: height and nanoseconds.
    pub fn at(head: Option<(u64, i64)>, reply: R) -> Self {
        Self { reply, head: head.map(|(height, time_ns)| Head { height, time_ns }), is_final: false }
    }

    /// The same answer, final or not.
    #[must_use]
    pub fn finally(self, is_final: bool) -> Self {
        Self { is_final, ..self }
    }
}

impl<R> From<R> for Answer<R> {
    fn from(reply: R) -> Self {
        Self { reply, head: None, is_final: false }
    }
}

/// The newest block of the store.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize, prost::Message,
)]
#[serde(rename_all = "camelCase")]
pub struct Head {
    /// Its height.
    #[prost(uint64, tag = "1")]
    pub height: u64,
    /// Its time, nanoseconds since the Unix epoch.
    #[prost(int64, tag = "2")]
    pub time_ns: i64,
}

/// The work of an operation's handler.
pub type AnswerFuture<R> = CancelOnDrop<AnswerResult<R>>;

/// A handler's work. It is dropped, and its running queries with it, when the request is canceled or its
/// deadline has passed.
pub struct CancelOnDrop<T>(Pin<Box<dyn Future<Output = T>>>);

impl<T> CancelOnDrop<T> {
    /// Wraps a handler's work.
    pub fn new(work: impl Future<Output = T> + 'static) -> Self {
        Self(Box::pin(work))
    }
}

impl<A, M> MessageResponse<A, M> for CancelOnDrop<M::Result>
where
    A: Actor,
    M: Message,
{
    fn handle(self, _: &mut A::Context, asker: Option<OneshotSender<M::Result>>) {
        let Some(mut asker) = asker else { return };
        actix::spawn(async move {
            tokio::select! {
                answer = self.0 => { let _ = asker.send(answer); }
                () = asker.closed() => {}
            }
        });
    }
}
