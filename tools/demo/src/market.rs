//! A market: what it trades, where its price stands, who holds what, and how it comes and goes.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use crate::block::Draft;
use crate::book::{Force, Order, Status};
use crate::catalogue::{ASSETS, TEMPLATES, Template, units};
use crate::liquidity::Provision;
use crate::moment::Moment;
use crate::plan::Plan;
use crate::position::Position;
use crate::settlement::Levels;
use crate::world::{Key, Kind, NETWORK, World, reason};

/// The state of a market.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum State {
    Proposed,
    Rejected,
    Pending,
    Cancelled,
    Active,
    Suspended,
    Closed,
    TradingTerminated,
    Settled,
}

impl State {
    pub(crate) fn name(self) -> &'static str {
        match self {
            State::Proposed => "STATE_PROPOSED",
            State::Rejected => "STATE_REJECTED",
            State::Pending => "STATE_PENDING",
            State::Cancelled => "STATE_CANCELLED",
            State::Active => "STATE_ACTIVE",
            State::Suspended => "STATE_SUSPENDED",
            State::Closed => "STATE_CLOSED",
            State::TradingTerminated => "STATE_TRADING_TERMINATED",
            State::Settled => "STATE_SETTLED",
        }
    }

    /// Whether nothing will ever happen again.
    pub(crate) fn is_final(self) -> bool {
        matches!(self, State::Rejected | State::Cancelled | State::Closed | State::Settled)
    }
}

/// What becomes of a market.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Fate {
    /// Opens and goes on trading.
    Trades,
    /// Opens, and is settled after two thirds of the history.
    Settles,
    /// Loses its vote.
    Rejected,
    /// Finds no liquidity in its opening auction.
    Cancelled,
    /// Is closed by a vote before it opens.
    Closed,
}

/// Why a market is in an auction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Trigger {
    Unspecified,
    Batch,
    Opening,
    Price,
    Liquidity,
    LiquidityTargetNotMet,
    UnableToDeployLpOrders,
}

impl Trigger {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Trigger::Unspecified => "AUCTION_TRIGGER_UNSPECIFIED",
            Trigger::Batch => "AUCTION_TRIGGER_BATCH",
            Trigger::Opening => "AUCTION_TRIGGER_OPENING",
            Trigger::Price => "AUCTION_TRIGGER_PRICE",
            Trigger::Liquidity => "AUCTION_TRIGGER_LIQUIDITY",
            Trigger::LiquidityTargetNotMet => "AUCTION_TRIGGER_LIQUIDITY_TARGET_NOT_MET",
            Trigger::UnableToDeployLpOrders => "AUCTION_TRIGGER_UNABLE_TO_DEPLOY_LP_ORDERS",
        }
    }
}

/// A market with everything that belongs to it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Market {
    pub(crate) number: u16,
    pub(crate) fate: Fate,
    pub(crate) state: State,
    pub(crate) trigger: Trigger,
    pub(crate) extension: Trigger,
    pub(crate) auction_start: Moment,
    pub(crate) auction_end: Moment,
    /// Height at which the running suspension ends.
    pub(crate) resumes_at: u64,
    pub(crate) times: Times,
    /// The price that well-informed parties have in mind, in millionths of the market's smallest unit.
    pub(crate) fair_micro: i64,
    /// How lively the price moves now, in thousandths of the usual.
    pub(crate) excitement: i64,
    pub(crate) mark: i64,
    pub(crate) orders: Vec<Order>,
    pub(crate) positions: BTreeMap<u16, Position>,
    pub(crate) provisions: Vec<Provision>,
    pub(crate) auctions: i64,
    /// Fees of the running epoch per party: paid and received as maker.
    pub(crate) fees: BTreeMap<u16, FeeTally>,
    /// Size traded per block lately; feeds figures such as the target stake.
    pub(crate) traded: i64,
    /// Orders that reached their end in the present block.
    #[serde(skip)]
    pub(crate) finished: Vec<Order>,
    /// Margin levels that the present block worked out, with the transaction.
    #[serde(skip)]
    pub(crate) levels: BTreeMap<u16, (Levels, usize)>,
    /// Transaction that changed the market's own record in the present block.
    #[serde(skip)]
    pub(crate) changed: Option<usize>,
    /// Whether something happened that market data should tell.
    #[serde(skip)]
    pub(crate) stirred: bool,
}

