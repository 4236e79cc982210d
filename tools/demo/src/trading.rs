//! Trades of incoming orders with the book, of auctions and of close-outs, and their fees.

use std::collections::BTreeMap;

use crate::{
    block::Draft,
    market::Market,
    order::{Force, Order, OrderKind, Status},
    tables::Table,
    world::{Key, Kind, NETWORK, World, reason},
};

/// Fees of one trade in the asset's smallest unit.
#[derive(Clone, Copy, Debug, Default)]
struct Fees {
    maker: i128,
    infrastructure: i128,
    liquidity: i128,
}

impl Fees {
    /// Fees in hundred-thousandths of the value, rounded up.
    fn for_value(value: i128) -> Fees {
        let part = |share: i128| (value * share + 99_999) / 100_000;
        Fees { maker: part(20), infrastructure: part(50), liquidity: part(100) }
    }

    /// Half of the fees, which each side pays in an auction, where there is no maker.
    fn halved(self) -> Fees {
        Fees { maker: 0, infrastructure: (self.infrastructure + 1) / 2, liquidity: (self.liquidity + 1) / 2 }
    }

    fn add(&mut self, other: Fees) {
        self.maker += other.maker;
        self.infrastructure += other.infrastructure;
        self.liquidity += other.liquidity;
    }
}

