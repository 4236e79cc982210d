//! One subscription for all replies of a connection: tells them apart, puts those of several messages
//! together, and forgets an ask when its asker is gone.

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

use crate::{connection::BusError, headers::ReplyHeader};

/// Replies longer than this are refused: 64 MiB, more than any answer of the contract.
const REPLY_AT_MOST: usize = 64 << 20;

/// A whole reply off the bus.
#[derive(Debug)]
pub(crate) enum Arrived {
    /// Nobody listens on the subject.
    NoResponder,
    /// A reply, its messages in order.
    Reply {
        /// Headers of its first message.
        headers: HeaderMap,
        /// What it says of itself there.
        said: ReplyHeader,
        /// Payloads in order.
        parts: Vec<Bytes>,
    },
    /// Messages of the reply are missing.
    Torn,
}

#[derive(Debug)]
pub(crate) struct Inbox {
    prefix: String,
    next: AtomicU64,
    waiting: Arc<Waiting>,
}

type Waiting = Mutex<HashMap<u64, Slot>>;

#[derive(Debug)]
struct Slot {
    done: oneshot::Sender<Arrived>,
    first: Option<(HeaderMap, ReplyHeader)>,
    parts: Vec<Bytes>,
    bytes: usize,
}

/// An ask that waits. Dropping it forgets the ask.
#[derive(Debug)]
pub(crate) struct Expected {
    waiting: Arc<Waiting>,
    token: u64,
    /// Where the reply must go.
    pub(crate) reply_to: String,
    done: oneshot::Receiver<Arrived>,
}

impl Inbox {
    pub(crate) async fn open(client: &Client) -> Result<Self, BusError> {
        let prefix = client.new_inbox();
        let mut replies = client
            .subscribe(format!("{prefix}.*.*"))
            .await
            .map_err(|error| BusError::Closed(error.into()))?;
        let waiting = Arc::new(Waiting::default());
        let reader = Arc::clone(&waiting);
        tokio::spawn(async move {
            while let Some(message) = replies.next().await {
                deliver(&reader, message);
            }
        });
        Ok(Self { prefix, next: AtomicU64::new(0), waiting })
    }

    /// Prepares for a reply of a workload, which nobody else may send there.
    pub(crate) fn expect(&self, workload: &str) -> Expected {
        let token = self.next.fetch_add(1, Ordering::Relaxed);
        let (done, receiver) = oneshot::channel();
        self.waiting.lock().insert(token, Slot { done, first: None, parts: Vec::new(), bytes: 0 });
        Expected {
            waiting: Arc::clone(&self.waiting),
            token,
            reply_to: format!("{}.{workload}.{token}", self.prefix),
            done: receiver,
        }
    }
}

impl Expected {
    /// Waits for the reply. Cancel-safe.
    pub(crate) async fn arrive(&mut self) -> Arrived {
        (&mut self.done).await.unwrap_or(Arrived::Torn)
    }
}

impl Drop for Expected {
    fn drop(&mut self) {
        self.waiting.lock().remove(&self.token);
    }
}

fn deliver(waiting: &Waiting, message: Message) {
    let Some(token) = message.subject.rsplit('.').next().and_then(|token| token.parse().ok()) else { return };
    let mut waiting = waiting.lock();
    let Some(slot) = waiting.get_mut(&token) else { return };
    let arrived = slot.take(message);
    if let Some(arrived) = arrived
        && let Some(slot) = waiting.remove(&token)
    {
        let _ = slot.done.send(arrived);
    }
}

impl Slot {
    /// Takes the next message of a reply; comes to something when the reply is whole or cannot be any more.
    fn take(&mut self, message: Message) -> Option<Arrived> {
        if message.status == Some(StatusCode::NO_RESPONDERS) {
            return Some(Arrived::NoResponder);
        }
        let headers = message.headers.unwrap_or_default();
        let said = ReplyHeader::read(&headers);
        self.bytes += message.payload.len();
        if said.part != self.parts.len() || self.bytes > REPLY_AT_MOST {
            return Some(Arrived::Torn);
        }
        self.parts.push(message.payload);
        if self.parts.len() < said.parts {
            self.first.get_or_insert((headers, said));
            return None;
        }
        let (headers, said) = self.first.take().unwrap_or((headers, said));
        Some(Arrived::Reply { headers, said, parts: std::mem::take(&mut self.parts) })
    }
}
