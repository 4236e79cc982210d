//! Writes blocks continuously, all rows of a block in one transaction, and sometimes late rows of earlier
//! blocks, which change answers without changing the height. Before each commit it asks the oracle for the
//! answers to all questions in the state that the commit makes.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use mesh::failure::{Failure, cannot};
use mesh_oracles::{Oracle, Question};
use rand::{Rng as _, SeedableRng as _, rngs::SmallRng, seq::IndexedRandom as _};
use tokio::time::interval;
use tokio_postgres::Client;

use super::history::History;

/// Time between two opportunities to write, and one of how many is used.
const PACE: Duration = Duration::from_millis(50);
const WRITES_ONE_OF: u32 = 2;
/// Length of occasional pauses without a new block, milliseconds: only then can an answer with the newest
/// height be too old.
const PAUSE_MS: std::ops::Range<u64> = 1500..3500;
/// Time of block 0, seconds since the Unix epoch. Blocks are one second apart.
const GENESIS_S: i64 = 1_687_255_200;
/// So many blocks are written before clients start, and get no late rows: answers as of them never change.
pub(super) const FINAL_BLOCKS: i64 = 5;
/// Functions, the rows of the first block, and statements for a random row each.
const ROWS: &str = include_str!("rows.sql");

/// The time of a block, seconds.
pub(super) fn time_s(height: i64) -> i64 {
    GENESIS_S + height
}

/// The only writer of a store. Faults do not affect its connection.
pub(super) struct Writer {
    oracle: Oracle,
    random: SmallRng,
    history: Arc<History>,
    questions: Vec<Question>,
    /// Statements for a random row each.
    rows: Vec<&'static str>,
    /// Number of rows.
    written: u32,
    height: i64,
}

impl Writer {
    /// Writes the first blocks into an empty store, so that every question has an answer.
    pub(super) async fn start(client: Client, seed: u64) -> Result<(Self, Arc<History>), Failure> {
        let (history, mut random) = (Arc::new(History::new(questions())), SmallRng::seed_from_u64(seed));
        let mut sections = ROWS.split("\n\n");
        let (functions, first) = (sections.next().unwrap_or_default(), sections.next().unwrap_or_default());
        let oracle = Oracle::open(client).await.map_err(|error| refused(&error))?;
        let seeded = format!("{functions} SELECT setseed({});", random.random_range(-1.0..1.0));
        oracle.client().batch_execute(&seeded).await.map_err(|error| refused(&error))?;
        let read = history.questions.iter().map(|path| Question::read(path));
        let questions =
            read.collect::<Option<_>>().ok_or_else(|| Failure::failed("a path of no operation"))?;
        let rows = sections.collect();
        let mut writer = Self { oracle, random, history, questions, rows, written: 0, height: 0 };
        let first = writer.at_block(first, 1);
        writer.commit(true, &first).await?;
        for height in 2..=FINAL_BLOCKS {
            let rows = writer.random_rows(6, height);
            writer.commit(true, &rows).await?;
        }
        let history = Arc::clone(&writer.history);
        Ok((writer, history))
    }

    /// Writes until the run is over, at a pace this many times slower.
    pub(super) async fn run(mut self, slack: u32, is_over: impl Fn() -> bool) -> Result<(), Failure> {
        let (mut pace, mut paused_until) = (interval(PACE * slack), Instant::now());
        while !is_over() {
            pace.tick().await;
            if !self.random.random_ratio(1, WRITES_ONE_OF) {
                continue;
            }
            if paused_until < Instant::now() && self.random.random_ratio(1, 30) {
                paused_until = Instant::now() + Duration::from_millis(self.random.random_range(PAUSE_MS));
            }
            let is_block = paused_until < Instant::now() && self.random.random_bool(0.8);
            // A block without rows advances the head as well.
            let count = self.random.random_range(usize::from(!is_block)..6);
            let newest = self.height + i64::from(is_block);
            let late = (FINAL_BLOCKS + 1).min(newest)..=newest;
            let height = if is_block { newest } else { self.random.random_range(late) };
            let rows = if height > FINAL_BLOCKS { self.random_rows(count, height) } else { String::new() };
            self.commit(is_block, &rows).await?;
        }
        // A client that resumes receives late rows only with the next block (contract W6).
        self.commit(true, "").await
    }

