//! The chain's height (4.8) is never torn: height, hash and proof-of-work parameters of every answer belong
//! to the same block, while new blocks change the parameters. Each block is written to the store after the node has it.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use mesh_testbed::{Database, DevNode, Mesh, eventually};
use mesh_tests::say;
use serde_json::{Value, json};
use tokio::{sync::SetOnce, task::JoinSet, time::timeout};
use tokio_postgres::Client;

const READERS: usize = 8;
/// Number of blocks; every other one changes all parameters.
const BLOCKS: u64 = 24;
/// Number of answers to wait for between a write to the store and one to the node.
const ANSWERS: u64 = READERS as u64;
/// Time limit for an answer to show a change.
const TIME_LIMIT: Duration = Duration::from_secs(30);

/// A block and the parameters that it changes.
#[derive(Debug)]
struct Step {
    height: u64,
    /// The node's, once it has made the block.
    hash: SetOnce<String>,
    changes: BTreeMap<String, String>,
}

/// Every other block changes all parameters at once.
fn steps() -> impl Iterator<Item = Step> {
    (1..=BLOCKS).map(move |height| {
        let value = |key: &str, value: u64| (format!("spam.pow.{key}"), value.to_string());
        let all = [
            value("difficulty", height),
            value("numberOfPastBlocks", 100 + height),
            value("numberOfTxPerBlock", 1000 + height),
            value("increaseDifficulty", height / 2 % 2),
        ];
        let changes = if height % 2 == 1 { all.into() } else { BTreeMap::new() };
        Step { height, hash: SetOnce::new(), changes }
    })
}

/// The correct answer for a block and the parameters in force at it.
fn answer(block: &Step, parameters: &BTreeMap<String, String>) -> Value {
    let number = |key: &str| parameters[&format!("spam.pow.{key}")].parse::<u64>().unwrap();
    json!({
        "height": block.height.to_string(),
        "hash": block.hash.get(),
        "chainId": "test-net",
        "spamPowHashFunction": "sha3_24_rounds",
        "spamPowDifficulty": number("difficulty"),
        "spamPowNumberOfPastBlocks": number("numberOfPastBlocks"),
        "spamPowNumberOfTxPerBlock": number("numberOfTxPerBlock"),
        "spamPowIncreasingDifficulty": number("increaseDifficulty") == 1,
    })
}

/// The steps, and what the readers have observed of them.
struct Scenario {
    steps: Vec<Step>,
    /// The parameters in force after each step.
    parameters: Vec<BTreeMap<String, String>>,
    /// Number of steps that both node and store have.
    done: AtomicUsize,
    answers: AtomicU64,
    /// The greatest height in any answer.
    newest_height_seen: AtomicU64,
    /// The newest step whose parameters were in any answer.
    newest_step_seen: AtomicUsize,
    is_over: AtomicBool,
    mesh: Mesh,
}

impl Scenario {
    /// The correct answers while the node is at a step, one for each step that the store may be at meanwhile.
    fn correct_answers(&self, node: usize) -> impl Iterator<Item = (usize, Value)> {
        let stores = [node.saturating_sub(1), node].into_iter();
        stores.map(move |store| (store, answer(&self.steps[node], &self.parameters[store])))
    }

    /// Requests the height in a loop and checks that each answer is among the correct ones.
    async fn read(&self) -> u64 {
        let (mut answers, mut newest) = (0, 0);
        while !self.is_over.load(SeqCst) {
            let before = self.done.load(SeqCst);
            let received = self.mesh.get("/blockchain/height").await;
            assert_eq!(received.status, 200, "{received:?}");
            let received = received.json();
            let height: u64 = received["height"].as_str().unwrap().parse().unwrap();
            let step = self.steps.iter().position(|step| step.height == height);
            let step = step.unwrap_or_else(|| panic!("there was no such block: {received}"));
            // The node announces a block before the writer of this test has its hash.
            timeout(TIME_LIMIT, self.steps[step].hash.wait()).await.unwrap();
            let correct_answers: Vec<_> = self.correct_answers(step).collect();
            let store = correct_answers
                .iter()
                .filter(|(_, moment)| *moment == received)
                .map(|(store, _)| *store)
                .max();
            let store = store.unwrap_or_else(|| panic!("torn: {received}, not one of {correct_answers:?}"));
            assert!(height >= newest, "back from {newest} to {height}");
            // The edge may have shared the call of another reader, which began a little earlier.
            assert!(step + 2 >= before, "old: {received} after {before} steps");
            (answers, newest) = (answers + 1, height);
            self.newest_height_seen.fetch_max(height, SeqCst);
            self.newest_step_seen.fetch_max(store, SeqCst);
            self.answers.fetch_add(1, SeqCst);
        }
        answers
    }

