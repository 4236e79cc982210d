//! CometBFT for one test, with our application in this process: both can be killed and restarted.

use std::{
    net::{SocketAddr, TcpListener},
    time::Duration,
};

use mesh_devnode::{Application, Base, ChainFile, Limits, ReservedPort, Settings, serve_application};
use mesh_launcher::{
    process::{Process, ProcessSpec},
    servers::{self, CometbftSettings, Genesis, cometbft_height, find_cometbft},
};
use mesh_transaction::SpamRules;
use proto_msgs::v2::Transaction;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::timeout;

use crate::{
    eventually,
    node_setup::{NodeSetup, OnThreads, call, transaction},
    service::end_of_log,
};

const TIME_LIMIT: Duration = Duration::from_secs(60);
/// Name of the application's file.
const CHAIN_FILE: &str = "application";
/// Block interval when there should be only one block.
const BLOCK_INTERVAL_NEVER: Duration = Duration::from_secs(24 * 3600);
/// Time limit of a start, including the first block.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// A running CometBFT and its application. Dropping it kills both.
#[derive(Debug)]
pub struct Cometbft {
    settings: Settings,
    rules: SpamRules,
    spec: ProcessSpec,
    rpc: ReservedPort,
    /// The application's listening socket, duplicated for each of its starts.
    socket: TcpListener,
    application: Option<OnThreads<Application>>,
    process: Option<Process>,
    // Last field, so that it is dropped after everything that uses it.
    folder: TempDir,
}

impl Cometbft {
    /// Starts the configured node and waits for the first block.
    pub(crate) async fn begin(setup: NodeSetup) -> Self {
        let NodeSetup { settings, rules, every, folder } = setup;
        let program = find_cometbft().unwrap_or_else(|| panic!("CometBFT is not on this machine"));
        let ports =
            TcpListener::bind(("127.0.0.1", 0)).and_then(|socket| Ok((socket, ReservedPort::take()?)));
        let (socket, rpc) = ports.unwrap_or_else(|error| panic!("no ports for a node: {error}"));
        let genesis = Genesis {
            chain_id: settings.network.chain_id.clone(),
            initial_height: 1,
            previous_hash: String::new(),
        };
        let (home, log) = (folder.path().join("cometbft"), folder.path().join("cometbft.log"));
        let node = servers::Cometbft::prepare(&program, &home, &log, &genesis).await;
        let node = node.unwrap_or_else(|error| panic!("no folder for CometBFT: {error}"));
        let application = socket.local_addr().unwrap_or_else(|error| panic!("no port: {error}"));
        let (address, env) = (rpc.address(), variables(&settings.limits));
        let spec =
            |pause| node.spec(&log, &CometbftSettings { rpc: address, application, pause, env: env.clone() });
        let pause = every.unwrap_or(BLOCK_INTERVAL_NEVER);
        let (first, later) = (spec(pause.min(FIRST_PAUSE)), spec(pause));
        let base = Base::empty(&settings.network.chain_id, rules);
        let created = ChainFile::create(&folder.path().join(CHAIN_FILE), &base);
        created.unwrap_or_else(|error| panic!("no file for the application: {error}"));
        let (application, process) = (None, None);
        let mut node = Self { settings, rules, spec: first, rpc, socket, application, process, folder };
        node.launch().await;
        if pause > FIRST_PAUSE {
            node.spec = later;
            node.restart().await;
        }
        node
    }

    /// Its address, the same after each restart: `http://127.0.0.1:<port>`.
    pub fn url(&self) -> String {
        format!("http://{}", self.rpc.address())
    }

    /// The running application. A clone must be dropped before the application is killed.
    pub fn application(&self) -> &Application {
        let running = self.application.as_ref().unwrap_or_else(|| panic!("the application is down"));
        &running.part
    }

