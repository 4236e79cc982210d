//! A development node, relays in front of it, and somebody who asks them over the bus.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use bytes::Bytes;
use mesh_bus::{AskOptions, Bus, BusConfig, Credentials, Encoding};
use mesh_devnode::{DevNode, Settings, received};
use mesh_problem::Problem;
use mesh_testbed::{Service, nats};
use mesh_transaction::{ALGORITHM, Effort, Key, Network, Puzzle, SpamRules, TxHash, encode, search};
use prost::Message as _;
use proto_msgs::{
    Operation,
    v2::{
        GetTransactionReply, GetTransactionRequest, ProofOfWork, SubmissionType, SubmitRawTransactionRequest,
        SubmitTransactionReply, Transaction, TxVersion, get_transaction_reply::Status, transaction::From,
    },
};
use tempfile::TempDir;
use tokio::{
    task::JoinHandle,
    time::{sleep, timeout},
};

pub(crate) const SOON: Duration = Duration::from_secs(20);
const CHAIN: &str = "net-1";

/// Little work, and no quota that a test would meet by accident.
const RULES: SpamRules = SpamRules {
    difficulty: 3,
    past_blocks: 500,
    tx_per_block: 1000,
    increasing: false,
    bar: Duration::from_secs(30),
};

pub(crate) struct Stage {
    folder: TempDir,
    settings: Settings,
    node: Option<DevNode>,
    address: SocketAddr,
    prefix: String,
    bus: Bus,
    pub(crate) relays: Vec<Service>,
    ticking: Option<JoinHandle<()>>,
}

/// What the relays and the node are started with.
pub(crate) struct Setup {
    pub(crate) relays: usize,
    pub(crate) env: Vec<(&'static str, String)>,
    pub(crate) node: fn(&mut Settings),
}

impl Default for Setup {
    fn default() -> Self {
        Self { relays: 1, env: Vec::new(), node: |_| {} }
    }
}

impl Stage {
    pub(crate) async fn set(setup: Setup) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let network =
            Network { chain_id: CHAIN.into(), algorithm: ALGORITHM.into(), pow_prefix: String::new() };
        let mut settings = Settings::new(network, folder.path().join("blocks"));
        settings.broadcasts = Some(folder.path().join("broadcasts"));
        (setup.node)(&mut settings);
        let anywhere = SocketAddr::from(([127, 0, 0, 1], 0));
        let node = DevNode::start(settings.clone(), anywhere, Vec::new(), RULES).await.unwrap();
        let first = mesh_transaction::Block { height: 1, hash: "a".repeat(64), time: Duration::from_secs(1) };
        node.chain().commit(first, RULES).await.unwrap();
        let prefix = folder.path().file_name().unwrap().to_string_lossy().replace('.', "");
        let server = nats().await;
        let bus = Bus::connect(BusConfig {
            url: server.url().to_owned(),
            credentials: server.credentials_file().map(|file| Credentials::read(file).unwrap()),
            prefix: prefix.clone(),
            name: "test".to_owned(),
            version: "0.0.0".to_owned(),
        });
        let bus = bus.await.unwrap();
        timeout(SOON, bus.until_connected()).await.unwrap();
        let address = node.address();
        let mut stage = Self {
            folder,
            settings,
            node: Some(node),
            address,
            prefix,
            bus,
            relays: Vec::new(),
            ticking: None,
        };
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
            .env("MESH_NODE_URL", format!("http://{}", self.address));
        let relay = env.iter().fold(relay, |relay, (name, value)| relay.env(*name, value));
        self.relays.push(relay.start().await);
    }

    pub(crate) fn node(&self) -> &DevNode {
        self.node.as_ref().unwrap()
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Makes a block.
    pub(crate) async fn block(&self) {
        self.node().chain().next_block().await.unwrap();
    }

    /// Makes a block every 50 ms from now on.
    pub(crate) fn tick(&mut self) {
        let chain = self.node().chain().clone();
        self.ticking = Some(tokio::spawn(async move {
            loop {
                sleep(Duration::from_millis(50)).await;
                chain.next_block().await.unwrap();
            }
        }));
    }

    /// Kills the node in the middle of whatever it does.
    pub(crate) fn kill_node(&mut self) {
        self.node = None;
    }

    /// Starts it again at the same place, with what it has on disk.
    pub(crate) async fn start_node(&mut self) {
        let node = DevNode::start(self.settings.clone(), self.address, Vec::new(), RULES).await.unwrap();
        self.node = Some(node);
    }

    /// A good transaction.
    pub(crate) fn transaction(&self, input: &str) -> Bytes {
        encode(&self.signed(input)).into()
    }

    pub(crate) fn signed(&self, input: &str) -> Transaction {
        let newest = self.node().chain().newest().unwrap();
        let tid = format!("tid of {input}");
        let nonce =
            search(&Puzzle::new("", &newest.hash, &tid), RULES.difficulty, &Effort::default()).unwrap();
        let key = Key::from_seed(&[7; 32]);
        Transaction {
            input_data: Bytes::copy_from_slice(input.as_bytes()),
            signature: key.sign(TxVersion::V3, CHAIN, input.as_bytes(), ALGORITHM),
            version: TxVersion::V3.into(),
            pow: Some(ProofOfWork { tid, nonce }),
            from: Some(From::PubKey(key.public())),
        }
    }

    /// One that the node refuses.
    pub(crate) fn refused(&self, input: &str) -> Bytes {
        let tx = Transaction { pow: None, ..self.signed(input) };
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

    /// How often the node got a transaction to broadcast.
    pub(crate) fn broadcasts(&self, tx: &[u8]) -> u64 {
        let record: PathBuf = self.folder.path().join("broadcasts");
        received(&record).unwrap().get(&TxHash::of(tx)).copied().unwrap_or_default()
    }

    /// Waits until the node got it so often.
    pub(crate) async fn broadcast_times(&self, tx: &[u8], times: u64) {
        let came = async {
            while self.broadcasts(tx) < times {
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
