//! A market: its template, state, price, orders, and the positions of its parties.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    block::Draft,
    catalogue::{ASSETS, CATALOGUE, Template},
    labels::labelled,
    moment::Moment,
    order::Book,
    position::Position,
    price::PriceWalk,
    provision::Provision,
    world::{Key, Kind, NETWORK},
};

labelled! {
    /// The state of a market.
    State {
        #[default]
        Proposed = "STATE_PROPOSED",
        Rejected = "STATE_REJECTED",
        Pending = "STATE_PENDING",
        Cancelled = "STATE_CANCELLED",
        Active = "STATE_ACTIVE",
        Suspended = "STATE_SUSPENDED",
        Closed = "STATE_CLOSED",
        TradingTerminated = "STATE_TRADING_TERMINATED",
        Settled = "STATE_SETTLED",
    }
}

labelled! {
    /// Why a market is in an auction.
    Trigger {
        #[default]
        Unspecified = "AUCTION_TRIGGER_UNSPECIFIED",
        Batch = "AUCTION_TRIGGER_BATCH",
        Opening = "AUCTION_TRIGGER_OPENING",
        Price = "AUCTION_TRIGGER_PRICE",
        Liquidity = "AUCTION_TRIGGER_LIQUIDITY",
        LiquidityTargetNotMet = "AUCTION_TRIGGER_LIQUIDITY_TARGET_NOT_MET",
        UnableToDeployLpOrders = "AUCTION_TRIGGER_UNABLE_TO_DEPLOY_LP_ORDERS",
    }
}

impl State {
    /// Whether no later state follows.
    pub(crate) fn is_final(self) -> bool {
        matches!(self, State::Rejected | State::Cancelled | State::Closed | State::Settled)
    }
}

/// The outcome of a market, fixed at its proposal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Fate {
    /// Opens and trades without end.
    #[default]
    Trades,
    /// Opens, and is settled after two thirds of the history.
    Settles,
    /// Is rejected by its vote.
    Rejected,
    /// Finds no liquidity in its opening auction.
    Cancelled,
    /// Is closed by a vote before it opens.
    Closed,
}

/// An auction that is running, or an unset one.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Auction {
    pub(crate) trigger: Trigger,
    pub(crate) extension: Trigger,
    pub(crate) start: Moment,
    pub(crate) end: Moment,
}

/// The times at which a market reached the steps of its life cycle.
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

/// A market with everything that belongs to it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Market {
    pub(crate) number: u16,
    pub(crate) fate: Fate,
    pub(crate) state: State,
    pub(crate) auction: Auction,
    /// Number of auctions so far.
    pub(crate) auctions: i64,
    /// Height at which the present suspension ends.
    pub(crate) resumes_at: u64,
    pub(crate) times: Times,
    pub(crate) walk: PriceWalk,
    /// Price of the last settlement, 0 before the first trade.
    pub(crate) mark: i64,
    pub(crate) book: Book,
    pub(crate) positions: BTreeMap<u16, Position>,
    pub(crate) provisions: Vec<Provision>,
    /// Maker fees of the running epoch per party.
    pub(crate) fees: BTreeMap<u16, FeeTally>,
    /// Size traded recently, decayed by a tenth with each row of market data.
    pub(crate) traded: i64,
    /// Maintenance margins that the present block computed, per party with the hash of the
    /// transaction.
    #[serde(skip)]
    pub(crate) margins: BTreeMap<u16, (i128, String)>,
    /// Hash of the transaction of the present block that changed the market's own row.
    #[serde(skip)]
    pub(crate) changed: Option<String>,
    /// Whether market data changed since their last row.
    pub(crate) data_changed: bool,
}

impl Market {
    pub(crate) fn new(number: u16, fate: Fate) -> Self {
        let walk = PriceWalk::new(CATALOGUE.template(number).price);
        Market { number, fate, walk, ..Market::default() }
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

    /// Price of the last settlement, or the present one before the first.
    pub(crate) fn settlement_price(&self) -> i64 {
        if self.mark > 0 { self.mark } else { self.price() }
    }

    pub(crate) fn general_key(&self, party: u16) -> Key {
        Key::general(self.asset(), party)
    }

    /// An account of a party in this market.
    pub(crate) fn party_key(&self, party: u16, kind: Kind) -> Key {
        Key { asset: self.asset(), party, market: self.number, kind }
    }

    /// An account of the network in this market.
    pub(crate) fn network_key(&self, kind: Kind) -> Key {
        self.party_key(NETWORK, kind)
    }

    pub(crate) fn is_proposed(&self) -> bool {
        self.times.proposed != Moment::UNSET
    }

    pub(crate) fn in_auction(&self) -> bool {
        matches!(self.state, State::Pending | State::Suspended)
    }

    /// Open volume of a party, negative when short.
    pub(crate) fn open_volume(&self, party: u16) -> i64 {
        self.positions.get(&party).map_or(0, |position| position.pending.open)
    }

    /// Marks the market's own row as changed in the present transaction.
    pub(crate) fn change(&mut self, draft: &Draft) {
        self.changed = Some(draft.hash());
        self.data_changed = true;
    }
}
