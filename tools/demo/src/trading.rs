//! How orders meet: submission, matching in continuous trading, uncrossing at the end of an auction, and the fees
//! that a trade costs.

use std::collections::{BTreeMap, BTreeSet};

use crate::block::Draft;
use crate::book::{Force, Order, OrderKind, Status};
use crate::liquidity::is_kept_by_provider;
use crate::market::{Market, State};
use crate::position::Standing;
use crate::tables::Table;
use crate::world::{Key, Kind, NETWORK, World, reason};

/// Fees of one trade in the asset's smallest unit.
#[derive(Clone, Copy, Debug, Default)]
struct Fees {
    maker: i128,
    infrastructure: i128,
    liquidity: i128,
}

impl Fees {
    /// Fees in hundred-thousandths of the value, rounded up.
    fn of(value: i128) -> Fees {
        let part = |share: i128| (value * share + 99_999) / 100_000;
        Fees { maker: part(20), infrastructure: part(50), liquidity: part(100) }
    }

    fn halved(self) -> Fees {
        Fees { maker: 0, infrastructure: (self.infrastructure + 1) / 2, liquidity: (self.liquidity + 1) / 2 }
    }

    fn add(&mut self, other: Fees) {
        self.maker += other.maker;
        self.infrastructure += other.infrastructure;
        self.liquidity += other.liquidity;
    }
}

