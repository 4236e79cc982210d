//! The connection to the bus: made in the background, kept for ever.

use std::{collections::HashMap, sync::Arc, time::Duration};

use async_nats::{Client, ConnectOptions, connection::State};
use parking_lot::Mutex;
use rand::Rng;
use tokio::{sync::OnceCell, time::Instant};

use crate::{
    ask::Target,
    config::{BusConfig, Credentials},
    inbox::Inbox,
    link::Link,
    metrics::Asking,
    permissions::inbox_prefix,
    replicas::Replicas,
    stream::{Bulk, Pulling, bulk},
};

/// Longest pause between two attempts to reconnect; the client's own default grows to 4 s.
const RECONNECT_AT_MOST: Duration = Duration::from_millis(250);

/// Longest time for one attempt to connect, from the look-up of the name to the server's greeting. The client's own default
/// is 5 s; in a cluster the address of a server that is being replaced swallows what is sent to it, so an attempt that
/// began too early must not hold up the next one.
const CONNECT_WITHIN: Duration = Duration::from_secs(2);

/// Messages waiting in one subscription before the client drops some: far above what is ever in flight,
/// because whoever reads a subscription here never waits.
const SUBSCRIPTION_CAPACITY: usize = 16 * 1024;

/// A connection to the bus. Cloning shares it.
#[derive(Debug, Clone)]
pub struct Bus {
    pub(crate) shared: Arc<Shared>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) client: Client,
    pub(crate) config: BusConfig,
    link: Arc<Link>,
    pub(crate) inbox: Inbox,
    pub(crate) replicas: Replicas,
    pub(crate) asking: Asking,
    pub(crate) pulling: Pulling,
    /// The connection for chunks, made when it is first needed.
    bulk: OnceCell<Bulk>,
    /// Operations that were asked for, by subject.
    pub(crate) targets: Mutex<HashMap<String, Arc<Target>>>,
}

/// Why the bus cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BusError {
    /// The configuration cannot work.
    #[error("the bus cannot be used as configured")]
    Configuration(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The connection is closed.
    #[error("the connection to the bus is closed")]
    Closed(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Bus {
    /// Begins to connect and returns at once: a server that is not there yet is tried again for ever.
    ///
    /// # Errors
    /// When address or credentials are malformed.
    pub async fn connect(config: BusConfig) -> Result<Self, BusError> {
        let link = Arc::<Link>::default();
        let client = connect(&config, &config.name, SUBSCRIPTION_CAPACITY, None, Arc::clone(&link)).await?;
        let inbox = Inbox::open(&client).await?;
        let shared = Shared {
            client,
            config,
            link,
            inbox,
            replicas: Replicas::new(),
            asking: Asking::default(),
            pulling: Pulling::default(),
            bulk: OnceCell::new(),
            targets: Mutex::default(),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Whether a server is connected right now.
    pub fn is_connected(&self) -> bool {
        self.shared.client.connection_state() == State::Connected
    }

    /// Comes when a server is connected.
    pub async fn until_connected(&self) {
        while !self.is_connected() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Whether a server is connected, after a moment of patience with a connection that was just lost.
    pub(crate) async fn is_connected_again(&self, deadline: Instant) -> bool {
        self.is_connected() || self.shared.link.is_back(|| self.is_connected(), deadline).await
    }

    /// `mesh.<workload>.<Operation>`.
    pub fn subject(&self, workload: &str, operation: &str) -> String {
        format!("{}.{workload}.{operation}", self.shared.config.prefix)
    }

    /// Where an asker that no longer waits says so to all replicas of a workload.
    pub(crate) fn cancel_subject(&self, workload: &str) -> String {
        format!("{}.cancel.{workload}", self.shared.config.prefix)
    }

    /// The connection for chunks.
    pub(crate) async fn bulk(&self) -> Result<&Bulk, BusError> {
        let open = Box::pin(async {
            let config = &self.shared.config;
            let name = format!("{} (chunks)", config.name);
            let (waiting, unsent) = (bulk::SUBSCRIPTION_CAPACITY, bulk::CLIENT_CAPACITY);
            let link = Arc::<Link>::default();
            Bulk::open(connect(config, &name, waiting, Some(unsent), link).await?).await
        });
        self.shared.bulk.get_or_try_init(|| open).await
    }

    /// The connection for chunks, when it has been made and a server is connected.
    pub(crate) fn bulk_if_connected(&self) -> Option<&Bulk> {
        self.shared.bulk.get().filter(|bulk| bulk.client.connection_state() == State::Connected)
    }

    /// Waits until everything sent so far has left, at most this long.
    pub async fn flush(&self, at_most: Duration) {
        let flush = async {
            let _ = self.shared.client.flush().await;
            if let Some(bulk) = self.bulk_if_connected() {
                let _ = bulk.client.flush().await;
            }
        };
        let _ = tokio::time::timeout(at_most, flush).await;
    }
}

/// Begins to connect. `waiting`: messages that may wait in one subscription; `unsent`: those that may wait to be sent.
async fn connect(
    config: &BusConfig,
    name: &str,
    waiting: usize,
    unsent: Option<usize>,
    link: Arc<Link>,
) -> Result<Client, BusError> {
    let configuration = |error: Box<dyn std::error::Error + Send + Sync>| BusError::Configuration(error);
    let mut options = ConnectOptions::new()
        .name(name)
        .custom_inbox_prefix(inbox_prefix(config.user()))
        .retry_on_initial_connect()
        .subscription_capacity(waiting)
        .connection_timeout(CONNECT_WITHIN)
        .ping_interval(Duration::from_secs(5))
        .reconnect_delay_callback(reconnect_delay)
        .event_callback(move |event| {
            link.note(&event);
            std::future::ready(())
        });
    if let Some(unsent) = unsent {
        options = options.client_capacity(unsent);
    }
    options = match config.credentials.clone() {
        Some(Credentials::Password { user, password }) => options.user_and_password(user, password),
        Some(Credentials::Jwt(text)) => {
            options.credentials(&text).map_err(|error| configuration(error.into()))?
        }
        None => options,
    };
    if let Some(file) = &config.tls_ca {
        options = options.add_root_certificates(file.clone()).require_tls(true);
    }
    let servers: Vec<&str> = config.url.split(',').map(str::trim).collect();
    options.connect(servers).await.map_err(|error| configuration(error.into()))
}

/// 10 ms, doubling to 250 ms, with jitter so that a thousand clients do not come back together. Counted from 1: the first
/// attempt may be at a server that just died, and the second must not come late.
fn reconnect_delay(attempt: usize) -> Duration {
    let steps = u32::try_from(attempt.saturating_sub(1)).unwrap_or(u32::MAX).min(5);
    let delay = (Duration::from_millis(10) * 2_u32.pow(steps)).min(RECONNECT_AT_MOST);
    delay.mul_f64(rand::rng().random_range(0.5..1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reconnecting_never_pauses_longer_than_its_cap() {
        for attempt in 0..100 {
            assert!(reconnect_delay(attempt) <= RECONNECT_AT_MOST);
        }
    }
}
