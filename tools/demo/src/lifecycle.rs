//! The life cycle of a market: proposal, vote, opening, auctions, settlement or closing.

use crate::{
    block::Draft,
    catalogue::units,
    market::{Auction, Fate, Market, State, Trigger},
    moment::Moment,
    order::{Force, Status},
    plan::Plan,
    world::{Key, Kind, World, reason},
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
    let trading: Vec<usize> = (0..markets.len()).filter(|&at| markets[at].state == State::Active).collect();
    if into == cycle * 45 / 100 && !trading.is_empty() {
        let at = trading[(turn * 2) % trading.len()];
        markets[at].suspend(world, draft, TRIGGERS[turn % TRIGGERS.len()], length);
    } else if into == cycle * 45 / 100 + length / 2 {
        for market in markets.iter_mut().filter(|market| market.state == State::Suspended) {
            market.extend_auction(draft);
        }
    }
}

impl Market {
    /// Makes the life-cycle step that is due at this height.
    pub(crate) fn step_state(&mut self, world: &mut World, draft: &mut Draft, plan: &Plan) {
        let shift = (u64::from(self.number) * 2).min(30);
        let reached = |per_mille: u64| draft.height >= plan.height_at(per_mille).max(2);
        let after = |time: Moment| time != Moment::UNSET && time < draft.time;
        match self.state {
            State::Proposed if self.times.proposed == Moment::UNSET && reached(3 + shift) => {
                self.propose(world, draft);
            }
            State::Proposed if after(self.times.proposed) && reached(6 + shift) => self.vote(draft),
            State::Pending if after(self.times.pending) && reached(12 + shift) => self.open(world, draft),
            State::Active if self.fate == Fate::Settles && reached(660) => self.terminate(draft),
            State::TradingTerminated if after(self.times.close) && reached(664) => self.settle(world, draft),
            State::Suspended if draft.height >= self.resumes_at => self.resume(world, draft),
            _ => {}
        }
    }

    fn propose(&mut self, world: &mut World, draft: &mut Draft) {
        draft.begin_transaction();
        self.times.proposed = draft.time;
        for kind in [Kind::Insurance, Kind::Settlement, Kind::FeesMaker, Kind::FeesLiquidity] {
            // The network's accounts of a market exist from the beginning, with zero balance.
            world.open(draft, self.network_key(kind));
        }
        self.change(draft);
    }

    fn vote(&mut self, draft: &mut Draft) {
        draft.begin_transaction();
        self.state = if self.fate == Fate::Rejected { State::Rejected } else { State::Pending };
        self.times.pending = draft.time;
        if self.state == State::Pending {
            self.enter_auction(draft, Trigger::Opening, 20);
        }
        self.change(draft);
    }

    fn open(&mut self, world: &mut World, draft: &mut Draft) {
        draft.begin_transaction();
        match self.fate {
            Fate::Cancelled => self.state = State::Cancelled,
            Fate::Closed => self.state = State::Closed,
            _ => {
                self.state = State::Active;
                self.times.open = draft.time;
                self.fund_insurance(world, draft);
                self.leave_auction(world, draft);
                self.activate_provisions(draft);
            }
        }
        self.change(draft);
    }

    /// A sponsor funds the insurance account of a market that opens.
    fn fund_insurance(&self, world: &mut World, draft: &mut Draft) {
        let (asset, insurance) = (self.asset(), self.network_key(Kind::Insurance));
        let (sponsor, pending) = (self.general_key(1), Key::global(asset, Kind::PendingTransfers));
        let sent = world.take(draft, sponsor, pending, units(asset, 2_500), reason::TRANSFER_FUNDS_SEND);
        world.transfer(draft, pending, insurance, sent, reason::TRANSFER_FUNDS_DISTRIBUTE);
    }

    fn terminate(&mut self, draft: &mut Draft) {
        draft.begin_transaction();
        self.state = State::TradingTerminated;
        self.times.close = draft.time;
        self.book.end(draft, Status::Stopped, |_| true);
        self.change(draft);
    }

    fn settle(&mut self, world: &mut World, draft: &mut Draft) {
        draft.begin_transaction();
        self.settle_finally(world, draft);
        self.stop_provisions(world, draft);
        self.state = State::Settled;
        self.change(draft);
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

    fn resume(&mut self, world: &mut World, draft: &mut Draft) {
        draft.begin_transaction();
        self.state = State::Active;
        self.leave_auction(world, draft);
        self.redeploy_provisions(world, draft);
        self.change(draft);
    }

    fn enter_auction(&mut self, draft: &Draft, trigger: Trigger, blocks: i64) {
        self.auctions += 1;
        let end = draft.time.plus_seconds(blocks * 20);
        self.auction = Auction { trigger, start: draft.time, end, ..Auction::NONE };
        self.place_pegged(draft);
    }

    fn leave_auction(&mut self, world: &mut World, draft: &mut Draft) {
        self.uncross(world, draft);
        self.auction = Auction::NONE;
        self.place_pegged(draft);
    }
}
