//! A real CometBFT as the consensus node of a mesh, with its application.
//!
//! Comes in: the store. Goes out: both processes. The chain of the node begins after the newest block of the
//! store. The chain of an earlier run is continued when the store contains its blocks, else renamed.

use std::{
    convert::Infallible,
    io,
    net::SocketAddr,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use mesh_devnode::{Application, Checks, ReservedPort};
use mesh_launcher::{
    Ready, ReplicaSpec,
    control::{Answer, Request},
    home::Home,
    servers::{Cometbft, CometbftSettings, Genesis, cometbft_height, find_cometbft, how_to_get_cometbft},
    supervisor::{Group, Supervisor, Tier},
};
use mesh_problem::error_chain;
use mesh_transaction::{ALGORITHM, Network, SpamRules};
use tokio::time::{Instant, sleep};
use tokio_postgres::Client;

use crate::{
    APPLICATION, COMETBFT,
    error::{NodeError, failed},
    process_group,
};

/// CometBFT's commit timeout, the largest part of the time between two blocks.
const PAUSE: Duration = Duration::from_millis(1000);
/// Poll interval of the processes.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How long CometBFT may take to end after its application has ended.
const END_WITHIN: Duration = Duration::from_secs(3);
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
    ///
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

    /// Prepares the node's folder for the store's chain and returns its processes: the application, then the
    /// node. `more` are variables of the application alone, `env` of both.
    ///
    /// # Errors
    ///
    /// The store cannot be read or has no chain id for CometBFT, or the folder cannot be made.
    pub async fn groups(
        &self,
        program: &Path,
        home: &Home,
        database_url: &str,
        more: Vec<(String, String)>,
        env: Vec<(String, String)>,
    ) -> Result<[Group; 2], NodeError> {
        let folder = home.node().join(COMETBFT);
        let genesis = genesis(&folder, database_url).await?;
        let log = home.log(COMETBFT, 0);
        let node = Cometbft::prepare(&self.program, &folder, &log, &genesis).await?;
        let more = more.into_iter().chain(env.iter().cloned());
        let socket = Arc::clone(&self.socket);
        let application =
            process_group::application(program, home, database_url, &file(&folder), socket, more);
        let rpc = self.rpc;
        let settings = CometbftSettings { rpc, application: self.application, pause: PAUSE, env };
        let mut spec = node.spec(&log, &settings);
        spec.name = format!("{COMETBFT}-0");
        // It counts as ready once it has a block.
        let ready =
            Ready::probe(move || async move { cometbft_height(rpc).await.is_some_and(|height| height > 0) });
        Ok([application, Group::single(COMETBFT, Tier::Node, ReplicaSpec { spec, ready })])
    }
}

/// Restarts a CometBFT that hangs. It ends when its application does; when that happens during a call, 0.38
/// may hang at its exit for ever.
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
            tracing::warn!("CometBFT goes on without its application, it is started again");
            let (name, replica) = (COMETBFT.to_owned(), None);
            let stopped = supervisor.answer(Request::Stop { name: name.clone(), replica }).await;
            // Not started when `mesh stop` had stopped it before.
            if let Answer::Done { note: None } = stopped {
                supervisor.answer(Request::Start { name, replica }).await;
            }
        }
    }
}

/// The application's file, in the node's folder because both are renamed together.
fn file(folder: &Path) -> PathBuf {
    folder.join("application-blocks")
}

