//! Announcements: what everybody on the bus may hear, under `<prefix>.events.<topic>`. Nobody waits for news, and missing
//! some does no harm: each one says the whole state, and is said again.

use std::{pin::Pin, time::Duration};

use async_nats::Message;
use futures_util::{Stream, StreamExt};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{
    answering::Head,
    connection::{Bus, BusError},
};

/// How often news are said again. Who has heard none for several times this long knows nothing any more.
pub const ANNOUNCE_INTERVAL: Duration = Duration::from_millis(250);

/// Something that is announced.
pub trait Announcement: Serialize + DeserializeOwned + Send + 'static {
    /// The end of its subject, e.g. `head.store`.
    const TOPIC: &'static str;
}

/// Where the store stands: announced when it changes and every [`ANNOUNCE_INTERVAL`] all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoreStatus {
    /// Its newest block, when it has one.
    pub head: Option<Head>,
    /// Whether it answers. The head is then that of this moment, otherwise the last that was seen.
    pub is_there: bool,
}

impl Announcement for StoreStatus {
    const TOPIC: &'static str = "head.store";
}

/// Where the consensus node stands: announced when it changes and every [`ANNOUNCE_INTERVAL`] all the same,
/// as long as the node answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeStatus {
    /// Height of its newest block.
    pub height: u64,
}

impl Announcement for NodeStatus {
    const TOPIC: &'static str = "head.node";
}

/// Told by a sealer when the segments of the history have changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SegmentStatus {
    /// Last height of the newest segment.
    pub height_to: u64,
}

impl Announcement for SegmentStatus {
    const TOPIC: &'static str = "history.segments";
}

/// Announcements as they come.
pub type AnnouncementStream<N> = Pin<Box<dyn Stream<Item = N> + Send>>;

impl Bus {
    /// Tells everybody. A bus that is away is nobody's loss: the next news say it again.
    pub async fn announce<N: Announcement>(&self, news: &N) {
        self.tell(N::TOPIC, news).await;
    }

    pub(crate) async fn tell(&self, topic: &str, news: &impl Serialize) {
        if !self.is_connected() {
            return;
        }
        let payload = serde_json::to_vec(news).expect("text and numbers");
        if let Err(error) = self.shared.client.publish(self.topic(topic), payload.into()).await {
            tracing::debug!(%error, "news could not be told");
        }
    }

    /// Hears all news of a kind from now on, also those that come after the bus was away.
    ///
    /// # Errors
    /// When the connection is closed for good.
    pub async fn subscribe<N: Announcement>(&self) -> Result<AnnouncementStream<N>, BusError> {
        let subscribed = self.shared.client.subscribe(self.topic(N::TOPIC)).await;
        let heard = subscribed.map_err(|error| BusError::Closed(error.into()))?;
        Ok(Box::pin(
            heard.filter_map(|message: Message| async move { serde_json::from_slice(&message.payload).ok() }),
        ))
    }

    pub(crate) fn topic(&self, topic: &str) -> String {
        format!("{}.events.{topic}", self.shared.config.prefix)
    }
}
