//! Trades of incoming orders with the book, of auctions and of close-outs, and their fees.

use crate::{
    block::Draft,
    market::Market,
    order::{Force, Order, OrderKind, Status},
    world::{Key, Kind, NETWORK, World},
};

/// Fees of the aggressor of a trade in the asset's smallest unit: for the maker, the network and the
/// liquidity providers.
type Fees = [i128; 3];

/// The shares of the fees in a trade's value, in hundred-thousandths.
const FEE_SHARES: Fees = [20, 50, 100];

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
    fees: Fees,
    /// Number of the auction, 0 in continuous trading.
    batch: i64,
}

impl Market {
    /// Matches an order with the other side of the book and sets its status. In continuous trading each trade
    /// has the resting order's price; the trades of an auction, whose number is `batch`, have the market's.
    pub(crate) fn execute(&mut self, world: &mut World, draft: &mut Draft, mut order: Order, batch: i64) {
        let auction_price = (batch > 0).then(|| self.price());
        let limit = auction_price.unwrap_or(order.price);
        let whole = order.force != Force::Fok || self.book.volume_for(&order) >= order.size;
        while whole && order.remaining > 0 {
            let Some(at) = self.book.best_for(&order, limit) else { break };
            let resting = &self.book.orders[at];
            let (price, size) =
                (auction_price.unwrap_or(resting.price), order.remaining.min(resting.remaining));
            let (maker, maker_order) = self.book.fill(draft, at, size);
            order.remaining -= size;
            let fees = self.charge(world, draft, order.party, maker, self.value(price, size));
            let (own, other) = ((order.party, &*order.id), (maker, &*maker_order));
            let (buyer, seller) = if order.buy { (own, other) } else { (other, own) };
            let aggressor = if batch > 0 { 0 } else { order.side() };
            self.record(world, draft, &Trade { buyer, seller, price, size, aggressor, kind: 1, fees, batch });
            // Providers' margins are updated at settlements only: they have enough money until then.
            for party in [maker, order.party] {
                if !self.is_provider(party) {
                    self.rebalance(world, draft, party);
                }
            }
        }
        let stays = matches!(order.force, Force::Gtc | Force::Gtt | Force::Gfn);
        order.status = match (order.remaining, stays) {
            (0, _) => Status::Filled,
            (_, true) => Status::Active,
            (left, false) if left < order.size => Status::PartiallyFilled,
            _ => Status::Stopped,
        };
        self.book.add(draft, order);
    }

    /// Adds a trade to both positions and writes its row.
    fn record(&mut self, world: &World, draft: &mut Draft, trade: &Trade<'_>) {
        let (position, id, hash) = (draft.next_position(), draft.random.id(), draft.hash());
        for (party, signed) in [(trade.buyer.0, trade.size), (trade.seller.0, -trade.size)] {
            if party != NETWORK {
                self.positions.entry(party).or_default().trade(signed, trade.price, &hash);
            }
        }
        self.mark = if self.mark == 0 { trade.price } else { self.mark };
        self.traded += trade.size;
        let row = draft.rows.row("trades").time(draft.time.plus_us(position)).text(&hash);
        let row = row.time(draft.time).number(position).text(&id).text(world.market_id(self.number));
        let row = row.number(trade.price).number(trade.size);
        let row = row.text(world.party_id(trade.buyer.0)).text(world.party_id(trade.seller.0));
        let mut row = row.number(trade.aggressor).text(trade.buyer.1).text(trade.seller.1).number(trade.kind);
        for side in [1, 2] {
            // The aggressor pays; in an auction it is the buyer.
            for fee in trade.fees {
                row = row.number(if trade.aggressor.max(1) == side { fee } else { 0 });
            }
        }
        row.number(trade.batch).number(trade.batch).end();
    }

    /// Moves the fees of a trade of this value: to the network, and the maker's from there to the maker.
    fn charge(&mut self, world: &mut World, draft: &mut Draft, payer: u16, maker: u16, value: i128) -> Fees {
        let fees = FEE_SHARES.map(|share| (value * share + 99_999) / 100_000);
        let from = [self.general_key(payer), self.party_key(payer, Kind::Margin)];
        // The rest that the general account cannot pay is paid from the margin.
        let mut pay = |to, amount, reason| {
            let paid = world.take(draft, from[0], to, amount, reason);
            paid + world.take(draft, from[1], to, amount - paid, reason)
        };
        let pool = self.network_key(Kind::FeesMaker);
        let paid = pay(pool, fees[0], "MAKER_FEE_PAY");
        pay(Key::global(self.asset(), Kind::FeesInfrastructure), fees[1], "INFRASTRUCTURE_FEE_PAY");
        pay(self.network_key(Kind::FeesLiquidity), fees[2], "LIQUIDITY_FEE_PAY");
        world.transfer(draft, pool, self.general_key(maker), paid, "MAKER_FEE_RECEIVE");
        self.fees.entry(payer).or_default().paid += paid;
        self.fees.entry(maker).or_default().received += paid;
        fees
    }

    /// Orders that accept the present price, on either side.
    fn accepting(&self) -> impl Fn(&Order) -> bool + use<> {
        let price = self.price();
        move |order| order.rests() && order.accepts(price)
    }

    /// The volume that would trade at the present price if the auction ended now.
    pub(crate) fn indicative_volume(&self) -> i64 {
        let accepting = self.accepting();
        let side = |buy: bool| self.book.orders.iter().filter(move |order| order.buy == buy);
        let volume =
            |buy| side(buy).filter(|order| accepting(order)).map(|order| order.remaining).sum::<i64>();
        volume(true).min(volume(false))
    }

    /// Ends an auction: orders on both sides that accept the present price trade at it.
    pub(crate) fn uncross(&mut self, world: &mut World, draft: &mut Draft) {
        let accepting = self.accepting();
        let bids = self.book.orders.extract_if(.., |order| order.buy && accepting(order));
        let bids: Vec<Order> = bids.collect();
        for bid in bids {
            self.execute(world, draft, bid, self.auctions);
        }
        self.book.end(draft, Status::Cancelled, |order| order.force == Force::Gfa || accepting(order));
    }

    /// Closes a distressed party's position out: the network takes it over and trades it with the first
    /// provider.
    pub(crate) fn close_out(&mut self, world: &World, draft: &mut Draft, party: u16) {
        let (open, price) = (self.open_volume(party), self.price());
        let (buy, size) = (open < 0, open.abs());
        if size == 0 {
            return;
        }
        let filled =
            |draft: &mut Draft, (party, buy): (u16, bool), price: i64, kind: OrderKind, force: Force| {
                let order = Order::limit(draft, party, buy, price, size);
                Order { kind, force, status: Status::Filled, remaining: 0, ..order }
            };
        let network = filled(draft, (NETWORK, buy), 0, OrderKind::Network, Force::Fok);
        let closed = filled(draft, (party, buy), 0, OrderKind::Network, Force::Unspecified);
        let provider = filled(draft, (0, !buy), price, OrderKind::Limit, Force::Ioc);
        for (kind, other) in [(2, &provider), (3, &closed)] {
            let (own, other) = ((NETWORK, &*network.id), (other.party, &*other.id));
            let (buyer, seller) = if buy == (kind == 2) { (own, other) } else { (other, own) };
            let aggressor = if buy == (kind == 2) { 1 } else { 2 };
            self.record(
                world,
                draft,
                &Trade { buyer, seller, price, size, aggressor, kind, fees: [0; 3], batch: 0 },
            );
        }
        for order in [network, closed, provider] {
            self.book.add(draft, order);
        }
    }
}
