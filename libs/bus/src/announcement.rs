//! Announcements: events on `<prefix>.events.<topic>`. Each contains a whole state and is repeated, so that a
//! lost one is replaced by the next.

use std::{pin::Pin, time::Duration};

use async_nats::Message;
use futures_util::{Stream, StreamExt};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{answer::Head, connection::Bus, error::BusError};

/// Interval of the repetitions. A state is out of date when no announcement came for several times this long.
pub const ANNOUNCE_INTERVAL: Duration = Duration::from_secs(1);

/// A state that is announced.
pub trait Announcement: Serialize + DeserializeOwned + Send + 'static {
    /// The end of its subject, e.g. `head.store`.
    const TOPIC: &'static str;
}

/// The state of the store: announced when it changes and every [`ANNOUNCE_INTERVAL`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoreStatus {
    /// Its newest block, when it has one.
    pub head: Option<Head>,
    /// Whether it answers. If so, the head is the current one, otherwise the last known.
    pub is_there: bool,
    /// A random number of the replica that announces; 0 of a release before 0.3.
    #[serde(default)]
    pub replica: u64,
}

impl Announcement for StoreStatus {
    const TOPIC: &'static str = "head.store";
}

/// The state of the consensus node: announced when it changes and every [`ANNOUNCE_INTERVAL`], as long as the
/// node answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeStatus {
    /// Height of its newest block.
    pub height: u64,
}

impl Announcement for NodeStatus {
    const TOPIC: &'static str = "head.node";
}

/// Announced by a sealer when the segments of the history have changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SegmentStatus {
    /// Last height of the newest segment.
    pub height_to: u64,
}

impl Announcement for SegmentStatus {
    const TOPIC: &'static str = "history.segments";
}

/// Announced every [`ANNOUNCE_INTERVAL`] by each replica of `ingest` that cannot store the next block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IngestHalt {
    /// Height of that block.
    pub height: u64,
    /// Why it cannot be stored.
    pub reason: HaltReason,
}

impl Announcement for IngestHalt {
    const TOPIC: &'static str = "ingest.halted";
}

/// Why no block is stored until something is corrected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HaltReason {
    /// The block cannot be decoded.
    Decode,
    /// PostgreSQL refuses a row.
    Refused,
    /// The block does not continue the stored one.
    Forked,
    /// The node has another chain than the store.
    OtherChain,
    /// The node has removed the block.
    Pruned,
    /// The node keeps no results.
    NoResults,
    /// The block is larger than what can be transferred.
    TooLarge,
}

impl HaltReason {
    /// Every reason.
    pub const ALL: [Self; 7] = [
        Self::Decode,
        Self::Refused,
        Self::Forked,
        Self::OtherChain,
        Self::Pruned,
        Self::NoResults,
        Self::TooLarge,
    ];

    /// Its name in metrics, logs and alerts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Decode => "decode",
            Self::Refused => "refused",
            Self::Forked => "forked",
            Self::OtherChain => "other_chain",
            Self::Pruned => "pruned",
            Self::NoResults => "no_results",
            Self::TooLarge => "too_large",
        }
    }
}

/// Announced every [`ANNOUNCE_INTERVAL`] by each edge that knows keys, so that they share the keys' limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EdgePresence {
    /// The edge's own name.
    pub id: String,
    /// Whether it stops.
    pub is_leaving: bool,
}

impl Announcement for EdgePresence {
    const TOPIC: &'static str = "edges";
}

/// What one key has used of one operation at one edge in a span of time (contract K4). Unlike a state it is
/// published once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyUsage {
    /// `usage`, as in the lines of the log.
    pub target: String,
    /// Name of the key.
    pub key: String,
    /// The operation.
    pub operation: String,
    /// Requests that began.
    pub requests: u64,
    /// Those that exceeded a limit.
    pub refused: u64,
    /// Bytes of their bodies.
    pub bytes_in: u64,
    /// Bytes of the answers' bodies.
    pub bytes_out: u64,
    /// Seconds for which watches were open, all together.
    pub watch_seconds: u64,
    /// Begin of the span, RFC 3339.
    pub from: String,
    /// Its end.
    pub to: String,
}

impl Announcement for KeyUsage {
    const TOPIC: &'static str = "usage";
}

/// The topic on which the replicas of `tx-relay` share the results of submissions.
pub const RELAY_RESULTS: &str = "relay.results";

/// The announcements of a topic.
pub type AnnouncementStream<A> = Pin<Box<dyn Stream<Item = A> + Send>>;

impl Bus {
    /// Publishes an announcement. Without a connection it is dropped: the next one repeats the state.
    pub async fn announce<A: Announcement>(&self, announcement: &A) {
        self.publish_event(A::TOPIC, announcement).await;
    }

    pub(crate) async fn publish_event(&self, topic: &str, event: &impl Serialize) {
        if !self.is_connected() {
            return;
        }
        let payload = serde_json::to_vec(event).expect("text and numbers");
        if let Err(error) = self.shared.client.publish(self.event_subject(topic), payload.into()).await {
            tracing::debug!(%error, "an announcement could not be published");
        }
    }

    /// Subscribes to the announcements of a topic, also to those after a reconnect.
    ///
    /// # Errors
    /// When the connection is closed for good.
    pub async fn subscribe<A: Announcement>(&self) -> Result<AnnouncementStream<A>, BusError> {
        let messages = self.shared.client.subscribe(self.event_subject(A::TOPIC)).await;
        let messages = messages.map_err(BusError::closed)?;
        Ok(Box::pin(
            messages
                .filter_map(|message: Message| async move { serde_json::from_slice(&message.payload).ok() }),
        ))
    }
}
