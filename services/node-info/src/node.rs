//! The head of the consensus nodes: their status, read at each block event and at least every second. Of several
//! nodes the one with the newest block counts.

use std::time::Duration;

use futures_util::{StreamExt as _, future::select_all, stream::FuturesUnordered};
use mesh_chassis::Failure;
use mesh_node_rpc::{NodeUrl, ReplyError, Status, client, describe, foreign_answer, read_body, read_reply};
use reqwest::Client;
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

/// Most bytes of a status.
const MAX_STATUS_BYTES: usize = 64 << 10;

/// How long the status of further nodes is awaited after the first one that takes transactions.
const OTHERS_WITHIN: Duration = Duration::from_millis(200);

/// Of a node that gives no answer.
pub(crate) const SILENT: &str = "does not answer";

/// An older state counts as none: it is older than two slow reads and the pause between them.
pub(crate) const MAX_STATUS_AGE: Duration =
    Duration::from_secs(2 * RESPONSE_TIMEOUT.as_secs() + POLL_INTERVAL.as_secs());

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
    /// It cannot be used; the end of a sentence about it.
    Away(String),
}

impl NodeState {
    /// Its newest height.
    pub(crate) fn height(&self) -> Option<u64> {
        match self {
            Self::Synced(block) => Some(block.height),
            Self::CatchingUp { height } => Some(*height),
            Self::Away(_) => None,
        }
    }

    /// Of two states the greater one counts.
    fn rank(&self) -> (bool, Option<u64>) {
        (matches!(self, Self::Synced(_)), self.height())
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
            Self::Away(why) => Err(format!("the consensus node {why}")),
        }
    }
}

/// Why the status was not read.
#[derive(Debug)]
struct NotRead {
    /// The end of a sentence about the node.
    why: String,
    /// The cause, for the log.
    cause: String,
}

impl NotRead {
    fn silent(cause: String) -> Self {
        Self { why: SILENT.to_owned(), cause }
    }
}

/// The state of a node, and when it was read.
#[derive(Debug, Clone)]
pub(crate) struct Observation {
    pub(crate) state: NodeState,
    pub(crate) at: Instant,
}

/// A node, and its block events.
struct Node {
    url: NodeUrl,
    blocks: Subscription,
}

/// Follows the nodes. Must be called inside an actix system.
///
/// # Errors
/// The HTTP client cannot be built.
pub(crate) fn follow(urls: Vec<NodeUrl>) -> Result<watch::Receiver<Observation>, Failure> {
    let client = client(&urls)?;
    let open = |url| Ok(Node { blocks: Subscription::open(&url)?, url });
    let mut nodes = urls.into_iter().map(open).collect::<Result<Vec<_>, Failure>>()?;
    let not_read = NodeState::Away(SILENT.to_owned());
    let (sender, observation) = watch::channel(Observation { state: not_read, at: Instant::now() });
    actix::spawn(async move {
        let mut known = String::new();
        while !sender.is_closed() {
            let read_at = Instant::now();
            let (state, cause) = match read(&client, &nodes).await {
                Ok(state) => (state, String::new()),
                Err(NotRead { why, cause }) => (NodeState::Away(why), cause),
            };
            let now = match &state {
                NodeState::Synced(_) => "there",
                NodeState::CatchingUp { .. } => "catching up",
                NodeState::Away(why) => why.as_str(),
            };
            if known != now {
                known = now.to_owned();
                match &state {
                    NodeState::Away(why) => tracing::warn!(error = cause, "the consensus node {why}"),
                    _ => tracing::info!(height = state.height(), state = now, "the consensus node"),
                }
            }
            sender.send_replace(Observation { state, at: read_at });
            let is_open = nodes.iter().any(|node| node.blocks.is_open());
            let pause = if is_open { POLL_INTERVAL } else { UNSUBSCRIBED_POLL_INTERVAL };
            let events = nodes.iter_mut().map(|node| Box::pin(node.blocks.next()));
            // Either ends the wait; an event means that there is something to read.
            let _ = timeout(pause, select_all(events)).await;
        }
    });
    Ok(observation)
}

/// The best state of the nodes, of those that answer soon after the first one that takes transactions.
async fn read(client: &Client, nodes: &[Node]) -> Result<NodeState, NotRead> {
    let mut asked: FuturesUnordered<_> = nodes.iter().map(|node| read_status(client, &node.url)).collect();
    let mut best = Err(NotRead::silent(String::new()));
    loop {
        let reply = match best {
            Ok(NodeState::Synced(_)) => timeout(OTHERS_WITHIN, asked.next()).await.ok().flatten(),
            _ => asked.next().await,
        };
        best = match (reply, best) {
            (None, best) => return best,
            (Some(Err(error)), Err(_)) => Err(error),
            (Some(Err(_)), best) => best,
            (Some(Ok(state)), Ok(known)) if known.rank() >= state.rank() => Ok(known),
            (Some(Ok(state)), _) => Ok(state),
        };
    }
}

async fn read_status(client: &Client, url: &NodeUrl) -> Result<NodeState, NotRead> {
    let silent = |error| NotRead::silent(describe(error));
    let answer = url.get(client, "status").timeout(RESPONSE_TIMEOUT).send().await.map_err(silent)?;
    let status = answer.status();
    let foreign = |cause| NotRead { why: foreign_answer(status), cause };
    let body = read_body(answer, MAX_STATUS_BYTES).await.map_err(silent)?;
    let body = body.ok_or_else(|| foreign(format!("it has more than {MAX_STATUS_BYTES} bytes")))?;
    let Status { node_info, sync_info } = read_reply(&body)
        .map_err(|(ReplyError::Refused(cause) | ReplyError::Foreign(cause))| foreign(cause))?;
    let height = sync_info.latest_block_height;
    let height = height.ok_or_else(|| foreign("the height is no number".to_owned()))?;
    let hash = sync_info.latest_block_hash.ok_or_else(|| foreign("it has no hash".to_owned()))?;
    Ok(match sync_info.catching_up || height == 0 {
        true => NodeState::CatchingUp { height },
        false => {
            NodeState::Synced(Block { height, hash: hash.to_ascii_lowercase(), chain_id: node_info.network })
        }
    })
}
