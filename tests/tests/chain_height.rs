//! The chain's height (4.8) is never torn: height, hash and proof-of-work parameters of every answer belong
//! to the same block, while new blocks change the parameters. Each block is written to the store after the
//! node has it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};

use mesh_testbed::{Database, DevNode, Mesh, eventually};
use mesh_tests::{MeshClient, say};
use serde_json::{Value, json};
use tokio::{sync::SetOnce, task::JoinSet, time::timeout};
use tokio_postgres::Client;

const READERS: u64 = 8;
/// Number of blocks; every other one changes all parameters.
const BLOCKS: u64 = 24;
/// Time limit for an answer to show a change.
const TIME_LIMIT: Duration = Duration::from_secs(30);

/// The parameters in force at a block: keys, members of the answer, values.
fn parameters(height: u64) -> [(&'static str, &'static str, u64); 4] {
    let changed_at = height - 1 + height % 2;
    [
        ("difficulty", "spamPowDifficulty", changed_at),
        ("numberOfPastBlocks", "spamPowNumberOfPastBlocks", 100 + changed_at),
        ("numberOfTxPerBlock", "spamPowNumberOfTxPerBlock", 1000 + changed_at),
        ("increaseDifficulty", "spamPowIncreasingDifficulty", changed_at / 2 % 2),
    ]
}

/// What the writer has done and the readers have observed.
struct Scenario {
    /// The hashes of the blocks, once the node has made them.
    hashes: Vec<SetOnce<String>>,
    /// The newest block that both node and store have.
    done: AtomicU64,
    answers: AtomicU64,
    /// The newest block in any answer, and the newest one whose parameters were in any.
    newest_seen: AtomicU64,
    newest_parameters_seen: AtomicU64,
    is_over: AtomicBool,
    mesh: Mesh,
}

impl Scenario {
    /// The answer for a block of the node with the parameters of a block of the store.
    fn answer(&self, height: u64, store: u64) -> Value {
        let mut answer = json!({
            "height": height.to_string(), "hash": self.hash(height).get(), "chainId": "test-net",
            "spamPowHashFunction": "sha3_24_rounds",
        });
        for (key, member, value) in parameters(store) {
            answer[member] = if key == "increaseDifficulty" { json!(value == 1) } else { json!(value) };
        }
        answer
    }

    fn hash(&self, height: u64) -> &SetOnce<String> {
        &self.hashes[height as usize - 1]
    }

    /// Requests the height in a loop and checks that each answer is of one moment.
    async fn read(&self) {
        let mut newest = 0;
        while !self.is_over.load(SeqCst) {
            let before = self.done.load(SeqCst);
            let received = self.mesh.get("/blockchain/height").await;
            assert_eq!(received.status, 200, "{received:?}");
            let received = received.json();
            let height: u64 = received["height"].as_str().unwrap().parse().unwrap();
            // The node announces a block before the writer of this test has its hash.
            timeout(TIME_LIMIT, self.hash(height).wait()).await.unwrap();
            // The store is at the same block or at the one before it.
            let stores = [height, height.saturating_sub(1).max(1)];
            let store = stores.into_iter().find(|store| self.answer(height, *store) == received);
            let store = store.unwrap_or_else(|| panic!("torn: {received}"));
            assert!(height >= newest, "back from {newest} to {height}");
            // The edge may have shared the call of another reader, which began a little earlier.
            assert!(height + 2 > before, "old: {received} after block {before}");
            newest = height;
            self.newest_seen.fetch_max(height, SeqCst);
            self.newest_parameters_seen.fetch_max(store, SeqCst);
            self.answers.fetch_add(1, SeqCst);
        }
    }

    async fn until(&self, otherwise: &str, is_so: impl Fn() -> bool) {
        eventually(TIME_LIMIT, otherwise, async || is_so()).await;
    }

    /// Waits for one more answer of each reader.
    async fn more_answers(&self) {
        let enough = self.answers.load(SeqCst) + READERS;
        self.until("no answers come", || self.answers.load(SeqCst) >= enough).await;
    }

    async fn write(&self, store: &mut Client, node: &DevNode) {
        for height in 2..=BLOCKS {
            assert_eq!(node.block().await, height);
            self.hash(height).set(node.chain().newest().unwrap().hash).unwrap();
            let node_info = self.mesh.service("node-info");
            node_info.until_metric("mesh_node_height ", |newest| newest == height as f64).await;
            // Three blocks at once, while requests that began before them are in flight.
            if height % 4 != 0 {
                self.to_store(store, height).await;
                continue;
            }
            self.more_answers().await;
            self.to_store(store, height).await;
            let seen = |by: &AtomicU64| by.load(SeqCst) >= height;
            self.until("a block is not shown", || {
                seen(&self.newest_seen) && seen(&self.newest_parameters_seen)
            })
            .await;
            self.done.store(height, SeqCst);
            self.more_answers().await;
        }
        self.is_over.store(true, SeqCst);
    }

    async fn to_store(&self, store: &mut Client, height: u64) {
        let (block, number) = (store.transaction().await.unwrap(), height.cast_signed());
        let insert = "INSERT INTO blocks VALUES (to_timestamp($1::int8), $1, $2)";
        block.execute(insert, &[&number, &self.hash(height).get()]).await.unwrap();
        let insert = "INSERT INTO network_parameters (key, value, tx_hash, block_time)
            VALUES ('spam.pow.' || $1::text, $2, '', to_timestamp($3::int8))";
        for (key, _, value) in parameters(height).iter().filter(|_| height % 2 == 1) {
            block.execute(insert, &[key, &value.to_string(), &number]).await.unwrap();
        }
        block.commit().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_answer_is_consistent_while_the_parameters_change() {
    let (node, database) = tokio::join!(DevNode::start(), Database::fresh());
    let mut store = database.connect().await;
    let mesh = Mesh::configure(&database).env("MESH_NODE_URL", node.url());
    let setup = mesh.without(&["export", "query", "tx-relay"]);
    let scenario = Arc::new(Scenario {
        hashes: (0..BLOCKS).map(|_| SetOnce::new()).collect(),
        done: AtomicU64::new(1),
        answers: AtomicU64::new(0),
        newest_seen: AtomicU64::new(0),
        newest_parameters_seen: AtomicU64::new(0),
        is_over: AtomicBool::new(false),
        mesh: setup.start().await,
    });
    // The node begins with a block.
    scenario.hash(1).set(node.chain().newest().unwrap().hash).unwrap();
    scenario.to_store(&mut store, 1).await;
    MeshClient::new(&scenario.mesh).await_status("/blockchain/height", 200).await;
    let mut readers = JoinSet::new();
    for _ in 0..READERS {
        let scenario = Arc::clone(&scenario);
        readers.spawn(async move { scenario.read().await });
    }
    // Awaited together: if a reader fails, the writer would wait for answers without end.
    tokio::join!(readers.join_all(), scenario.write(&mut store, &node));
    let answers = scenario.answers.load(SeqCst);
    say(&format!("{answers} answers over {BLOCKS} blocks, none torn"));
}
