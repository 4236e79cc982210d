//! The consensus nodes: status, and blocks with their results, always by height. The first node of the list
//! that has a block serves it, the one with the newest block says how far the chain is.

mod fetch_error;
mod read;
pub(crate) mod wire;

use std::{cell::Cell, time::Duration};

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use mesh_chassis::Failure;
use mesh_node_rpc::{
    NodeUrl, ReplyError, Status, client, describe, foreign_answer, read_body, read_reply, retry_after,
};
use reqwest::{Client, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::time::{Instant, timeout};

pub use self::fetch_error::FetchError;
use crate::block::FetchedBlock;

/// Longest reply that is read.
pub const MAX_REPLY_BYTES: usize = 64 << 20;

/// Deadline of a request for a status.
const STATUS_TIMEOUT: Duration = Duration::from_secs(2);

/// Deadline of a request for a block or its results, which may be large.
const BLOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a node that did not answer is tried after the others, at first and at most.
const SKIP_PAUSES: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(60)];

/// After this time without a reply, the next node gets the request, too.
const NEXT_NODE_AFTER: Duration = Duration::from_secs(1);

/// How long the status of further nodes is awaited after the first one.
const OTHERS_WITHIN: Duration = Duration::from_millis(200);

/// Of nodes that get no request now.
const LIMITS: &str = "limits the rate of requests";

/// How long a node that limits its clients gets no request: without `Retry-After`, and at most.
const LIMITED_PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];

/// What a node says of its chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeStatus {
    /// The name of the network.
    pub chain_id: String,
    /// The height of the oldest block that it has; 1 when it does not say.
    pub earliest: u64,
    /// The height of its newest block; 0 before the first.
    pub latest: u64,
}

/// The error while a node gets no request.
fn limited() -> FetchError {
    FetchError::Unavailable(LIMITS.to_owned())
}

/// The consensus nodes.
#[derive(Debug)]
pub struct Nodes {
    client: Client,
    nodes: Vec<Node>,
}

#[derive(Debug)]
struct Node {
    url: NodeUrl,
    /// Until when it is tried after the others, and the length of that pause.
    skipped: Cell<Option<(Instant, Duration)>>,
    /// Until when it gets no request.
    limited: Cell<Option<Instant>>,
}

impl Node {
    fn is_skipped(&self) -> bool {
        self.skipped.get().is_some_and(|(until, _)| until > Instant::now())
    }

    fn is_within_limit(&self) -> bool {
        self.limited.get().is_none_or(|until| until <= Instant::now())
    }

    fn skip(&self) {
        // Several blocks are fetched at the same time.
        if self.is_skipped() {
            return;
        }
        let pause = self.skipped.get().map_or(SKIP_PAUSES[0], |(_, pause)| (pause * 2).min(SKIP_PAUSES[1]));
        self.skipped.set(Some((Instant::now() + pause, pause)));
    }

    /// Records why it gave no reply.
    fn record(&self, error: &FetchError) {
        match error {
            FetchError::Unavailable(_) => self.skip(),
            FetchError::Limited { after } => self.limited.set(Some(Instant::now() + *after)),
            _ => {}
        }
    }
}

impl Nodes {
    /// The nodes at these addresses, in the order in which they are tried.
    ///
    /// # Errors
    /// An address cannot be requested, or the HTTP client cannot be built.
    pub fn new(urls: Vec<NodeUrl>) -> Result<Self, Failure> {
        let client = client(&urls)?;
        let node = |url| Node { url, skipped: Cell::default(), limited: Cell::default() };
        Ok(Self { client, nodes: urls.into_iter().map(node).collect() })
    }

