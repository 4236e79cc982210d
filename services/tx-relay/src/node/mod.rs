//! The consensus nodes: what can be asked of them, and which of them is asked.
//!
//! The first of the list that is there is asked. Another one gets a submission only while no byte of it has left
//! (contract 5.3). A node that took no connection is left alone for a moment, so that nobody waits for it twice.

mod rpc;
mod said;

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::Uri;
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::time::Instant;

pub(crate) use self::{
    rpc::Failed,
    said::{Checked, Included, Refusal, Verdict},
};
use self::{
    rpc::Rpc,
    said::{Broadcast, Committed, Executed, Found, Status},
};
use crate::metrics::Metrics;
use mesh_transaction::TxHash;
use proto_msgs::{COMMIT_MS, NODE_CALL_MS};

/// For everything but a commit (contract section 7).
const CALL: Duration = Duration::from_millis(NODE_CALL_MS as u64);

/// For a commit.
pub(crate) const COMMIT: Duration = Duration::from_millis(COMMIT_MS as u64);

/// For a question that only refines an answer.
const ASIDE: Duration = Duration::from_secs(1);

/// How long a node that takes no connection is left alone, at first and at most.
const AWAY: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(1)];

/// The consensus nodes. Cloning shares them.
#[derive(Clone)]
pub(crate) struct Nodes(Rc<Inner>);

struct Inner {
    rpc: Rpc,
    /// Commits wait for long; they have connections of their own.
    commits: Rpc,
    nodes: Vec<Node>,
    chain: RefCell<Option<Rc<str>>>,
}

struct Node {
    url: Uri,
    /// Until when it is left alone, and for how long it was.
    away: Cell<Option<(Instant, Duration)>>,
    catching_up: Cell<bool>,
}

/// What is known of the nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Condition {
    /// One of them takes transactions.
    Takes,
    /// Those that are there catch up with the others.
    CatchingUp,
    /// None takes a connection.
    Away,
}

impl Nodes {
    pub(crate) fn new(urls: Vec<Uri>, metrics: &Metrics) -> Self {
        let nodes = urls.into_iter();
        let nodes =
            nodes.map(|url| Node { url, away: Cell::new(None), catching_up: Cell::new(false) }).collect();
        let rpc = || Rpc::new(metrics.clone());
        Self(Rc::new(Inner { rpc: rpc(), commits: rpc(), nodes, chain: RefCell::default() }))
    }

    /// Hands a transaction over without any check.
    pub(crate) async fn broadcast_async(&self, tx: &[u8]) -> Result<(), Failed> {
        self.with_tx::<Broadcast>("broadcast_tx_async", tx).await.map(drop)
    }

    /// Hands a transaction over and waits for its check.
    pub(crate) async fn broadcast_sync(&self, tx: &[u8]) -> Result<Verdict, Failed> {
        self.with_tx("broadcast_tx_sync", tx).await.map(Broadcast::verdict)
    }

    /// Hands a transaction over and waits for its block: the word of the check when that refuses, otherwise that of
    /// the delivery with its height.
    pub(crate) async fn broadcast_commit(&self, tx: &[u8]) -> Result<(Verdict, Option<i64>), Failed> {
        let rpc = &self.0.commits;
        let committed: Committed =
            self.first(|url| rpc.with_tx(url, "broadcast_tx_commit", tx, COMMIT)).await?;
        let check = committed.check_tx.verdict();
        Ok(match check.code {
            0 => (committed.tx_result.verdict(), Some(committed.height)),
            _ => (check, None),
        })
    }

    /// Asks for a check without handing over.
    pub(crate) async fn check(&self, tx: &[u8]) -> Result<Checked, Failed> {
        self.with_tx("check_tx", tx).await.map(Executed::checked)
    }

    /// Looks for a transaction in the blocks.
    pub(crate) async fn find(&self, hash: &TxHash) -> Result<Option<Included>, Failed> {
        let parameters = json!({"hash": STANDARD.encode(hash.bytes())});
        let found = self.first(|url| self.0.rpc.call::<Found>(url, "tx", parameters.clone(), ASIDE)).await;
        match found {
            Ok(found) => Ok(Some(Included { height: found.height, verdict: found.tx_result.verdict() })),
            Err(Failed::Refused(Refusal::NotFound)) => Ok(None),
            Err(failed) => Err(failed),
        }
    }

    /// The id of the chain, asked once.
    pub(crate) async fn chain(&self) -> Result<Rc<str>, Failed> {
        if let Some(chain) = self.0.chain.borrow().as_ref() {
            return Ok(Rc::clone(chain));
        }
        let status: Status = self.first(|url| self.0.rpc.call(url, "status", json!({}), ASIDE)).await?;
        let chain: Rc<str> = status.node_info.network.into();
        *self.0.chain.borrow_mut() = Some(Rc::clone(&chain));
        Ok(chain)
    }

    /// Asks every node how it is, and remembers it.
    pub(crate) async fn look(&self) -> Condition {
        let mut condition = Condition::Away;
        for node in &self.0.nodes {
            let said = self.0.rpc.call::<Status>(&node.url, "status", json!({}), ASIDE).await;
            node.note(said.as_ref().err());
            let Ok(status) = said else { continue };
            node.catching_up.set(status.sync_info.catching_up);
            condition = match (status.sync_info.catching_up, condition) {
                (false, _) | (_, Condition::Takes) => Condition::Takes,
                (true, _) => Condition::CatchingUp,
            };
        }
        condition
    }

    async fn with_tx<T: DeserializeOwned>(&self, method: &'static str, tx: &[u8]) -> Result<T, Failed> {
        self.first(|url| self.0.rpc.with_tx(url, method, tx, CALL)).await
    }

    /// Calls the first node that takes a connection; those that catch up come last.
    async fn first<'a, T, F>(&'a self, call: impl Fn(&'a Uri) -> F) -> Result<T, Failed>
    where
        F: Future<Output = Result<T, Failed>>,
    {
        let nodes = &self.0.nodes;
        let in_order = nodes.iter().filter(|node| !node.catching_up.get());
        let in_order = in_order.chain(nodes.iter().filter(|node| node.catching_up.get()));
        let mut failed = Failed::NotSent("no node took a connection a moment ago".to_owned());
        for node in in_order.filter(|node| node.may_be_asked()) {
            let result = call(&node.url).await;
            node.note(result.as_ref().err());
            match result {
                Err(Failed::NotSent(why)) => failed = Failed::NotSent(why),
                result => return result,
            }
        }
        Err(failed)
    }
}

impl Node {
    fn may_be_asked(&self) -> bool {
        self.away.get().is_none_or(|(until, _)| until <= Instant::now())
    }

    /// Learns from what became of a call.
    fn note(&self, failed: Option<&Failed>) {
        let away = match failed {
            Some(Failed::NotSent(_)) => {
                let pause = self.away.get().map_or(AWAY[0], |(_, pause)| (pause * 2).min(AWAY[1]));
                Some((Instant::now() + pause, pause))
            }
            _ => None,
        };
        self.away.set(away);
    }
}
