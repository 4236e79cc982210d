//! A market: its state and life cycle, from the proposal over auctions to the settlement.

use std::collections::BTreeMap;

use mesh_store::TimeUs;
use serde::{Deserialize, Serialize};

use crate::{
    block::Draft,
    catalogue::{ASSETS, CATALOGUE, Template, units},
    liquidity::Provision,
    order::{Book, Force, Status},
    plan::Plan,
    position::Position,
    walk::PriceWalk,
    world::{Key, Kind, NETWORK},
};

/// The state of a market.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum State {
    #[default]
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

/// Why a market is in an auction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Trigger {
    #[default]
    Unspecified,
    Batch,
    Opening,
    Price,
    Liquidity,
    LiquidityTargetNotMet,
    UnableToDeployLpOrders,
}

/// Reasons for an interruption of trading, in turn.
const TRIGGERS: [Trigger; 5] = [
    Trigger::Price,
    Trigger::LiquidityTargetNotMet,
    Trigger::UnableToDeployLpOrders,
    Trigger::Batch,
    Trigger::Liquidity,
];

/// How a market ends, fixed at its proposal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Ending {
    /// It trades without end.
    #[default]
    None,
    /// It is settled after two thirds of the history.
    Settled,
    Rejected,
    /// It finds no liquidity in its opening auction.
    Cancelled,
    /// A vote closes it before it opens.
    Closed,
}

/// An auction that is running, or an unset one.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Auction {
    pub(crate) trigger: Trigger,
    pub(crate) extension: Trigger,
    pub(crate) start: TimeUs,
    pub(crate) end: TimeUs,
    /// Height at which a suspension ends.
    resumes_at: u64,
}

/// A market with everything that belongs to it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Market {
    pub(crate) number: u16,
    pub(crate) ending: Ending,
    pub(crate) state: State,
    /// Time of the last step of the life cycle.
    pub(crate) since: TimeUs,
    /// The times of its steps in nanoseconds, as the definition shows them; empty before the proposal.
    pub(crate) times: BTreeMap<String, i64>,
    pub(crate) auction: Auction,
    pub(crate) auctions: i64,
    pub(crate) walk: PriceWalk,
    /// Price of the last settlement, 0 before the first trade.
    pub(crate) mark: i64,
    pub(crate) book: Book,
    pub(crate) positions: BTreeMap<u16, Position>,
    /// The party that is being closed out.
    pub(crate) victim: Option<u16>,
    /// Liquidity provisions by party.
    pub(crate) provisions: BTreeMap<u16, Provision>,
    /// Size traded recently, decayed by a tenth with each row of market data.
    pub(crate) traded: i64,
    /// Parties whose position the present block changed, each with the hash of the transaction.
    #[serde(skip)]
    pub(crate) touched: BTreeMap<u16, String>,
    /// Whether market data changed since their last row.
    pub(crate) data_changed: bool,
}

impl Market {
    pub(crate) fn new(number: u16, ending: Ending) -> Self {
        let walk = PriceWalk::new(CATALOGUE.template(number).price);
        Market { number, ending, walk, ..Market::default() }
    }

    pub(crate) fn step(&mut self, draft: &mut Draft<'_>) {
        if let Some(next) = self.next_state(draft.height, draft.plan) {
            draft.begin_transaction();
            self.enter(draft, next);
            self.data_changed = true;
            self.write_definition(draft);
        }
        self.walk.step(draft, self.template());
        let trades = self.in_auction() || self.state == State::Active;
        if matches!(self.ending, Ending::None | Ending::Settled) && (trades || self.state == State::Settled) {
            self.step_provisions(draft);
        }
        if trades {
            self.trade(draft);
        }
        self.write_changes(draft);
    }

    /// The state that the market enters at this height, if any; a suspended market is suspended again when
    /// its auction is extended. Over the length of the history there are five suspensions, and later ones at
    /// the same pace.
    fn next_state(&self, height: u64, plan: &Plan) -> Option<State> {
        let shift = (u64::from(self.number) * 2).min(30);
        let reached = |per_mille| height >= plan.height_at(per_mille).max(2);
        let cycle = (plan.blocks / 5).max(20);
        let turn = (height / cycle) as usize * 2 % plan.markets;
        let is_interrupted = height % cycle == cycle * 45 / 100 && turn == usize::from(self.number);
        let (is_due, next) = match (self.state, self.ending) {
            (State::Proposed, _) if self.times.is_empty() => (reached(3 + shift), State::Proposed),
            (State::Proposed, Ending::Rejected) => (reached(6 + shift), State::Rejected),
            (State::Proposed, _) => (reached(6 + shift), State::Pending),
            (State::Pending, Ending::Cancelled) => (reached(12 + shift), State::Cancelled),
            (State::Pending, Ending::Closed) => (reached(12 + shift), State::Closed),
            (State::Pending, _) => (reached(12 + shift), State::Active),
            (State::Suspended, _) if height >= self.auction.resumes_at => (true, State::Active),
            (State::Suspended, _) => {
                (height + suspension(plan) / 2 == self.auction.resumes_at, State::Suspended)
            }
            (State::Active, Ending::Settled) if reached(660) => (true, State::TradingTerminated),
            (State::Active, _) => (is_interrupted, State::Suspended),
            (State::TradingTerminated, _) => (reached(664), State::Settled),
            _ => return None,
        };
        is_due.then_some(next)
    }

