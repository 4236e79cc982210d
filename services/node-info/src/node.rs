//! The head of the consensus node: its status, read at each block event and at least every second.

use std::time::Duration;

use mesh_chassis::{Failure, NodeUrl};
use reqwest::{Client, header::AUTHORIZATION};
use serde::Deserialize;
use tokio::{
    sync::watch,
    time::{Instant, timeout},
};

use crate::subscription::Subscription;

/// Pause between two reads of the status without a block event.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The same without a subscription to block events.
const UNSUBSCRIBED_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Deadline of one read.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(2);

/// The reply to `GET /status`.
#[derive(Debug, Deserialize)]
struct StatusReply {
    result: Status,
}

#[derive(Debug, Deserialize)]
struct Status {
    node_info: Network,
    sync_info: SyncInfo,
}

#[derive(Debug, Deserialize)]
struct Network {
    network: String,
}

#[derive(Debug, Deserialize)]
struct SyncInfo {
    latest_block_height: String,
    latest_block_hash: String,
    catching_up: bool,
}

/// The newest block of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) height: u64,
    /// 64 lower-case hex digits.
    pub(crate) hash: String,
    pub(crate) chain_id: String,
}

/// The state of the node, as of its last status.
#[derive(Debug, Clone)]
pub(crate) enum NodeState {
    /// It answers, with this newest block.
    Synced(Block),
    /// It answers and is catching up with the chain, or has no block yet.
    CatchingUp {
        /// Its newest height.
        height: u64,
    },
    /// It does not answer.
    Away,
}

impl NodeState {
    /// Its newest height.
    pub(crate) fn height(&self) -> Option<u64> {
        match self {
            Self::Synced(block) => Some(block.height),
            Self::CatchingUp { height } => Some(*height),
            Self::Away => None,
        }
    }

    /// Whether the node takes transactions.
    ///
    /// # Errors
    /// Why it does not.
    pub(crate) fn check(&self) -> Result<(), String> {
        match self {
            Self::Synced(_) => Ok(()),
            Self::CatchingUp { height } => {
                Err(format!("the consensus node is catching up, it is at {height}"))
            }
            Self::Away => Err("the consensus node does not answer".to_owned()),
        }
    }
}

/// The state of a node, and when it was read.
#[derive(Debug, Clone)]
pub(crate) struct Observation {
    pub(crate) state: NodeState,
    pub(crate) at: Instant,
}

/// Follows a node. Must be called inside an actix system.
///
/// # Errors
/// The HTTP client cannot be built.
pub(crate) fn follow(node: &NodeUrl) -> Result<watch::Receiver<Observation>, Failure> {
    let status = node.endpoint("status").to_string();
    let mut blocks = Subscription::open(node)?;
    let client = client(node)?;
    let (sender, observation) = watch::channel(Observation { state: NodeState::Away, at: Instant::now() });
    actix::spawn(async move {
        let mut known = None;
        while !sender.is_closed() {
            let read_at = Instant::now();
            let state = read_status(&client, &status).await.unwrap_or_else(|error| {
                if known != Some("away") {
                    tracing::warn!(error = error.as_ref(), "the consensus node does not answer");
                }
                NodeState::Away
            });
            let now = match &state {
                NodeState::Synced(_) => "there",
                NodeState::CatchingUp { .. } => "catching up",
                NodeState::Away => "away",
            };
            if known.replace(now) != Some(now) && now != "away" {
                tracing::info!(height = state.height(), state = now, "the consensus node");
            }
            sender.send_replace(Observation { state, at: read_at });
            let pause = if blocks.is_open() { POLL_INTERVAL } else { UNSUBSCRIBED_POLL_INTERVAL };
            // Either ends the wait; an event means that there is something to read.
            let _ = timeout(pause, blocks.next()).await;
        }
    });
    Ok(observation)
}

/// The client of a node. It uses no proxy: the services reach their servers directly.
fn client(node: &NodeUrl) -> Result<Client, Failure> {
    let client = Client::builder().timeout(RESPONSE_TIMEOUT).no_proxy();
    // The system's certificates are read for `https` only.
    let client = if node.is_tls() { client } else { client.tls_certs_only([]) };
    let authorization = node.authorization().map(|value| (AUTHORIZATION, value.clone()));
    Ok(client.default_headers(authorization.into_iter().collect()).build()?)
}

async fn read_status(client: &Client, status: &str) -> Result<NodeState, Failure> {
    let read = async { client.get(status).send().await?.error_for_status()?.json().await };
    // The URL may have a key in its path.
    let StatusReply { result: Status { node_info, sync_info } } =
        read.await.map_err(reqwest::Error::without_url)?;
    let height = sync_info.latest_block_height.parse()?;
    Ok(match sync_info.catching_up || height == 0 {
        true => NodeState::CatchingUp { height },
        false => NodeState::Synced(Block {
            height,
            hash: sync_info.latest_block_hash.to_ascii_lowercase(),
            chain_id: node_info.network,
        }),
    })
}
