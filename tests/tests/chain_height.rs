//! The chain's height (4.8) is never torn: height, hash and proof-of-work parameters of every answer belong
//! to the same block, while new blocks change the parameters.
//!
//! The blocks are those around the four parameter changes in the recording (`../shared/data/smoketest-5000`,
//! if it exists), written to the store before the node as with a development node; and generated ones that
//! change all parameters, written to the node before the store as in a network.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use mesh_devnode::Chain;
use mesh_testbed::{Database, DevNode, Mesh, eventually};
use mesh_tests::say;
use mesh_transaction::{Block, SpamRules};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_postgres::Client;

const READERS: usize = 8;
/// Blocks before and after each recorded change.
const BLOCKS_AROUND: u64 = 3;
/// Number of generated blocks; every other one changes all parameters.
const GENERATED_BLOCKS: u64 = 24;
/// Number of answers to wait for between a write to the store and one to the node.
const ANSWERS: u64 = READERS as u64;
/// Time limit for an answer to show a change.
const TIME_LIMIT: Duration = Duration::from_secs(30);

/// Whether the node or the store gets a block first.
#[derive(Debug, Clone, Copy, PartialEq)]
enum FirstWriter {
    Store,
    Node,
}

/// A block and the parameters that it changes.
#[derive(Debug)]
struct Step {
    height: u64,
    hash: String,
    time: String,
    changes: BTreeMap<String, String>,
    first_writer: FirstWriter,
}

/// The blocks around the recorded changes; the first one sets all parameters that were in force before it.
fn recorded() -> Option<Vec<Step>> {
    let folder = mesh_tests::recording()?;
    let rows = |name: &str| -> Option<Vec<csv::StringRecord>> {
        let mut file = csv::Reader::from_path(folder.join(name)).ok()?;
        Some(file.records().map(Result::unwrap).collect())
    };
    let mut changed = BTreeMap::<String, BTreeMap<String, String>>::new();
    // Columns: key, value, tx_hash, block_time.
    for row in rows("network_parameters.csv")?.iter().filter(|row| row[0].starts_with("spam.pow.")) {
        changed.entry(row[3].to_owned()).or_default().insert(row[0].to_owned(), row[1].to_owned());
    }
    // Columns: block_time, height, hash.
    let blocks = rows("blocks.csv")?;
    let height = |block: &csv::StringRecord| block[1].parse::<u64>().unwrap();
    let changing: Vec<u64> = blocks
        .iter()
        .filter(|block| changed.contains_key(&block[0]))
        .map(height)
        .filter(|height| *height > 1)
        .collect();
    let is_near = |block: &&csv::StringRecord| {
        changing.iter().any(|near| near.abs_diff(height(block)) <= BLOCKS_AROUND)
    };
    let mut near: Vec<&csv::StringRecord> = blocks.iter().filter(is_near).collect();
    near.sort_by_key(|block| height(block));
    let mut steps: Vec<Step> = near
        .into_iter()
        .map(|block| Step {
            height: height(block),
            hash: block[2].to_owned(),
            time: block[0].to_owned(),
            changes: changed.get(&block[0]).cloned().unwrap_or_default(),
            first_writer: FirstWriter::Store,
        })
        .collect();
    assert_eq!(
        steps.iter().filter(|step| !step.changes.is_empty()).count(),
        4,
        "the recording has four changes"
    );
    let at_first = blocks.iter().find(|block| height(block) == 1).map(|block| changed[&block[0]].clone());
    steps[0].changes = at_first.unwrap();
    Some(steps)
}

/// Generated blocks; every other one changes all parameters at once.
fn generated(after: u64) -> impl Iterator<Item = Step> {
    (1..=GENERATED_BLOCKS).map(move |number| {
        let value = |key: &str, value: u64| (format!("spam.pow.{key}"), value.to_string());
        let all = [
            value("difficulty", number),
            value("numberOfPastBlocks", 100 + number),
            value("numberOfTxPerBlock", 1000 + number),
            value("increaseDifficulty", number / 2 % 2),
        ];
        Step {
            height: after + number,
            hash: format!("{number:064x}"),
            time: format!("2024-01-01 00:{:02}:{:02}+00", number / 60, number % 60),
            changes: if number % 2 == 1 { all.into() } else { BTreeMap::new() },
            first_writer: FirstWriter::Node,
        }
    })
}

/// The correct answer for a block and the parameters in force at it.
fn answer(block: &Step, parameters: &BTreeMap<String, String>) -> Value {
    let number = |key: &str| parameters[&format!("spam.pow.{key}")].parse::<u64>().unwrap();
    json!({
        "height": block.height.to_string(),
        "hash": block.hash,
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
        let before = (self.steps[node].first_writer == FirstWriter::Node).then(|| node.saturating_sub(1));
        let behind =
            self.steps.get(node + 1).filter(|next| next.first_writer == FirstWriter::Store).map(|_| node + 1);
        let stores = before.into_iter().chain([node]).chain(behind);
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
        eventually(TIME_LIMIT, "the service does not hear of the node's block", async || {
            self.mesh.service("node-info").admin("/metrics").await.text().contains(&metric_line)
        })
        .await;
    }

    async fn until(&self, otherwise: &str, is_so: impl Fn() -> bool) {
        eventually(TIME_LIMIT, otherwise, async || is_so()).await;
    }

    async fn write(&self, store: &mut Client, node: &Chain) {
        for (number, step) in self.steps.iter().enumerate().skip(1) {
            match step.first_writer {
                FirstWriter::Store => {
                    to_store(store, step).await;
                    self.more_answers().await;
                    to_node(node, step).await;
                }
                FirstWriter::Node => {
                    to_node(node, step).await;
                    self.node_height_reached(step.height).await;
                    // Three blocks at once, while requests that began before them are in flight.
                    if number % 4 != 0 && number + 1 < self.steps.len() {
                        to_store(store, step).await;
                        continue;
                    }
                    self.more_answers().await;
                    to_store(store, step).await;
                }
            }
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
    let insert = "INSERT INTO blocks (block_time, height, hash) VALUES ($1::text::timestamptz, $2, $3)";
    block.execute(insert, &[&step.time, &step.height.cast_signed(), &step.hash]).await.unwrap();
    let insert = "INSERT INTO network_parameters (key, value, tx_hash, block_time)
        VALUES ($1, $2, '', $3::text::timestamptz)";
    for (key, value) in &step.changes {
        block.execute(insert, &[key, value, &step.time]).await.unwrap();
    }
    block.commit().await.unwrap();
}

async fn to_node(node: &Chain, step: &Step) {
    let time = Duration::from_secs(step.height);
    let block = Block { height: step.height, hash: step.hash.clone(), time };
    node.commit(block, SpamRules::default()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_answer_is_consistent_while_the_parameters_change() {
    let mut steps = recorded().unwrap_or_default();
    let newest = steps.last().map_or(1, |step| step.height);
    steps.extend(generated(newest));
    let mut in_force = BTreeMap::new();
    let parameters = steps.iter().map(|step| {
        in_force.extend(step.changes.clone());
        in_force.clone()
    });
    let parameters = parameters.collect();

    let (node, database) = tokio::join!(DevNode::start(), Database::fresh());
    let mut store = database.connect().await;
    to_store(&mut store, &steps[0]).await;
    to_node(node.chain(), &steps[0]).await;
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
    let (answers, ()) = tokio::join!(reading, scenario.write(&mut store, node.chain()));
    say(&format!("{answers} answers over {} blocks, none torn", scenario.steps.len()));
}