/// A trade between two orders, each given with its party.
struct Trade<'a> {
    buyer: (u16, &'a str),
    seller: (u16, &'a str),
    price: i64,
    size: i64,
    /// The aggressor's side: 1 the buyer, 2 the seller, 0 neither in an auction.
    aggressor: i64,
    /// 1 ordinary, 2 and 3 the two sides of a close-out.
    kind: i64,
    buyer_fees: Fees,
    seller_fees: Fees,
    /// Number of the auction, 0 in continuous trading.
    batch: i64,
}

impl<'a> Trade<'a> {
    /// A trade of an incoming order with a resting one, without fees.
    fn between(buy: bool, taker: (u16, &'a str), maker: (u16, &'a str), price: i64, size: i64) -> Self {
        Trade {
            buyer: if buy { taker } else { maker },
            seller: if buy { maker } else { taker },
            price,
            size,
            aggressor: if buy { 1 } else { 2 },
            kind: 1,
            buyer_fees: Fees::default(),
            seller_fees: Fees::default(),
            batch: 0,
        }
    }
}

impl Market {
    /// Matches an order with the other side of the book and sets its status.
    pub(crate) fn execute(&mut self, world: &mut World, draft: &mut Draft, mut order: Order) {
        let whole = order.force != Force::Fok || self.book.volume_for(&order) >= order.size;
        let mut paid = Fees::default();
        let mut makers: BTreeMap<u16, i128> = BTreeMap::new();
        while whole && order.remaining > 0 {
            let Some(at) = self.book.best_for(&order) else { break };
            let (price, size) =
                (self.book.orders[at].price, order.remaining.min(self.book.orders[at].remaining));
            let (maker, maker_order) = self.book.fill(draft, at, size);
            order.remaining -= size;
            let fees = Fees::for_value(self.value(price, size));
            let mut trade =
                Trade::between(order.buy, (order.party, &order.id), (maker, &maker_order), price, size);
            (trade.buyer_fees, trade.seller_fees) =
                if order.buy { (fees, Fees::default()) } else { (Fees::default(), fees) };
            self.record(world, draft, &trade);
            paid.add(fees);
            *makers.entry(maker).or_default() += fees.maker;
        }
        let stays = matches!(order.force, Force::Gtc | Force::Gtt | Force::Gfn);
        order.status = match (order.remaining, stays) {
            (0, _) => Status::Filled,
            (_, true) => Status::Active,
            (left, false) if left < order.size => Status::PartiallyFilled,
            _ => Status::Stopped,
        };
        let party = order.party;
        self.book.add(draft, order);
        self.charge(world, draft, party, paid, &makers);
        // Providers' margins are updated at settlements only: they have enough money until then.
        for party in makers.into_keys().chain([party]) {
            if !self.is_provider(party) {
                self.rebalance(world, draft, party);
            }
        }
    }

    /// Adds a trade to both positions and writes its row.
    fn record(&mut self, world: &World, draft: &mut Draft, trade: &Trade<'_>) {
        let position = draft.next_position();
        let transaction = draft.transaction();
        for (party, signed) in [(trade.buyer.0, trade.size), (trade.seller.0, -trade.size)] {
            if party != NETWORK {
                self.positions.entry(party).or_default().trade(signed, trade.price, transaction);
            }
        }
        self.mark = if self.mark == 0 { trade.price } else { self.mark };
        self.traded += trade.size;
        self.data_changed = true;
        let (id, hash) = (draft.random.id(), draft.hash());
        let row = draft.rows.row(Table::Trades).time(draft.time.plus_us(position)).text(&hash);
        let row = row.time(draft.time).number(position).text(&id).text(world.market_id(self.number));
        let row = row.number(trade.price).number(trade.size);
        let row = row.text(world.party_id(trade.buyer.0)).text(world.party_id(trade.seller.0));
        let mut row = row.number(trade.aggressor).text(trade.buyer.1).text(trade.seller.1).number(trade.kind);
        for fees in [trade.buyer_fees, trade.seller_fees] {
            row = row.number(fees.maker).number(fees.infrastructure).number(fees.liquidity);
        }
        row.number(trade.batch).number(trade.batch).end();
    }

    /// Moves the fees of a party's trades: to the network, and from there to the makers.
    fn charge(
        &mut self,
        world: &mut World,
        draft: &mut Draft,
        payer: u16,
        fees: Fees,
        makers: &BTreeMap<u16, i128>,
    ) {
        let pool = self.network_key(Kind::FeesMaker);
        let from = [self.general_key(payer), self.party_key(payer, Kind::Margin)];
        // The rest that the general account cannot pay is paid from the margin.
        let mut pay = |to, amount, reason| {
            let paid = world.take(draft, from[0], to, amount, reason);
            paid + world.take(draft, from[1], to, amount - paid, reason)
        };
        let infrastructure = Key::global(self.asset(), Kind::FeesInfrastructure);
        self.fees.entry(payer).or_default().paid += pay(pool, fees.maker, reason::MAKER_FEE_PAY);
        pay(infrastructure, fees.infrastructure, reason::INFRASTRUCTURE_FEE_PAY);
        pay(self.network_key(Kind::FeesLiquidity), fees.liquidity, reason::LIQUIDITY_FEE_PAY);
        for (&maker, &amount) in makers {
            let got = world.take(draft, pool, self.general_key(maker), amount, reason::MAKER_FEE_RECEIVE);
            self.fees.entry(maker).or_default().received += got;
        }
    }

    /// The volume that would trade at the present price if the auction ended now.
    pub(crate) fn indicative_volume(&self) -> i64 {
        let price = self.price();
        let volume = |buy: bool| {
            let side = self.book.orders.iter().filter(|order| order.buy == buy && order.price > 0);
            let meets = side.filter(|order| if buy { order.price >= price } else { order.price <= price });
            meets.map(|order| order.remaining).sum::<i64>()
        };
        volume(true).min(volume(false))
    }

    /// Ends an auction: orders on both sides that accept the present price trade at it.
    pub(crate) fn uncross(&mut self, world: &mut World, draft: &mut Draft) {
        let price = self.price();
        let accepts = |buy: bool| {
            move |order: &Order| {
                let meets = if buy { order.price >= price } else { order.price <= price };
                order.buy == buy && order.price > 0 && meets
            }
        };
        while let Some(bid) = self.book.orders.iter().position(accepts(true)) {
            let buyer = self.book.orders[bid].party;
            let other = |order: &Order| accepts(false)(order) && order.party != buyer;
            let Some(ask) = self.book.orders.iter().position(other) else { break };
            let size = self.book.orders[bid].remaining.min(self.book.orders[ask].remaining);
            // The larger index first, because a filled order is removed from the list.
            let mut sides = [bid, ask].map(|at| (at, self.book.orders[at].buy));
            sides.sort_unstable_by(|a, b| b.cmp(a));
            let filled = sides.map(|(at, _)| self.book.fill(draft, at, size));
            let [buyer, seller] = if sides[0].1 { [0, 1] } else { [1, 0] }.map(|at: usize| &filled[at]);
            let fees = Fees::for_value(self.value(price, size)).halved();
            let mut trade = Trade::between(true, (buyer.0, &buyer.1), (seller.0, &seller.1), price, size);
            (trade.aggressor, trade.batch) = (0, self.auctions);
            (trade.buyer_fees, trade.seller_fees) = (fees, fees);
            self.record(world, draft, &trade);
            for party in [buyer.0, seller.0] {
                self.charge(world, draft, party, fees, &BTreeMap::new());
                self.rebalance(world, draft, party);
            }
            self.mark = price;
        }
        self.book.end(draft, Status::Cancelled, |order| {
            order.force == Force::Gfa || accepts(true)(order) || accepts(false)(order)
        });
    }

    /// Closes a distressed party's position out: for each trade of the network with the book there is one of
    /// the network with the party. Returns false, without a trade, when the book is not deep enough.
    pub(crate) fn close_out(&mut self, world: &World, draft: &mut Draft, party: u16) -> bool {
        let open = self.open_volume(party);
        let buy = open < 0;
        let network = |draft: &mut Draft, party: u16, force: Force| {
            let order = Order::limit(draft, party, buy, 0, open.abs());
            Order { kind: OrderKind::Network, force, status: Status::Filled, remaining: 0, ..order }
        };
        let (mut order, bad) =
            (network(draft, NETWORK, Force::Fok), network(draft, party, Force::Unspecified));
        // The distressed party has no orders, so none of these is its own.
        if open == 0 || self.book.volume_for(&order) < open.abs() {
            return open == 0;
        }
        order.remaining = open.abs();
        while let Some(at) = self.book.best_for(&order).filter(|_| order.remaining > 0) {
            let (price, size) =
                (self.book.orders[at].price, order.remaining.min(self.book.orders[at].remaining));
            let (maker, maker_order) = self.book.fill(draft, at, size);
            order.remaining -= size;
            let book_trade = Trade::between(buy, (NETWORK, &order.id), (maker, &maker_order), price, size);
            self.record(world, draft, &Trade { kind: 2, ..book_trade });
            let party_trade = Trade::between(!buy, (NETWORK, &order.id), (party, &bad.id), price, size);
            self.record(world, draft, &Trade { kind: 3, ..party_trade });
        }
        self.book.add(draft, order);
        self.book.add(draft, bad);
        true
    }
}