    /// Sends a request to one node after the other until one succeeds; to the next one also when a reply is late. Fails
    /// with the error that says most.
    async fn first<'a, T, F>(&'a self, call: impl Fn(&'a NodeUrl) -> F) -> Result<T, FetchError>
    where
        F: Future<Output = Result<T, FetchError>>,
    {
        let (skipped, in_order): (Vec<&Node>, Vec<&Node>) =
            self.nodes.iter().filter(|node| node.is_within_limit()).partition(|node| node.is_skipped());
        let mut next = in_order.into_iter().chain(skipped).peekable();
        // The newest one while others are left.
        let (mut calls, mut newest) = (FuturesUnordered::new(), None);
        let mut error = self.nodes.iter().any(|node| !node.is_within_limit()).then(limited);
        loop {
            if let Some(node) = next.next() {
                let reply = call(&node.url);
                calls.push(async move { (node, reply.await) });
                newest = next.peek().map(|_| node);
            }
            let reply = match newest {
                Some(node) => match timeout(NEXT_NODE_AFTER, calls.next()).await {
                    Ok(reply) => reply,
                    Err(_) => {
                        node.skip();
                        continue;
                    }
                },
                None => calls.next().await,
            };
            let Some((node, reply)) = reply else { return Err(error.unwrap_or_else(limited)) };
            let found = match reply {
                Ok(reply) => {
                    node.skipped.set(None);
                    return Ok(reply);
                }
                Err(found) => found,
            };
            node.record(&found);
            if error.as_ref().is_none_or(|error| found.weight() >= error.weight()) {
                error = Some(found);
            }
        }
    }

    /// The status of the node with the newest block, of those that answer soon after the first one, with the oldest
    /// block that any of them has.
    ///
    /// # Errors
    /// None answers.
    pub async fn status(&self) -> Result<NodeStatus, FetchError> {
        let asked = self.nodes.iter().filter(|node| node.is_within_limit());
        let mut asked: FuturesUnordered<_> =
            asked.map(async |node| (node, self.status_of(&node.url).await)).collect();
        let (mut best, mut error): (Option<NodeStatus>, _) = (None, None);
        loop {
            let reply = match best {
                Some(_) => timeout(OTHERS_WITHIN, asked.next()).await.ok().flatten(),
                None => asked.next().await,
            };
            let Some((node, reply)) = reply else { break };
            match (reply, &mut best) {
                (Ok(status), Some(best)) if status.chain_id == best.chain_id => {
                    best.latest = best.latest.max(status.latest);
                    best.earliest = best.earliest.min(status.earliest);
                }
                // The first node that answers names the chain.
                (Ok(_), Some(_)) => {}
                (Ok(status), None) => best = Some(status),
                (Err(why), _) => {
                    node.record(&why);
                    error = Some(why);
                }
            }
        }
        best.ok_or_else(|| error.unwrap_or_else(limited))
    }

    async fn status_of(&self, url: &NodeUrl) -> Result<NodeStatus, FetchError> {
        let Status { node_info, sync_info } = self.call(url, "status", STATUS_TIMEOUT).await?;
        let latest = sync_info.latest_block_height.ok_or_else(|| FetchError::unreadable("status"))?;
        let earliest = sync_info.earliest_block_height.unwrap_or(0).max(1);
        Ok(NodeStatus { chain_id: node_info.network, earliest, latest })
    }

    /// A block with its results.
    ///
    /// # Errors
    /// No node has it.
    pub async fn fetch(&self, height: u64) -> Result<FetchedBlock, FetchError> {
        self.first(|url| self.fetch_from(url, height)).await
    }

    async fn fetch_from(&self, url: &NodeUrl, height: u64) -> Result<FetchedBlock, FetchError> {
        let (block, results) = (format!("block?height={height}"), format!("block_results?height={height}"));
        let block = self.call::<Box<RawValue>>(url, &block, BLOCK_TIMEOUT);
        let results = self.call::<Box<RawValue>>(url, &results, BLOCK_TIMEOUT);
        let (block, results) = tokio::join!(block, results);
        let block = FetchedBlock::read(block?, results?)?;
        if block.height != height {
            return Err(FetchError::Unavailable(format!("sent block {} for {height}", block.height)));
        }
        Ok(block)
    }

    async fn call<T: DeserializeOwned>(
        &self,
        url: &NodeUrl,
        call: &str,
        limit: Duration,
    ) -> Result<T, FetchError> {
        let (status, body) = match timeout(limit, self.get(url, call)).await {
            Ok(answer) => answer?,
            Err(_) => {
                return Err(FetchError::Unavailable(format!("does not answer within {} s", limit.as_secs())));
            }
        };
        read_reply(&body).map_err(|error| match error {
            ReplyError::Refused(text) => FetchError::read(&text),
            ReplyError::Foreign(_) => FetchError::Unavailable(foreign_answer(status)),
        })
    }

    async fn get(&self, url: &NodeUrl, call: &str) -> Result<(StatusCode, Vec<u8>), FetchError> {
        let failed = |error| FetchError::Unavailable(format!("does not answer: {}", describe(error)));
        let response = url.get(&self.client, call).send().await.map_err(failed)?;
        let status = response.status();
        if status == StatusCode::TOO_MANY_REQUESTS {
            let after = retry_after(response.headers())
                .map_or(LIMITED_PAUSES[0], |seconds| Duration::from_secs(seconds.into()));
            return Err(FetchError::Limited { after: after.min(LIMITED_PAUSES[1]) });
        }
        let body = read_body(response, MAX_REPLY_BYTES).await.map_err(failed)?;
        Ok((status, body.ok_or(FetchError::TooLarge)?))
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, future::ready};

    use super::*;

    #[tokio::test]
    async fn a_node_that_does_not_answer_may_have_a_block_that_another_has_removed() {
        let away = || FetchError::Unavailable("refuses connections".to_owned());
        let pruned = FetchError::Pruned { lowest: 10 };
        for (of_first, of_second, reported) in [
            (pruned.clone(), away(), away()),
            (away(), pruned.clone(), away()),
            (pruned.clone(), pruned.clone(), pruned),
        ] {
            mesh_chassis::install_tls_provider();
            let urls = ["http://a:1", "http://b:1"].map(|url| url.parse().unwrap());
            let (nodes, errors) = (Nodes::new(urls.into()).unwrap(), RefCell::new(vec![of_second, of_first]));
            let found = nodes.first(|_| ready(Err::<(), _>(errors.borrow_mut().pop().unwrap()))).await;
            assert_eq!(found, Err(reported));
        }
    }
}