/// One meeting of two orders.
struct Fill<'a> {
    buyer: (u16, &'a str),
    seller: (u16, &'a str),
    price: i64,
    size: i64,
    /// 1 when the buyer came second, 2 when the seller did, 0 in an auction.
    aggressor: i64,
    /// 1 ordinary, 2 and 3 the two sides of a close-out.
    kind: i64,
    buyer_fees: Fees,
    seller_fees: Fees,
    /// Number of the auction, 0 in continuous trading.
    batch: i64,
}

/// Numbers of the network's order errors that the demo network gives.
pub(crate) mod refusal {
    pub(crate) const MARKET_CLOSED: i64 = 13;
    pub(crate) const MARGIN_CHECK_FAILED: i64 = 14;
    pub(crate) const GFN_IN_AUCTION: i64 = 24;
    pub(crate) const GFA_IN_CONTINUOUS: i64 = 25;
    pub(crate) const IOC_IN_AUCTION: i64 = 32;
    pub(crate) const FOK_IN_AUCTION: i64 = 33;
    pub(crate) const POST_ONLY_WOULD_TRADE: i64 = 49;
    pub(crate) const REDUCE_ONLY_WOULD_NOT_REDUCE: i64 = 50;
}

impl Market {
    /// Takes an order in, as its own transaction.
    pub(crate) fn submit(&mut self, world: &mut World, draft: &mut Draft, mut order: Order) {
        draft.begin_transaction();
        if order.reason == 0 {
            order.reason = self.refuse(world, &order);
        }
        if order.reason != 0 {
            order.status = Status::Rejected;
            self.keep(draft, order);
            return;
        }
        if self.state == State::Active && order.peg.is_none() {
            self.execute(world, draft, &mut order);
        }
        let party = order.party;
        if order.peg.is_some() {
            order.status = Status::Parked;
            order.price = 0;
        }
        let pegged = order.peg.is_some();
        let placed_by_provider = is_kept_by_provider(&order);
        self.keep(draft, order);
        if pegged && self.state == State::Active {
            self.reprice_pegged(draft);
        }
        if !placed_by_provider {
            self.rebalance(world, draft, party);
        }
    }

    /// Says with which error an order is refused; 0 when it is not.
    fn refuse(&self, world: &World, order: &Order) -> i64 {
        if !matches!(self.state, State::Active | State::Suspended | State::Pending) {
            return refusal::MARKET_CLOSED;
        }
        match (self.in_auction(), order.force) {
            (true, Force::Gfn) => return refusal::GFN_IN_AUCTION,
            (true, Force::Ioc) => return refusal::IOC_IN_AUCTION,
            (true, Force::Fok) => return refusal::FOK_IN_AUCTION,
            (false, Force::Gfa) => return refusal::GFA_IN_CONTINUOUS,
            _ => {}
        }
        let open = self.positions.get(&order.party).map_or(0, |position| position.open);
        if order.reduce_only && (open == 0 || (open > 0) == order.buy || order.size > open.abs()) {
            return refusal::REDUCE_ONLY_WOULD_NOT_REDUCE;
        }
        if order.post_only && self.volume_against(order) > 0 {
            return refusal::POST_ONLY_WOULD_TRADE;
        }
        if !self.can_carry(world, order.party, order.buy, order.size) {
            return refusal::MARGIN_CHECK_FAILED;
        }
        0
    }

    fn crosses(&self, order: &Order, other: &Order) -> bool {
        other.rests()
            && other.buy != order.buy
            && (order.price == 0
                || if order.buy { other.price <= order.price } else { other.price >= order.price })
    }

    /// Volume that an order could trade with at once.
    fn volume_against(&self, order: &Order) -> i64 {
        self.orders.iter().filter(|other| self.crosses(order, other)).map(|other| other.remaining).sum()
    }

    /// Matches an order with what rests on the other side and gives it the status that follows.
    pub(crate) fn execute(&mut self, world: &mut World, draft: &mut Draft, order: &mut Order) {
        let whole = order.force != Force::Fok || self.volume_against(order) >= order.size;
        let mut paid = Fees::default();
        let mut received: BTreeMap<u16, i128> = BTreeMap::new();
        let mut makers = BTreeSet::new();
        while whole && order.remaining > 0 {
            let Some(at) = self.best(!order.buy).filter(|&at| self.crosses(order, &self.orders[at])) else {
                break;
            };
            if self.orders[at].party == order.party {
                // Nobody trades with themselves: the newcomer stops.
                order.status = Status::Stopped;
                break;
            }
            let (maker, fees) = self.fill(world, draft, order, at);
            paid.add(fees);
            *received.entry(maker).or_default() += fees.maker;
            makers.insert(maker);
        }
        let traded = order.remaining < order.size;
        let stays = matches!(order.force, Force::Gtc | Force::Gtt | Force::Gfn | Force::Gfa)
            && order.kind == OrderKind::Limit
            && order.status != Status::Stopped;
        order.status = match (order.remaining, stays, traded) {
            (0, _, _) => Status::Filled,
            (_, true, _) => Status::Active,
            (_, false, true) => Status::PartiallyFilled,
            (_, false, false) => Status::Stopped,
        };
        if order.party != NETWORK {
            self.charge(world, draft, order.party, paid, &received);
        }
        // Providers are checked when positions are settled: they have money enough for the time between.
        for maker in makers {
            if !self.is_provider(maker) {
                self.rebalance(world, draft, maker);
            }
        }
    }

    /// Trades an incoming order with a resting one. Gives the resting order's party and the fees.
    fn fill(&mut self, world: &mut World, draft: &mut Draft, order: &mut Order, at: usize) -> (u16, Fees) {
        let resting = &mut self.orders[at];
        let size = order.remaining.min(resting.remaining);
        let (price, maker, maker_order) = (resting.price, resting.party, resting.id.clone());
        order.remaining -= size;
        resting.remaining -= size;
        resting.updated = draft.time;
        resting.changed = Some(draft.transaction());
        if resting.remaining == 0 {
            let mut filled = self.orders.remove(at);
            filled.status = Status::Filled;
            self.finished.push(filled);
        }
        let network = order.party == NETWORK;
        let fees = if network { Fees::default() } else { Fees::of(self.value(price, size)) };
        let (taker, other) = ((order.party, order.id.as_str()), (maker, maker_order.as_str()));
        let none = Fees::default();
        let fill = Fill {
            buyer: if order.buy { taker } else { other },
            seller: if order.buy { other } else { taker },
            price,
            size,
            aggressor: if order.buy { 1 } else { 2 },
            kind: if network { 2 } else { 1 },
            buyer_fees: if order.buy { fees } else { none },
            seller_fees: if order.buy { none } else { fees },
            batch: 0,
        };
        self.record(world, draft, &fill);
        (maker, fees)
    }

    /// Books a fill with both positions and writes its row.
    fn record(&mut self, world: &World, draft: &mut Draft, fill: &Fill<'_>) {
        let position = draft.next_position();
        let transaction = draft.transaction();
        for (party, signed) in [(fill.buyer.0, fill.size), (fill.seller.0, -fill.size)] {
            if party != NETWORK {
                self.positions.entry(party).or_default().trade(signed, fill.price, transaction);
            }
        }
        self.mark = if self.mark == 0 { fill.price } else { self.mark };
        self.traded += fill.size;
        self.stirred = true;
        let (id, hash) = (draft.dice.id(), draft.hash());
        let row = draft.rows.row(Table::Trades).time(draft.time.plus_us(position)).text(&hash);
        let row = row.time(draft.time).number(position).text(&id).text(world.market_id(self.number));
        let row = row.number(fill.price).number(fill.size);
        let row = row.text(world.party_id(fill.buyer.0)).text(world.party_id(fill.seller.0));
        let mut row = row.number(fill.aggressor).text(fill.buyer.1).text(fill.seller.1).number(fill.kind);
        for fees in [fill.buyer_fees, fill.seller_fees] {
            row = row.number(fees.maker).number(fees.infrastructure).number(fees.liquidity);
        }
        row.number(fill.batch).number(fill.batch).end();
    }

    /// Moves the fees of a party's trades.
    fn charge(
        &mut self,
        world: &mut World,
        draft: &mut Draft,
        payer: u16,
        fees: Fees,
        received: &BTreeMap<u16, i128>,
    ) {
        let infrastructure = Key::global(self.asset(), Kind::FeesInfrastructure);
        let (maker, liquidity) = (self.network_key(Kind::FeesMaker), self.network_key(Kind::FeesLiquidity));
        let paid = self.pay_fee(world, draft, payer, maker, fees.maker, reason::MAKER_FEE_PAY);
        self.pay_fee(
            world,
            draft,
            payer,
            infrastructure,
            fees.infrastructure,
            reason::INFRASTRUCTURE_FEE_PAY,
        );
        self.pay_fee(world, draft, payer, liquidity, fees.liquidity, reason::LIQUIDITY_FEE_PAY);
        self.fees.entry(payer).or_default().paid += paid;
        for (&party, &amount) in received {
            let general = Key::general(self.asset(), party);
            let got = world.take(draft, maker, general, amount, reason::MAKER_FEE_RECEIVE);
            self.fees.entry(party).or_default().received += got;
        }
    }

    /// Pays from the party's own account, and from its margin when that is short.
    fn pay_fee(
        &self,
        world: &mut World,
        draft: &mut Draft,
        payer: u16,
        to: Key,
        amount: i128,
        reason: &str,
    ) -> i128 {
        let paid = world.take(draft, Key::general(self.asset(), payer), to, amount, reason);
        paid + world.take(draft, self.margin_key(payer), to, amount - paid, reason)
    }

    /// The price at which most volume would trade in an auction, and that volume.
    pub(crate) fn indicative(&self) -> (i64, i64) {
        let fair = self.fair();
        let resting = || self.orders.iter().filter(|order| order.rests());
        let prices: BTreeSet<i64> = resting().map(|order| order.price).collect();
        let volume = |price: i64| {
            let buys = resting().filter(|o| o.buy && o.price >= price).map(|o| o.remaining).sum::<i64>();
            let sells = resting().filter(|o| !o.buy && o.price <= price).map(|o| o.remaining).sum::<i64>();
            buys.min(sells)
        };
        let best = prices.into_iter().map(|price| (volume(price), -(price - fair).abs(), price)).max();
        best.filter(|(volume, _, _)| *volume > 0).map_or((0, 0), |(volume, _, price)| (price, volume))
    }

    /// Ends an auction: everything that can trade does so at one price.
    pub(crate) fn uncross(&mut self, world: &mut World, draft: &mut Draft) {
        let (price, mut left) = self.indicative();
        let mut touched = BTreeSet::new();
        while left > 0 {
            let (Some(bid), Some(ask)) = (self.best(true), self.best(false)) else { break };
            if self.orders[bid].price < price || self.orders[ask].price > price {
                break;
            }
            let size = left.min(self.orders[bid].remaining).min(self.orders[ask].remaining);
            left -= size;
            for at in [bid, ask] {
                let order = &mut self.orders[at];
                order.remaining -= size;
                order.updated = draft.time;
                order.changed = Some(draft.transaction());
                touched.insert(order.party);
            }
            let (buyer, seller) = (self.orders[bid].clone(), self.orders[ask].clone());
            if buyer.party != seller.party {
                let fees = Fees::of(self.value(price, size)).halved();
                let fill = Fill {
                    buyer: (buyer.party, &buyer.id),
                    seller: (seller.party, &seller.id),
                    price,
                    size,
                    aggressor: 0,
                    kind: 1,
                    buyer_fees: fees,
                    seller_fees: fees,
                    batch: self.auctions,
                };
                self.record(world, draft, &fill);
                self.charge(world, draft, buyer.party, fees, &BTreeMap::new());
                self.charge(world, draft, seller.party, fees, &BTreeMap::new());
            }
            self.stop_orders(draft, Status::Filled, |order| order.remaining == 0);
        }
        if price > 0 {
            self.mark = price;
        }
        for party in touched {
            self.rebalance(world, draft, party);
        }
    }

    /// Sells a distressed party's position to the market: the network trades with whoever is there, and hands
    /// each trade on to the party. Says whether the whole position found a taker.
    pub(crate) fn close_out(&mut self, world: &mut World, draft: &mut Draft, party: u16) -> bool {
        let open = self.positions.get(&party).map_or(0, |position| position.open);
        let buy = open < 0;
        let mut order = Order::limit(world, draft, NETWORK, buy, 0, open.abs());
        (order.kind, order.force) = (OrderKind::Network, Force::Fok);
        if open == 0 || self.volume_against(&order) < order.size {
            return open == 0;
        }
        let bad_order = draft.dice.id();
        let mut makers = BTreeSet::new();
        while order.remaining > 0 {
            let Some(at) = self.best(!buy) else { break };
            let (price, before) = (self.orders[at].price, order.remaining);
            let (maker, _) = self.fill(world, draft, &mut order, at);
            makers.insert(maker);
            let (network, bad) = ((NETWORK, order.id.as_str()), (party, bad_order.as_str()));
            let fill = Fill {
                buyer: if buy { bad } else { network },
                seller: if buy { network } else { bad },
                price,
                size: before - order.remaining,
                aggressor: if buy { 2 } else { 1 },
                kind: 3,
                buyer_fees: Fees::default(),
                seller_fees: Fees::default(),
                batch: 0,
            };
            self.record(world, draft, &fill);
        }
        order.status = Status::Filled;
        let mut bad = Order::limit(world, draft, party, buy, 0, open.abs());
        (bad.id, bad.kind, bad.force) = (bad_order, OrderKind::Network, Force::Unspecified);
        (bad.remaining, bad.status) = (0, Status::Filled);
        self.keep(draft, order);
        self.keep(draft, bad);
        if let Some(position) = self.positions.get_mut(&party) {
            position.standing = Standing::ClosedOut;
        }
        for maker in makers {
            if !self.is_provider(maker) {
                self.rebalance(world, draft, maker);
            }
        }
        true
    }
}
