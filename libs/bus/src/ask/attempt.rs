//! One attempt at a request: a message to the queue group or to one replica, and its result.

use std::sync::Arc;

use async_nats::HeaderMap;
use bytes::Bytes;
use mesh_problem::{Code, Problem};
use tokio::time::Instant;

use super::types::Reply;
use crate::{
    connection::Bus,
    headers::{self, ReplyHeader},
    inbox::{Arrival, PendingReply},
    target::Target,
};

/// A request that was sent. When it is dropped before its reply, it is canceled at the replicas.
pub(super) struct Attempt<'a> {
    pub(super) bus: &'a Bus,
    pub(super) target: &'a Target,
    pub(super) pending: PendingReply,
    pub(super) sent_at: Instant,
    /// The replica that was asked by name.
    pub(super) replica: Option<Arc<str>>,
    /// Whether it was sent while an earlier attempt was unanswered.
    pub(super) is_hedge: bool,
    pub(super) is_answered: bool,
}

/// An attempt that has ended.
pub(super) struct AttemptOutcome {
    /// The replica that was asked by name.
    pub(super) replica: Option<Arc<str>>,
    /// Whether it was sent while an earlier attempt was unanswered.
    pub(super) is_hedge: bool,
    pub(super) result: AttemptResult,
}

/// The result of an attempt.
pub(super) enum AttemptResult {
    /// A reply, or the service's own problem.
    Answered(Result<Reply, Problem>),
    /// This replica has reached its limit of requests, or lacks what another may have.
    Overloaded(Box<str>, Problem),
    /// No replica listens.
    NoResponder,
    /// Parts of the reply are missing.
    Torn,
}

impl Attempt<'_> {
    /// Waits for the result. Cancel-safe.
    pub(super) async fn result(&mut self) -> AttemptResult {
        let arrival = self.pending.arrival().await;
        self.is_answered = true;
        match arrival {
            Arrival::NoResponder => AttemptResult::NoResponder,
            Arrival::Torn => AttemptResult::Torn,
            Arrival::Reply { headers, header, parts } => {
                let result = read_reply(&headers, header, parts);
                if let AttemptResult::Answered(Ok(_)) = result {
                    // Its own time: with that of attempts before it, each hedge would delay the next ones.
                    self.target.hedge_delay.record(self.sent_at.elapsed());
                }
                result
            }
        }
    }

    /// Waits for the result.
    pub(super) async fn outcome(mut self) -> AttemptOutcome {
        let result = self.result().await;
        AttemptOutcome { replica: self.replica.take(), is_hedge: self.is_hedge, result }
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if !self.is_answered {
            self.bus.cancel(self.target, self.pending.reply_to.clone());
        }
    }
}

fn read_reply(headers: &HeaderMap, header: ReplyHeader, parts: Vec<Bytes>) -> AttemptResult {
    let body = parts.first().map(Bytes::as_ref).unwrap_or_default();
    if let Some(problem) = headers::read_problem(headers, body) {
        return match headers.get(headers::OVERLOADED) {
            Some(replica) if matches!(problem.code, Code::ResourceExhausted | Code::Unavailable) => {
                AttemptResult::Overloaded(replica.as_str().into(), problem)
            }
            _ => AttemptResult::Answered(Err(problem)),
        };
    }
    let ReplyHeader { head, digest, gzipped, is_final, .. } = header;
    AttemptResult::Answered(Ok(Reply { parts, gzipped, head, digest, is_final }))
}
