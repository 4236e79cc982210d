//! The fixture of the tests: a consensus node, relays in front of it, and a client on the bus.

use std::time::Duration;

use bytes::Bytes;
use mesh_bus::{AskOptions, Bus, Encoding, permissions::EDGE};
use mesh_problem::Problem;
use mesh_testbed::{DevNode, Node, NodeKind, NodeSetup, Service, eventually, nats};
use mesh_transaction::{TxHash, encode};
use prost::Message as _;
use proto_msgs::{
    Operation,
    v2::{
        GetTransactionReply, GetTransactionRequest, SubmissionType, SubmitRawTransactionRequest,
        SubmitTransactionReply, Transaction, get_transaction_reply::Status,
    },
};
use tempfile::TempDir;
use tokio::{
    task::JoinHandle,
    time::{interval, timeout},
};

pub(crate) const SOON: Duration = Duration::from_secs(20);

/// Pause between two blocks, for nodes that make blocks by themselves.
pub(crate) const BLOCK_INTERVAL: Duration = Duration::from_millis(100);

pub(crate) struct Fixture {
    pub(crate) node: Node,
    prefix: String,
    bus: Bus,
    pub(crate) relays: Vec<Service>,
    block_task: Option<JoinHandle<()>>,
    // Its unique name is the prefix of the subjects.
    _folder: TempDir,
}

/// The configuration of the relays and the node.
pub(crate) struct Setup {
    pub(crate) relays: usize,
    pub(crate) env: Vec<(&'static str, String)>,
    pub(crate) kind: NodeKind,
    pub(crate) node: fn(NodeSetup) -> NodeSetup,
    /// Pause between two blocks of CometBFT, which makes none without it. A development node makes blocks on
    /// demand, and at an interval after [`Fixture::start_blocks`].
    pub(crate) block_interval: Option<Duration>,
}

impl Setup {
    pub(crate) fn new(kind: NodeKind) -> Self {
        Self { relays: 1, env: Vec::new(), kind, node: |setup| setup, block_interval: None }
    }

    pub(crate) fn env(mut self, name: &'static str, value: &str) -> Self {
        self.env.push((name, value.to_owned()));
        self
    }

    pub(crate) fn node(self, node: fn(NodeSetup) -> NodeSetup) -> Self {
        Self { node, ..self }
    }

    /// The same as [`Setup::new`], with a block interval.
    pub(crate) fn with_blocks(kind: NodeKind) -> Self {
        Self { block_interval: Some(BLOCK_INTERVAL), ..Self::new(kind) }
    }
}

impl Fixture {
    pub(crate) async fn start(setup: Setup) -> Self {
        let node = (setup.node)(DevNode::configure());
        let node = match (setup.kind, setup.block_interval) {
            (NodeKind::Cometbft, Some(period)) => node.every(period),
            _ => node,
        };
        let node = node.start_as(setup.kind).await;
        let folder = tempfile::tempdir().unwrap();
        let prefix = folder.path().file_name().unwrap().to_string_lossy().replace('.', "");
        let bus = Bus::connect(nats().await.config(EDGE, &prefix)).await.unwrap();
        timeout(SOON, bus.until_connected()).await.unwrap();
        let mut fixture = Self { node, prefix, bus, relays: Vec::new(), block_task: None, _folder: folder };
        for _ in 0..setup.relays {
            fixture.start_relay(&setup.env).await;
        }
        fixture
    }

    /// Starts one more relay.
    pub(crate) async fn start_relay(&mut self, env: &[(&str, String)]) {
        let relay = Service::configure("tx-relay")
            .program(env!("CARGO_BIN_EXE_tx-relay"))
            .env("MESH_BUS_PREFIX", &self.prefix)
            .env("MESH_NODE_URL", self.node.url());
        let relay = env.iter().fold(relay, |relay, (name, value)| relay.env(*name, value));
        self.relays.push(relay.start().await);
    }

    /// The development node. Panics with CometBFT.
    pub(crate) fn development(&self) -> &DevNode {
        self.node.development().unwrap()
    }

    /// Starts to make blocks at an interval on the development node; CometBFT does by its configuration.
    pub(crate) fn start_blocks(&mut self) {
        let Some(node) = self.node.development() else { return };
        let chain = node.chain().clone();
        self.block_task = Some(tokio::spawn(async move {
            let mut pace = interval(BLOCK_INTERVAL / 2);
            loop {
                pace.tick().await;
                chain.next_block().await.unwrap();
            }
        }));
    }

