//! The connection for chunks. It is separate from that for replies, so that a download never delays a read,
//! and because the capacity of subscriptions is a setting of the whole connection.
//!
//! One task takes every message at once and passes it to its stream, so that the subscription never fills up
//! and the server buffers nothing for a slow reader. The outstanding bytes of all streams together are
//! limited; a stream's own queue is limited by its window.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use async_nats::{Client, Message};
use futures_util::StreamExt;
use parking_lot::Mutex;
use tokio::sync::mpsc::{self, error::TrySendError};

use crate::error::BusError;

/// Messages waiting in a subscription before the client drops some: more than all streams together may
/// request.
pub(crate) const SUBSCRIPTION_CAPACITY: usize = 2048;

/// Messages waiting to be written. Low, so that a replica makes chunks no faster than the connection sends
/// them.
pub(crate) const CLIENT_CAPACITY: usize = 16;

/// Most bytes outstanding of all streams together: a server closes a connection for which 64 MiB wait.
const MAX_OUTSTANDING: u64 = 48 << 20;

/// Messages waiting for the reader of one stream; its window and repeated pulls need fewer.
const INBOX_CAPACITY: usize = 256;

/// The connection for chunks, and the streams on it.
#[derive(Debug)]
pub(crate) struct ChunkConnection {
    pub(crate) client: Client,
    prefix: String,
    streams: Arc<StreamRegistry>,
}

#[derive(Debug, Default)]
struct StreamRegistry {
    by_id: Mutex<HashMap<u64, StreamSlot>>,
    /// Bytes that all streams have requested and not received.
    outstanding: AtomicU64,
}

#[derive(Debug)]
struct StreamSlot {
    sender: mpsc::Sender<Message>,
    /// The stream's share of the outstanding bytes.
    outstanding: Arc<AtomicU64>,
}

/// Receives the chunks of one stream. Dropping it unregisters the stream.
#[derive(Debug)]
pub(super) struct StreamInbox {
    pub(super) stream: u64,
    pub(super) messages: mpsc::Receiver<Message>,
    /// Prefix of the subjects of its chunks.
    prefix: String,
    streams: Arc<StreamRegistry>,
    /// Its share of the outstanding bytes.
    outstanding: Arc<AtomicU64>,
}

impl ChunkConnection {
    pub(crate) async fn open(client: Client) -> Result<Self, BusError> {
        let prefix = client.new_inbox();
        let mut messages = client.subscribe(format!("{prefix}.*.*.*")).await.map_err(BusError::closed)?;
        let streams = Arc::<StreamRegistry>::default();
        let registry = Arc::clone(&streams);
        tokio::spawn(async move {
            while let Some(message) = messages.next().await {
                registry.deliver(message);
            }
        });
        Ok(Self { client, prefix, streams })
    }

    /// Registers a stream of a workload. Permissions let no other workload send to its subjects, and none can guess its random
    /// number.
    pub(super) fn register(&self, workload: &str) -> StreamInbox {
        let (sender, messages) = mpsc::channel(INBOX_CAPACITY);
        let outstanding = Arc::<AtomicU64>::default();
        let mut by_id = self.streams.by_id.lock();
        let stream = loop {
            let stream = rand::random();
            if !by_id.contains_key(&stream) {
                break stream;
            }
        };
        by_id.insert(stream, StreamSlot { sender, outstanding: Arc::clone(&outstanding) });
        let (prefix, streams) = (format!("{}.{workload}", self.prefix), Arc::clone(&self.streams));
        StreamInbox { stream, messages, prefix, streams, outstanding }
    }
}

impl StreamRegistry {
    fn deliver(&self, message: Message) {
        let stream =
            message.subject.rsplit('.').nth(1).and_then(|stream| u64::from_str_radix(stream, 16).ok());
        let by_id = self.by_id.lock();
        let Some(slot) = stream.and_then(|stream| by_id.get(&stream)) else { return };
        self.subtract(&slot.outstanding, message.payload.len() as u64);
        if let Err(TrySendError::Full(_)) = slot.sender.try_send(message) {
            tracing::warn!("a stream received more than it requested; missing chunks are requested again");
        }
    }

    /// Subtracts received bytes from a stream's share, down to zero.
    fn subtract(&self, share: &AtomicU64, bytes: u64) {
        let less = |before: u64| Some(before.saturating_sub(bytes));
        let before = share.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).unwrap_or_default();
        self.outstanding.fetch_sub(before.min(bytes), Ordering::Relaxed);
    }
}

impl StreamInbox {
    /// The subject to which the chunks of a pull are sent.
    pub(super) fn reply_to(&self, pull: u32) -> String {
        format!("{}.{:x}.{pull}", self.prefix, self.stream)
    }

    /// Bytes that may still be requested.
    pub(super) fn allowance(&self) -> u64 {
        MAX_OUTSTANDING.saturating_sub(self.streams.outstanding.load(Ordering::Relaxed))
    }

    /// Sets how many bytes this stream has requested and not received.
    pub(super) fn set_outstanding(&self, bytes: u64) {
        self.streams.outstanding.fetch_add(bytes, Ordering::Relaxed);
        let before = self.outstanding.swap(bytes, Ordering::Relaxed);
        self.streams.outstanding.fetch_sub(before, Ordering::Relaxed);
    }
}

impl Drop for StreamInbox {
    fn drop(&mut self) {
        self.streams.by_id.lock().remove(&self.stream);
        self.set_outstanding(0);
    }
}