    /// Height and hash of its newest block by its status; the hash in lower case.
    pub async fn newest(&self) -> (u64, String) {
        let status = call(&self.url(), "status", json!({})).await;
        let text = |name: &str| {
            let value = &status["result"]["sync_info"][name];
            value.as_str().unwrap_or_else(|| panic!("no status: {status}")).to_owned()
        };
        let height = text("latest_block_height");
        let height = height.parse().unwrap_or_else(|_| panic!("no height: {height}"));
        (height, text("latest_block_hash").to_ascii_lowercase())
    }

    /// A valid transaction of a party, with proof of work for the newest block. Different texts give
    /// different ones.
    pub async fn transaction(&self, party: u8, text: &str) -> Transaction {
        let (_, hash) = self.newest().await;
        transaction(&self.settings.network, &self.rules, &hash, party, text)
    }

    /// Waits until a block is stored that was begun after this call, and until its results can be queried.
    pub async fn block(&self) {
        let (height, _) = self.newest().await;
        let (mut heights, target_height) = (self.application().heights(), height + 2);
        let reached = timeout(TIME_LIMIT, heights.wait_for(|height| *height >= target_height)).await;
        reached
            .unwrap_or_else(|_| panic!("no block {target_height}, see {}", end_of_log(&self.spec)))
            .unwrap_or_else(|error| panic!("the application is gone: {error}"));
        let is_indexed = async || !self.results(target_height - 1).await.is_null();
        eventually(TIME_LIMIT, &format!("block {target_height} has no results"), is_indexed).await;
    }

    async fn results(&self, height: u64) -> Value {
        call(&self.url(), "block_results", json!({"height": height.to_string()})).await["result"].take()
    }

    /// Kills CometBFT with SIGKILL. Until [`restart`](Self::restart) its port refuses
    /// connections.
    pub async fn kill(&mut self) {
        let Some(process) = self.process.take() else { return };
        process.kill_group();
        process.wait().await.unwrap_or_else(|error| panic!("CometBFT does not end: {error}"));
    }

    /// Kills CometBFT if it still runs, and starts it again with its blocks; the application as well, if that
    /// was killed.
    pub async fn restart(&mut self) {
        self.kill().await;
        self.launch().await;
    }

    async fn launch(&mut self) {
        if self.application.is_none() {
            self.application = Some(self.open().await);
        }
        let process = Process::spawn(&self.spec);
        let process = process.unwrap_or_else(|error| panic!("CometBFT cannot be started: {error}"));
        let rpc: SocketAddr = self.rpc.address();
        mesh_chassis::install_tls_provider();
        let serves = async || cometbft_height(rpc).await.unwrap_or_default() > 0;
        let has_ended = tokio::select! {
            () = eventually(TIME_LIMIT, "CometBFT does not serve", serves) => false,
            _ = process.wait() => true,
        };
        assert!(!has_ended, "CometBFT does not serve: {}", end_of_log(&self.spec));
        self.process = Some(process);
    }

    async fn open(&self) -> OnThreads<Application> {
        let Settings { network, checks, .. } = self.settings.clone();
        let file = self.folder.path().join(CHAIN_FILE);
        let socket = self.socket.try_clone().and_then(|socket| socket.set_nonblocking(true).map(|()| socket));
        let socket = socket.unwrap_or_else(|error| panic!("no socket for the application: {error}"));
        let opening = async move {
            let application = Application::open(network, &file, checks).await?;
            let listener = tokio::net::TcpListener::from_std(socket)?;
            let served = application.clone();
            tokio::spawn(async move { match serve_application(listener, served).await {} });
            Ok::<_, std::io::Error>(application)
        };
        OnThreads::start("the application", opening).await
    }
}

impl Drop for Cometbft {
    fn drop(&mut self) {
        if let Some(process) = self.process.take() {
            process.kill_group();
        }
        if let Some(application) = self.application.take() {
            application.abandon();
        }
    }
}

