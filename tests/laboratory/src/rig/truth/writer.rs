//! Writes blocks continuously, all rows of a block in one transaction, and sometimes late rows of earlier
//! blocks, which change answers without changing the height.

use std::{
    collections::HashSet,
    sync::Arc,
    time::{Duration, Instant},
};

use mesh::failure::{Failure, cannot};
use rand::{Rng as _, SeedableRng as _, rngs::SmallRng};
use tokio::time::interval;
use tokio_postgres::Client;

use super::{
    history::History,
    rows::{ACCOUNTS, Row, id, time_s},
    store_model::StoreModel,
};

/// Time between two opportunities to write, and one of how many is used.
const PACE: Duration = Duration::from_millis(50);
const WRITES_ONE_OF: u32 = 2;
/// Length of occasional pauses without a new block, milliseconds: only then can an answer with the newest
/// height be too old.
const PAUSE_MS: std::ops::Range<u64> = 1500..3500;

const WITHDRAWAL: [&str; 3] = ["STATUS_OPEN", "STATUS_REJECTED", "STATUS_FINALIZED"];
const SPEC: [&str; 2] = ["STATUS_ACTIVE", "STATUS_DEACTIVATED"];
const REWARD: [&str; 2] = ["ACCOUNT_TYPE_GLOBAL_REWARD", "ACCOUNT_TYPE_REWARD_MAKER_PAID_FEES"];
const PROPOSAL: [&str; 3] = [
    "PROTOCOL_UPGRADE_PROPOSAL_STATUS_PENDING",
    "PROTOCOL_UPGRADE_PROPOSAL_STATUS_APPROVED",
    "PROTOCOL_UPGRADE_PROPOSAL_STATUS_REJECTED",
];

/// The only writer of a store. Faults do not affect its connection.
pub(super) struct Writer {
    client: Client,
    random: SmallRng,
    model: StoreModel,
    history: Arc<History>,
    /// Keys that already have a row: each key is written once.
    written: HashSet<String>,
    sequence: i64,
}

impl Writer {
    /// Writes the first block into an empty store, so that every question has an answer.
    pub(super) async fn start(client: Client, seed: u64) -> Result<(Self, Arc<History>), Failure> {
        let (history, random) = (Arc::new(History::new()), SmallRng::seed_from_u64(seed));
        let (model, written) = (StoreModel::default(), HashSet::new());
        let mut writer = Self { client, random, model, history, written, sequence: 0 };
        let at = time_s(1);
        let mut rows = vec![Row::Block { height: 1 }, Row::Limits { at, flags: 1 }];
        rows.extend((0..8).map(|number| Row::Account { number }));
        for number in 1..3 {
            rows.push(Row::Withdrawal { number, at, status: WITHDRAWAL[0], reference: 0 });
            rows.push(Row::OracleSpec { number, at, status: SPEC[0] });
        }
        writer.commit(&rows).await?;
        let history = Arc::clone(&writer.history);
        Ok((writer, history))
    }

    /// Writes until the run is over.
    pub(super) async fn run(mut self, is_over: impl Fn() -> bool) -> Result<(), Failure> {
        let (mut pace, mut paused_until) = (interval(PACE), Instant::now());
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
            let newest = self.model.height + i64::from(is_block);
            let mut rows: Vec<Row> = is_block.then_some(Row::Block { height: newest }).into_iter().collect();
            for _ in 0..count {
                // The rows of block 1 are those that `start` writes.
                let height = if is_block { newest } else { self.random.random_range(2..=newest.max(2)) };
                rows.extend(if newest == 1 { None } else { self.row(height) });
            }
            self.commit(&rows).await?;
        }
        // A client that resumes receives late rows only with the next block (contract W6).
        self.commit(&[Row::Block { height: self.model.height + 1 }]).await
    }

    /// A random row of a block; `None` when its key has a row already.
    fn row(&mut self, height: i64) -> Option<Row> {
        let at = time_s(height);
        self.sequence += 1;
        let (sequence, random) = (self.sequence, &mut self.random);
        let (one, epoch, number) =
            (random.random_range(1..3), random.random_range(1..5), random.random_range(0..1_000_000));
        let (key, row) = match random.random_range(0..9) {
            0 => {
                let account = random.random_range(8..ACCOUNTS);
                (format!("account {account}"), Row::Account { number: account })
            }
            1 => {
                let account = random.random_range(0..12);
                if !self.model.has_account(account) {
                    return None;
                }
                (format!("balance {account} {at}"), Row::Balance { account, at, balance: number })
            }
            2 => {
                let (party, node) = (random.random_range(1..4), random.random_range(1..4));
                (String::new(), Row::Delegation { epoch, party, node, at, sequence, amount: number })
            }
            3 => {
                let status = WITHDRAWAL[random.random_range(0..3)];
                let key = format!("withdrawal {one} {at}");
                (key, Row::Withdrawal { number: one, at, status, reference: number })
            }
            4 => {
                let status = SPEC[random.random_range(0..2)];
                (format!("spec {one} {at}"), Row::OracleSpec { number: one, at, status })
            }
            5 => {
                let kind = REWARD[random.random_range(0..2)];
                (String::new(), Row::Reward { epoch, market: one, kind, amount: number, at, sequence })
            }
            6 => {
                let (price, size, micros) = (number, random.random_range(1..100), sequence % 1_000_000);
                (format!("trade {at} {micros}"), Row::Trade { market: one, at, micros, price, size })
            }
            7 => {
                let height = 1_000_000 + random.random_range(0..4);
                let approvers = (1..=random.random_range(1..4)).map(|node| id('c', node)).collect();
                let status = PROPOSAL[random.random_range(0..3)];
                (format!("proposal {height} {at}"), Row::Proposal { height, approvers, status, at })
            }
            _ => (format!("limits {at}"), Row::Limits { at, flags: random.random_range(0..32) }),
        };
        (key.is_empty() || self.written.insert(key)).then_some(row)
    }

    /// Writes rows in one transaction.
    async fn commit(&mut self, rows: &[Row]) -> Result<(), Failure> {
        let mut statements = "BEGIN;".to_owned();
        for row in rows {
            self.model.apply(row);
            statements += &row.sql();
        }
        let refused = |error: tokio_postgres::Error| cannot("write rows", &error);
        self.client.batch_execute(&statements).await.map_err(refused)?;
        self.history.commit_begins(&self.model);
        self.client.batch_execute("COMMIT").await.map_err(refused)?;
        self.history.commit_ended();
        Ok(())
    }
}