/// The genesis of the node's folder, or of the one to be made.
async fn genesis(folder: &Path, database_url: &str) -> Result<Genesis, NodeError> {
    let client = mesh_store::connect(database_url, "mesh").await.map_err(|error| unread(&error))?;
    let store = Store::read(&client).await.map_err(|error| unread(&error))?;
    let chain_id = store.chain_id;
    if chain_id.is_empty() || chain_id.len() > LONGEST_CHAIN_ID {
        return Err(failed!(
            "the store's chain id {chain_id:?} is none for CometBFT; it must have 1 to {LONGEST_CHAIN_ID} bytes"
        ));
    }
    let (height, previous_hash) = store.newest;
    if let Some(genesis) = Cometbft::chain_of(folder)
        && genesis.chain_id == chain_id
    {
        let base = genesis.initial_height.saturating_sub(1);
        let stored = hash_at(&client, base).await.map_err(|error| unread(&error))?;
        let goes_on = match height.cmp(&base) {
            std::cmp::Ordering::Less => false,
            std::cmp::Ordering::Equal => true,
            std::cmp::Ordering::Greater => {
                application_hash(folder, &chain_id, height).await.as_ref() == Some(&previous_hash)
            }
        };
        if goes_on && stored == genesis.previous_hash {
            return Ok(genesis);
        }
    }
    move_aside(folder)?;
    Ok(Genesis { chain_id, initial_height: height + 1, previous_hash })
}

/// The head of the store.
struct Store {
    chain_id: String,
    /// Height and hash of the newest block; 0 and empty without one.
    newest: (u64, String),
}

impl Store {
    async fn read(client: &Client) -> Result<Self, tokio_postgres::Error> {
        let chain = client.query_opt("SELECT id FROM chain", &[]).await?;
        let newest = client.query_opt("SELECT height, lower(hash) FROM last_block", &[]).await?;
        Ok(Self {
            chain_id: chain.map_or_else(String::new, |row| row.get(0)),
            newest: newest
                .map_or_else(Default::default, |row| (row.get::<_, i64>(0).unsigned_abs(), row.get(1))),
        })
    }
}

/// The hash of a block of the store; empty when there is no such block.
async fn hash_at(client: &Client, height: u64) -> Result<String, tokio_postgres::Error> {
    let sql = "SELECT lower(hash) FROM blocks WHERE height = $1";
    let row = client.query_opt(sql, &[&height.cast_signed()]).await?;
    Ok(row.map_or_else(String::new, |row| row.get(0)))
}

/// The hash of a block in the application's file.
async fn application_hash(folder: &Path, chain_id: &str, height: u64) -> Option<String> {
    let network =
        Network { chain_id: chain_id.to_owned(), algorithm: ALGORITHM.to_owned(), pow_prefix: String::new() };
    let application =
        Application::open(network, &file(folder), Checks::None, SpamRules::default()).await.ok()?;
    Some(application.block(height).await.ok()??.hash)
}

/// Renames the folder of a chain that the store does not continue.
fn move_aside(folder: &Path) -> Result<(), NodeError> {
    if !folder.exists() {
        return Ok(());
    }
    let aside = folder.with_extension("other");
    eprintln!("CometBFT's blocks are not those of the database, they are set aside to {}", aside.display());
    let moved = match std::fs::remove_dir_all(&aside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => std::fs::rename(folder, &aside),
    };
    moved.map_err(|error| failed!("cannot move {} ({error}); remove it and try again", folder.display()))
}

fn unread(error: &dyn std::error::Error) -> NodeError {
    failed!("cannot see where the chain of the database ends: {}", error_chain(error))
}

#[cfg(test)]
mod tests {
    use mesh_devnode::serve_application;
    use mesh_testbed::Database;
    use serde_json::json;

    use super::*;

    /// The folder of a chain, with no block so far.
    fn make(folder: &Path, genesis: &Genesis) {
        let document = json!({
            "chain_id": genesis.chain_id,
            "initial_height": genesis.initial_height.to_string(),
            "app_state": {"previous_hash": genesis.previous_hash},
        });
        std::fs::create_dir_all(folder.join("config")).unwrap();
        std::fs::write(folder.join("config/genesis.json"), document.to_string()).unwrap();
    }