/// The node's limits as CometBFT's environment variables.
fn variables(limits: &Limits) -> Vec<(String, String)> {
    let Limits { mempool_txs, mempool_bytes, tx_bytes, cache, keep_refused, commit_wait, .. } = limits;
    [
        ("CMT_MEMPOOL_SIZE", mempool_txs.to_string()),
        ("CMT_MEMPOOL_MAX_TXS_BYTES", mempool_bytes.to_string()),
        ("CMT_MEMPOOL_MAX_TX_BYTES", tx_bytes.to_string()),
        ("CMT_MEMPOOL_CACHE_SIZE", cache.to_string()),
        ("CMT_MEMPOOL_KEEP_INVALID_TXS_IN_CACHE", keep_refused.to_string()),
        ("CMT_RPC_TIMEOUT_BROADCAST_TX_COMMIT", format!("{}ms", commit_wait.as_millis())),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec()
}

#[cfg(test)]
mod tests {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    use mesh_transaction::{TxHash, encode};
    use tokio::time::sleep;

    use super::*;
    use crate::{DevNode, Node, NodeKind};

    const END_WITHIN: Duration = Duration::from_secs(2);

    impl Cometbft {
        /// Kills the application with SIGKILL. CometBFT then ends.
        async fn kill_application(&mut self) {
            if let Some(application) = self.application.take() {
                application.stop().await;
            }
        }

        /// Waits until CometBFT has ended by itself. It may hang when it lost the application during a call; then
        /// it is killed.
        async fn until_ended(&mut self) {
            if let Some(process) = &self.process {
                let _ = timeout(END_WITHIN, process.wait()).await;
            }
            self.kill().await;
        }
    }

    #[tokio::test]
    async fn the_chain_continues_after_kills_of_node_or_application_at_any_moment() {
        let Some(kind) = NodeKind::cometbft() else { return };
        let setup = DevNode::configure().every(Duration::from_millis(50));
        let Node::Cometbft(mut node) = setup.start_as(kind).await else { panic!("another node") };
        let (mut taken, mut heights) = (Vec::new(), Vec::new());
        for turn in 0..8_u64 {
            for number in 0..4 {
                let tx = encode(&node.transaction(1, &format!("{turn} {number}")).await);
                let answer =
                    call(&node.url(), "broadcast_tx_sync", json!({"tx": STANDARD.encode(&tx)})).await;
                assert_eq!(answer["result"]["code"], 0, "{answer}");
                taken.push((TxHash::of(&tx), tx));
            }
            // Kills at a different moment of a block each time.
            sleep(Duration::from_millis(turn * 13 % 60)).await;
            match turn % 3 {
                0 => node.kill().await,
                1 => {
                    node.kill_application().await;
                    node.until_ended().await;
                }
                _ => {
                    node.kill_application().await;
                    node.kill().await;
                }
            }
            // CometBFT compares the hash of the application with its own, and would not start.
            node.restart().await;
            node.block().await;
            heights.push(node.newest().await.0);
        }
        assert!(heights.is_sorted_by(|before, after| before < after), "{heights:?}");
        // Each block is stored once, as CometBFT has it, and has each transaction once.
        let (newest, _) = node.newest().await;
        let (mut hashes, mut included) = (Vec::new(), Vec::new());
        for height in 1..newest {
            let block_reply = call(&node.url(), "block", json!({"height": height.to_string()})).await;
            let hash = block_reply["result"]["block_id"]["hash"].as_str().unwrap().to_ascii_lowercase();
            hashes.push((height, hash));
            let txs = block_reply["result"]["block"]["data"]["txs"].as_array().unwrap();
            included.extend(txs.iter().map(|tx| STANDARD.decode(tx.as_str().unwrap()).unwrap()));
        }
        let mut distinct = included.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), included.len());
        assert!(included.iter().all(|tx| taken.iter().any(|(_, taken)| taken == tx)));
        // A transaction that a block included before a restart is a replay afterwards.
        let first = included.first().unwrap();
        let answer = call(&node.url(), "broadcast_tx_sync", json!({"tx": STANDARD.encode(first)})).await;
        assert_eq!(answer["result"]["code"], 51, "{answer}");
        node.kill_application().await;
        let stored = ChainFile::open(&node.folder.path().join(CHAIN_FILE)).unwrap().unwrap();
        for (height, hash) in hashes {
            assert_eq!(stored.hash_at(height).unwrap(), Some(hash), "block {height}");
        }
    }
}
