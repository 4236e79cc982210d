//! A private CometBFT: one validator without peers over an application on this machine. Its folder, its
//! process specification and its height.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::time::timeout;

use super::{ServerError, files, run_to_end};
use crate::process::ProcessSpec;

/// The package for `go install`; the mesh works with any 0.38.
pub const COMETBFT_PACKAGE: &str = "github.com/cometbft/cometbft/cmd/cometbft@v0.38.19";

const NAME: &str = "cometbft";
/// Timeout of `cometbft init`, long enough for a busy machine.
const INIT_WITHIN: Duration = Duration::from_secs(30);
/// Limit of a request, bytes: a transaction of 1 MiB in base64 fits.
const BODY_BYTES: u32 = 2 << 20;
const BLOCK_BYTES: u32 = 4 << 20;

/// The chain that a folder was made for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Genesis {
    /// Its id, 1 to 50 bytes.
    pub chain_id: String,
    /// The height of its first block.
    pub initial_height: u64,
    /// The hash of the block before the first one, made by another node; may be empty.
    pub previous_hash: String,
}

/// Run-time settings of a node; they may differ between two starts.
#[derive(Clone, Debug)]
pub struct CometbftSettings {
    /// The address of its RPC. The port has to be free, or reserved by a socket that does not listen.
    pub rpc: SocketAddr,
    /// The address of its application.
    pub application: SocketAddr,
    /// The commit timeout, the largest part of the time between two blocks.
    pub pause: Duration,
    /// Further variables, such as `CMT_MEMPOOL_SIZE`: each key of its configuration has one.
    pub env: Vec<(String, String)>,
}

/// The home folder of a CometBFT.
#[derive(Clone, Debug)]
pub struct Cometbft {
    program: PathBuf,
    folder: PathBuf,
}

/// The advice on how to install CometBFT.
pub fn how_to_get_cometbft() -> String {
    format!("install it with `go install {COMETBFT_PACKAGE}` and put its folder on the PATH")
}

/// The folder below a cargo target folder into which it is installed; its name contains the release.
pub fn cometbft_folder(target: &Path) -> PathBuf {
    let version = COMETBFT_PACKAGE.rsplit('@').next().unwrap_or_default();
    target.join(format!("{NAME}-{version}"))
}

impl Cometbft {
    /// The genesis of a folder; `None` when there is none or it cannot be read.
    pub fn chain_of(folder: &Path) -> Option<Genesis> {
        let text = std::fs::read(genesis_file(folder)).ok()?;
        let genesis: Value = serde_json::from_slice(&text).ok()?;
        Some(Genesis {
            chain_id: genesis["chain_id"].as_str()?.to_owned(),
            initial_height: genesis["initial_height"].as_str()?.parse().ok()?,
            previous_hash: genesis["app_state"]["previous_hash"].as_str()?.to_owned(),
        })
    }

    /// A folder that [`prepare`](Self::prepare) made.
    pub fn at(program: &Path, folder: &Path) -> Self {
        Self { program: program.to_owned(), folder: folder.to_owned() }
    }

    /// Uses the existing folder, or creates one for a chain, atomically by a rename.
    ///
    /// # Errors
    /// The folder cannot be written, or `cometbft init` fails or takes too long.
    pub async fn prepare(
        program: &Path,
        folder: &Path,
        log: &Path,
        genesis: &Genesis,
    ) -> Result<Self, ServerError> {
        let cometbft = Self::at(program, folder);
        if Self::chain_of(folder).is_some() {
            return Ok(cometbft);
        }
        let fresh = folder.with_extension("new");
        if fresh.exists() {
            std::fs::remove_dir_all(&fresh).map_err(ServerError::file(&fresh))?;
        }
        files::make_folder(&fresh)?;
        init(program, &fresh, log).await?;
        let file = genesis_file(&fresh);
        write_genesis(&file, genesis).map_err(ServerError::file(&file))?;
        std::fs::rename(&fresh, folder).map_err(ServerError::file(folder))?;
        Ok(cometbft)
    }

    /// The process specification.
    pub fn spec(&self, log: &Path, settings: &CometbftSettings) -> ProcessSpec {
        let CometbftSettings { rpc, application, pause, env } = settings;
        let mut spec = ProcessSpec::new(NAME, &self.program, log)
            .arg("start")
            .arg("--home")
            .arg(self.folder.display().to_string())
            .env("CMT_PROXY_APP", format!("tcp://{application}"))
            .env("CMT_RPC_LADDR", format!("tcp://{rpc}"))
            .env("CMT_RPC_MAX_BODY_BYTES", BODY_BYTES.to_string())
            .env("CMT_MONIKER", "mesh")
            // No peers: nothing is dialled and nothing can connect from outside.
            .env("CMT_P2P_LADDR", "tcp://127.0.0.1:0")
            .env("CMT_P2P_PEX", "false")
            .env("CMT_P2P_MAX_NUM_INBOUND_PEERS", "0")
            .env("CMT_P2P_MAX_NUM_OUTBOUND_PEERS", "0")
            .env("CMT_CONSENSUS_TIMEOUT_COMMIT", format!("{}ms", pause.as_millis()))
            .env("CMT_CONSENSUS_CREATE_EMPTY_BLOCKS", "true")
            .env("CMT_MEMPOOL_BROADCAST", "false")
            .env("CMT_MEMPOOL_MAX_TX_BYTES", (1_u32 << 20).to_string())
            .env("CMT_LOG_FORMAT", "json")
            .env("CMT_LOG_LEVEL", "main:info,*:error");
        spec.env.extend(env.iter().cloned());
        spec.grace = Duration::from_secs(5);
        spec
    }
}

/// The newest height of a node by its RPC, 0 before the first block; `None` when it does not answer.
pub async fn cometbft_height(rpc: SocketAddr) -> Option<u64> {
    let client = crate::local_client().ok()?;
    let answer: Value = client.get(format!("http://{rpc}/status")).send().await.ok()?.json().await.ok()?;
    answer["result"]["sync_info"]["latest_block_height"].as_str()?.parse().ok()
}

fn genesis_file(folder: &Path) -> PathBuf {
    folder.join("config/genesis.json")
}

async fn init(program: &Path, folder: &Path, log: &Path) -> Result<(), ServerError> {
    let spec =
        ProcessSpec::new(NAME, program, log).arg("init").arg("--home").arg(folder.display().to_string());
    let late = || ServerError::NotReady {
        name: NAME,
        address: folder.display().to_string(),
        waited_s: INIT_WITHIN.as_secs(),
        cause: "its folder was not made".to_owned(),
    };
    timeout(INIT_WITHIN, run_to_end(&spec)).await.unwrap_or_else(|_| Err(late()))
}

/// Rewrites the default genesis file for a chain, with this node as its only validator.
fn write_genesis(file: &Path, genesis: &Genesis) -> std::io::Result<()> {
    let mut document: Value = serde_json::from_slice(&std::fs::read(file)?)?;
    document["chain_id"] = json!(genesis.chain_id);
    document["initial_height"] = json!(genesis.initial_height.to_string());
    document["app_state"] = json!({"previous_hash": genesis.previous_hash});
    document["consensus_params"]["block"]["max_bytes"] = json!(BLOCK_BYTES.to_string());
    std::fs::write(file, serde_json::to_vec_pretty(&document)?)
}
