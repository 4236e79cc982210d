//! The connection to the bus. It is made in the background and reconnects for as long as it exists.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
    time::Duration,
};

use async_nats::{Client, connection::State};
use futures_util::future::BoxFuture;
use mesh_telemetry::Registry;
use parking_lot::Mutex;
use tokio::{
    runtime::Handle,
    sync::{OnceCell, watch},
    time::{Instant, sleep, timeout},
};

use crate::{
    config::BusConfig,
    connect::connect,
    error::BusError,
    hedge::RetryBudget,
    inbox::Inbox,
    link::Link,
    metrics::AskMetrics,
    replicas::Replicas,
    stream::{
        chunk_connection::{self, ChunkConnection},
        metrics::PullMetrics,
    },
    subjects,
    target::Target,
};

/// Pauses before a new connection while the server refuses a subscription or takes short messages only, at first and at
/// most.
const REFUSED_PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(8)];

/// Messages waiting in one subscription before the client drops some. Far more than are in flight, because
/// readers of subscriptions never wait here.
const SUBSCRIPTION_CAPACITY: usize = 16 * 1024;

/// Fewest bytes of the greatest message that a bus must take: a chunk or a part of a reply, and its headers.
const MIN_PAYLOAD: usize = 1 << 20;

/// A connection to the bus. Cloning shares it.
#[derive(Debug, Clone)]
pub struct Bus {
    pub(crate) shared: Arc<Shared>,
}

/// The connection for long replies, so that short ones do not wait behind them.
#[derive(Debug)]
pub(crate) struct LongReplies {
    pub(crate) client: Client,
    pub(crate) inbox: Inbox,
    pub(crate) link: Arc<Link>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) client: Client,
    pub(crate) config: BusConfig,
    pub(crate) link: Arc<Link>,
    pub(crate) inbox: Inbox,
    pub(crate) replicas: Replicas,
    pub(crate) retry_budget: RetryBudget,
    pub(crate) asks: AskMetrics,
    pub(crate) pulls: PullMetrics,
    /// The connection for long replies, made when it is first needed.
    long: OnceCell<LongReplies>,
    /// The connection for chunks, made when it is first needed.
    chunks: OnceCell<ChunkConnection>,
    /// Targets by subject, made at the first use.
    pub(crate) targets: Mutex<HashMap<String, Arc<Target>>>,
}

impl Shared {
    /// The length of the longest message that the server takes, bytes, if that is too short.
    fn too_short(&self) -> Option<usize> {
        let is_connected = self.client.connection_state() == State::Connected;
        Some(self.client.server_info().max_payload).filter(|most| is_connected && *most < MIN_PAYLOAD)
    }

    /// Whether only a new connection can be of use.
    fn needs_renewal(&self) -> bool {
        self.link.refused().borrow().is_some() || self.too_short().is_some()
    }
}

