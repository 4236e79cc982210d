//! Orders and how a market keeps them: what rests, what waits, what has come to its end, and the row that each
//! change leaves.

use serde::{Deserialize, Serialize};

use crate::block::Draft;
use crate::market::Market;
use crate::moment::Moment;
use crate::tables::Table;
use crate::world::World;

/// How long an order stays, with the contract's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Force {
    Unspecified = 0,
    Gtc = 1,
    Gtt = 2,
    Ioc = 3,
    Fok = 4,
    Gfa = 5,
    Gfn = 6,
}

/// Kind of an order, with the contract's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum OrderKind {
    Limit = 1,
    Market = 2,
    Network = 3,
}

/// Status of an order, with the contract's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Status {
    Active = 1,
    Expired = 2,
    Cancelled = 3,
    Stopped = 4,
    Filled = 5,
    Rejected = 6,
    PartiallyFilled = 7,
    Parked = 8,
}

/// What a pegged order follows, with the contract's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Reference {
    Mid = 1,
    BestBid = 2,
    BestAsk = 3,
}

/// A pegged order's reference and its distance from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Peg {
    pub(crate) reference: Reference,
    pub(crate) offset: i64,
}

/// An order.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    /// Rank among orders of the same price: lower comes first.
    pub(crate) priority: u64,
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
    /// The client's own name for it; one without is written with the name that a client program would make.
    pub(crate) reference: Option<String>,
    pub(crate) version: i64,
    pub(crate) batch: i64,
    pub(crate) peg: Option<Peg>,
    /// The liquidity provision that the order belongs to; written as an empty text without one.
    pub(crate) lp: Option<String>,
    /// Which of a liquidity provider's price levels the order fills.
    pub(crate) level: u8,
    pub(crate) created: Moment,
    pub(crate) updated: Moment,
    pub(crate) expires: Option<Moment>,
    pub(crate) post_only: bool,
    pub(crate) reduce_only: bool,
    /// Transaction of the present block that changed the order.
    #[serde(skip)]
    pub(crate) changed: Option<usize>,
}

impl Order {
    /// Makes a good-till-cancelled limit order of this moment.
    pub(crate) fn limit(
        world: &mut World,
        draft: &mut Draft,
        party: u16,
        buy: bool,
        price: i64,
        size: i64,
    ) -> Self {
        Order {
            priority: world.next_serial(),
            id: draft.dice.id(),
            party,
            buy,
            price,
            size,
            remaining: size,
            force: Force::Gtc,
            kind: OrderKind::Limit,
            status: Status::Active,
            reason: 0,
            reference: None,
            version: 1,
            batch: 0,
            peg: None,
            lp: None,
            level: 0,
            created: draft.time,
            updated: Moment::UNSET,
            expires: None,
            post_only: false,
            reduce_only: false,
            changed: None,
        }
    }

    pub(crate) fn rests(&self) -> bool {
        self.status == Status::Active && self.price > 0
    }

    fn write(&self, world: &World, draft: &mut Draft, market: u16) {
        let position = draft.next_position();
        let hash = draft.hash_of(self.changed.unwrap_or(0));
        let row = draft.rows.row(Table::Orders).text(&self.id).text(world.market_id(market));
        let row =
            row.text(world.party_id(self.party)).number(if self.buy { 1 } else { 2 }).number(self.price);
        let row = row.number(self.size).number(self.remaining).number(self.force as i64);
        let row = row.number(self.kind as i64).number(self.status as i64);
        let row = match &self.reference {
            Some(reference) => row.text(reference),
            None => row.text(&usual_reference(&self.id)),
        };
        let row = row.number(self.reason).number(self.version).number(self.batch);
        let (offset, pegged_to) = self.peg.map_or((0, 0), |peg| (peg.offset, peg.reference as i64));
        let row = row.number(offset).number(pegged_to).text(self.lp.as_deref().unwrap_or(""));
        let row = row.time(self.created).time(self.updated).time(self.expires.unwrap_or(Moment::UNSET));
        row.text(&hash).time(draft.time).number(position).flag(self.post_only).flag(self.reduce_only).end();
    }
}