    /// Statements for so many random rows of a block.
    fn random_rows(&mut self, count: usize, height: i64) -> String {
        let mut rows = String::new();
        for _ in 0..count {
            let statement = self.rows.choose(&mut self.random).copied().unwrap_or_default();
            rows += &self.at_block(statement, height);
        }
        rows
    }

    /// Statements for rows of a block.
    fn at_block(&mut self, statements: &str, height: i64) -> String {
        self.written += 1;
        let time = format!("to_timestamp({})", time_s(height));
        statements.replace("{time}", &time).replace("{number}", &self.written.to_string())
    }

    /// Writes rows in one transaction, with the next block if there is one.
    async fn commit(&mut self, is_block: bool, rows: &str) -> Result<(), Failure> {
        let mut statements = format!("BEGIN; {rows}");
        if is_block {
            self.height += 1;
            let block = "INSERT INTO blocks VALUES ({time}, {height}, lpad('{height}', 64, '0'));";
            statements += &self.at_block(block, self.height).replace("{height}", &self.height.to_string());
        }
        self.oracle.client().batch_execute(&statements).await.map_err(|error| refused(&error))?;
        let answers = self.questions.iter().map(|question| self.oracle.answer(question));
        let answers = futures_util::future::try_join_all(answers).await.map_err(|error| refused(&error))?;
        self.history.commit_begins(self.height.unsigned_abs(), answers.into_iter().flatten());
        self.oracle.client().batch_execute("COMMIT").await.map_err(|error| refused(&error))?;
        self.history.commit_ended();
        Ok(())
    }
}

fn refused(error: &tokio_postgres::Error) -> Failure {
    cannot("write rows", error)
}

/// An id of 64 hexadecimal digits.
fn id(kind: char, number: u32) -> String {
    format!("{kind}{number:063x}")
}

/// The paths that clients request. All have an answer from the first block on.
fn questions() -> Vec<String> {
    let asset = id('f', 1);
    let mut questions: Vec<String> = [
        "/accounts",
        "/accounts?party=network",
        "/api/v2/delegations?pagination.first=5",
        "/api/v2/delegations?epochId=2",
        "/api/v2/rewards/epoch/summaries",
        "/api/v2/rewards/epoch/summaries?pagination.first=3",
        &format!("/api/v2/rewards/epoch/summaries?filter.toEpoch=2&filter.assetIds={asset}"),
        "/api/v2/upgrade/proposals",
        "/api/v2/upgrade/proposals?status=PROTOCOL_UPGRADE_PROPOSAL_STATUS_APPROVED",
        "/api/v2/network/limits",
        "/api/v2/orders?pagination.first=5",
        "/api/v2/orders?liveOnly=true",
        "/api/v2/deposits",
        "/api/v2/withdrawals",
    ]
    .map(str::to_owned)
    .into();
    for number in 1..3 {
        let [market, party, withdrawal, spec, order] = ['a', 'b', 'd', 'e', '9'].map(|kind| id(kind, number));
        questions.extend([
            format!("/accounts?party={party}"),
            format!("/accounts?market={market}"),
            format!("/api/v2/delegations?partyId={party}"),
            format!("/api/v2/withdrawal/{withdrawal}"),
            format!("/api/v2/oracle/spec/{spec}"),
            format!("/api/v2/order/{order}"),
            format!("/api/v2/market/{market}/depth"),
            format!("/api/v2/party/{party}/portfolio"),
            format!("/api/v2/candle?candleId=trades_candle_1_hour_{market}"),
            format!("/api/v2/candle?candleId=trades_candle_block_{market}&pagination.first=5"),
            format!("/api/v2/rewards/epoch/summaries?filter.marketIds={market}"),
        ]);
    }
    questions
}
