//! Epochs, delegations, and the rewards at the end of an epoch.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    block::Draft,
    catalogue::{VOTE, units},
    funding::Funding,
    governance::validators,
    market::Market,
    moment::Moment,
    plan::Plan,
    world::{Key, Kind, World},
};

/// The running epoch and its stake.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Staking {
    epoch: i64,
    begun: Moment,
    /// Stake in the smallest unit, per party; each delegates to a few nodes.
    stakes: BTreeMap<u16, BTreeMap<u16, i128>>,
}

impl Staking {
    /// Blocks of an epoch.
    fn length(plan: &Plan) -> u64 {
        (plan.blocks / 50).clamp(10, 100)
    }

    /// Makes the rows of this block.
    pub(crate) fn step(
        &mut self,
        world: &mut World,
        draft: &mut Draft,
        plan: &Plan,
        markets: &mut [Market],
        funding: &mut Funding,
    ) {
        let nodes = &validators(plan);
        let length = Self::length(plan);
        let into = (draft.height - 1) % length;
        if into == 0 {
            draft.begin_transaction();
            if draft.height == 1 {
                self.first_stakes(world, draft, nodes);
            } else {
                self.end_epoch(world, draft, plan, markets);
                self.epoch += 1;
                self.move_stakes(draft, nodes);
            }
            self.begun = draft.time;
            self.write_epoch(draft, plan, None);
            let parties: Vec<u16> = self.stakes.keys().copied().collect();
            for party in parties {
                self.write_stakes(world, draft, nodes, party);
            }
            self.stakes.retain(|_, stakes| {
                stakes.retain(|_, amount| *amount > 0);
                !stakes.is_empty()
            });
        } else if into == length / 4 {
            self.change_mind(world, draft, nodes);
        } else if into == length / 2 {
            self.fund_pools(world, draft, markets, funding);
        }
    }

    fn first_stakes(&mut self, world: &World, draft: &mut Draft, nodes: &[String]) {
        for party in 0..world.party_count() {
            let count = 1 + draft.random.below(2);
            let stakes = self.stakes.entry(party).or_default();
            for _ in 0..count {
                let node = draft.random.below(nodes.len() as u64) as u16;
                stakes.insert(node, stake(draft));
            }
        }
    }

    /// Between two epochs some parties stake more, some less, and some choose another node.
    fn move_stakes(&mut self, draft: &mut Draft, nodes: &[String]) {
        for stakes in self.stakes.values_mut() {
            match draft.random.below(100) {
                0..6 => {
                    let node = draft.random.below(nodes.len() as u64) as u16;
                    let amount = stake(draft);
                    *stakes.entry(node).or_default() += amount;
                }
                // The last row of an ended delegation has the amount zero.
                6..10 if stakes.len() > 1 => {
                    if let Some(amount) = stakes.values_mut().next() {
                        *amount = 0;
                    }
                }
                10..16 => {
                    for amount in stakes.values_mut() {
                        *amount += *amount / 20;
                    }
                }
                _ => {}
            }
        }
    }

    /// In the middle of an epoch a party undelegates a part at once: a second row for the same epoch.
    fn change_mind(&mut self, world: &World, draft: &mut Draft, nodes: &[String]) {
        for _ in 0..2 {
            let party = draft.random.below(u64::from(world.party_count())) as u16;
            let Some(stakes) = self.stakes.get_mut(&party) else { continue };
            for amount in stakes.values_mut() {
                *amount -= *amount / 8;
            }
            draft.begin_transaction();
            self.write_stakes(world, draft, nodes, party);
        }
    }

    fn write_stakes(&self, world: &World, draft: &mut Draft, nodes: &[String], party: u16) {
        for (&node, &amount) in self.stakes.get(&party).into_iter().flatten() {
            let (position, hash) = (draft.next_position(), draft.hash());
            let row = draft.rows.row("delegations").text(world.party_id(party));
            let row = row.text(&nodes[usize::from(node)]).number(self.epoch).number(amount);
            row.text(&hash).time(draft.time).number(position).end();
        }
    }

    fn write_epoch(&self, draft: &mut Draft, plan: &Plan, ended: Option<Moment>) {
        let planned_us = Self::length(plan) * plan.block_spacing_ms * 1_000;
        let hash = draft.hash();
        let row = draft.rows.row("epochs").number(self.epoch).time(self.begun);
        let row = row.time(self.begun.plus_us(planned_us as i64));
        let row = match ended {
            Some(time) => row.time(time),
            None => row.null(),
        };
        row.text(&hash).time(draft.time).end();
    }