impl Bus {
    /// Starts to connect and returns at once; attempts are repeated until a server answers.
    ///
    /// # Errors
    /// When address or credentials are malformed.
    pub fn connect(config: BusConfig) -> BoxFuture<'static, Result<Self, BusError>> {
        // Boxed, so that it is compiled once and not in every program.
        Box::pin(async move {
            let link = Arc::<Link>::default();
            let client =
                connect(&config, &config.name, SUBSCRIPTION_CAPACITY, None, Arc::clone(&link)).await?;
            let inbox = Inbox::open(&client).await?;
            let shared = Shared {
                client,
                config,
                link,
                inbox,
                replicas: Replicas::new(),
                retry_budget: RetryBudget::default(),
                asks: AskMetrics::default(),
                pulls: PullMetrics::default(),
                long: OnceCell::new(),
                chunks: OnceCell::new(),
                targets: Mutex::default(),
            };
            let (refused, shared) = (shared.link.refused(), Arc::new(shared));
            tokio::spawn(renew_connections(refused, Arc::downgrade(&shared)));
            Ok(Self { shared })
        })
    }

    /// Whether a server is connected right now.
    pub fn is_connected(&self) -> bool {
        self.shared.client.connection_state() == State::Connected
    }

    /// Whether the bus can be used now.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self) -> Result<(), String> {
        if !self.is_connected() {
            return Err(self.shared.link.failure().to_owned());
        }
        if let Some(subject) = &*self.shared.link.refused().borrow() {
            return Err(format!("the message bus does not permit to subscribe to {subject}"));
        }
        match self.shared.too_short() {
            Some(most) => Err(format!(
                "the message bus takes messages of {most} bytes; its `max_payload` must be {MIN_PAYLOAD} at least"
            )),
            None => Ok(()),
        }
    }

    /// Resolves when a server is connected.
    pub async fn until_connected(&self) {
        self.shared.link.connected(|| self.is_connected()).await;
    }

    /// Whether a server is connected, or connected again within the grace after a loss and before `deadline`.
    pub(crate) async fn is_connected_again(&self, deadline: Instant) -> bool {
        self.is_connected() || self.shared.link.is_back(|| self.is_connected(), deadline).await
    }

    /// How often the connections for replies were made. What was on its way at the end of one never arrives.
    pub(crate) fn connects(&self) -> u64 {
        let long = self.shared.long.get().map_or(0, |long| long.link.connects());
        // The first one for long replies follows none that was lost.
        self.shared.link.connects() + long.saturating_sub(1)
    }

    /// How often the connection for requests was made.
    pub(crate) fn link_connects(&self) -> u64 {
        self.shared.link.connects()
    }

    /// Whether the bus is a cluster, as configured.
    pub(crate) fn has_several_servers(&self) -> bool {
        self.shared.config.url.contains(',')
    }

    /// `mesh.<workload>.<Operation>`.
    pub fn subject(&self, workload: &str, operation: &str) -> String {
        subjects::operation(&self.shared.config.prefix, workload, operation)
    }

    /// The subject of cancellations of requests to a workload.
    pub(crate) fn cancel_subject(&self, workload: &str) -> String {
        subjects::cancel(&self.shared.config.prefix, workload)
    }

    /// Cancels the request to a target whose reply goes to this subject. Does not wait.
    pub(crate) fn cancel(&self, target: &Target, reply_to: String) {
        let (client, subject) = (self.shared.client.clone(), target.cancel_subject.clone());
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                let _ = client.publish(subject, reply_to.into()).await;
            });
        }
    }

    /// The subject of an announcement.
    pub(crate) fn event_subject(&self, topic: &str) -> String {
        subjects::event(&self.shared.config.prefix, topic)
    }

    /// Adds the metrics of asking and pulling to a registry.
    pub fn register_metrics(&self, registry: &mut Registry) {
        self.shared.asks.register(registry);
        self.shared.pulls.register(registry);
    }

    /// The connection for long replies, when a server is connected. The first call starts to connect.
    pub(crate) async fn long_replies(&self) -> Option<&LongReplies> {
        let open = Box::pin(async {
            let config = &self.shared.config;
            let name = format!("{} (long replies)", config.name);
            let link = Arc::<Link>::default();
            let client = connect(config, &name, SUBSCRIPTION_CAPACITY, None, Arc::clone(&link)).await?;
            let inbox = Inbox::open(&client).await?;
            Ok::<_, BusError>(LongReplies { client, inbox, link })
        });
        let long = self.shared.long.get_or_try_init(|| open).await.ok()?;
        (long.client.connection_state() == State::Connected).then_some(long)
    }

    /// The connection for chunks.
    ///
    /// # Errors
    /// When its subscription cannot be made.
    pub(crate) async fn chunk_connection(&self) -> Result<&ChunkConnection, BusError> {
        let open = Box::pin(async {
            let config = &self.shared.config;
            let name = format!("{} (chunks)", config.name);
            let (waiting, unsent) =
                (chunk_connection::SUBSCRIPTION_CAPACITY, chunk_connection::CLIENT_CAPACITY);
            let link = Arc::<Link>::default();
            ChunkConnection::open(connect(config, &name, waiting, Some(unsent), link).await?).await
        });
        self.shared.chunks.get_or_try_init(|| open).await
    }

    /// The client of the connection for chunks, when that has been made and a server is connected.
    pub(crate) fn chunk_client(&self) -> Option<&Client> {
        let client = &self.shared.chunks.get()?.client;
        (client.connection_state() == State::Connected).then_some(client)
    }

    /// Waits until all messages published so far are sent, at most for `limit`.
    ///
    /// Does not wait while no server is connected.
    pub async fn flush(&self, limit: Duration) {
        if !self.is_connected() {
            return;
        }
        let flush = async {
            let _ = self.shared.client.flush().await;
            let long = self.shared.long.get().map(|long| &long.client);
            for client in long.into_iter().chain(self.chunk_client()) {
                let _ = client.flush().await;
            }
        };
        let _ = timeout(limit, flush).await;
    }
}

/// Reconnects at growing intervals while the server refuses a subscription, which the client makes again only on a new
/// connection, or takes short messages only: servers before NATS 2.10 report a corrected length only to new connections.
async fn renew_connections(mut refused: watch::Receiver<Option<String>>, shared: Weak<Shared>) {
    let [first_pause, longest_pause] = REFUSED_PAUSES;
    let mut pause = first_pause;
    loop {
        if let Ok(Err(_)) = timeout(longest_pause, refused.wait_for(Option::is_some)).await {
            return;
        }
        let Some(is_needed) = shared.upgrade().map(|shared| shared.needs_renewal()) else { return };
        if !is_needed {
            pause = first_pause;
            continue;
        }
        sleep(pause).await;
        let Some(shared) = shared.upgrade() else { return };
        let long = shared.long.get().map(|long| &long.client);
        let chunks = shared.chunks.get().map(|chunks| &chunks.client);
        for client in [Some(&shared.client), long, chunks].into_iter().flatten() {
            let _ = client.force_reconnect().await;
        }
        drop(shared);
        // The refusals of the new connection arrive a moment after it.
        sleep(first_pause).await;
        pause = (pause * 2).min(longest_pause);
    }
}
