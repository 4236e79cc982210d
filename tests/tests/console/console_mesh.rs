//! What the console's tests run against: a demo network behind a mesh, with a node that makes blocks.

use std::time::{Duration, SystemTime};

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

pub(crate) struct ConsoleMesh {
    pub(crate) mesh: Mesh,
    pub(crate) node: DevNode,
    pub(crate) mesh_client: MeshClient,
    pub(crate) database: Database,
}

impl ConsoleMesh {
    /// Starts a mesh over a copy of the demo network, which the first test writes.
    pub(crate) async fn demo() -> Self {
        static DEMO: OnceCell<Database> = OnceCell::const_new();
        Self::over_database(DEMO.get_or_init(|| demo_network(BLOCKS)).await.copy().await).await
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
        let node = DevNode::configure().chain_id(CHAIN).every(Duration::from_millis(200)).start().await;
        let mesh = Mesh::configure(&database).env("MESH_NODE_URL", node.url());
        let mesh =
            mesh.env("MESH_HISTORY_INTERVAL_BLOCKS", SEGMENT).env("MESH_RELAY_SIGNATURE_ALGO", "ed25519");
        let mesh = env.iter().fold(mesh, |mesh, (name, value)| mesh.env(*name, *value)).start().await;
        let mesh_client = MeshClient::new(&mesh);
        Self { mesh, node, mesh_client, database }
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
