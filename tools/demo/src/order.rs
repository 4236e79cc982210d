//! Orders, their templates, and the order book of a market. An order has one row for each block that changed
//! it.

use mesh_store::TimeUs;
use serde::{Deserialize, Serialize};

use crate::block::Draft;

/// How long an order stays, with the contract's numbers from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Force {
    Unspecified,
    #[default]
    Gtc,
    Gtt,
    Ioc,
    Fok,
    Gfa,
    Gfn,
}

/// Kind of an order, with the contract's numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum OrderKind {
    #[default]
    Limit = 1,
    Market,
    Network,
}

/// Status of an order, with the contract's numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Status {
    #[default]
    Active = 1,
    Expired,
    Cancelled,
    Stopped,
    Filled,
    Rejected,
    PartiallyFilled,
    Parked,
}

/// The template of an order that a party sends.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct OrderTemplate {
    /// Share of all orders, in thousandths.
    pub(crate) share: u64,
    pub(crate) kind: OrderKind,
    pub(crate) force: Force,
    /// What becomes of it in the same block, if there is an order to trade with.
    pub(crate) status: Status,
    /// Distance of the price from the market's in hundredths of a percent, from least to greatest; negative
    /// on the other side, where the order trades at once.
    pub(crate) away: (i64, i64),
    /// How many times the usual size it has at most; 0 for the usual one.
    pub(crate) times: i64,
    pub(crate) pegged: bool,
    pub(crate) post_only: bool,
    pub(crate) reduce_only: bool,
    /// Numbers of the errors with which it is rejected.
    pub(crate) reasons: Vec<i64>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) id: String,
    pub(crate) party: u16,
    pub(crate) buy: bool,
    /// Price in the market's smallest unit, 0 for market orders and while parked.
    pub(crate) price: i64,
    pub(crate) size: i64,
    pub(crate) remaining: i64,
    pub(crate) force: Force,
    pub(crate) kind: OrderKind,
    pub(crate) status: Status,
    pub(crate) reason: i64,
    pub(crate) reference: String,
    pub(crate) version: i64,
    pub(crate) batch: u64,
    /// What a pegged order follows, with the contract's numbers, and its distance from it.
    pub(crate) peg: Option<(i64, i64)>,
    /// Id of the liquidity provision that the order belongs to, and its price level there; empty without one.
    pub(crate) provision: (String, i64),
    /// Height at which the party cancels the order.
    pub(crate) cancelled_at: u64,
    pub(crate) created: TimeUs,
    pub(crate) updated: TimeUs,
    /// Unset when the order does not expire.
    pub(crate) expires: TimeUs,
    pub(crate) post_only: bool,
    pub(crate) reduce_only: bool,
    /// Hash of the transaction of the present block that changed the order.
    #[serde(skip)]
    pub(crate) changed: Option<String>,
}

impl Order {
    /// Makes a good-till-cancelled limit order that is created in this block.
    pub(crate) fn limit(draft: &mut Draft<'_>, party: u16, buy: bool, price: i64, size: i64) -> Self {
        let id = draft.random.id();
        Order {
            reference: default_reference(&id),
            id,
            party,
            buy,
            price,
            size,
            remaining: size,
            version: 1,
            cancelled_at: u64::MAX,
            created: draft.time,
            ..Order::default()
        }
    }

    pub(crate) fn accepts(&self, price: i64) -> bool {
        if self.buy { self.price >= price } else { self.price <= price }
    }

    /// Whether the order waits in the book with a price.
    pub(crate) fn rests(&self) -> bool {
        self.status == Status::Active && self.price > 0
    }

    /// Marks the order as changed in the present transaction.
    pub(crate) fn change(&mut self, draft: &Draft<'_>, status: Status) {
        (self.status, self.updated) = (status, draft.time);
        self.changed = Some(draft.transaction.clone());
    }

    /// Sets a new price and size as the order's next version.
    pub(crate) fn amend(&mut self, draft: &Draft<'_>, price: i64, size: i64) {
        (self.price, self.size, self.remaining, self.version) = (price, size, size, self.version + 1);
        self.change(draft, Status::Active);
    }

