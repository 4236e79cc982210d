//! Writes blocks continuously, all rows of a block in one transaction, and sometimes late rows of earlier
//! blocks, which change answers without changing the height.

use std::{
    collections::HashSet,
    sync::Arc,
    time::{Duration, Instant},
};

use mesh_testbed::Database;
use rand::{Rng, SeedableRng, rngs::SmallRng};
use tokio::time::sleep;
use tokio_postgres::Client;

use crate::{
    history::History,
    world::{ACCOUNTS, Change, World, id},
};

/// Pause between two transactions, milliseconds.
const PAUSE_MS: std::ops::Range<u64> = 50..200;

/// Length of occasional pauses without a new block, milliseconds: only then can an answer with the newest
/// height be too old.
const LULL_MS: std::ops::Range<u64> = 1500..3500;

const WITHDRAWAL: [&str; 3] = ["STATUS_OPEN", "STATUS_REJECTED", "STATUS_FINALIZED"];
const SPEC: [&str; 2] = ["STATUS_ACTIVE", "STATUS_DEACTIVATED"];
const REWARD: [&str; 2] = ["ACCOUNT_TYPE_GLOBAL_REWARD", "ACCOUNT_TYPE_REWARD_MAKER_PAID_FEES"];
const PROPOSAL: [&str; 3] = [
    "PROTOCOL_UPGRADE_PROPOSAL_STATUS_PENDING",
    "PROTOCOL_UPGRADE_PROPOSAL_STATUS_APPROVED",
    "PROTOCOL_UPGRADE_PROPOSAL_STATUS_REJECTED",
];

/// Writes directly to the database, not through the proxies that a test cuts.
pub(crate) struct Writer {
    client: Client,
    random: SmallRng,
    world: World,
    /// Keys that have a row already: each key is written once.
    written: HashSet<String>,
    sequence: i64,
}

impl Writer {
    /// Connects and writes the first block, so that every question has an answer.
    pub(crate) async fn start(database: &Database, seed: u64) -> (Self, Arc<History>) {
        let client = database.connect().await;
        let random = SmallRng::seed_from_u64(seed);
        let mut writer =
            Self { client, random, world: World::default(), written: HashSet::new(), sequence: 0 };
        writer.world.height = 1;
        let at = World::time_s(1);
        let mut changes = vec![Change::Limits { at, flags: 1 }];
        for number in 0..8 {
            changes.push(Change::Account { number });
        }
        for number in 1..3 {
            changes.push(Change::Withdrawal { number, at, status: WITHDRAWAL[0], reference: 0 });
            changes.push(Change::OracleSpec { number, at, status: SPEC[0] });
        }
        let sent = Instant::now();
        let (before, after) = writer.commit(&changes, true).await;
        let history = History::new(&writer.world, sent.min(before), after);
        (writer, Arc::new(history))
    }

    /// Writes until the given time.
    pub(crate) async fn run(mut self, history: Arc<History>, until: Instant) {
        let mut lull = Instant::now();
        while Instant::now() < until {
            sleep(Duration::from_millis(self.random.random_range(PAUSE_MS))).await;
            if lull < Instant::now() && self.random.random_ratio(1, 30) {
                lull = Instant::now() + Duration::from_millis(self.random.random_range(LULL_MS));
            }
            let is_block = lull < Instant::now() && self.random.random_bool(0.8);
            if is_block {
                self.world.height += 1;
            }
            // A block without rows advances the head as well.
            let rows = self.random.random_range(usize::from(!is_block)..6);
            let changes: Vec<Change> = (0..rows).filter_map(|_| self.change(is_block)).collect();
            let (before, after) = self.commit(&changes, is_block).await;
            history.add(&self.world, before, after);
        }
    }

    /// A random row of the newest block or of an earlier one; `None` when its key has a row already.
    fn change(&mut self, is_of_this_block: bool) -> Option<Change> {
        // The rows of block 1 are those that `start` writes.
        let height = match self.world.height {
            1 => return None,
            height if is_of_this_block => height,
            height => self.random.random_range(2..=height),
        };
        let at = World::time_s(height);
        self.sequence += 1;
        let sequence = self.sequence;
        let random = &mut self.random;
        let (one, epoch, number) =
            (random.random_range(1..3), random.random_range(1..5), random.random_range(0..1_000_000));
        let (key, change) = match random.random_range(0..9) {
            0 => {
                let account = random.random_range(8..ACCOUNTS);
                let key = format!("account {account}");
                (key, Change::Account { number: account })
            }
            1 => {
                let account = random.random_range(0..12);
                if !self.world.has_account(account) {
                    return None;
                }
                (format!("balance {account} {at}"), Change::Balance { account, at, balance: number })
            }
            2 => {
                let (party, node) = (random.random_range(1..4), random.random_range(1..4));
                (String::new(), Change::Delegation { epoch, party, node, at, sequence, amount: number })
            }
            3 => {
                let status = WITHDRAWAL[random.random_range(0..3)];
                let key = format!("withdrawal {one} {at}");
                (key, Change::Withdrawal { number: one, at, status, reference: number })
            }
            4 => {
                let status = SPEC[random.random_range(0..2)];
                (format!("spec {one} {at}"), Change::OracleSpec { number: one, at, status })
            }
            5 => {
                let kind = REWARD[random.random_range(0..2)];
                (String::new(), Change::Reward { epoch, market: one, kind, amount: number, at, sequence })
            }
            6 => {
                let (price, size, micros) = (number, random.random_range(1..100), sequence % 1_000_000);
                (format!("trade {at} {micros}"), Change::Trade { market: one, at, micros, price, size })
            }
            7 => {
                let height = 1_000_000 + random.random_range(0..4);
                let approvers = (1..=random.random_range(1..4)).map(|node| id('c', node)).collect();
                let status = PROPOSAL[random.random_range(0..3)];
                (format!("proposal {height} {at}"), Change::Proposal { height, approvers, status, at })
            }
            _ => (format!("limits {at}"), Change::Limits { at, flags: random.random_range(0..32) }),
        };
        (key.is_empty() || self.written.insert(key)).then_some(change)
    }

    /// Writes rows in one transaction; returns when its COMMIT was sent and when it had returned.
    async fn commit(&mut self, changes: &[Change], is_block: bool) -> (Instant, Instant) {
        let mut statements = "BEGIN;".to_owned();
        for change in changes {
            self.world.apply(change);
            statements += &change.sql();
        }
        if is_block {
            let height = self.world.height;
            let (at, hash) = (World::time_s(height), format!("{height:064x}"));
            statements += &format!("INSERT INTO blocks VALUES (to_timestamp({at}), {height}, '{hash}');");
        }
        let written = self.client.batch_execute(&statements).await;
        written.unwrap_or_else(|error| panic!("the store refused {statements}: {:?}", error.as_db_error()));
        let before = Instant::now();
        self.client.batch_execute("COMMIT").await.expect("the rows are fit to be committed");
        (before, Instant::now())
    }
}
