//! The consensus nodes: status, and blocks with their results, always by height. The first node of the list
//! that has a block serves it, the one with the newest block says how far the chain is.

pub(crate) mod wire;

use std::{cell::Cell, time::Duration};

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use mesh_chassis::Failure;
use mesh_node_rpc::{
    NodeUrl, ReplyError, Status, client, describe, foreign_answer, read_body, read_reply, retry_after,
};
use reqwest::{Client, StatusCode};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::value::RawValue;
use tokio::time::{Instant, timeout};

use self::wire::{BlockResult, ResultsOutline};
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

/// Why a node does not serve a block.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// The block is above the newest one.
    #[error("the node has no block of that height so far")]
    TooHigh,
    /// The block has no results so far.
    #[error("the node has no results of the block so far")]
    NoResultsYet,
    /// The node has removed the block; the oldest that it has is above it.
    #[error("the node's oldest block is {lowest}")]
    Pruned {
        /// The height of its oldest block.
        lowest: u64,
    },
    /// The node is configured to keep no results.
    #[error("the node keeps no results of blocks")]
    KeepsNoResults,
    /// A reply is longer than [`MAX_REPLY_BYTES`].
    #[error("the node's reply has more than {MAX_REPLY_BYTES} bytes")]
    TooLarge,
    /// The node, or a proxy before it, limits the rate of requests.
    #[error("the node limits the rate of requests")]
    Limited {
        /// When the next one is allowed.
        after: Duration,
    },
    /// No reply, or one that is no reply to the request: the end of a sentence about the node.
    #[error("the node {0}")]
    Unavailable(String),
}

impl FetchError {
    /// Reads an error of the node's.
    fn read(text: &str) -> Self {
        if text.contains("must be less than or equal to the current blockchain height") {
            return Self::TooHigh;
        }
        if text.contains("could not find results") {
            return Self::NoResultsYet;
        }
        if text.contains("not persisting") {
            return Self::KeepsNoResults;
        }
        let lowest = text.split_once("lowest height is ").map(|(_, rest)| rest);
        let digits = |rest: &str| rest.chars().take_while(char::is_ascii_digit).collect::<String>();
        match lowest.and_then(|rest| digits(rest).parse().ok()) {
            Some(lowest) => Self::Pruned { lowest },
            None => Self::Unavailable(format!("answers with an error: {text}")),
        }
    }

    /// Rank of a node's error among those of all nodes; the greatest is reported. A node that does not answer now may have
    /// the block that others never have.
    fn weight(&self) -> u8 {
        match self {
            Self::TooHigh => 0,
            Self::Pruned { .. } => 1,
            Self::KeepsNoResults => 2,
            Self::Unavailable(_) => 3,
            Self::Limited { .. } => 4,
            Self::NoResultsYet => 5,
            Self::TooLarge => 6,
        }
    }
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
        let latest = sync_info.latest_block_height.ok_or_else(|| unreadable("status"))?;
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

fn parse<'a, T: Deserialize<'a>>(text: &'a RawValue) -> Result<T, FetchError> {
    serde_json::from_str(text.get())
        .map_err(|error| FetchError::Unavailable(format!("sent an unreadable reply: {error}")))
}

fn unreadable(path: &str) -> FetchError {
    FetchError::Unavailable(format!("sent a reply to {path} that is none of a consensus node"))
}

/// Reads what is needed of a block from the node's results.
impl FetchedBlock {
    /// # Errors
    /// The texts are not those of a block and its results, or the node has no such block.
    pub fn read(block: Box<RawValue>, results: Box<RawValue>) -> Result<Self, FetchError> {
        let parsed: BlockResult<'_> = parse(&block)?;
        let Some(content) = parsed.block.filter(|_| !parsed.block_id.hash.is_empty()) else {
            return Err(FetchError::TooHigh);
        };
        let header = content.header;
        let (Ok(height), Ok(time)) = (header.height.parse(), header.time.parse::<jiff::Timestamp>()) else {
            return Err(unreadable("block"));
        };
        let of: ResultsOutline = parse(&results)?;
        if of.height != header.height {
            let text = format!("sent the results of block {} for {}", of.height, header.height);
            return Err(FetchError::Unavailable(text));
        }
        if of.txs_results.map_or(0, |of_txs| of_txs.len()) != content.data.txs.map_or(0, |txs| txs.len()) {
            return Err(FetchError::NoResultsYet);
        }
        let parent = header.last_block_id.map(|id| id.hash.to_ascii_lowercase());
        Ok(Self {
            height,
            hash: parsed.block_id.hash.to_ascii_lowercase(),
            parent: parent.unwrap_or_default(),
            chain_id: header.chain_id.into_owned(),
            time_text: header.time.into_owned(),
            time: mesh_store::TimeUs(time.as_nanosecond().div_euclid(1000) as i64),
            block,
            results,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, future::ready};

    use super::*;

    #[test]
    fn results_are_those_of_the_block() {
        let raw = |text: String| RawValue::from_string(text).unwrap();
        let header = r#"{"chain_id":"c","height":"13","time":"2026-01-01T00:00:00Z","last_block_id":null}"#;
        let block = format!(
            r#"{{"block_id":{{"hash":"AB"}},"block":{{"header":{header},"data":{{"txs":["YQ=="]}}}}}}"#
        );
        let read = |results: &str| FetchedBlock::read(raw(block.clone()), raw(results.to_owned()));
        assert_eq!(read(r#"{"height":"13","txs_results":[{"code":0}]}"#).unwrap().height, 13);
        let other = read(r#"{"height":"12","txs_results":[{"code":0}]}"#).unwrap_err();
        assert_eq!(other, FetchError::Unavailable("sent the results of block 12 for 13".to_owned()));
        for without in [r#"{"height":"13","txs_results":null}"#, r#"{"height":"13"}"#] {
            assert_eq!(read(without).unwrap_err(), FetchError::NoResultsYet);
        }
        assert!(matches!(read("{}").unwrap_err(), FetchError::Unavailable(_)));
    }

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

    #[test]
    fn errors_of_the_versions_of_the_node_are_told_apart() {
        for (text, expected) in [
            ("height 7 must be less than or equal to the current blockchain height 6", FetchError::TooHigh),
            ("height 3 is not available, lowest height is 10", FetchError::Pruned { lowest: 10 }),
            ("could not find results for height #5", FetchError::NoResultsYet),
            ("node is not persisting abci responses", FetchError::KeepsNoResults),
            ("node is not persisting finalize block responses", FetchError::KeepsNoResults),
            ("x", FetchError::Unavailable("answers with an error: x".to_owned())),
        ] {
            assert_eq!(FetchError::read(text), expected, "{text}");
        }
    }
}
