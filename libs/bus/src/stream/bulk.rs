//! The connection for chunks. It is one of its own, so that a download never stands in front of a read, and because
//! how many messages may wait in a subscription is a matter of the whole connection.
//!
//! One task takes everything off it at once and hands it to the streams, so that no subscription ever fills and the
//! server never has to hold what a slow reader leaves. What all streams together may ask for is bounded; the window
//! of a stream bounds its queue.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use async_nats::{Client, Message};
use futures_util::StreamExt;
use mesh_telemetry::{Registry, list};
use parking_lot::Mutex;
use prometheus_client::metrics::{counter::Counter, family::Family, gauge::Gauge};
use tokio::sync::mpsc::{self, error::TrySendError};

use crate::connection::BusError;

/// Messages that wait in a subscription before the client drops some: more than all streams together may ask for.
pub(crate) const SUBSCRIPTION_CAPACITY: usize = 2048;

/// Messages that wait to be written: a replica makes no more chunks than the connection takes.
pub(crate) const CLIENT_CAPACITY: usize = 16;

/// What all streams together may have asked for: a server cuts a connection off when 64 MiB wait for it.
const OUTSTANDING_AT_MOST: u64 = 48 << 20;

/// Messages that wait for the reader of one stream; its window and the pulls that go around a silent replica need
/// fewer.
const LANE_CAPACITY: usize = 256;

/// The connection for chunks, and the streams on it.
#[derive(Debug)]
pub(crate) struct Bulk {
    pub(crate) client: Client,
    prefix: String,
    lanes: Arc<Lanes>,
}

#[derive(Debug, Default)]
struct Lanes {
    by_stream: Mutex<HashMap<u64, Way>>,
    /// Bytes that all streams have asked for and that have not come.
    outstanding: AtomicU64,
}

#[derive(Debug)]
struct Way {
    sender: mpsc::Sender<Message>,
    /// The stream's share of what is outstanding.
    outstanding: Arc<AtomicU64>,
}

/// The way of one stream's chunks. Dropping it ends the way.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) stream: u64,
    pub(super) messages: mpsc::Receiver<Message>,
    /// Beginning of the subjects on which its chunks come.
    prefix: String,
    lanes: Arc<Lanes>,
    /// Its share of what is outstanding.
    outstanding: Arc<AtomicU64>,
}

/// What a process counts about the streams that it reads.
#[derive(Debug, Default)]
pub(crate) struct Pulling {
    /// Pulls sent.
    pub(super) pulls: Counter,
    /// Those that had been sent before in vain.
    pub(super) again: Counter,
    /// Streams that are open.
    pub(super) active: Gauge,
    /// Bytes handed to readers.
    pub(super) delivered: Counter,
    /// Streams by how they ended.
    ended: Family<[(&'static str, &'static str); 1], Counter>,
}

impl Pulling {
    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.add(&list::STREAM_PULLS, self.pulls.clone());
        registry.add(&list::STREAM_PULLS_AGAIN, self.again.clone());
        registry.add(&list::STREAM_BYTES, self.delivered.clone());
        registry.add(&list::STREAMS_ACTIVE, self.active.clone());
        for end in [End::Whole, End::Broken, End::Left] {
            self.ended(end);
        }
        registry.add(&list::STREAMS_ENDED, self.ended.clone());
    }

    /// The counter of streams that ended so.
    pub(super) fn ended(&self, end: End) -> Counter {
        self.ended.get_or_create_owned(&[("outcome", end.name())])
    }
}

/// How a stream ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// Its reader has all that it wanted.
    Whole,
    /// It could not be gone on with.
    Broken,
    /// Its reader went away.
    Left,
}

impl End {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Broken => "broken",
            Self::Left => "left",
        }
    }
}

impl Bulk {
    pub(crate) async fn open(client: Client) -> Result<Self, BusError> {
        let prefix = client.new_inbox();
        let mut messages = client
            .subscribe(format!("{prefix}.*.*.*"))
            .await
            .map_err(|error| BusError::Closed(error.into()))?;
        let lanes = Arc::new(Lanes::default());
        let streams = Arc::clone(&lanes);
        tokio::spawn(async move {
            while let Some(message) = messages.next().await {
                streams.hand_on(message);
            }
        });
        Ok(Self { client, prefix, lanes })
    }

    /// A way for the chunks of a workload, which nobody else may send there.
    pub(super) fn lane(&self, workload: &str) -> Lane {
        let (sender, messages) = mpsc::channel(LANE_CAPACITY);
        let outstanding = Arc::<AtomicU64>::default();
        let mut by_stream = self.lanes.by_stream.lock();
        let stream = loop {
            let stream = rand::random();
            if !by_stream.contains_key(&stream) {
                break stream;
            }
        };
        by_stream.insert(stream, Way { sender, outstanding: Arc::clone(&outstanding) });
        let (prefix, lanes) = (format!("{}.{workload}", self.prefix), Arc::clone(&self.lanes));
        Lane { stream, messages, prefix, lanes, outstanding }
    }
}

impl Lanes {
    fn hand_on(&self, message: Message) {
        let stream =
            message.subject.rsplit('.').nth(1).and_then(|stream| u64::from_str_radix(stream, 16).ok());
        let by_stream = self.by_stream.lock();
        let Some(way) = stream.and_then(|stream| by_stream.get(&stream)) else { return };
        self.subtract(&way.outstanding, message.payload.len() as u64);
        if let Err(TrySendError::Full(_)) = way.sender.try_send(message) {
            tracing::warn!("a stream got more than it asked for; what it misses it asks for again");
        }
    }

    /// Takes some of a stream's share away, as far as it goes.
    fn subtract(&self, share: &AtomicU64, bytes: u64) {
        let less = |before: u64| Some(before.saturating_sub(bytes));
        let before = share.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).unwrap_or_default();
        self.outstanding.fetch_sub(before.min(bytes), Ordering::Relaxed);
    }
}

impl Lane {
    /// Where the chunks of a pull must go.
    pub(super) fn reply_to(&self, pull: u32) -> String {
        format!("{}.{:x}.{pull}", self.prefix, self.stream)
    }

    /// Bytes that may still be asked for.
    pub(super) fn allowance(&self) -> u64 {
        OUTSTANDING_AT_MOST.saturating_sub(self.lanes.outstanding.load(Ordering::Relaxed))
    }

    /// Notes how many bytes this stream has asked for that have not come.
    pub(super) fn is_waiting_for(&self, bytes: u64) {
        self.lanes.outstanding.fetch_add(bytes, Ordering::Relaxed);
        let before = self.outstanding.swap(bytes, Ordering::Relaxed);
        self.lanes.outstanding.fetch_sub(before, Ordering::Relaxed);
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        self.lanes.by_stream.lock().remove(&self.stream);
        self.is_waiting_for(0);
    }
}