    /// Waits for this many more answers.
    async fn more_answers(&self) {
        let enough = self.answers.load(SeqCst) + ANSWERS;
        self.until("no answers come", || self.answers.load(SeqCst) >= enough).await;
    }

    /// Waits until the service has received a block of the node.
    async fn node_height_reached(&self, height: u64) {
        let metric_line = format!("mesh_node_height {height}\n");
        eventually(TIME_LIMIT, "the service does not receive the node's block", async || {
            self.mesh.service("node-info").admin("/metrics").await.text().contains(&metric_line)
        })
        .await;
    }

    async fn until(&self, otherwise: &str, is_so: impl Fn() -> bool) {
        eventually(TIME_LIMIT, otherwise, async || is_so()).await;
    }

    async fn write(&self, store: &mut Client, node: &DevNode) {
        for (number, step) in self.steps.iter().enumerate().skip(1) {
            to_node(node, step).await;
            self.node_height_reached(step.height).await;
            // Three blocks at once, while requests that began before them are in flight.
            if number % 4 != 0 && number + 1 < self.steps.len() {
                to_store(store, step).await;
                continue;
            }
            self.more_answers().await;
            to_store(store, step).await;
            let shown = || {
                self.newest_height_seen.load(SeqCst) >= step.height
                    && self.newest_step_seen.load(SeqCst) >= number
            };
            self.until("a block is not shown", shown).await;
            self.done.store(number + 1, SeqCst);
            self.more_answers().await;
        }
        self.is_over.store(true, SeqCst);
    }
}

async fn to_store(store: &mut Client, step: &Step) {
    let block = store.transaction().await.unwrap();
    let insert = "INSERT INTO blocks VALUES (to_timestamp($1::int8), $1, $2)";
    block.execute(insert, &[&step.height.cast_signed(), &step.hash.get()]).await.unwrap();
    let insert = "INSERT INTO network_parameters (key, value, tx_hash, block_time)
        VALUES ($1, $2, '', to_timestamp($3::int8))";
    for (key, value) in &step.changes {
        block.execute(insert, &[key, value, &step.height.cast_signed()]).await.unwrap();
    }
    block.commit().await.unwrap();
}

async fn to_node(node: &DevNode, step: &Step) {
    assert_eq!(node.block().await, step.height);
    step.hash.set(node.chain().newest().unwrap().hash).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_answer_is_consistent_while_the_parameters_change() {
    let steps: Vec<Step> = steps().collect();
    let mut in_force = BTreeMap::new();
    let parameters = steps.iter().map(|step| {
        in_force.extend(step.changes.clone());
        in_force.clone()
    });
    let parameters = parameters.collect();

    let (node, database) = tokio::join!(DevNode::start(), Database::fresh());
    let mut store = database.connect().await;
    // The node begins with a block.
    steps[0].hash.set(node.chain().newest().unwrap().hash).unwrap();
    to_store(&mut store, &steps[0]).await;
    let mesh = Mesh::configure(&database).env("MESH_NODE_URL", node.url());
    let mesh = mesh.without("export").without("query").without("tx-relay").start().await;
    let scenario = Arc::new(Scenario {
        steps,
        parameters,
        done: AtomicUsize::new(1),
        answers: AtomicU64::new(0),
        newest_height_seen: AtomicU64::new(0),
        newest_step_seen: AtomicUsize::new(0),
        is_over: AtomicBool::new(false),
        mesh,
    });
    let mut readers = JoinSet::new();
    for _ in 0..READERS {
        let scenario = Arc::clone(&scenario);
        readers.spawn(async move { scenario.read().await });
    }
    let reading = async {
        let mut answers = 0;
        while let Some(reader) = readers.join_next().await {
            // A reader's failed assertion ends the test.
            answers += reader.unwrap();
        }
        answers
    };
    // Awaited together: if a reader fails, the writer would wait for answers without end.
    let (answers, ()) = tokio::join!(reading, scenario.write(&mut store, &node));
    say(&format!("{answers} answers over {} blocks, none torn", scenario.steps.len()));
}
