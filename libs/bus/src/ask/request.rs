//! One request: how an attempt at it is sent, and the problems that it may end with.

use std::sync::{Arc, atomic::Ordering};

use async_nats::{HeaderMap, HeaderName};
use bytes::Bytes;
use mesh_problem::Problem;
use mesh_telemetry::span;
use tokio::time::{Instant, timeout_at};

use super::{attempt::Attempt, types::AskOptions};
use crate::{
    connection::Bus,
    headers::{self, AskHeader},
    subjects,
    target::Target,
};

/// A request of a client, with all its attempts.
pub(super) struct Request<'a> {
    pub(super) bus: &'a Bus,
    pub(super) target: &'a Target,
    pub(super) payload: Bytes,
    pub(super) options: &'a AskOptions,
    /// One more header of the message.
    pub(super) extra_header: Option<(HeaderName, String)>,
    pub(super) deadline: Instant,
}

impl<'a> Request<'a> {
    /// Sends the request: to one replica by name, or to the queue group. `may_wait`: it may wait for its turn
    /// there for long, because no other replica has room.
    pub(super) async fn send(
        &self,
        replica: Option<Arc<str>>,
        may_wait: bool,
    ) -> Result<Attempt<'a>, Problem> {
        let shared = &self.bus.shared;
        if !self.bus.is_connected_again(self.deadline).await {
            return Err(Problem::unavailable("the message bus is unreachable"));
        }
        self.bus.record_request().await;
        let long = match self.target.has_long_replies.load(Ordering::Relaxed) {
            true => self.bus.long_replies().await,
            false => None,
        };
        // Sent over the inbox's own connection: only there the server reports that no replica listens.
        let (client, inbox, link) = match long {
            Some(long) => (&long.client, &long.inbox, &long.link),
            None => (&shared.client, &shared.inbox, &shared.link),
        };
        let (replica, subject) = match replica.map(|id| (subjects::direct(&self.target.subject, &id), id)) {
            Some((subject, id)) if !link.refuses(&subject) => (Some(id), subject),
            _ => (None, self.target.subject.clone()),
        };
        if link.refuses(&subject) {
            let problem = Problem::unavailable("the message bus does not permit this request");
            return Err(problem.caused_by(format!("no permission to publish to {subject}")));
        }
        let pending = inbox.register(&self.target.workload);
        let (reply_to, payload) = (pending.reply_to.clone(), self.payload.clone());
        let sent = client.publish_with_reply_and_headers(subject, reply_to, self.headers(may_wait), payload);
        match timeout_at(self.deadline, sent).await {
            Ok(Ok(())) => {
                let (bus, target, sent_at) = (self.bus, self.target, Instant::now());
                Ok(Attempt { bus, target, pending, sent_at, replica, is_hedge: false, is_answered: false })
            }
            Ok(Err(error)) => {
                let problem = Problem::unavailable("the request could not be put on the message bus");
                Err(problem.caused_by(error.to_string()))
            }
            Err(_) => Err(Problem::deadline_exceeded("the message bus did not take the request in time")),
        }
    }

    fn headers(&self, may_wait: bool) -> HeaderMap {
        let left = self.deadline.saturating_duration_since(Instant::now());
        let mut headers = HeaderMap::new();
        let AskOptions { encoding, request_id, client, .. } = self.options;
        let ask = AskHeader { encoding: *encoding, left, request_id, client: *client, may_wait };
        headers.insert(headers::ASK, ask.write());
        let trace = span::current_context();
        headers::write_trace(&mut headers, trace.as_ref().or(self.options.traceparent.as_ref()));
        if let Some((name, value)) = &self.extra_header {
            headers.insert(name.clone(), value.as_str());
        }
        headers
    }

    /// The replica to send to by name at first; `None` = send to the queue group. A submission goes to one by name, because
    /// only this one can be asked again what became of it.
    pub(super) fn first_replica(&self) -> Option<Arc<str>> {
        match self.options.repeatable {
            true => self.target.group.pick_around_silent(),
            false => self.target.group.pick_excluding(&[], Instant::now()),
        }
    }

    /// The earliest time at which an attempt is late.
    pub(super) fn hedge_at(&self, from: Instant) -> Instant {
        self.deadline.min(from + self.target.hedge_delay.delay())
    }

    /// How often what was sent so far may have been lost: with a replica that has gone, or with its connection or this one.
    pub(super) fn losses(&self) -> u64 {
        self.target.group.losses() + self.bus.connects()
    }

    /// The problem of a request without an answer at its deadline.
    pub(super) fn deadline_exceeded(&self) -> Problem {
        let workload = &self.target.workload;
        Problem::deadline_exceeded(match self.options.repeatable {
            true => format!("{workload} did not answer in time"),
            false => format!("{workload} did not answer in time; what became of the request is unknown"),
        })
    }
}
