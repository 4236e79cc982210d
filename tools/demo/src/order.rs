//! Orders, and the order book of a market. An order has one row for each block that changed it.

use serde::{Deserialize, Serialize};

use crate::{block::Draft, moment::Moment, world::World};

/// How long an order stays, with the contract's numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Force {
    Unspecified = 0,
    #[default]
    Gtc = 1,
    Gtt = 2,
    Ioc = 3,
    Fok = 4,
    Gfa = 5,
    Gfn = 6,
}

/// Kind of an order, with the contract's numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum OrderKind {
    #[default]
    Limit = 1,
    Market = 2,
    Network = 3,
}

/// Status of an order, with the contract's numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Status {
    #[default]
    Active = 1,
    Expired = 2,
    Cancelled = 3,
    Stopped = 4,
    Filled = 5,
    Rejected = 6,
    PartiallyFilled = 7,
    Parked = 8,
}

/// What a pegged order follows, with the contract's numbers, and its distance from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Peg {
    /// 1 the middle price, 2 the best bid, 3 the best ask.
    pub(crate) reference: i64,
    pub(crate) offset: i64,
}

/// An order.
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
    /// Number of the error with which the order was rejected, 0 without one.
    pub(crate) reason: i64,
    /// The client's reference for the order; without one the row has the reference that a client program
    /// would make.
    pub(crate) reference: Option<String>,
    pub(crate) version: i64,
    pub(crate) batch: i64,
    pub(crate) peg: Option<Peg>,
    /// Id of the liquidity provision that the order belongs to; an empty text in the row without one.
    pub(crate) provision: Option<String>,
    /// Which of a liquidity provider's price levels the order fills.
    pub(crate) level: i64,
    /// Height at which the party cancels the order.
    pub(crate) cancelled_at: u64,
    pub(crate) created: Moment,
    pub(crate) updated: Moment,
    pub(crate) expires: Option<Moment>,
    pub(crate) post_only: bool,
    pub(crate) reduce_only: bool,
    /// Hash of the transaction of the present block that changed the order.
    #[serde(skip)]
    pub(crate) changed: Option<String>,
}

impl Order {
    /// Makes a good-till-cancelled limit order that is created in this block.
    pub(crate) fn limit(draft: &mut Draft, party: u16, buy: bool, price: i64, size: i64) -> Self {
        Order {
            id: draft.random.id(),
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

    /// Whether the order would trade at a price.
    pub(crate) fn accepts(&self, price: i64) -> bool {
        if self.buy { self.price >= price } else { self.price <= price }
    }

    /// Whether the order waits in the book with a price.
    pub(crate) fn rests(&self) -> bool {
        self.status == Status::Active && self.price > 0
    }

    /// The number of its side: 1 buy, 2 sell.
    pub(crate) fn side(&self) -> i64 {
        if self.buy { 1 } else { 2 }
    }

    /// Whether the order can trade at once with another one, at a price up to `limit` where that is not 0.
    fn crosses(&self, other: &Order, limit: i64) -> bool {
        let meets = limit == 0 || other.accepts(limit);
        other.rests() && other.buy != self.buy && other.party != self.party && meets
    }

    /// Marks a resting order as changed in the present transaction.
    pub(crate) fn change(&mut self, draft: &Draft) {
        self.updated = draft.time;
        self.changed = Some(draft.hash());
    }

    /// Sets a new price and size as the order's next version.
    pub(crate) fn amend(&mut self, draft: &Draft, price: i64, size: i64) {
        (self.price, self.size, self.remaining) = (price, size, size);
        self.version += 1;
        self.change(draft);
    }

    fn write(&mut self, world: &World, draft: &mut Draft, market: u16) {
        let Some(hash) = self.changed.take() else { return };
        let position = draft.next_position();
        let row = draft.rows.row("orders").text(&self.id).text(world.market_id(market));
        let row = row.text(world.party_id(self.party)).number(self.side()).number(self.price);
        let row = row.number(self.size).number(self.remaining).number(self.force as i64);
        let row = row.number(self.kind as i64).number(self.status as i64);
        let row = row.text(&reference_or_default(self.reference.as_deref(), &self.id));
        let row = row.number(self.reason).number(self.version).number(self.batch);
        let (offset, pegged_to) = self.peg.map_or((0, 0), |peg| (peg.offset, peg.reference));
        let row = row.number(offset).number(pegged_to).text(self.provision.as_deref().unwrap_or(""));
        let row = row.time(self.created).time(self.updated).time(self.expires.unwrap_or(Moment::UNSET));
        row.text(&hash).time(draft.time).number(position).flag(self.post_only).flag(self.reduce_only).end();
    }
}

/// The reference, or when the party gave none ten upper-case hex digits of the id, as a client program does.
pub(crate) fn reference_or_default(reference: Option<&str>, id: &str) -> String {
    reference.map_or_else(|| id[..10].to_uppercase(), str::to_owned)
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
    pub(crate) fn add(&mut self, draft: &Draft, mut order: Order) {
        order.changed = Some(draft.hash());
        match order.status {
            Status::Active | Status::Parked => self.orders.push(order),
            _ => self.ended.push(order),
        }
    }

    /// The resting order that an incoming one trades with first, by price, then by age.
    pub(crate) fn best_for(&self, order: &Order, limit: i64) -> Option<usize> {
        let crossing = self.orders.iter().enumerate().filter(|(_, other)| order.crosses(other, limit));
        crossing.min_by_key(|(_, other)| if order.buy { other.price } else { -other.price }).map(|(at, _)| at)
    }

    /// Volume that an order could trade with at once.
    pub(crate) fn volume_for(&self, order: &Order) -> i64 {
        let crossing = self.orders.iter().filter(|other| order.crosses(other, order.price));
        crossing.map(|other| other.remaining).sum()
    }

    /// Trades a part of a resting order. Returns its party and its id.
    pub(crate) fn fill(&mut self, draft: &Draft, at: usize, size: i64) -> (u16, String) {
        let order = &mut self.orders[at];
        order.remaining -= size;
        order.change(draft);
        let maker = (order.party, order.id.clone());
        if order.remaining == 0 {
            let mut filled = self.orders.remove(at);
            filled.status = Status::Filled;
            self.ended.push(filled);
        }
        maker
    }

    /// Ends the chosen orders with a status.
    pub(crate) fn end(&mut self, draft: &Draft, status: Status, chosen: impl Fn(&Order) -> bool) {
        for mut order in self.orders.extract_if(.., |order| chosen(order)) {
            order.status = status;
            order.change(draft);
            self.ended.push(order);
        }
    }

    /// Best price of a side and the volume that rests there; both 0 when the side is empty.
    pub(crate) fn best_level(&self, buy: bool, with_pegged: bool) -> (i64, i64) {
        let side = || {
            let side = self.orders.iter().filter(move |order| order.rests() && order.buy == buy);
            side.filter(move |order| with_pegged || order.peg.is_none())
        };
        let best = if buy { side().map(|o| o.price).max() } else { side().map(|o| o.price).min() };
        best.map_or((0, 0), |price| {
            (price, side().filter(|order| order.price == price).map(|order| order.remaining).sum())
        })
    }

    /// Writes one row for every order that the block changed: its last state. Returns whether there was one.
    pub(crate) fn write_changes(&mut self, world: &World, draft: &mut Draft, market: u16) -> bool {
        let before = draft.rows.count("orders");
        for mut order in self.ended.drain(..) {
            order.write(world, draft, market);
        }
        for order in &mut self.orders {
            order.write(world, draft, market);
        }
        draft.rows.count("orders") > before
    }
}
