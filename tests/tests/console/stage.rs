//! What the console's tests run against: a demo network behind a mesh, with a node that makes blocks.

use std::time::{Duration, SystemTime};

use mesh_demo::{Plan, write_history};
use mesh_testbed::{Database, DevNode, Mesh};
use mesh_tests::outside::Outside;
use serde_json::Value;

/// Blocks of the demo network, of a short one that is sealed quickly, and of a segment.
const BLOCKS: u64 = 1200;
const FEW_BLOCKS: u64 = 550;
const SEGMENT: &str = "100";

/// Ids of the demo network.
pub(crate) const MARKET: &str = "54b92e25c8a3bfc9ea331cc9462bfd97dcdfc8f0b8df36c142237dee19c2850b";
pub(crate) const WITHDRAWAL: &str = "0119eefe5d5be3aa39ddac41e31fe9ffaefb6da65529eaa0e9c90d0bb365aff3";
pub(crate) const ORACLE_SPEC: &str = "0d493ddfb40c3cea313acd16d398344eeaad1d27a4a7ff5e91225decedbc8c16";
pub(crate) const ASSET: &str = "a60587ce0be0ddcf350e9c84eb6e46ded2ad6702343c074c30418b934b205eed";

/// A mesh over a demo network.
pub(crate) struct Stage {
    pub(crate) mesh: Mesh,
    pub(crate) node: DevNode,
    pub(crate) outside: Outside,
    pub(crate) database: Database,
}

impl Stage {
    /// Writes the demo network to a database and starts the mesh.
    pub(crate) async fn demo() -> Self {
        Self::of(BLOCKS).await
    }

    /// The same with fewer blocks; waits until all complete segments are sealed.
    pub(crate) async fn sealed() -> Self {
        let stage = Self::of(FEW_BLOCKS).await;
        stage.outside.until_sealed(&[(1, 100), (101, 200), (201, 300), (301, 400), (401, 500)]).await;
        stage
    }

    async fn of(blocks: u64) -> Self {
        let database = Database::fresh().await;
        let plan = Plan { blocks, ..Plan::default() }.ending_at(SystemTime::now());
        write_history(database.url(), &plan, |_, _| ()).await.unwrap();
        Self::over(database).await
    }

    /// Starts a mesh over a database that has been filled.
    pub(crate) async fn over(database: Database) -> Self {
        let node = DevNode::configure().every(Duration::from_millis(200)).start().await;
        let mesh = Mesh::configure(&database)
            .env("MESH_NODE_URL", node.url())
            .env("MESH_HISTORY_INTERVAL_BLOCKS", SEGMENT)
            .env("MESH_RELAY_SIGNATURE_ALGO", "ed25519")
            .start()
            .await;
        let outside = Outside::of(&mesh);
        Self { mesh, node, outside, database }
    }

    /// The API's answer to a GET.
    pub(crate) async fn json(&self, path: &str) -> Value {
        // On a busy machine a request may fail with a status that asks to repeat it.
        self.outside.await_status(path, 200).await;
        self.outside.get(path).await.json()
    }
}

/// A number with the console's digit grouping.
pub(crate) fn ungrouped(text: &str) -> String {
    text.replace('\u{202f}', "")
}
