//! What the console's tests run against: a demo network behind a mesh, with a node that makes blocks.

use std::{
    borrow::Borrow,
    ops::{Deref, DerefMut},
    time::{Duration, SystemTime},
};

use mesh_demo::{Plan, write_history};
use mesh_testbed::{Database, DevNode, Mesh};
use mesh_tests::MeshClient;
use serde_json::Value;
use tokio::sync::OnceCell;

/// Blocks of the demo network, of a short one that is sealed quickly, and of a segment.
const BLOCKS: u64 = 1500;
const FEW_BLOCKS: u64 = 550;
const SEGMENT: &str = "100";

/// Its chain id: on a demo network the console offers examples and a key.
const CHAIN: &str = "demo-0001";

/// Ids of the demo network.
pub(crate) const MARKET: &str = "54b92e25c8a3bfc9ea331cc9462bfd97dcdfc8f0b8df36c142237dee19c2850b";
pub(crate) const WITHDRAWAL: &str = "0119eefe5d5be3aa39ddac41e31fe9ffaefb6da65529eaa0e9c90d0bb365aff3";
pub(crate) const ORACLE_SPEC: &str = "0d493ddfb40c3cea313acd16d398344eeaad1d27a4a7ff5e91225decedbc8c16";
pub(crate) const ASSET: &str = "a60587ce0be0ddcf350e9c84eb6e46ded2ad6702343c074c30418b934b205eed";

/// Time between two blocks of a node, and of the one of the shared mesh, which runs for minutes: its chain must not
/// pass the store.
const BLOCK_TIME: Duration = Duration::from_millis(200);
const SHARED_BLOCK_TIME: Duration = Duration::from_secs(1);

/// A mesh, its node and its database.
pub(crate) struct Parts {
    pub(crate) mesh: Mesh,
    pub(crate) node: DevNode,
    pub(crate) database: Database,
}

impl Parts {
    async fn start(database: Database, block_time: Duration, env: &[(&str, &str)]) -> Self {
        let node = DevNode::configure().chain_id(CHAIN).every(block_time).start().await;
        let mesh = Mesh::configure(&database).env("MESH_NODE_URL", node.url());
        let mesh =
            mesh.env("MESH_HISTORY_INTERVAL_BLOCKS", SEGMENT).env("MESH_RELAY_SIGNATURE_ALGO", "ed25519");
        let mesh = env.iter().fold(mesh, |mesh, (name, value)| mesh.env(*name, *value)).start().await;
        Self { mesh, node, database }
    }
}

/// A mesh with a client of the test that uses it: connections end with a test's runtime.
pub(crate) struct ConsoleMesh<P = Parts> {
    parts: P,
    pub(crate) mesh_client: MeshClient,
}

/// The mesh over the demo network that tests share; they only read.
pub(crate) type SharedConsoleMesh = ConsoleMesh<&'static Parts>;

impl SharedConsoleMesh {
    pub(crate) async fn shared() -> Self {
        static SHARED: OnceCell<Parts> = OnceCell::const_new();
        let start = async || Parts::start(demo_copy().await, SHARED_BLOCK_TIME, &[]).await;
        Self::of(SHARED.get_or_init(start).await)
    }
}

impl ConsoleMesh {
    /// Starts a mesh over a copy of the demo network.
    pub(crate) async fn demo() -> Self {
        Self::over_database(demo_copy().await).await
    }

    /// The same with fewer blocks; waits until all complete segments are sealed.
    pub(crate) async fn sealed() -> Self {
        static SHORT: OnceCell<Database> = OnceCell::const_new();
        let database = SHORT.get_or_init(|| demo_network(FEW_BLOCKS)).await.copy().await;
        let console_mesh = Self::over_database(database).await;
        let segments = [(1, 100), (101, 200), (201, 300), (301, 400), (401, 500)];
        console_mesh.mesh_client.until_sealed(&segments).await;
        console_mesh
    }

    /// Starts a mesh over a database that has been filled.
    pub(crate) async fn over_database(database: Database) -> Self {
        Self::with_env(database, &[]).await
    }

    /// The same with these variables.
    pub(crate) async fn with_env(database: Database, env: &[(&str, &str)]) -> Self {
        Self::of(Parts::start(database, BLOCK_TIME, env).await)
    }
}

impl<P: Borrow<Parts>> ConsoleMesh<P> {
    fn of(parts: P) -> Self {
        let borrowed: &Parts = parts.borrow();
        let mesh_client = MeshClient::new(&borrowed.mesh);
        Self { parts, mesh_client }
    }

    pub(crate) async fn first_id(&self, table: &str) -> String {
        let statement = format!("SELECT id FROM {table} ORDER BY id LIMIT 1");
        self.database.connect().await.query_one(&statement, &[]).await.unwrap().get(0)
    }

    pub(crate) async fn json(&self, path: &str) -> Value {
        // On a busy machine a request may fail with a status that asks to repeat it.
        self.mesh_client.await_status(path, 200).await;
        self.mesh_client.get(path).await.json()
    }
}

impl<P: Borrow<Parts>> Deref for ConsoleMesh<P> {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        self.parts.borrow()
    }
}

impl DerefMut for ConsoleMesh {
    fn deref_mut(&mut self) -> &mut Parts {
        &mut self.parts
    }
}

/// A copy of the demo network, which the first test writes.
async fn demo_copy() -> Database {
    static DEMO: OnceCell<Database> = OnceCell::const_new();
    DEMO.get_or_init(|| demo_network(BLOCKS)).await.copy().await
}

async fn demo_network(blocks: u64) -> Database {
    let database = Database::fresh().await;
    let plan = Plan { blocks, ..Plan::default() }.ending_at(SystemTime::now());
    write_history(database.url(), &plan, |_, _| ()).await.unwrap();
    database
}

/// A number with the console's digit grouping.
pub(crate) fn ungrouped(text: &str) -> String {
    text.replace('\u{202f}', "")
}