    fn enter(&mut self, draft: &mut Draft<'_>, next: State) {
        let previous = std::mem::replace(&mut self.state, next);
        self.since = draft.time;
        let steps = reached_times(previous, next).iter();
        self.times.extend(steps.map(|step| ((*step).to_owned(), draft.time.ns())));
        match next {
            State::Proposed => {
                // The network's accounts of a market exist from the beginning, with zero balance.
                for kind in [Kind::Insurance, Kind::Settlement, Kind::FeesMaker, Kind::FeesLiquidity] {
                    draft.open(self.network_key(kind));
                }
            }
            State::Pending => self.enter_auction(draft, Trigger::Opening, 20),
            State::Active => {
                if previous == State::Pending {
                    self.fund_insurance(draft);
                }
                self.uncross(draft);
                self.auction = Auction::default();
                self.place_pegged(draft);
            }
            State::Suspended if previous == State::Suspended => {
                let price = self.auction.trigger == Trigger::Price;
                self.auction.extension = if price { Trigger::LiquidityTargetNotMet } else { Trigger::Price };
                self.auction.end = self.auction.end.plus_seconds(60);
            }
            State::Suspended => self.suspend(draft),
            State::Cancelled | State::Closed | State::TradingTerminated => {
                self.book.end(draft, Status::Stopped, |_| true);
            }
            State::Settled => {
                self.settle_finally(draft);
                self.distribute_fees(draft);
            }
            _ => {}
        }
    }

    /// A sponsor funds the insurance account of a market that opens.
    fn fund_insurance(&self, draft: &mut Draft<'_>) {
        let pending = Key::global(self.asset(), Kind::PendingTransfers);
        let amount = units(self.asset(), 2_500);
        let sent = draft.take(self.general_key(1), pending, amount, "TRANSFER_FUNDS_SEND");
        draft.transfer(pending, self.network_key(Kind::Insurance), sent, "TRANSFER_FUNDS_DISTRIBUTE");
    }

    /// Interrupts continuous trading for some blocks.
    fn suspend(&mut self, draft: &mut Draft<'_>) {
        let turn = draft.height / (draft.plan.blocks / 5).max(20);
        let trigger = TRIGGERS[turn as usize % TRIGGERS.len()];
        self.book.end(draft, Status::Cancelled, |order| order.force == Force::Gfn);
        self.enter_auction(draft, trigger, suspension(draft.plan));
        if trigger == Trigger::Price {
            self.walk.shock();
        }
    }

    fn enter_auction(&mut self, draft: &Draft<'_>, trigger: Trigger, blocks: u64) {
        self.auctions += 1;
        let (start, end) = (draft.time, draft.time.plus_seconds(blocks as i64 * 20));
        let resumes_at = draft.height + blocks;
        self.auction = Auction { trigger, start, end, resumes_at, ..Auction::default() };
        self.place_pegged(draft);
    }

    pub(crate) fn template(&self) -> &'static Template {
        CATALOGUE.template(self.number)
    }

    pub(crate) fn asset(&self) -> u8 {
        self.template().asset
    }

    /// Value of one smallest price step times one smallest size, in the settlement asset's smallest unit.
    pub(crate) fn scale(&self) -> i128 {
        let template = self.template();
        let decimals = ASSETS[usize::from(template.asset)].decimals;
        10i128.pow(decimals - template.decimals - template.position_decimals)
    }

    pub(crate) fn value(&self, price: i64, size: i64) -> i128 {
        i128::from(price) * i128::from(size) * self.scale()
    }

    /// The price around which orders are placed.
    pub(crate) fn price(&self) -> i64 {
        self.walk.price()
    }

    pub(crate) fn general_key(&self, party: u16) -> Key {
        Key::general(self.asset(), party)
    }

    pub(crate) fn party_key(&self, party: u16, kind: Kind) -> Key {
        Key { market: self.number, kind, ..self.general_key(party) }
    }

    pub(crate) fn network_key(&self, kind: Kind) -> Key {
        self.party_key(NETWORK, kind)
    }

    pub(crate) fn in_auction(&self) -> bool {
        matches!(self.state, State::Pending | State::Suspended)
    }

    /// Whether no later state follows.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.state, State::Rejected | State::Cancelled | State::Closed | State::Settled)
    }

    /// Open volume of a party, negative when short.
    pub(crate) fn open_volume(&self, party: u16) -> i64 {
        self.positions.get(&party).map_or(0, |position| position.pending.open)
    }
}

/// The times that the definition shows from this step on. One that is not reached yet equals the one before;
/// the end has none.
fn reached_times(previous: State, next: State) -> &'static [&'static str] {
    match (previous, next) {
        (_, State::Proposed) => &["proposed", "pending", "open"],
        (_, State::Pending) => &["pending", "open"],
        (State::Pending, State::Active) => &["open"],
        (_, State::TradingTerminated) => &["close"],
        _ => &[],
    }
}

/// Blocks of an interruption.
fn suspension(plan: &Plan) -> u64 {
    ((plan.blocks / 5).max(20) / 60).max(3)
}
