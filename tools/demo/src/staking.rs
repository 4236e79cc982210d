//! Epochs, delegations, and the rewards at the end of an epoch.

use mesh_store::TimeUs;
use serde::{Deserialize, Serialize};

use crate::{
    block::Draft,
    catalogue::{VOTE, units},
    funding::Funding,
    governance::validators,
    liquidity::PROVIDERS,
    market::Market,
    random::Random,
    world::{Key, Kind},
};

const MARKET_POOLS: [Kind; 4] = [
    Kind::RewardMakerPaidFees,
    Kind::RewardMakerReceivedFees,
    Kind::RewardLpReceivedFees,
    Kind::RewardMarketProposers,
];

/// The running epoch.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Staking {
    epoch: u64,
    begun: TimeUs,
}

impl Staking {
    pub(crate) fn step(&mut self, draft: &mut Draft<'_>, markets: &[Market], funding: &mut Funding) {
        let length = (draft.plan.blocks / 50).clamp(10, 100);
        let into = (draft.height - 1) % length;
        if into == 0 {
            draft.begin_transaction();
            if draft.height > 1 {
                self.write_epoch(draft, length, Some(draft.time));
                self.reward(draft, markets);
                self.epoch += 1;
            }
            self.begun = draft.time;
            self.write_epoch(draft, length, None);
            (0..draft.world.traders).for_each(|party| self.write_stakes(draft, party, 0));
        } else if into == length / 4 {
            // Two parties undelegate an eighth at once: second rows for the same epoch.
            for turn in [2 * self.epoch, 2 * self.epoch + 1] {
                draft.begin_transaction();
                self.write_stakes(draft, (turn % u64::from(draft.world.traders)) as u16, 8);
            }
        } else if into == length / 2 {
            self.fund_pools(draft, markets, funding);
        }
    }

    fn write_epoch(&self, draft: &mut Draft<'_>, length: u64, ended: Option<TimeUs>) {
        let planned_us = (length * draft.plan.block_spacing_ms * 1_000) as i64;
        let expires = self.begun.plus_us(planned_us);
        row! { draft, epochs: id: self.epoch, start_time: self.begun, expire_time: expires, end_time: ended }
    }

    /// Writes a party's delegations of the epoch, less one part of so many. The first is for good and grows;
    /// the second comes and goes, and its last row has the amount zero.
    fn write_stakes(&self, draft: &mut Draft<'_>, party: u16, part: i128) {
        let mut random = Random::new(draft.plan.seed, 0x73_7461_6b65 + u64::from(party));
        let (node, whole) = (random.below(13) as usize, random.between(10, 40_000));
        let phase = (self.epoch + random.below(9)) % 9;
        let first = units(VOTE, i128::from(whole)) * i128::from(20 + phase) / 20;
        let second = if phase < 5 { units(VOTE, i128::from(random.between(1, 9_000))) / 10 } else { 0 };
        let nodes = validators(draft.plan);
        for (node, amount) in [(node, first), ((node + 5) % 13, second)] {
            if amount == 0 && phase != 5 {
                continue;
            }
            let amount = amount - amount.checked_div(part).unwrap_or(0);
            row! { draft, delegations:
                party_id: draft.world.party_id(party), node_id: nodes[node], epoch_id: self.epoch,
                amount: amount,
            }
        }
    }

    /// The treasury and a sponsor fund the reward pools, which are paid out at the end of the epoch.
    fn fund_pools(&self, draft: &mut Draft<'_>, markets: &[Market], funding: &mut Funding) {
        let amount = units(VOTE, 7_000) + i128::from(draft.random.between(0, 999_999_999));
        funding.send(draft, 0, Key::global(VOTE, Kind::GlobalReward), amount);
        let trading: Vec<&Market> = markets.iter().filter(|market| market.mark > 0).collect();
        for (turn, kind) in MARKET_POOLS.into_iter().enumerate() {
            let turn = self.epoch as usize + turn;
            let Some(market) = trading.get(turn % trading.len().max(1)) else { continue };
            let amount = units(market.asset(), 40) * i128::from(draft.random.between(3, 30)) + 7;
            funding.send(draft, 1, market.network_key(kind), amount);
        }
    }

    /// Distributes fees and pays out all pools.
    fn reward(&self, draft: &mut Draft<'_>, markets: &[Market]) {
        for asset in 0..VOTE {
            let fees = Key::global(asset, Kind::FeesInfrastructure);
            let tenth = draft.world.balance(fees) / 10;
            let shared = Key::global(asset, Kind::GlobalReward);
            draft.transfer(fees, shared, tenth, "INFRASTRUCTURE_FEE_DISTRIBUTE");
            self.pay(draft, fees, &self.ranked(draft, 7));
        }
        let asset = (self.epoch % 3) as u8;
        self.pay(draft, Key::global(asset, Kind::GlobalReward), &self.ranked(draft, 3));
        self.pay(draft, Key::global(VOTE, Kind::GlobalReward), &self.ranked(draft, 15));
        for market in markets {
            for kind in MARKET_POOLS {
                let parties = match kind {
                    Kind::RewardLpReceivedFees => PROVIDERS.to_vec(),
                    Kind::RewardMarketProposers => vec![3 + market.number % 4],
                    _ => self.ranked(draft, 5),
                };
                self.pay(draft, market.network_key(kind), &parties);
            }
        }
    }

    /// So many parties, other ones in each epoch.
    fn ranked(&self, draft: &Draft<'_>, count: u64) -> Vec<u16> {
        let parties = u64::from(draft.world.traders);
        (0..count.min(parties)).map(|place| ((self.epoch * 7 + place) % parties) as u16).collect()
    }

    /// Pays a pool out, the first party most, and writes a reward for each party with an amount above zero.
    fn pay(&self, draft: &mut Draft<'_>, pool: Key, parties: &[u16]) {
        let available = draft.world.balance(pool);
        let weights = (1..=parties.len() as i128).rev();
        let total: i128 = weights.clone().sum();
        for (party, weight) in parties.iter().zip(weights) {
            // The last party gets the rest.
            let due = if weight == 1 { draft.world.balance(pool) } else { available * weight / total };
            if due <= 0 {
                continue;
            }
            draft.transfer(pool, Key::general(pool.asset, *party), due, "REWARD_PAYOUT");
            row! { draft, rewards:
                party_id: draft.world.party_id(*party), asset_id: draft.world.asset_id(pool.asset),
                market_id: draft.world.market_id(pool.market), reward_type: pool.kind.as_str_name(),
                epoch_id: self.epoch, amount: due,
                percent_of_total: due as f64 / available as f64 * 100.0,
            }
        }
    }
}
