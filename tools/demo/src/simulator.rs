//! The simulator: the state of the network, and the step from one block to the next.

use std::collections::HashMap;

use mesh_store::TimeUs;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{
    block::{Block, Draft, Executed},
    catalogue::UNSET,
    commands::Transaction,
    error::DemoError,
    funding::Funding,
    governance,
    market::{Ending, Market},
    oracles::Oracles,
    plan::{CHAIN_ID, Plan},
    staking::Staking,
    world::World,
};

/// Version of [`Simulator::save`]; other versions are not read.
const FORMAT: u32 = 5;

/// A demo network at some height. The same plan, block times and transactions give the same blocks to the
/// byte, also after the state was saved and loaded.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Simulator {
    plan: Plan,
    height: u64,
    time: TimeUs,
    hash: String,
    pub(crate) world: World,
    markets: Vec<Market>,
    oracles: Oracles,
    staking: Staking,
    funding: Funding,
}

impl Simulator {
    /// A network without blocks.
    ///
    /// # Errors
    /// [`DemoError::Plan`] when the plan is not usable.
    pub fn new(plan: Plan) -> Result<Self, DemoError> {
        plan.check()?;
        let last = if plan.markets >= 3 { Ending::Settled } else { Ending::None };
        let mut endings = vec![Ending::None; plan.markets - 1];
        endings.extend([last, Ending::Rejected, Ending::Cancelled, Ending::Closed]);
        Ok(Simulator {
            height: 0,
            time: UNSET,
            hash: hex::encode(Sha256::digest(plan.fingerprint())),
            world: World::new(&plan, endings.len()),
            markets: (0..).zip(endings).map(|(number, ending)| Market::new(number, ending)).collect(),
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
    pub fn time(&self) -> TimeUs {
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
    pub fn decided_block(&mut self, time: TimeUs, hash: &str, transactions: &[Transaction<'_>]) -> Block {
        self.block(time.max(self.time.plus_us(1)), Some(hash), transactions)
    }

    fn block(&mut self, time: TimeUs, decided: Option<&str>, transactions: &[Transaction<'_>]) -> Block {
        let elapsed_us = if self.height == 0 { 0 } else { time.0 - self.time.0 };
        (self.height, self.time) = (self.height + 1, time);
        let mut draft = Draft::new(&self.plan, &mut self.world, self.height, time, elapsed_us.max(0));
        let mut executed: Vec<Executed> = transactions.iter().map(|sent| draft.execute(sent)).collect();
        if self.height == 1 {
            row! { draft, chain: id: CHAIN_ID, onerow_check: true }
        }
        governance::step(&mut draft);
        self.funding.step(&mut draft);
        self.staking.step(&mut draft, &self.markets, &mut self.funding);
        self.markets.iter_mut().for_each(|market| market.step(&mut draft));
        self.oracles.step(&mut draft, &self.markets);
        if self.height.is_multiple_of(50) {
            governance::write_checkpoint(&mut draft, &self.hash);
        }
        let hashes = transactions.iter().map(|transaction| transaction.hash.clone());
        draft.write_balances(&mut hashes.zip(&mut executed).collect::<HashMap<_, _>>());
        let own = || draft.rows.hash_after(&format!("{}/{}/{}/", self.hash, self.height, time.0));
        self.hash = decided.map_or_else(own, str::to_owned);
        row! { draft, blocks: height: self.height, hash: self.hash }
        Block { height: self.height, time, hash: self.hash.clone(), rows: draft.rows, executed }
    }

    /// The state as bytes.
    ///
    /// # Errors
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
