//! The head of the consensus node: its status, read at each block event and at least every second.

use std::time::Duration;

use mesh_chassis::Failure;
use reqwest::{Client, Url};
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

/// Parses the address of a node's RPC.
///
/// # Errors
/// The text is no URL, or not one with `http` and a host.
pub(crate) fn address(text: &str) -> Result<Url, String> {
    let url: Url = text.parse().map_err(|error| format!("it is no URL: {error}"))?;
    match (url.scheme(), url.host()) {
        ("http", Some(_)) => Ok(url),
        _ => Err("write it as http://host:port".to_owned()),
    }
}

/// Follows a node. Must be called inside an actix system.
///
/// # Errors
/// The HTTP client cannot be built.
pub(crate) fn follow(node: &Url) -> Result<watch::Receiver<Observation>, Failure> {
    let status = endpoint(node, "status");
    let mut blocks = Subscription::open(&endpoint(node, "websocket"));
    let client = Client::builder().timeout(RESPONSE_TIMEOUT).no_proxy().tls_certs_only([]).build()?;
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

/// The URL of a path of the node's RPC.
fn endpoint(node: &Url, path: &str) -> Url {
    let mut url = node.clone();
    url.set_path(&format!("{}/{path}", node.path().trim_end_matches('/')));
    url
}

async fn read_status(client: &Client, status: &Url) -> Result<NodeState, Failure> {
    let answer = client.get(status.clone()).send().await?.error_for_status()?;
    let StatusReply { result: Status { node_info, sync_info } } = answer.json().await?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_http_address_is_accepted() {
        for good in ["http://node:26657", "http://127.0.0.1:26657/", "http://node/rpc"] {
            assert!(address(good).is_ok(), "{good}");
        }
        for bad in ["node:26657", "https://node", "tcp://node:26657", "http://", ""] {
            assert!(address(bad).is_err(), "{bad}");
        }
        assert_eq!(
            endpoint(&address("http://node/rpc/").unwrap(), "status").as_str(),
            "http://node/rpc/status"
        );
    }
}
