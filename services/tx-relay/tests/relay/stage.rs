//! A consensus node, relays in front of it, and somebody who asks them over the bus.

use std::time::Duration;

use bytes::Bytes;
use mesh_bus::{AskOptions, Bus, Encoding, permissions::EDGE};
use mesh_problem::Problem;
use mesh_testbed::{DevNode, Node, NodeKind, NodeSetup, Service, nats};
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
    time::{sleep, timeout},
};

pub(crate) const SOON: Duration = Duration::from_secs(20);

/// Between two blocks, when there are any.
pub(crate) const TICK: Duration = Duration::from_millis(100);

pub(crate) struct Stage {
    pub(crate) node: Node,
    prefix: String,
    bus: Bus,
    pub(crate) relays: Vec<Service>,
    ticking: Option<JoinHandle<()>>,
    // For a name that nobody else has.
    _folder: TempDir,
}

/// What the relays and the node are started with.
pub(crate) struct Setup {
    pub(crate) relays: usize,
    pub(crate) env: Vec<(&'static str, String)>,
    pub(crate) kind: NodeKind,
    pub(crate) node: fn(NodeSetup) -> NodeSetup,
    /// Between two blocks of CometBFT, which makes none without it. A development node makes its blocks by
    /// hand, and at each tick from [`Stage::tick`] on.
    pub(crate) every: Option<Duration>,
}

impl Setup {
    pub(crate) fn before(kind: NodeKind) -> Self {
        Self { relays: 1, env: Vec::new(), kind, node: |setup| setup, every: None }
    }

    /// With blocks, sooner or later.
    pub(crate) fn with_blocks(kind: NodeKind) -> Self {
        Self { every: Some(TICK), ..Self::before(kind) }
    }
}

impl Stage {
    pub(crate) async fn set(setup: Setup) -> Self {
        let node = (setup.node)(DevNode::configure());
        let node = match (setup.kind, setup.every) {
            (NodeKind::Cometbft, Some(period)) => node.every(period),
            _ => node,
        };
        let node = node.start_as(setup.kind).await;
        let folder = tempfile::tempdir().unwrap();
        let prefix = folder.path().file_name().unwrap().to_string_lossy().replace('.', "");
        let bus = Bus::connect(nats().await.config(EDGE, &prefix)).await.unwrap();
        timeout(SOON, bus.until_connected()).await.unwrap();
        let mut stage = Self { node, prefix, bus, relays: Vec::new(), ticking: None, _folder: folder };
        for _ in 0..setup.relays {
            stage.start_relay(&setup.env).await;
        }
        stage
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

    /// The development node, of the rows that only that can provoke.
    pub(crate) fn development(&self) -> &DevNode {
        self.node.development().unwrap()
    }

    /// From now on there are blocks, whoever makes them.
    pub(crate) fn tick(&mut self) {
        let Some(node) = self.node.development() else { return };
        let chain = node.chain().clone();
        self.ticking = Some(tokio::spawn(async move {
            loop {
                sleep(TICK / 2).await;
                chain.next_block().await.unwrap();
            }
        }));
    }

    /// A good transaction.
    pub(crate) async fn transaction(&self, input: &str) -> Bytes {
        encode(&self.signed(input).await).into()
    }

    pub(crate) async fn signed(&self, input: &str) -> Transaction {
        self.node.transaction(7, input).await
    }

    /// One that the node refuses.
    pub(crate) async fn refused(&self, input: &str) -> Bytes {
        let tx = Transaction { pow: None, ..self.signed(input).await };
        encode(&tx).into()
    }

    /// Asks an operation, once.
    pub(crate) async fn ask<R: Operation>(&self, request: &R) -> Result<R::Reply, Problem> {
        let options = AskOptions {
            encoding: Encoding::default(),
            timeout: SOON,
            request_id: "test".to_owned(),
            traceparent: None,
            repeatable: false,
        };
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

    pub(crate) async fn fate(&self, tx: &[u8]) -> GetTransactionReply {
        self.ask(&GetTransactionRequest { hash: TxHash::of(tx).to_string() }).await.unwrap()
    }

    pub(crate) async fn status(&self, tx: &[u8]) -> Status {
        self.fate(tx).await.status()
    }

    /// How often the node got a transaction to broadcast. CometBFT keeps no record of that: nothing then.
    pub(crate) fn broadcasts(&self, tx: &[u8]) -> Option<u64> {
        let received = self.node.development()?.received();
        Some(received.get(&TxHash::of(tx)).copied().unwrap_or_default())
    }

    /// That the node got it so often, if it can tell.
    pub(crate) fn was_broadcast(&self, tx: &[u8], times: u64) {
        assert!(self.broadcasts(tx).is_none_or(|seen| seen == times), "{:?}", self.broadcasts(tx));
    }

    /// Waits until the node got it so often, if it can tell.
    pub(crate) async fn broadcast_times(&self, tx: &[u8], times: u64) {
        let came = async {
            while self.broadcasts(tx).is_some_and(|seen| seen < times) {
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(SOON, came).await.unwrap();
    }

    /// Waits until a relay is as ready as this.
    pub(crate) async fn readiness(&self, status: u16) -> String {
        let as_ready = async {
            loop {
                let answer = self.relays[0].admin("/readyz").await;
                if answer.status == status {
                    return answer.text().to_owned();
                }
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(SOON, as_ready).await.unwrap()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if let Some(ticking) = &self.ticking {
            ticking.abort();
        }
    }
}

/// The answer to a transaction that was accepted.
pub(crate) fn accepted(tx: &[u8]) -> SubmitTransactionReply {
    SubmitTransactionReply {
        success: true,
        tx_hash: TxHash::of(tx).to_string(),
        ..SubmitTransactionReply::default()
    }
}

/// The same of one that was there before.
pub(crate) fn already(tx: &[u8]) -> SubmitTransactionReply {
    SubmitTransactionReply { log: "already submitted".to_owned(), ..accepted(tx) }
}