/// What a client program calls an order or a provision when nobody gave it a name: ten upper-case hex digits.
pub(crate) fn usual_reference(id: &str) -> String {
    id[..10].to_uppercase()
}

impl Market {
    /// Finds the resting order of one side that would trade first.
    pub(crate) fn best(&self, buy: bool) -> Option<usize> {
        let resting = self.orders.iter().enumerate().filter(|(_, order)| order.rests() && order.buy == buy);
        let first =
            resting.min_by_key(|(_, order)| (if buy { -order.price } else { order.price }, order.priority));
        first.map(|(at, _)| at)
    }

    /// Best price of one side and the volume that rests there; both 0 when the side is empty.
    pub(crate) fn best_level(&self, buy: bool, pegged_too: bool) -> (i64, i64) {
        let side = || {
            self.orders
                .iter()
                .filter(move |order| order.rests() && order.buy == buy && (pegged_too || order.peg.is_none()))
        };
        let best = if buy { side().map(|o| o.price).max() } else { side().map(|o| o.price).min() };
        best.map_or((0, 0), |price| {
            (price, side().filter(|order| order.price == price).map(|order| order.remaining).sum())
        })
    }

    /// Puts an order where it belongs: among the resting ones, or among those at their end.
    pub(crate) fn keep(&mut self, draft: &Draft, mut order: Order) {
        order.changed = Some(draft.transaction());
        self.stirred = true;
        match order.status {
            Status::Active | Status::Parked => self.orders.push(order),
            _ => self.finished.push(order),
        }
    }

    /// Ends the orders that the choice names, with the given status.
    pub(crate) fn stop_orders(&mut self, draft: &Draft, status: Status, chosen: impl Fn(&Order) -> bool) {
        let (stopped, kept) = std::mem::take(&mut self.orders).into_iter().partition(|order| chosen(order));
        self.orders = kept;
        let stopped: Vec<Order> = stopped;
        for mut order in stopped {
            order.status = status;
            order.updated = draft.time;
            self.keep(draft, order);
        }
    }

    /// Takes pegged orders out of the market for the time of an auction.
    pub(crate) fn park_pegged(&mut self, draft: &Draft) {
        for order in self.orders.iter_mut().filter(|order| order.peg.is_some()) {
            order.status = Status::Parked;
            order.price = 0;
            order.updated = draft.time;
            order.changed = Some(draft.transaction());
        }
    }

    /// Puts parked orders back at the price that they follow.
    pub(crate) fn unpark_pegged(&mut self, draft: &Draft) {
        self.reprice_pegged(draft);
    }

    /// Moves pegged orders to the price that they follow now, never into the other side.
    pub(crate) fn reprice_pegged(&mut self, draft: &Draft) {
        let ((bid, _), (ask, _)) = (self.best_level(true, false), self.best_level(false, false));
        if bid == 0 || ask == 0 {
            return;
        }
        for order in self.orders.iter_mut() {
            let Some(peg) = order.peg else { continue };
            let reference = match peg.reference {
                Reference::Mid => (bid + ask) / 2,
                Reference::BestBid => bid,
                Reference::BestAsk => ask,
            };
            let price = if order.buy {
                (reference - peg.offset).min(ask - 1)
            } else {
                (reference + peg.offset).max(bid + 1)
            };
            if price.max(1) != order.price {
                order.status = Status::Active;
                order.price = price.max(1);
                order.updated = draft.time;
                order.changed = Some(draft.transaction());
            }
        }
    }

    /// Writes one row for every order that the block changed: its last state.
    pub(crate) fn flush_orders(&mut self, world: &World, draft: &mut Draft) {
        for order in std::mem::take(&mut self.finished) {
            order.write(world, draft, self.number);
        }
        for order in self.orders.iter_mut().filter(|order| order.changed.is_some()) {
            order.write(world, draft, self.number);
            order.changed = None;
        }
    }
}
