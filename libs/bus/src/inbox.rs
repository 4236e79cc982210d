//! One subscription for all replies of a connection: assigns each message to its request, joins replies of
//! several messages, and removes a request when its caller is dropped.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use async_nats::{Client, HeaderMap, Message, StatusCode};
use bytes::Bytes;
use futures_util::StreamExt;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::{error::BusError, headers::ReplyHeader};

/// Longest reply, bytes: more than any answer of the contract.
const MAX_REPLY_BYTES: usize = 64 << 20;

/// The result of waiting for a reply.
#[derive(Debug)]
pub(crate) enum Arrival {
    /// The bus reports that no replica listens on the subject.
    NoResponder,
    /// A reply, its messages in order.
    Reply {
        /// Headers of its first message.
        headers: HeaderMap,
        /// The `Mesh-Reply` header among them.
        header: ReplyHeader,
        /// Payloads in order.
        parts: Vec<Bytes>,
    },
    /// Messages of the reply are missing.
    Torn,
}

/// The inbox of one connection.
#[derive(Debug)]
pub(crate) struct Inbox {
    prefix: String,
    next_token: AtomicU64,
    requests: Arc<Requests>,
}

/// Requests without a whole reply, by the token in their reply subject.
type Requests = Mutex<HashMap<u64, Slot>>;

#[derive(Debug)]
struct Slot {
    workload: Box<str>,
    done: oneshot::Sender<Arrival>,
    /// Headers of the first message of several.
    first: Option<(HeaderMap, ReplyHeader)>,
    parts: Vec<Bytes>,
    bytes: usize,
}

/// A request that waits for its reply. Dropping it removes the request.
#[derive(Debug)]
pub(crate) struct PendingReply {
    requests: Arc<Requests>,
    token: u64,
    /// The subject for the reply.
    pub(crate) reply_to: String,
    done: oneshot::Receiver<Arrival>,
}

impl Inbox {
    pub(crate) async fn open(client: &Client) -> Result<Self, BusError> {
        let prefix = client.new_inbox();
        let mut replies = client.subscribe(format!("{prefix}.*.*")).await.map_err(BusError::closed)?;
        let requests = Arc::new(Requests::default());
        let reader = Arc::clone(&requests);
        tokio::spawn(async move {
            while let Some(message) = replies.next().await {
                deliver(&reader, message);
            }
        });
        Ok(Self { prefix, next_token: AtomicU64::new(0), requests })
    }

    /// Registers a request to a workload. Permissions let no other workload publish to the subject of its reply.
    pub(crate) fn register(&self, workload: &str) -> PendingReply {
        let token = self.next_token.fetch_add(1, Ordering::Relaxed);
        let (done, receiver) = oneshot::channel();
        self.requests.lock().insert(token, Slot::new(workload, done));
        PendingReply {
            requests: Arc::clone(&self.requests),
            token,
            reply_to: format!("{}.{workload}.{token}", self.prefix),
            done: receiver,
        }
    }
}

impl PendingReply {
    /// Waits for the reply. Cancel-safe.
    pub(crate) async fn arrival(&mut self) -> Arrival {
        (&mut self.done).await.unwrap_or(Arrival::Torn)
    }
}

impl Drop for PendingReply {
    fn drop(&mut self) {
        self.requests.lock().remove(&self.token);
    }
}

fn deliver(requests: &Requests, message: Message) {
    let mut words = message.subject.rsplit('.');
    let Some(token) = words.next().and_then(|token| token.parse().ok()) else { return };
    let workload = words.next().unwrap_or_default();
    let mut requests = requests.lock();
    // A service that knows the inbox can guess the tokens of requests to other workloads.
    let Some(slot) = requests.get_mut(&token).filter(|slot| *slot.workload == *workload) else { return };
    let arrival = slot.add(message);
    if let Some(arrival) = arrival
        && let Some(slot) = requests.remove(&token)
    {
        let _ = slot.done.send(arrival);
    }
}

impl Slot {
    fn new(workload: &str, done: oneshot::Sender<Arrival>) -> Self {
        Self { workload: workload.into(), done, first: None, parts: Vec::new(), bytes: 0 }
    }

    /// Adds the next message of a reply; returns the result when the reply is complete or
    /// a message is missing.
    fn add(&mut self, message: Message) -> Option<Arrival> {
        if message.status == Some(StatusCode::NO_RESPONDERS) {
            return Some(Arrival::NoResponder);
        }
        let headers = message.headers.unwrap_or_default();
        let header = ReplyHeader::read(&headers);
        self.bytes += message.payload.len();
        if header.part != self.parts.len() || self.bytes > MAX_REPLY_BYTES {
            return Some(Arrival::Torn);
        }
        self.parts.push(message.payload);
        if self.parts.len() < header.parts {
            self.first.get_or_insert((headers, header));
            return None;
        }
        let (headers, header) = self.first.take().unwrap_or((headers, header));
        Some(Arrival::Reply { headers, header, parts: std::mem::take(&mut self.parts) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_counts_only_when_it_is_of_the_workload_that_was_asked() {
        let requests = Requests::default();
        let (done, mut receiver) = oneshot::channel();
        requests.lock().insert(7, Slot::new("tx-relay", done));
        let reply_to = |subject: &str| Message {
            subject: subject.into(),
            reply: None,
            payload: Bytes::new(),
            headers: None,
            status: None,
            description: None,
            length: 0,
        };
        deliver(&requests, reply_to("_INBOX_edge.a.query.7"));
        assert!(receiver.try_recv().is_err(), "`query` may publish there");
        deliver(&requests, reply_to("_INBOX_edge.a.tx-relay.7"));
        assert!(receiver.try_recv().is_ok());
    }
}
