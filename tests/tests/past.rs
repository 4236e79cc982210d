//! Answers as of random blocks, of every operation that has a past: of the demo network, and of the recorded one.

use mesh_demo::{Plan, write_history};
use mesh_oracles::{Oracle, Question, query};
use mesh_testbed::{Database, Mesh};
use mesh_tests::{Call, Rpc, assert_same, bases, env_number, filtered, say};
use proto_msgs::{Contract, OperationInfo};
use rand::{Rng as _, RngCore as _, SeedableRng as _, rngs::SmallRng, seq::IndexedRandom as _};

use crate::recorded_network::recording::with_recording;

/// The paths of the operations that read one thing.
const SINGLES: &str = include_str!("past/singles.sql");

/// How many blocks are read: `MESH_TEST_HEIGHTS`, or a few.
fn heights() -> usize {
    env_number("MESH_TEST_HEIGHTS", 10)
}

struct Past<'a> {
    mesh: &'a Mesh,
    rpc: &'a Rpc,
    oracle: Oracle,
    height: u64,
    random: SmallRng,
    answers: usize,
}

impl Past<'_> {
    /// Asserts that a path is answered as of the block as its oracle computes it.
    async fn check(&mut self, path: &str) {
        let expected = self.oracle.answer(&Question::read(path).unwrap()).await.unwrap();
        let path = format!("{path}&atBlock={}", self.height);
        let answer = self.mesh.get(&path).await;
        let Some(expected) = expected else {
            assert_eq!(answer.status, 404, "{path}: {answer:?}");
            return;
        };
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        assert_eq!(answer.header("x-block-height"), Some(&*self.height.to_string()), "{path}");
        let reply = self.rpc.json(&Call::from_path(&path).unwrap()).await.unwrap();
        for found in [answer.json(), reply] {
            assert_same(&path, &found, &expected);
        }
        self.answers += 1;
    }

    /// Checks a list, with filters and in pages.
    async fn check_list(&mut self, operation: &OperationInfo, markets: &[String]) {
        let base = bases(operation, markets).choose(&mut self.random).unwrap().clone();
        let all = self.oracle.listing(&Question::read(&base).unwrap()).await.unwrap();
        self.check(&base).await;
        let mut targets = filtered(operation, &base, &all, (1, &mut self.random));
        targets.push(base);
        let target = targets.choose(&mut self.random).unwrap().clone();
        let listing = self.oracle.listing(&Question::read(&target).unwrap()).await.unwrap();
        let size = self.random.random_range(1..=1 + listing.rows.len());
        let page = listing.walks(size).choose(&mut self.random).unwrap().clone();
        self.check(&format!("{target}{}", query(&page))).await;
    }
}

/// Compares answers as of random blocks up to the newest one.
async fn compare(mesh: &Mesh, rpc: &Rpc, database: &Database) {
    let seed = env_number("MESH_TEST_SEED", 20_230_118);
    let client = database.connect().await;
    let texts = async |sql: &str| -> Vec<String> {
        client.query(sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
    };
    let (singles, markets) =
        (texts(SINGLES).await, texts("SELECT DISTINCT id FROM markets ORDER BY 1").await);
    let head: i64 = client.query_one("SELECT height FROM last_block", &[]).await.unwrap().get(0);
    let oracle = Oracle::of_the_past(database.connect().await).await.unwrap();
    let random = SmallRng::seed_from_u64(seed);
    let mut past = Past { mesh, rpc, oracle, height: 0, random, answers: 0 };
    let operations = Contract::get().operations().iter().filter(|operation| operation.has_past());
    let (lists, others): (Vec<_>, Vec<_>) = operations.partition(|operation| operation.is_paged());
    for _ in 0..heights() {
        past.height = past.random.random_range(1..=head.unsigned_abs());
        past.oracle.at_block(past.height).await.unwrap();
        for operation in &lists {
            past.check_list(operation, &markets).await;
        }
        for operation in &others {
            let template = operation.template();
            let (start, end) = template.split_once('{').unwrap_or((&template, "}"));
            let end = end.split_once('}').map_or("", |(_, end)| end);
            let is_of_it = |path: &&String| path.starts_with(start) && path.contains(&format!("{end}?"));
            let paths: Vec<&String> = singles.iter().filter(is_of_it).collect();
            let count = if operation.name == "GetMarketDepth" { 5 } else { 1 };
            for path in paths.choose_multiple(&mut past.random.clone(), count) {
                past.check(path).await;
            }
            past.random.next_u32();
        }
    }
    let answers = past.answers;
    say(&format!("{answers} answers as of {} blocks equal over HTTP and gRPC", heights()));
    assert!(answers > 15 * heights(), "{answers}");
}

#[tokio::test]
async fn every_answer_as_of_a_block_of_the_demo_network_is_what_its_oracle_computes() {
    let database = Database::fresh().await;
    let plan = Plan { blocks: 600, ..Plan::default() };
    write_history(database.url(), &plan, |_, _| ()).await.unwrap();
    let mesh = Mesh::start(&database).await;
    compare(&mesh, &Rpc::connect(&mesh).await, &database).await;
}

#[test]
fn every_answer_as_of_a_recorded_block_is_what_its_oracle_computes() {
    with_recording(async |recording| compare(&recording.mesh, &recording.rpc, &recording.database).await);
}