    /// The treasury and a sponsor fund the reward pools, which are paid out at the end of the epoch.
    fn fund_pools(&self, world: &mut World, draft: &mut Draft, markets: &[Market], funding: &mut Funding) {
        let stake_pool = Key::global(VOTE, Kind::GlobalReward);
        let amount = units(VOTE, 7_000) + i128::from(draft.random.between(0, 999_999_999));
        funding.send(world, draft, 0, stake_pool, amount);
        let kinds = [
            Kind::RewardMakerPaidFees,
            Kind::RewardMakerReceivedFees,
            Kind::RewardLpReceivedFees,
            Kind::RewardMarketProposers,
        ];
        let trading: Vec<&Market> = markets.iter().filter(|market| market.mark > 0).collect();
        for (turn, kind) in kinds.into_iter().enumerate() {
            let Some(market) = trading.get((self.epoch as usize + turn) % trading.len().max(1)) else {
                continue;
            };
            let asset = market.asset();
            let pool = Key { market: market.number, ..Key::global(asset, kind) };
            let amount = units(asset, 40) * i128::from(draft.random.between(3, 30)) + 7;
            funding.send(world, draft, 1, pool, amount);
        }
    }

    fn end_epoch(&mut self, world: &mut World, draft: &mut Draft, plan: &Plan, markets: &mut [Market]) {
        self.write_epoch(draft, plan, Some(draft.time));
        let mut stakers: Vec<(u16, i128)> =
            self.stakes.iter().map(|(party, stakes)| (*party, stakes.values().sum())).collect();
        stakers.sort_by_key(|(party, amount)| (-amount, *party));
        for asset in 0..3 {
            let fees = Key::global(asset, Kind::FeesInfrastructure);
            let shared = Key::global(asset, Kind::GlobalReward);
            let tenth = world.balance(fees) / 10;
            world.transfer(draft, fees, shared, tenth, "INFRASTRUCTURE_FEE_DISTRIBUTE");
            self.pay(world, draft, fees, &stakers[..stakers.len().min(7)]);
        }
        let asset = (self.epoch % 3) as u8;
        self.pay(world, draft, Key::global(asset, Kind::GlobalReward), &stakers[..stakers.len().min(3)]);
        self.pay(world, draft, Key::global(VOTE, Kind::GlobalReward), &stakers[..stakers.len().min(15)]);
        for market in markets {
            let fees = std::mem::take(&mut market.fees);
            let paid: Vec<_> = fees.iter().map(|(party, tally)| (*party, tally.paid)).collect();
            let received: Vec<_> = fees.iter().map(|(party, tally)| (*party, tally.received)).collect();
            let providers: Vec<_> = market.shares().iter().map(|share| (share.0, share.1)).collect();
            let proposer = [(3 + market.number % 4, 1)];
            for (kind, weights) in [
                (Kind::RewardMakerPaidFees, best(&paid)),
                (Kind::RewardMakerReceivedFees, best(&received)),
                (Kind::RewardLpReceivedFees, providers),
                (Kind::RewardMarketProposers, proposer.to_vec()),
            ] {
                let pool = Key { market: market.number, ..Key::global(market.asset(), kind) };
                self.pay(world, draft, pool, &weights);
            }
        }
    }

    /// Pays a pool out by weight and writes a reward for each party with an amount above zero.
    fn pay(&self, world: &mut World, draft: &mut Draft, pool: Key, weights: &[(u16, i128)]) {
        let total: i128 = weights.iter().map(|(_, weight)| weight).sum();
        let available = world.balance(pool);
        if total <= 0 || available <= 0 {
            return;
        }
        for (at, (party, weight)) in weights.iter().enumerate() {
            let share = *weight as f64 / total as f64;
            let last = at + 1 == weights.len();
            let due = if last { world.balance(pool) } else { (available as f64 * share) as i128 };
            let due = due.min(world.balance(pool));
            if due <= 0 {
                continue;
            }
            world.transfer(draft, pool, Key::general(pool.asset, *party), due, "REWARD_PAYOUT");
            let (position, hash) = (draft.next_position(), draft.hash());
            let percent = due as f64 / available as f64 * 100.0;
            let row = draft.rows.row("rewards").text(world.party_id(*party));
            let row = row.text(world.asset_id(pool.asset)).text(world.market_id(pool.market));
            let row = row.text(pool.kind.as_str_name()).number(self.epoch).number(due).number(percent);
            row.time(draft.time).text(&hash).time(draft.time).number(position).end();
        }
    }
}

fn stake(draft: &mut Draft) -> i128 {
    units(VOTE, i128::from(draft.random.between(10, 40_000))) / 10 * i128::from(draft.random.between(1, 20))
}

/// The five parties with the largest weight, largest first.
fn best(weights: &[(u16, i128)]) -> Vec<(u16, i128)> {
    let mut sorted: Vec<_> = weights.iter().copied().filter(|(_, weight)| *weight > 0).collect();
    sorted.sort_by_key(|(party, weight)| (-weight, *party));
    sorted.truncate(5);
    sorted
}
