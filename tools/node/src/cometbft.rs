//! A real CometBFT as the consensus node of a mesh, with its application. The chain of an earlier run is continued
//! when its blocks continue the store, else its folder is set aside and a chain begins after the store's newest block.

use std::{
    convert::Infallible,
    io,
    net::SocketAddr,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use mesh_devnode::{Base, ReservedPort};
use mesh_launcher::{
    Ready, ReplicaSpec,
    control::{Answer, Request},
    home::Home,
    servers::{Cometbft, CometbftSettings, Genesis, cometbft_height, find_cometbft, how_to_get_cometbft},
    supervisor::{Group, Supervisor, Tier},
};
use tokio::time::{Instant, sleep};

use crate::{
    APPLICATION, COMETBFT,
    error::{NodeError, failed},
    prepare::{continued, create, set_aside},
    process_group,
    store::{DemoNetwork, Store},
};

/// CometBFT's commit timeout, the largest part of the time between two blocks.
const PAUSE: Duration = Duration::from_millis(1000);
/// Poll interval of the processes.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How long CometBFT may take to end after its application has ended.
const END_WITHIN: Duration = Duration::from_secs(3);
/// Blocks of CometBFT that the store may have and the application not: its RPC shows the results of a block before
/// the application commits it.
const UNCOMMITTED: u64 = 1;
/// The longest chain id that CometBFT takes.
const LONGEST_CHAIN_ID: usize = 50;

/// The program and the addresses of a node that is to be started.
pub struct CometbftNode {
    program: PathBuf,
    rpc: SocketAddr,
    /// Reserves the RPC port when any free one was chosen.
    _reserved: Option<ReservedPort>,
    /// The listening socket of the application, open before the node starts, so that it can always connect.
    socket: Arc<OwnedFd>,
    application: SocketAddr,
}

impl CometbftNode {
    /// Finds the program and reserves ports; without an address for the RPC, any free one.
    ///
    /// # Errors
    /// CometBFT is not installed, or there is no free port.
    pub fn reserve(rpc: Option<SocketAddr>) -> Result<Self, NodeError> {
        let program = find_cometbft().ok_or_else(|| {
            NodeError::NotInstalled(format!("CometBFT is not on the PATH; {}", how_to_get_cometbft()))
        })?;
        let ports = || {
            let listener = std::net::TcpListener::bind(("127.0.0.1", 0))?;
            let application = listener.local_addr()?;
            let reserved = rpc.is_none().then(ReservedPort::take).transpose()?;
            Ok::<_, io::Error>((reserved, Arc::new(listener.into()), application))
        };
        let (reserved, socket, application) = ports().map_err(|error| {
            failed!("there is no port for CometBFT ({error}); close programs that hold ports")
        })?;
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let rpc = rpc.unwrap_or_else(|| reserved.as_ref().map_or(any, ReservedPort::address));
        Ok(Self { program, rpc, _reserved: reserved, socket, application })
    }

    /// The address of its RPC.
    pub fn url(&self) -> String {
        format!("http://{}", self.rpc)
    }

    /// Prepares the node's folder for the store's chain. Returns the hash of the block that the chain continues, which
    /// CometBFT's first block does not name; empty when it begins at height 1.
    ///
    /// # Errors
    /// The store cannot be read or has no chain id for CometBFT, or the folder cannot be made.
    pub async fn prepare(
        &self,
        home: &Home,
        database_url: &str,
        demo: Option<DemoNetwork>,
    ) -> Result<String, NodeError> {
        let (folder, log) = (folder(home), home.log(COMETBFT, 0));
        let store = Store::connect(database_url).await?;
        if let Some(base) = continued_folder(&folder, &store).await? {
            return Ok(base.hash().to_owned());
        }
        set_aside(&folder)?;
        let base = store.base_with(demo).await?;
        let genesis = genesis(&base)?;
        Cometbft::prepare(&self.program, &folder, &log, &genesis).await?;
        create(&file(&folder), base).await?;
        Ok(genesis.previous_hash)
    }

    /// The processes of a prepared node: the application, then CometBFT, with these variables.
    pub fn groups(&self, program: &Path, home: &Home, env: Vec<(String, String)>) -> [Group; 2] {
        let (folder, log) = (folder(home), home.log(COMETBFT, 0));
        let socket = Arc::clone(&self.socket);
        let application =
            process_group::application(program, home, &file(&folder), socket, env.iter().cloned());
        let node = Cometbft::at(&self.program, &folder);
        let rpc = self.rpc;
        let settings = CometbftSettings { rpc, application: self.application, pause: PAUSE, env };
        let mut spec = node.spec(&log, &settings);
        spec.name = format!("{COMETBFT}-0");
        // It counts as ready once it has a block.
        let ready =
            Ready::probe(move || async move { cometbft_height(rpc).await.is_some_and(|height| height > 0) });
        [application, Group::single(COMETBFT, Tier::Node, ReplicaSpec { spec, ready })]
    }
}

/// Restarts a CometBFT that hangs. It ends when its application does; if that happens during a call, 0.38 may hang at
/// its exit.
pub async fn watch(supervisor: &Supervisor) -> Infallible {
    let pids = || {
        let rows = supervisor.rows();
        let pid = |name: &str| rows.iter().find(|row| row.service == name).map(|row| row.pid);
        (pid(APPLICATION), pid(COMETBFT))
    };
    let (mut application, mut node) = pids();
    // The time at which the application of this CometBFT was seen to have ended.
    let mut application_ended = None;
    loop {
        sleep(LOOK_EVERY).await;
        let (application_now, node_now) = pids();
        if node_now != node {
            application_ended = None;
        } else if application_now != application && node.is_some() {
            application_ended = Some(Instant::now());
        }
        (application, node) = (application_now, node_now);
        if application_ended.is_some_and(|since| since.elapsed() >= END_WITHIN) {
            application_ended = None;
            tracing::warn!("CometBFT still runs without its application; restarting it");
            let (name, replica) = (COMETBFT.to_owned(), None);
            let stopped = supervisor.answer(Request::Stop { name: name.clone(), replica }).await;
            // Not started when `mesh stop` had stopped it before.
            if let Answer::Done { note: None } = stopped {
                supervisor.answer(Request::Start { name, replica }).await;
            }
        }
    }
}

fn folder(home: &Home) -> PathBuf {
    home.node().join(COMETBFT)
}

/// The application's chain file, in the node's folder because both are set aside together.
fn file(folder: &Path) -> PathBuf {
    folder.join("application-blocks")
}

/// The base of a folder's chain when its blocks continue the store.
async fn continued_folder(folder: &Path, store: &Store<'_>) -> Result<Option<Base>, NodeError> {
    let base = continued(&file(folder), store, UNCOMMITTED).await?;
    Ok(base.filter(|base| Cometbft::chain_of(folder) == genesis(base).ok()))
}

fn genesis(base: &Base) -> Result<Genesis, NodeError> {
    let chain_id = base.chain_id.clone();
    if chain_id.is_empty() || chain_id.len() > LONGEST_CHAIN_ID {
        return Err(failed!(
            "the store's chain id {chain_id:?} is invalid for CometBFT; it must have 1 to {LONGEST_CHAIN_ID} bytes"
        ));
    }
    Ok(Genesis { chain_id, initial_height: base.height() + 1, previous_hash: base.hash().to_owned() })
}

#[cfg(test)]
mod tests {
    use mesh_testbed::Database;
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn a_folder_is_continued_with_the_genesis_of_its_chain_file() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("cometbft");
        let (database, client) = Database::with_client().await;
        let store = Store::connect(database.url()).await.unwrap();
        let nameless = genesis(&store.base().await.unwrap()).unwrap_err();
        assert!(nameless.to_string().contains("chain id"), "{nameless}");
        let filled =
            "INSERT INTO chain (id) VALUES ('net-1'); INSERT INTO blocks VALUES (now(), 41, repeat('A', 64))";
        client.batch_execute(filled).await.unwrap();
        let base = store.base().await.unwrap();
        assert_eq!((genesis(&base).unwrap().initial_height, base.hash()), (42, "a".repeat(64).as_str()));
        // A folder as CometBFT has it.
        let write = |previous_hash: &str| {
            let document = json!({
                "chain_id": "net-1", "initial_height": "42", "app_state": {"previous_hash": previous_hash},
            });
            std::fs::create_dir_all(folder.join("config")).unwrap();
            std::fs::write(folder.join("config/genesis.json"), document.to_string()).unwrap();
        };
        write(base.hash());
        assert!(continued_folder(&folder, &store).await.unwrap().is_none(), "without a chain file");
        create(&file(&folder), base).await.unwrap();
        assert!(continued_folder(&folder, &store).await.unwrap().is_some());
        // The store may have one block that the application has not committed, and no second one.
        for is_continued in [true, false] {
            let next = "INSERT INTO blocks SELECT now() + height * interval '1 s', height + 1, \
                repeat('b', 64) FROM last_block";
            client.batch_execute(next).await.unwrap();
            assert_eq!(continued_folder(&folder, &store).await.unwrap().is_some(), is_continued);
        }
        client.batch_execute("DELETE FROM blocks WHERE height > 41").await.unwrap();
        write("other");
        assert!(continued_folder(&folder, &store).await.unwrap().is_none());
    }
}