    #[tokio::test]
    async fn a_chain_begins_after_the_store_and_is_set_aside_when_the_store_went_elsewhere() {
        let home = tempfile::tempdir().unwrap();
        let (folder, aside) = (home.path().join("cometbft"), home.path().join("cometbft.other"));
        let database = Database::fresh().await;
        let client = database.connect().await;
        let nameless = genesis(&folder, database.url()).await.unwrap_err();
        assert!(nameless.to_string().contains("chain id"), "{nameless}");
        client.batch_execute("INSERT INTO chain (id) VALUES ('net-1')").await.unwrap();
        let begin = |initial_height, previous_hash: &str| Genesis {
            chain_id: "net-1".to_owned(),
            initial_height,
            previous_hash: previous_hash.to_owned(),
        };
        assert_eq!(genesis(&folder, database.url()).await.unwrap(), begin(1, ""));
        let add = async |height: i64, hash: &str| {
            let sql = "INSERT INTO blocks VALUES (to_timestamp($1::int8), $1::int8, $2)";
            client.execute(sql, &[&height, &hash.repeat(64)]).await.unwrap();
        };
        add(41, "A").await;
        let first = begin(42, &"a".repeat(64));
        assert_eq!(genesis(&folder, database.url()).await.unwrap(), first);
        make(&folder, &first);
        assert_eq!(genesis(&folder, database.url()).await.unwrap(), first, "nothing of it is stored so far");
        assert!(!aside.exists());

        // The store has a block that this chain has not.
        add(42, "b").await;
        let second = begin(43, &"b".repeat(64));
        assert_eq!(genesis(&folder, database.url()).await.unwrap(), second);
        assert!(aside.exists() && !folder.exists());
        // The same height after another block.
        make(&folder, &begin(43, &"c".repeat(64)));
        assert_eq!(genesis(&folder, database.url()).await.unwrap(), second);
        // Another chain, and one that the store is behind of.
        make(&folder, &Genesis { chain_id: "net-2".to_owned(), ..second.clone() });
        assert_eq!(genesis(&folder, database.url()).await.unwrap(), second);
        make(&folder, &begin(44, ""));
        assert_eq!(genesis(&folder, database.url()).await.unwrap(), second);
        assert!(!folder.exists());
    }

    /// Writes the file as an application of CometBFT would.
    #[tokio::test]
    async fn a_chain_whose_blocks_the_store_has_goes_on() {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("cometbft");
        let begun = Genesis { chain_id: "net-1".to_owned(), initial_height: 1, previous_hash: String::new() };
        make(&folder, &begun);
        let network = Network {
            chain_id: "net-1".to_owned(),
            algorithm: ALGORITHM.to_owned(),
            pow_prefix: String::new(),
        };
        let opened = Application::open(network, &file(&folder), Checks::None, SpamRules::default()).await;
        let application = opened.unwrap();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut stream = tokio::net::TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let served = application.clone();
        let serving = tokio::spawn(async move { match serve_application(listener, served).await {} });
        // FinalizeBlock (field 20) of height 1 (field 5) with its hash (field 4), then Commit (field 11).
        let block = [&[0x22, 32][..], &[0xab; 32], &[0x28, 1]].concat();
        let finalize = [&[0xa2, 1, block.len() as u8][..], &block].concat();
        stream.write_all(&[&[finalize.len() as u8][..], &finalize, &[2, 0x5a, 0]].concat()).await.unwrap();
        let mut heights = application.heights();
        heights.wait_for(|height| *height == 1).await.unwrap();
        stream.shutdown().await.unwrap();
        stream.read_to_end(&mut Vec::new()).await.unwrap();
        serving.abort();
        let _ = serving.await;
        drop((application, heights));

        let database = Database::fresh().await;
        let client = database.connect().await;
        let block = format!(
            "INSERT INTO chain (id) VALUES ('net-1'); INSERT INTO blocks VALUES (now(), 1, '{}')",
            "ab".repeat(32)
        );
        client.batch_execute(&block).await.unwrap();
        assert_eq!(genesis(&folder, database.url()).await.unwrap(), begun);
        client.execute("UPDATE last_block SET hash = repeat('cd', 32)", &[]).await.unwrap();
        assert_eq!(genesis(&folder, database.url()).await.unwrap().initial_height, 2);
    }
}
