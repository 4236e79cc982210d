//! The consensus nodes: the calls that the relay makes, and which node gets a call.
//!
//! Calls go to the first node of the list that takes a connection; those that are behind the newest one, those whose
//! last call got no answer, and then nodes that are catching up, come last. Nodes that are catching up get no
//! submission. A submission moves on to the next node only while no byte of it has left (contract 5.3). A transaction
//! is absent only if no node that takes a connection has it: another one than the first may have taken it. A node that
//! took no connection is skipped for a moment.

mod errors;
mod mempool;
mod problem;
mod reply;
mod rpc;

use std::{
    cell::{Cell, RefCell},
    collections::HashSet,
    rc::Rc,
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use futures_util::future::join_all;
use mesh_chassis::Failure;
use mesh_node_rpc::{NodeUrl, Status};
use mesh_transaction::TxHash;
use proto_msgs::{COMMIT_MS, NODE_CALL_MS, v2::CheckTransactionReply};
use serde_json::json;
use tokio::time::Instant;

pub(crate) use self::{
    errors::Refusal,
    reply::{IncludedTx, TxResult},
    rpc::CallError,
};
use self::{
    mempool::{MAX_WAITING, Mempool},
    reply::{CommitReply, ExecTxResult, TxReply, UnconfirmedTxsReply},
    rpc::Rpc,
};
use crate::{condition::Condition, metrics::Metrics};

/// Deadline of every call but a commit (contract section 7).
const CALL_TIMEOUT: Duration = Duration::from_millis(NODE_CALL_MS as u64);

/// Deadline of a commit.
pub(crate) const COMMIT_TIMEOUT: Duration = Duration::from_millis(COMMIT_MS as u64);

/// Deadline of a lookup that only refines an answer.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(1);

/// How long a node that takes no connection is skipped, relative to the time that the attempt lasted: one that
/// refuses at once is tried again almost at once.
const SKIP_FACTOR: u32 = 10;

/// How long a node is skipped at most.
const MAX_SKIP: Duration = Duration::from_secs(1);

/// Most blocks that a node may be behind the newest one: clients sign with a hash of the newest block, which a node that is
/// further behind does not know. Statuses that are read at the same time may differ by a block.
const MAX_BEHIND: u64 = 2;

/// The consensus nodes. Cloning shares them.
#[derive(Clone)]
pub(crate) struct Nodes(Rc<Inner>);

struct Inner {
    rpc: Rpc,
    /// Connections for commits, which wait for a block.
    commits: Rpc,
    nodes: Vec<Node>,
    chain: RefCell<Option<Rc<str>>>,
    mempool: Mempool,
}

struct Node {
    url: NodeUrl,
    skipped_until: Cell<Option<Instant>>,
    catching_up: Cell<bool>,
    /// Whether it is more than [`MAX_BEHIND`] blocks behind, or gave no status.
    behind: Cell<bool>,
    /// Whether its last call got no answer.
    silent: Cell<bool>,
}

impl Nodes {
    /// # Errors
    /// When no client can be made.
    pub(crate) fn new(urls: Vec<NodeUrl>, metrics: &Metrics) -> Result<Self, Failure> {
        let with_tls = urls.iter().any(NodeUrl::is_tls);
        let node = |url| Node {
            url,
            skipped_until: Cell::new(None),
            catching_up: Cell::new(false),
            behind: Cell::new(false),
            silent: Cell::new(false),
        };
        let nodes = urls.into_iter().map(node).collect();
        let rpc = || Rpc::new(metrics.clone(), with_tls);
        Ok(Self(Rc::new(Inner {
            rpc: rpc()?,
            commits: rpc()?,
            nodes,
            chain: RefCell::default(),
            mempool: Mempool::default(),
        })))
    }

    /// Submits a transaction without waiting for its check.
    pub(crate) async fn broadcast_async(&self, tx: &[u8]) -> Result<(), CallError> {
        self.broadcast("broadcast_tx_async", tx).await.map(drop)
    }

    /// Submits a transaction and waits for its check.
    pub(crate) async fn broadcast_sync(&self, tx: &[u8]) -> Result<TxResult, CallError> {
        self.broadcast("broadcast_tx_sync", tx).await
    }

    /// Submits a transaction and waits for its block. Returns the result of the check when that refuses,
    /// otherwise the result of the execution with its height.
    pub(crate) async fn broadcast_commit(&self, tx: &[u8]) -> Result<(TxResult, Option<i64>), CallError> {
        let rpc = &self.0.commits;
        let call = |url| rpc.with_tx(url, "broadcast_tx_commit", tx, COMMIT_TIMEOUT);
        let committed: CommitReply = self.submit(call).await?;
        let check = committed.check_tx.result();
        Ok(match check.code {
            0 => (committed.tx_result.result(), Some(committed.height)),
            _ => (check, None),
        })
    }

    /// Checks a transaction without submitting it.
    pub(crate) async fn check(&self, tx: &[u8]) -> Result<CheckTransactionReply, CallError> {
        let call = |url| self.0.rpc.with_tx(url, "check_tx", tx, CALL_TIMEOUT);
        call_first(self.in_order(), call).await.map(ExecTxResult::checked)
    }

    /// Looks for a transaction in the blocks of all nodes.
    pub(crate) async fn find(&self, hash: &TxHash) -> Result<Option<IncludedTx>, CallError> {
        let parameters = json!({"hash": STANDARD.encode(hash.bytes())});
        let mut absent = Err(none_available());
        for node in self.in_order() {
            let call = self.0.rpc.call::<TxReply>(&node.url, "tx", parameters.clone(), LOOKUP_TIMEOUT);
            let found = match node.recorded(call).await {
                Ok(found) => {
                    return Ok(Some(IncludedTx { height: found.height, result: found.tx_result.result() }));
                }
                Err(CallError::Refused(Refusal::NotFound)) => Ok(()),
                Err(error) => Err(error),
            };
            if weight(&found) >= weight(&absent) {
                absent = found;
            }
        }
        absent.map(|()| None)
    }

    /// Whether a transaction is among the first of a mempool, as of a moment ago.
    pub(crate) async fn is_waiting(&self, hash: &TxHash) -> Result<bool, CallError> {
        let read = async || {
            let (mut hashes, mut read) = (HashSet::new(), Err(none_available()));
            for node in self.in_order() {
                // CometBFT reads a number of this kind from text only.
                let parameters = json!({"limit": MAX_WAITING.to_string()});
                let call = self.0.rpc.call(&node.url, "unconfirmed_txs", parameters, LOOKUP_TIMEOUT);
                let found = match node.recorded(call).await.map(UnconfirmedTxsReply::hashes) {
                    // A hundred transactions of a megabyte: as if they were behind those that are read.
                    Err(CallError::TooLong) => Ok(()),
                    found => found.map(|found| hashes.extend(found)),
                };
                if weight(&found) >= weight(&read) {
                    read = found;
                }
            }
            read.map(|()| hashes)
        };
        self.0.mempool.contains(hash, read).await
    }

    /// The id of the chain, as the nodes last reported it.
    pub(crate) async fn chain(&self) -> Result<Rc<str>, CallError> {
        if let Some(chain) = self.0.chain.borrow().as_ref() {
            return Ok(Rc::clone(chain));
        }
        let call = |url| self.0.rpc.call(url, "status", json!({}), LOOKUP_TIMEOUT);
        let status: Status = call_first(self.in_order(), call).await?;
        let chain: Rc<str> = status.node_info.network.into();
        *self.0.chain.borrow_mut() = Some(Rc::clone(&chain));
        Ok(chain)
    }

    /// Reads the status of every node and records it, with the chain; returns the best one.
    pub(crate) async fn check_condition(&self) -> Condition {
        let rpc = &self.0.rpc;
        let reads =
            self.0.nodes.iter().map(|node| {
                node.recorded(rpc.call::<Status>(&node.url, "status", json!({}), LOOKUP_TIMEOUT))
            });
        // At the same time, so that their heights can be compared.
        let statuses = join_all(reads).await;
        let height = |status: &Result<Status, CallError>| status.as_ref().ok()?.sync_info.latest_block_height;
        let newest = statuses.iter().filter_map(height).max().unwrap_or_default();
        let mut condition = Condition::Away;
        for (node, status) in self.0.nodes.iter().zip(statuses) {
            // A node that starts may be behind and have no status yet.
            let is_behind = height(&status).is_some_and(|height| height.saturating_add(MAX_BEHIND) < newest);
            node.behind.set(is_behind || status.is_err());
            let status = match status {
                Ok(status) => status,
                Err(error) => {
                    if let (Condition::Away, Some(status)) = (condition, error.foreign_status()) {
                        condition = Condition::Foreign(status);
                    }
                    continue;
                }
            };
            node.catching_up.set(status.sync_info.catching_up);
            // A node may have been reset to another chain.
            *self.0.chain.borrow_mut() = Some(status.node_info.network.into());
            condition = match (status.sync_info.catching_up, condition) {
                (false, _) | (_, Condition::Takes) => Condition::Takes,
                (true, _) => Condition::CatchingUp,
            };
        }
        condition
    }

    async fn broadcast(&self, method: &'static str, tx: &[u8]) -> Result<TxResult, CallError> {
        let call = |url| self.0.rpc.with_tx(url, method, tx, CALL_TIMEOUT);
        self.submit(call).await
    }

    /// Submits to the first node in sync that takes a connection.
    async fn submit<'a, T, F>(&'a self, call: impl Fn(&'a NodeUrl) -> F) -> Result<T, CallError>
    where
        F: Future<Output = Result<T, CallError>>,
    {
        match call_first(self.in_sync()?, call).await {
            Err(CallError::NotSent(_)) if self.0.nodes.iter().any(|node| node.catching_up.get()) => {
                Err(CallError::Refused(Refusal::CatchingUp))
            }
            result => result,
        }
    }

    /// The nodes that are not skipped, those that answer first.
    fn in_order(&self) -> Vec<&Node> {
        let mut nodes: Vec<&Node> = self.0.nodes.iter().filter(|node| node.is_available()).collect();
        nodes.sort_by_key(|node| (node.catching_up.get(), node.silent.get(), node.behind.get()));
        nodes
    }

    /// The same for submissions, without nodes that are catching up: CometBFT before 1.0 checks transactions by its old
    /// state then.
    ///
    /// # Errors
    /// When only nodes that are catching up are left.
    fn in_sync(&self) -> Result<Vec<&Node>, CallError> {
        let (behind, in_sync): (Vec<_>, Vec<_>) =
            self.in_order().into_iter().partition(|node| node.catching_up.get());
        match in_sync.is_empty() && !behind.is_empty() {
            true => Err(CallError::Refused(Refusal::CatchingUp)),
            false => Ok(in_sync),
        }
    }
}

/// Calls the first of the nodes that takes a connection.
async fn call_first<'a, T, F>(nodes: Vec<&'a Node>, call: impl Fn(&'a NodeUrl) -> F) -> Result<T, CallError>
where
    F: Future<Output = Result<T, CallError>>,
{
    let mut error = none_available();
    for node in nodes {
        match node.recorded(call(&node.url)).await {
            Err(CallError::NotSent(why)) => error = CallError::NotSent(why),
            result => return result,
        }
    }
    Err(error)
}

fn none_available() -> CallError {
    CallError::NotSent("no node took a connection a moment ago".to_owned())
}

/// Rank of one node's result among those of all nodes; the greatest counts. What a silent node knows is open.
fn weight(result: &Result<(), CallError>) -> u8 {
    match result {
        Err(CallError::NotSent(_)) => 0,
        Err(CallError::Refused(Refusal::NoIndex)) => 1,
        Ok(()) => 2,
        Err(CallError::Refused(_)) => 3,
        Err(CallError::Late | CallError::Broken(_) | CallError::TooLong | CallError::Foreign(_)) => 4,
    }
}

impl Node {
    fn is_available(&self) -> bool {
        self.skipped_until.get().is_none_or(|until| until <= Instant::now())
    }

    /// Makes a call, and records whether the node took a connection, and answered.
    async fn recorded<T>(&self, call: impl Future<Output = Result<T, CallError>>) -> Result<T, CallError> {
        let started = Instant::now();
        let result = call.await;
        let error = result.as_ref().err();
        let silent = matches!(error, Some(CallError::Late | CallError::Broken(_) | CallError::Foreign(_)));
        self.silent.set(silent);
        let skipped_until = match error {
            Some(CallError::NotSent(_)) => {
                Some(Instant::now() + (started.elapsed() * SKIP_FACTOR).min(MAX_SKIP))
            }
            _ => None,
        };
        self.skipped_until.set(skipped_until);
        result
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use bytes::Bytes;
    use mesh_telemetry::Registry;
    use mesh_testbed::scripted_node::{NodeContent, reply, serve, status};
    use tokio::net::TcpListener;

    use super::*;

    /// Nodes with these contents, as a relay calls them.
    async fn nodes_of(contents: Vec<Arc<dyn NodeContent>>) -> Nodes {
        let mut urls = Vec::new();
        for content in contents {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            urls.push(format!("http://{}", listener.local_addr().unwrap()).parse().unwrap());
            tokio::spawn(serve(listener, content));
        }
        Nodes::new(urls, &Metrics::register(&mut Registry::default())).unwrap()
    }

    /// A node of the chain with this id.
    struct OfChain(Mutex<&'static str>);

    impl NodeContent for OfChain {
        fn reply(&self, _: &str, _: u64) -> Result<Bytes, String> {
            Ok(reply(&status(*self.0.lock().unwrap(), 1, (1, "aa"))))
        }
    }

    #[tokio::test]
    async fn the_chain_of_a_node_that_was_reset_is_noticed() {
        let node = Arc::new(OfChain(Mutex::new("before")));
        let nodes = nodes_of(vec![Arc::clone(&node) as Arc<dyn NodeContent>]).await;
        assert_eq!(&*nodes.chain().await.unwrap(), "before");
        *node.0.lock().unwrap() = "after";
        nodes.check_condition().await;
        assert_eq!(&*nodes.chain().await.unwrap(), "after");
    }

    /// A node whose newest block has this height.
    struct AtHeight(u64);

    impl NodeContent for AtHeight {
        fn reply(&self, _: &str, _: u64) -> Result<Bytes, String> {
            Ok(reply(&status("chain", 1, (self.0, "aa"))))
        }
    }

    #[tokio::test]
    async fn a_node_that_is_behind_comes_after_the_others() {
        for (height, is_behind) in [(1005, true), (1007, true), (1008, false), (1010, false), (1015, false)] {
            let nodes = nodes_of(vec![Arc::new(AtHeight(height)), Arc::new(AtHeight(1010))]).await;
            assert_eq!(nodes.check_condition().await, Condition::Takes);
            assert_eq!(std::ptr::eq(nodes.in_order()[0], &nodes.0.nodes[0]), !is_behind, "{height}");
        }
    }

    /// A node whose every reply is longer than any that is read.
    struct Verbose;

    impl NodeContent for Verbose {
        fn reply(&self, _: &str, _: u64) -> Result<Bytes, String> {
            Ok(reply(&json!({"txs": ["x".repeat(9 << 20)]})))
        }
    }

    #[tokio::test]
    async fn a_node_with_more_waiting_transactions_than_are_read_is_not_called_silent() {
        let nodes = nodes_of(vec![Arc::new(Verbose)]).await;
        assert!(!nodes.is_waiting(&TxHash::of(b"tx")).await.unwrap());
        assert!(!nodes.0.nodes[0].silent.get());
    }

    #[tokio::test]
    async fn a_node_is_skipped_in_proportion_to_the_time_that_it_cost() {
        let metrics = Metrics::register(&mut Registry::default());
        let nodes = Nodes::new(vec!["http://127.0.0.1:1".parse().unwrap()], &metrics).unwrap();
        let node = &nodes.0.nodes[0];
        for lasted in [Duration::ZERO, Duration::from_millis(50)] {
            let attempt = async {
                tokio::time::sleep(lasted).await;
                Err::<(), _>(none_available())
            };
            let started = Instant::now();
            node.recorded(attempt).await.unwrap_err();
            let ended = Instant::now();
            let until = node.skipped_until.get().unwrap();
            let at_most = (ended - started) * SKIP_FACTOR;
            assert!((started + lasted * SKIP_FACTOR..=ended + at_most).contains(&until), "{lasted:?}");
        }
    }
}
