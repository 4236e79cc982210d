//! The simulator: the state of the network, and the step from one block to the next.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{
    block::{Block, Draft, Executed},
    commands::{Transaction, execute},
    error::DemoError,
    funding::Funding,
    governance,
    lifecycle::suspend_a_market,
    market::{Fate, Market},
    moment::Moment,
    oracles::Oracles,
    plan::{CHAIN_ID, Plan},
    random::Random,
    staking::Staking,
    world::World,
};

/// Version of [`Simulator::save`]; other versions are not read.
const FORMAT: u32 = 4;

/// A demo network at some height. The same plan, block times and transactions give the same blocks to the byte,
/// also after the state was saved and loaded.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Simulator {
    plan: Plan,
    height: u64,
    time: Moment,
    hash: String,
    world: World,
    markets: Vec<Market>,
    oracles: Oracles,
    staking: Staking,
    funding: Funding,
}

/// Number of markets in addition to those of the plan: one is rejected by its vote, one finds no liquidity,
/// one is closed before it opens.
const NEVER_OPEN: [Fate; 3] = [Fate::Rejected, Fate::Cancelled, Fate::Closed];

impl Simulator {
    /// A network without blocks.
    ///
    /// # Errors
    ///
    /// [`DemoError::Plan`] when the plan is not usable.
    pub fn new(plan: Plan) -> Result<Self, DemoError> {
        plan.check()?;
        let fate = |number: usize| match number.checked_sub(plan.markets) {
            Some(extra) => NEVER_OPEN[extra],
            None if plan.markets >= 3 && number + 1 == plan.markets => Fate::Settles,
            None => Fate::Trades,
        };
        let count = plan.markets + NEVER_OPEN.len();
        Ok(Simulator {
            height: 0,
            time: Moment::UNSET,
            hash: hex::encode(Sha256::digest(plan.fingerprint())),
            world: World::new(&plan, count),
            markets: (0..count).map(|number| Market::new(number as u16, fate(number))).collect(),
            oracles: Oracles::default(),
            staking: Staking::default(),
            funding: Funding::default(),
            plan,
        })
    }

    /// The plan that the network follows.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Height of the last block, 0 before the first.
    #[must_use]
    pub fn height(&self) -> u64 {
        self.height
    }

    /// Time of the last block.
    #[must_use]
    pub fn time(&self) -> Moment {
        self.time
    }

    /// Hash of the last block.
    #[must_use]
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// Makes the next block of the written history, with the time of the plan.
    pub fn next_history_block(&mut self) -> Block {
        self.block(self.plan.block_time(self.height + 1), None, &[])
    }

    /// Makes the next block with the time and hash that a node has decided, and executes its transactions. A
    /// time that is not after the last block is moved there.
    pub fn decided_block(&mut self, time: Moment, hash: &str, transactions: &[Transaction<'_>]) -> Block {
        self.block(time.max(self.time.plus_us(1)), Some(hash), transactions)
    }

    fn block(&mut self, time: Moment, decided: Option<&str>, transactions: &[Transaction<'_>]) -> Block {
        let elapsed_us = if self.height == 0 { 0 } else { time.us() - self.time.us() };
        self.height += 1;
        self.time = time;
        let mut draft = Draft::new(self.height, time, Random::new(self.plan.seed, self.height));
        let mut executed: Vec<Executed> = transactions
            .iter()
            .map(|transaction| execute(&mut self.world, &mut draft, transaction))
            .collect();
        self.step(&mut draft, elapsed_us.max(0));
        let hashes = transactions.iter().map(|transaction| transaction.hash.clone());
        self.world.flush(&mut draft, &mut hashes.zip(&mut executed).collect::<HashMap<_, _>>());
        let mut rows = draft.rows;
        let mut hasher = Sha256::new();
        hasher.update(format!("{}/{}/{}/", self.hash, self.height, time.us()));
        for table in rows.tables() {
            hasher.update(rows.text(table));
        }
        self.hash = decided.map_or_else(|| hex::encode(hasher.finalize()), str::to_owned);
        rows.row("blocks").time(time).number(self.height as i64).text(&self.hash).end();
        Block { height: self.height, time, hash: self.hash.clone(), rows, executed }
    }

    fn step(&mut self, draft: &mut Draft, elapsed_us: i64) {
        let usual_us = (self.plan.block_spacing_ms * 1_000) as i64;
        // Blocks in quick succession have fewer rows, but never none.
        let pace = (elapsed_us.saturating_mul(1_000) / usual_us).clamp(200, 1_500).unsigned_abs();
        if draft.height == 1 {
            draft.rows.row("chain").text(CHAIN_ID).flag(true).end();
        }
        let (world, plan) = (&mut self.world, &self.plan);
        governance::step(draft, plan);
        self.funding.step(world, draft, plan, pace);
        self.staking.step(world, draft, plan, &mut self.markets, &mut self.funding);
        suspend_a_market(world, draft, plan, &mut self.markets);
        for market in &mut self.markets {
            market.step_state(world, draft, plan);
            market.walk.step(draft, market.template(), elapsed_us);
            market.step_provisions(world, draft, plan);
            market.trade(world, draft, pace);
            market.write_changes(world, draft, plan);
        }
        self.oracles.step(draft, plan, &self.markets);
        if draft.height.is_multiple_of(50) {
            governance::write_checkpoint(draft, &self.hash);
        }
    }

    /// Ids and balances of all accounts.
    pub(crate) fn balances(&self) -> impl Iterator<Item = (&str, i128)> {
        self.world.balances()
    }

    /// The state as bytes.
    ///
    /// # Errors
    ///
    /// The state has no JSON form, which only an error in this crate can cause.
    pub fn save(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(&(FORMAT, self))
    }

    /// Reads what [`save`](Self::save) wrote; `None` when it is of another release.
    #[must_use]
    pub fn load(bytes: &[u8]) -> Option<Self> {
        let (format, mut simulator) = serde_json::from_slice::<(u32, Simulator)>(bytes).ok()?;
        simulator.world.rebuild();
        (format == FORMAT).then_some(simulator)
    }
}
