//! The life cycle of a market: proposal, vote, opening, auctions, settlement or closing.

use crate::{
    block::Draft,
    catalogue::units,
    market::{Auction, Fate, Market, State, Trigger},
    order::{Force, Status},
    plan::Plan,
    provision::ProvisionStatus,
    world::{Key, Kind, World},
};

/// Reasons for an auction, in turn.
const TRIGGERS: [Trigger; 5] = [
    Trigger::Price,
    Trigger::LiquidityTargetNotMet,
    Trigger::UnableToDeployLpOrders,
    Trigger::Batch,
    Trigger::Liquidity,
];

/// Five times over the length of the history, and at the same pace later, a market leaves continuous trading.
pub(crate) fn suspend_a_market(world: &mut World, draft: &mut Draft, plan: &Plan, markets: &mut [Market]) {
    let cycle = (plan.blocks / 5).max(20);
    let turn = (draft.height / cycle) as usize;
    let into = draft.height % cycle;
    let length = (cycle / 60).max(3);
    if into == cycle * 45 / 100 {
        let mut trading: Vec<_> = markets.iter_mut().filter(|market| market.state == State::Active).collect();
        if !trading.is_empty() {
            let at = (turn * 2) % trading.len();
            trading[at].suspend(world, draft, TRIGGERS[turn % TRIGGERS.len()], length);
        }
    } else if into == cycle * 45 / 100 + length / 2 {
        for market in markets.iter_mut().filter(|market| market.state == State::Suspended) {
            market.extend_auction(draft);
        }
    }
}

impl Market {
    /// The state that the market enters at this height, if any.
    fn next_state(&self, height: u64, plan: &Plan) -> Option<State> {
        let shift = (u64::from(self.number) * 2).min(30);
        let (from, next) = match (self.state, self.fate) {
            (State::Proposed, _) if !self.is_proposed() => (3 + shift, State::Proposed),
            (State::Proposed, Fate::Rejected) => (6 + shift, State::Rejected),
            (State::Proposed, _) => (6 + shift, State::Pending),
            (State::Pending, Fate::Cancelled) => (12 + shift, State::Cancelled),
            (State::Pending, Fate::Closed) => (12 + shift, State::Closed),
            (State::Pending, _) => (12 + shift, State::Active),
            (State::Suspended, _) => return (height >= self.resumes_at).then_some(State::Active),
            (State::Active, Fate::Settles) => (660, State::TradingTerminated),
            (State::TradingTerminated, _) => (664, State::Settled),
            _ => return None,
        };
        (height >= plan.height_at(from).max(2)).then_some(next)
    }

    /// Makes the life-cycle step that is due at this height.
    pub(crate) fn step_state(&mut self, world: &mut World, draft: &mut Draft, plan: &Plan) {
        let Some(next) = self.next_state(draft.height, plan) else { return };
        draft.begin_transaction();
        let previous = std::mem::replace(&mut self.state, next);
        match next {
            State::Proposed => {
                self.times.proposed = draft.time;
                // The network's accounts of a market exist from the beginning, with zero balance.
                for kind in [Kind::Insurance, Kind::Settlement, Kind::FeesMaker, Kind::FeesLiquidity] {
                    world.open(draft, self.network_key(kind));
                }
            }
            State::Pending => {
                self.times.pending = draft.time;
                self.enter_auction(draft, Trigger::Opening, 20);
            }
            State::Active => {
                if previous == State::Pending {
                    self.times.open = draft.time;
                    self.fund_insurance(world, draft);
                }
                self.uncross(world, draft);
                self.auction = Auction::default();
                self.place_pegged(draft);
                self.move_provisions(draft, ProvisionStatus::Pending, ProvisionStatus::Active);
                self.move_provisions(draft, ProvisionStatus::Undeployed, ProvisionStatus::Active);
            }
            State::TradingTerminated => {
                self.times.close = draft.time;
                self.book.end(draft, Status::Stopped, |_| true);
            }
            State::Settled => {
                self.settle_finally(world, draft);
                self.distribute_fees(world, draft);
                self.end_provisions(world, draft, ProvisionStatus::Stopped, |_| true);
            }
            _ => {}
        }
        self.change(draft);
    }

    /// A sponsor funds the insurance account of a market that opens.
    fn fund_insurance(&self, world: &mut World, draft: &mut Draft) {
        let (asset, insurance) = (self.asset(), self.network_key(Kind::Insurance));
        let (sponsor, pending) = (self.general_key(1), Key::global(asset, Kind::PendingTransfers));
        let sent = world.take(draft, sponsor, pending, units(asset, 2_500), "TRANSFER_FUNDS_SEND");
        world.transfer(draft, pending, insurance, sent, "TRANSFER_FUNDS_DISTRIBUTE");
    }

    /// Interrupts continuous trading for some blocks.
    fn suspend(&mut self, world: &mut World, draft: &mut Draft, trigger: Trigger, blocks: u64) {
        draft.begin_transaction();
        self.state = State::Suspended;
        self.resumes_at = draft.height + blocks;
        if trigger == Trigger::Price {
            self.walk.shock();
        }
        self.book.end(draft, Status::Cancelled, |order| order.force == Force::Gfn);
        self.enter_auction(draft, trigger, blocks as i64);
        if trigger == Trigger::UnableToDeployLpOrders {
            self.undeploy_provision(world, draft);
        }
        self.change(draft);
    }

    /// Extends the auction for a second reason.
    fn extend_auction(&mut self, draft: &Draft) {
        let price = self.auction.trigger == Trigger::Price;
        self.auction.extension = if price { Trigger::LiquidityTargetNotMet } else { Trigger::Price };
        self.auction.end = self.auction.end.plus_seconds(60);
        self.change(draft);
    }

    fn enter_auction(&mut self, draft: &Draft, trigger: Trigger, blocks: i64) {
        self.auctions += 1;
        let end = draft.time.plus_seconds(blocks * 20);
        self.auction = Auction { trigger, start: draft.time, end, ..Auction::default() };
        self.place_pegged(draft);
    }
}