/// When a market reached the steps of its life.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Times {
    pub(crate) proposed: Moment,
    pub(crate) pending: Moment,
    pub(crate) open: Moment,
    pub(crate) close: Moment,
}

/// Maker fees of a party in one market in one epoch.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct FeeTally {
    pub(crate) paid: i128,
    pub(crate) received: i128,
}

impl Market {
    pub(crate) fn new(number: u16, fate: Fate) -> Self {
        let price = TEMPLATES[usize::from(number) % TEMPLATES.len()].price;
        Market {
            number,
            fate,
            state: State::Proposed,
            trigger: Trigger::Unspecified,
            extension: Trigger::Unspecified,
            auction_start: Moment::UNSET,
            auction_end: Moment::UNSET,
            resumes_at: 0,
            times: Times::default(),
            fair_micro: price * 1_000_000,
            excitement: 1_000,
            mark: 0,
            orders: Vec::new(),
            positions: BTreeMap::new(),
            provisions: Vec::new(),
            auctions: 0,
            fees: BTreeMap::new(),
            traded: 0,
            finished: Vec::new(),
            levels: BTreeMap::new(),
            changed: None,
            stirred: false,
        }
    }

    pub(crate) fn template(&self) -> &'static Template {
        &TEMPLATES[usize::from(self.number) % TEMPLATES.len()]
    }

    pub(crate) fn asset(&self) -> u8 {
        self.template().asset
    }

    /// Worth of one smallest price step of one smallest size in the settlement asset's smallest unit.
    pub(crate) fn scale(&self) -> i128 {
        let template = self.template();
        let decimals = ASSETS[usize::from(template.asset)].decimals;
        10i128.pow(decimals - template.decimals - template.position_decimals)
    }

    pub(crate) fn value(&self, price: i64, size: i64) -> i128 {
        i128::from(price) * i128::from(size) * self.scale()
    }

    pub(crate) fn fair(&self) -> i64 {
        (self.fair_micro / 1_000_000).max(1)
    }

    pub(crate) fn margin_key(&self, party: u16) -> Key {
        Key { asset: self.asset(), party, market: self.number, kind: Kind::Margin }
    }

    /// An account of the network in this market.
    pub(crate) fn network_key(&self, kind: Kind) -> Key {
        Key { asset: self.asset(), party: NETWORK, market: self.number, kind }
    }

    pub(crate) fn in_auction(&self) -> bool {
        matches!(self.state, State::Pending | State::Suspended)
    }

    pub(crate) fn open_interest(&self) -> i64 {
        self.positions.values().map(|position| position.open.max(0)).sum()
    }

    pub(crate) fn change(&mut self, draft: &Draft) {
        self.changed = Some(draft.transaction());
        self.stirred = true;
    }

    /// Takes the steps of life that are due at this height.
    pub(crate) fn live(&mut self, world: &mut World, draft: &mut Draft, plan: &Plan) {
        let shift = (u64::from(self.number) * 2).min(30);
        let reached = |per_mille: u64| draft.height >= plan.at(per_mille).max(2);
        let (proposed, voted, opens) = (reached(3 + shift), reached(6 + shift), reached(12 + shift));
        let (terminates, settles) = (reached(660), reached(664));
        match self.state {
            State::Proposed if proposed && self.times.proposed == Moment::UNSET => self.propose(world, draft),
            State::Proposed if voted && self.is_proposed_before(draft) => self.vote(draft),
            State::Pending if opens && self.times.pending < draft.time => self.open(world, draft),
            State::Active if terminates && self.fate == Fate::Settles => self.terminate(draft),
            State::TradingTerminated if settles && self.times.close < draft.time => self.settle(world, draft),
            State::Suspended if draft.height >= self.resumes_at => self.resume(world, draft),
            _ => {}
        }
    }

    fn is_proposed_before(&self, draft: &Draft) -> bool {
        self.times.proposed != Moment::UNSET && self.times.proposed < draft.time
    }

    fn propose(&mut self, world: &mut World, draft: &mut Draft) {
        draft.begin_transaction();
        self.times.proposed = draft.time;
        let kinds = [Kind::Insurance, Kind::Settlement, Kind::FeesMaker, Kind::FeesLiquidity];
        for kind in kinds {
            // The network's accounts of a market exist before any money is in them.
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
                self.endow(world, draft);
                self.leave_auction(world, draft);
                self.activate_provisions(draft);
            }
        }
        self.change(draft);
    }

    /// A sponsor puts the first money into the insurance of a market that opens.
    fn endow(&self, world: &mut World, draft: &mut Draft) {
        let (asset, insurance) = (self.asset(), self.network_key(Kind::Insurance));
        let (sponsor, pending) = (Key::general(asset, 1), Key::global(asset, Kind::PendingTransfers));
        let sent = world.take(draft, sponsor, pending, units(asset, 2_500), reason::TRANSFER_FUNDS_SEND);
        world.transfer(draft, pending, insurance, sent, reason::TRANSFER_FUNDS_DISTRIBUTE);
    }

    fn terminate(&mut self, draft: &mut Draft) {
        draft.begin_transaction();
        self.state = State::TradingTerminated;
        self.times.close = draft.time;
        self.stop_orders(draft, Status::Stopped, |_| true);
        self.change(draft);
    }

    fn settle(&mut self, world: &mut World, draft: &mut Draft) {
        draft.begin_transaction();
        self.mark = self.fair();
        self.settle_finally(world, draft);
        self.stop_provisions(world, draft);
        self.state = State::Settled;
        self.change(draft);
    }

    /// Breaks continuous trading off for some blocks.
    pub(crate) fn suspend(&mut self, world: &mut World, draft: &mut Draft, trigger: Trigger, blocks: u64) {
        draft.begin_transaction();
        self.state = State::Suspended;
        self.resumes_at = draft.height + blocks;
        if trigger == Trigger::Price {
            self.excitement = self.excitement.max(4_000);
        }
        self.stop_orders(draft, Status::Cancelled, |order| order.force == Force::Gfn);
        self.enter_auction(draft, trigger, blocks as i64);
        if trigger == Trigger::UnableToDeployLpOrders {
            self.undeploy_provision(world, draft);
        }
        self.change(draft);
    }

    /// Finds a second reason to stay in the auction for a while.
    pub(crate) fn extend_auction(&mut self, draft: &Draft) {
        let price = self.trigger == Trigger::Price;
        self.extension = if price { Trigger::LiquidityTargetNotMet } else { Trigger::Price };
        self.auction_end = self.auction_end.plus_seconds(60);
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
        self.trigger = trigger;
        self.extension = Trigger::Unspecified;
        self.auctions += 1;
        self.auction_start = draft.time;
        self.auction_end = draft.time.plus_seconds(blocks * 20);
        self.park_pegged(draft);
    }

    fn leave_auction(&mut self, world: &mut World, draft: &mut Draft) {
        self.uncross(world, draft);
        self.trigger = Trigger::Unspecified;
        self.extension = Trigger::Unspecified;
        self.auction_start = Moment::UNSET;
        self.auction_end = Moment::UNSET;
        self.stop_orders(draft, Status::Cancelled, |order| order.force == Force::Gfa);
        self.unpark_pegged(draft);
    }
}