    fn write(&mut self, draft: &mut Draft<'_>, market: u16) {
        let Some(hash) = self.changed.take() else { return };
        let (pegged_to, offset) = self.peg.unwrap_or_default();
        row! { draft, orders:
            id: self.id, market_id: draft.world.market_id(market),
            party_id: draft.world.party_id(self.party), side: if self.buy { 1 } else { 2 },
            price: self.price, size: self.size, remaining: self.remaining,
            time_in_force: self.force as i64, type: self.kind as i64, status: self.status as i64,
            reference: self.reference, reason: self.reason, version: self.version, batch_id: self.batch,
            pegged_offset: offset, pegged_reference: pegged_to, lp_id: self.provision.0,
            created_at: self.created, updated_at: self.updated, expires_at: self.expires, tx_hash: hash,
            post_only: self.post_only, reduce_only: self.reduce_only,
        }
    }
}

/// The reference that a client program makes when the party gave none: ten upper-case hex digits of the id.
pub(crate) fn default_reference(id: &str) -> String {
    id[..10].to_uppercase()
}

/// The orders that rest in a market, in the order of their arrival.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Book {
    pub(crate) orders: Vec<Order>,
    /// Orders that reached their end in the present block.
    #[serde(skip)]
    ended: Vec<Order>,
}

impl Book {
    /// Adds an order: it rests when it is active or parked, else only its row is written.
    pub(crate) fn add(&mut self, draft: &Draft<'_>, mut order: Order) {
        order.changed = Some(draft.transaction.clone());
        match order.status {
            Status::Active | Status::Parked => self.orders.push(order),
            _ => self.ended.push(order),
        }
    }

    /// The place of the resting order that an incoming one trades with first, by price, then by age, and no
    /// worse than its limit.
    pub(crate) fn best_for(&self, order: &Order) -> Option<usize> {
        let opposite = self.orders.iter().enumerate().filter(|(_, other)| {
            let meets = order.price == 0 || other.accepts(order.price);
            meets && other.rests() && other.buy != order.buy && other.party != order.party
        });
        let price = |other: &Order| if order.buy { other.price } else { -other.price };
        opposite.min_by_key(|(_, other)| price(other)).map(|(at, _)| at)
    }

    /// Trades a part of a resting order. Returns its party and its id.
    pub(crate) fn fill(&mut self, draft: &Draft<'_>, at: usize, size: i64) -> (u16, String) {
        let order = &mut self.orders[at];
        order.remaining -= size;
        order.change(draft, Status::Active);
        let maker = (order.party, order.id.clone());
        if order.remaining == 0 {
            let filled = self.orders.remove(at);
            self.ended.push(Order { status: Status::Filled, ..filled });
        }
        maker
    }

    /// Ends the chosen orders with a status.
    pub(crate) fn end(&mut self, draft: &Draft<'_>, status: Status, chosen: impl Fn(&Order) -> bool) {
        for mut order in self.orders.extract_if(.., |order| chosen(order)) {
            order.change(draft, status);
            self.ended.push(order);
        }
    }

    /// Best price of a side and the volume that rests there; both 0 when the side is empty.
    pub(crate) fn best_level(&self, buy: bool, with_pegged: bool) -> (i64, i64) {
        let is_seen =
            |order: &&Order| order.rests() && order.buy == buy && (with_pegged || order.peg.is_none());
        let prices = self.orders.iter().filter(is_seen).map(|order| order.price);
        let best = if buy { prices.max() } else { prices.min() };
        let Some(price) = best else { return (0, 0) };
        let level = self.orders.iter().filter(is_seen).filter(|order| order.price == price);
        (price, level.map(|order| order.remaining).sum())
    }

    /// Writes one row for every order that the block changed: its last state. Returns whether there was one.
    pub(crate) fn write_changes(&mut self, draft: &mut Draft<'_>, market: u16) -> bool {
        let before = draft.rows.records("orders").len();
        self.ended.drain(..).for_each(|mut order| order.write(draft, market));
        self.orders.iter_mut().for_each(|order| order.write(draft, market));
        draft.rows.records("orders").len() > before
    }
}