    /// An encoded transaction that the node accepts.
    pub(crate) async fn transaction(&self, input: &str) -> Bytes {
        encode(&self.signed(input).await).into()
    }

    pub(crate) async fn signed(&self, input: &str) -> Transaction {
        self.node.transaction(7, input).await
    }

    /// An encoded transaction that the node refuses: it has no proof of work.
    pub(crate) async fn refused(&self, input: &str) -> Bytes {
        let tx = Transaction { pow: None, ..self.signed(input).await };
        encode(&tx).into()
    }

    /// Sends a request once, without retries.
    pub(crate) async fn ask<R: Operation>(&self, request: &R) -> Result<R::Reply, Problem> {
        let (encoding, timeout, request_id) = (Encoding::default(), SOON, "test".to_owned());
        let options =
            AskOptions { encoding, timeout, request_id, client: 0, traceparent: None, repeatable: false };
        let target = self.bus.target(R::WORKLOAD, R::NAME);
        let reply = self.bus.ask(&target, request.encode_to_vec().into(), &options).await?;
        Ok(R::Reply::decode(reply.parts.concat().as_slice()).unwrap())
    }

    pub(crate) async fn submit(
        &self,
        tx: &Bytes,
        kind: SubmissionType,
    ) -> Result<SubmitTransactionReply, Problem> {
        self.ask(&SubmitRawTransactionRequest { tx: tx.clone(), r#type: kind.into() }).await
    }

    pub(crate) async fn sync(&self, tx: &Bytes) -> Result<SubmitTransactionReply, Problem> {
        self.submit(tx, SubmissionType::TypeSync).await
    }

    pub(crate) async fn get_transaction(&self, tx: &[u8]) -> GetTransactionReply {
        self.read_transaction(tx).await.unwrap()
    }

    /// As the edge reads: hedged, so that another relay answers for a frozen one.
    pub(crate) async fn read_transaction(&self, tx: &[u8]) -> Result<GetTransactionReply, Problem> {
        let request = GetTransactionRequest { hash: TxHash::of(tx).to_string() };
        Ok(self.bus.ask_typed(&request, SOON).await?.reply)
    }

    pub(crate) async fn status(&self, tx: &[u8]) -> Status {
        self.get_transaction(tx).await.status()
    }

    /// How often the node received a transaction; `None` with CometBFT, which does not count that.
    pub(crate) fn broadcasts(&self, tx: &[u8]) -> Option<u64> {
        let received = self.node.development()?.received();
        Some(received.get(&TxHash::of(tx)).copied().unwrap_or_default())
    }

    /// Asserts that the node received it so often. Does nothing with CometBFT.
    pub(crate) fn assert_broadcasts(&self, tx: &[u8], times: u64) {
        assert!(self.broadcasts(tx).is_none_or(|count| count == times), "{:?}", self.broadcasts(tx));
    }

    /// Waits until the node received it so often. Returns at once with CometBFT.
    pub(crate) async fn await_broadcasts(&self, tx: &[u8], times: u64) {
        let reached = async || self.broadcasts(tx).is_none_or(|count| count >= times);
        eventually(SOON, "the node does not receive it so often", reached).await;
    }

    /// Kills the node, starts it again, and waits until the first relay is ready.
    pub(crate) async fn restart_node(&mut self) {
        self.node.kill().await;
        self.node.restart().await;
        self.await_readiness(200).await;
    }

    /// Waits until `/readyz` of the first relay has this status; returns its text.
    pub(crate) async fn await_readiness(&self, status: u16) -> String {
        self.relays[0].await_readiness(status, SOON).await
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        if let Some(block_task) = &self.block_task {
            block_task.abort();
        }
    }
}

/// The reply to an accepted transaction.
pub(crate) fn accepted(tx: &[u8]) -> SubmitTransactionReply {
    SubmitTransactionReply {
        success: true,
        tx_hash: TxHash::of(tx).to_string(),
        ..SubmitTransactionReply::default()
    }
}

/// The reply to a transaction that the node had before.
pub(crate) fn already(tx: &[u8]) -> SubmitTransactionReply {
    SubmitTransactionReply { log: "already submitted".to_owned(), ..accepted(tx) }
}
