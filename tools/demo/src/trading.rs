//! Trading: the orders that parties send, each from a template; their trades with the book, in auctions and
//! in close-outs; and the fees.

use crate::{
    block::Draft,
    catalogue::CATALOGUE,
    market::{Market, State},
    order::{Force, Order, OrderKind, OrderTemplate, Status},
    world::{Key, Kind, NETWORK},
};

/// The shares of the fees in a trade's value, in hundred-thousandths: for the maker, the network and the
/// liquidity providers.
const FEE_SHARES: [i128; 3] = [20, 50, 100];

/// Number of trades with which an auction ends.
const AUCTION_TRADES: i64 = 3;

/// A trade between the orders of a buyer and a seller, each given with its party.
struct Trade<'a> {
    sides: [(u16, &'a str); 2],
    price: i64,
    size: i64,
    /// The aggressor's side: 1 the buyer, 2 the seller, 0 neither in an auction.
    aggressor: i64,
    /// 1 ordinary, 2 and 3 the two sides of a close-out.
    kind: i64,
    /// Fees that the aggressor pays, in the asset's smallest unit; in an auction the buyer.
    fees: [i128; 3],
    /// Number of the auction, 0 in continuous trading.
    batch: i64,
}

impl Market {
    pub(crate) fn trade(&mut self, draft: &mut Draft<'_>) {
        self.quote(draft);
        let (now, height) = (draft.time, draft.height);
        draft.begin_transaction();
        self.book.end(draft, Status::Expired, |order| order.force == Force::Gtt && order.expires <= now);
        self.book.end(draft, Status::Cancelled, |order| order.cancelled_at <= height);
        self.end_passed_orders(draft);
        let mean = self.template().activity as f64 * self.walk.activity(now) / 1_000.0;
        let arrivals = (mean * draft.pace as f64 / 1_000.0) as u64;
        let mut count = arrivals / 1_000 + u64::from(draft.random.chance(arrivals % 1_000));
        if count > 0 && draft.random.chance(40) {
            count += draft.random.below(4);
        }
        (0..count).for_each(|_| self.send_order(draft));
        if self.state == State::Active && (height + u64::from(self.number) * 9).is_multiple_of(60) {
            self.mark_to_market(draft);
        }
    }

    /// Ends resting orders that the price has passed, so that the book is never crossed: each trades with a
    /// market order of another party, or in an auction is cancelled.
    fn end_passed_orders(&mut self, draft: &mut Draft<'_>) {
        let price = self.price();
        let is_passed = |order: &Order| order.provision.0.is_empty() && order.rests() && order.accepts(price);
        if self.in_auction() {
            return self.book.end(draft, Status::Cancelled, is_passed);
        }
        while let Some(at) = self.book.orders.iter().position(is_passed) {
            draft.begin_transaction();
            let resting = &self.book.orders[at];
            let party = trader(draft, resting.party);
            let mut order = Order::limit(draft, party, !resting.buy, 0, resting.remaining);
            (order.kind, order.force, order.status) = (OrderKind::Market, Force::Ioc, Status::Filled);
            self.fill(draft, &mut order, at);
            self.book.add(draft, order);
        }
    }

    /// Moves pegged orders to the price that they follow when trading begins, and parks them for an auction.
    pub(crate) fn place_pegged(&mut self, draft: &Draft<'_>) {
        let (price, is_parked) = (self.price(), self.in_auction());
        for order in &mut self.book.orders {
            let Some((_, offset)) = order.peg else { continue };
            let follows = if order.buy { price - offset } else { price + offset }.max(1);
            order.price = if is_parked { 0 } else { follows };
            order.change(draft, if is_parked { Status::Parked } else { Status::Active });
        }
    }

    /// Sends one order of a random party, from a template of the market's phase.
    fn send_order(&mut self, draft: &mut Draft<'_>) {
        let party = trader(draft, NETWORK);
        let (usual, open, price) = (self.template().size, self.open_volume(party), self.price());
        let times = 1 + 4 * i64::from(draft.random.chance(40));
        let size = (usual / 4 + draft.random.between(0, usual)).max(1) * times;
        let is_reducing = open.abs() > usual * 12 && draft.random.chance(850);
        let buy = if is_reducing { open < 0 } else { draft.random.chance(500) };
        if draft.world.balance(self.general_key(party)) < self.value(price, size) / 8 {
            return;
        }
        draft.begin_transaction();
        let mut order = Order::limit(draft, party, buy, price, size);
        order.cancelled_at = draft.height + draft.random.between(20, 200) as u64;
        order.batch = if draft.random.chance(40) { draft.height } else { 0 };
        if let Some(reference) = reference(draft) {
            order.reference = reference;
        }
        let templates = if self.in_auction() { &CATALOGUE.auction } else { &CATALOGUE.continuous };
        apply(template(draft, templates), draft, &mut order, open);
        if matches!(order.status, Status::Filled | Status::PartiallyFilled) {
            self.execute(draft, &mut order);
        }
        self.book.add(draft, order);
    }

    /// Trades an order with the best one on the other side. One that is filled is as large as the trade; of
    /// one that is not, as much remains.
    fn execute(&mut self, draft: &mut Draft<'_>, order: &mut Order) {
        let Some(at) = self.book.best_for(order) else {
            order.status = if order.force == Force::Gtc { Status::Active } else { Status::Stopped };
            return;
        };
        order.remaining = order.size.min(self.book.orders[at].remaining);
        order.size = order.remaining * if order.status == Status::Filled { 1 } else { 2 };
        self.fill(draft, order, at);
        order.remaining = if order.status == Status::Filled { 0 } else { order.size / 2 };
    }

    /// Trades what remains of an order with a resting one that is at least as large, at its price.
    fn fill(&mut self, draft: &mut Draft<'_>, order: &mut Order, at: usize) {
        let (price, size) = (self.book.orders[at].price, std::mem::take(&mut order.remaining));
        let (maker, maker_order) = self.book.fill(draft, at, size);
        let fees = self.charge(draft, order.party, maker, self.value(price, size));
        let mut sides = [(order.party, &*order.id), (maker, &*maker_order)];
        if !order.buy {
            sides.reverse();
        }
        let aggressor = if order.buy { 1 } else { 2 };
        self.record(draft, &Trade { sides, price, size, aggressor, kind: 1, fees, batch: 0 });
    }

    /// Moves the fees of a trade of this value: to the network, and the maker's from there to the maker.
    fn charge(&self, draft: &mut Draft<'_>, payer: u16, maker: u16, value: i128) -> [i128; 3] {
        let fees = FEE_SHARES.map(|share| (value * share + 99_999) / 100_000);
        let (general, pool) = (self.general_key(payer), self.network_key(Kind::FeesMaker));
        let network = Key::global(self.asset(), Kind::FeesInfrastructure);
        let paid = draft.take(general, pool, fees[0], "MAKER_FEE_PAY");
        draft.take(general, network, fees[1], "INFRASTRUCTURE_FEE_PAY");
        draft.take(general, self.network_key(Kind::FeesLiquidity), fees[2], "LIQUIDITY_FEE_PAY");
        draft.transfer(pool, self.general_key(maker), paid, "MAKER_FEE_RECEIVE");
        fees
    }

    /// Adds a trade to both positions and writes its row.
    fn record(&mut self, draft: &mut Draft<'_>, trade: &Trade<'_>) {
        let [buyer, seller] = trade.sides;
        for (party, signed) in [(buyer.0, trade.size), (seller.0, -trade.size)] {
            if party != NETWORK {
                self.positions.entry(party).or_default().pending.trade(signed, trade.price);
                self.touched.insert(party, draft.transaction.clone());
            }
        }
        self.mark = if self.mark == 0 { trade.price } else { self.mark };
        self.traded += trade.size;
        let id = draft.random.id();
        let (bought, sold) = if trade.aggressor == 2 { ([0; 3], trade.fees) } else { (trade.fees, [0; 3]) };
        row! { draft, trades:
            id: id, market_id: draft.world.market_id(self.number), price: trade.price, size: trade.size,
            buyer: draft.world.party_id(buyer.0), seller: draft.world.party_id(seller.0),
            aggressor: trade.aggressor, buy_order: buyer.1, sell_order: seller.1, type: trade.kind,
            buyer_maker_fee: bought[0], buyer_infrastructure_fee: bought[1],
            buyer_liquidity_fee: bought[2], seller_maker_fee: sold[0], seller_infrastructure_fee: sold[1],
            seller_liquidity_fee: sold[2], buyer_auction_batch: trade.batch,
            seller_auction_batch: trade.batch,
        }
    }

    /// The volume that an auction trades when it ends.
    pub(crate) fn auction_volume(&self) -> i64 {
        if self.in_auction() { self.template().size * AUCTION_TRADES } else { 0 }
    }

    /// Ends an auction with trades of two parties each, at the market's price.
    pub(crate) fn uncross(&mut self, draft: &mut Draft<'_>) {
        let (price, size) = (self.price(), self.template().size);
        for _ in 0..AUCTION_TRADES {
            draft.begin_transaction();
            let buyer = trader(draft, NETWORK);
            let seller = trader(draft, buyer);
            let [bid, offer] = [(buyer, true), (seller, false)]
                .map(|(party, buy)| filled(draft, (party, buy), price, size, OrderKind::Limit, Force::Gtc));
            let fees = self.charge(draft, buyer, seller, self.value(price, size));
            let sides = [(buyer, &*bid.id), (seller, &*offer.id)];
            let batch = self.auctions;
            self.record(draft, &Trade { sides, price, size, aggressor: 0, kind: 1, fees, batch });
            [bid, offer].into_iter().for_each(|order| self.book.add(draft, order));
        }
        self.book.end(draft, Status::Cancelled, |order| order.force == Force::Gfa);
    }

    /// Closes a party's position out: the network takes it over and trades it with the first provider.
    pub(crate) fn close_out(&mut self, draft: &mut Draft<'_>, party: u16) {
        let (open, price) = (self.open_volume(party), self.price());
        let (buy, size) = (open < 0, open.abs());
        if size == 0 {
            return;
        }
        let network = filled(draft, (NETWORK, buy), 0, size, OrderKind::Network, Force::Fok);
        let closed = filled(draft, (party, buy), 0, size, OrderKind::Network, Force::Unspecified);
        let provider = filled(draft, (0, !buy), price, size, OrderKind::Limit, Force::Ioc);
        for (kind, other, network_buys) in [(2, &provider, buy), (3, &closed, !buy)] {
            let mut sides = [(NETWORK, &*network.id), (other.party, &*other.id)];
            if !network_buys {
                sides.reverse();
            }
            let aggressor = if network_buys { 1 } else { 2 };
            self.record(draft, &Trade { sides, price, size, aggressor, kind, fees: [0; 3], batch: 0 });
        }
        [network, closed, provider].into_iter().for_each(|order| self.book.add(draft, order));
    }
}

/// An order that is filled in the block in which it arrives.
fn filled(
    draft: &mut Draft<'_>,
    (party, buy): (u16, bool),
    price: i64,
    size: i64,
    kind: OrderKind,
    force: Force,
) -> Order {
    let order = Order::limit(draft, party, buy, price, size);
    Order { kind, force, status: Status::Filled, remaining: 0, ..order }
}

/// A random trader other than this one; the first three parties are providers.
fn trader(draft: &mut Draft<'_>, other: u16) -> u16 {
    let traders = i64::from(draft.world.traders) - 3;
    let place = draft.random.between(0, traders - 1);
    let party = 3 + place as u16;
    if party == other { 3 + ((place + 1) % traders) as u16 } else { party }
}

fn template<'a>(draft: &mut Draft<'_>, templates: &'a [OrderTemplate]) -> &'a OrderTemplate {
    let mut place = draft.random.below(templates.iter().map(|template| template.share).sum());
    for template in templates {
        match place.checked_sub(template.share) {
            Some(rest) => place = rest,
            None => return template,
        }
    }
    &templates[0]
}

fn apply(template: &OrderTemplate, draft: &mut Draft<'_>, order: &mut Order, open: i64) {
    (order.kind, order.force, order.status) = (template.kind, template.force, template.status);
    (order.post_only, order.reduce_only) = (template.post_only, template.reduce_only);
    let away = order.price * draft.random.between(template.away.0, template.away.1) / 10_000;
    let limit = if order.buy { order.price - away } else { order.price + away }.max(1);
    order.price = if order.kind == OrderKind::Market { 0 } else { limit };
    order.size *= draft.random.between(1, template.times.max(1));
    if order.force == Force::Gtt {
        order.expires = draft.time.plus_seconds(draft.random.between(60, 1_800));
    }
    if template.pegged {
        let reference = draft.random.between(1, if order.buy { 2 } else { 3 });
        order.peg = Some((reference, (order.price * draft.random.between(2, 20) / 10_000).max(1)));
    }
    if !template.reasons.is_empty() {
        order.reason = *draft.random.pick(&template.reasons);
    }
    if order.reduce_only {
        (order.buy, order.size) = (open < 0, order.size.min(open.abs().max(1)));
        (order.reason, order.status) = if open == 0 { (50, Status::Rejected) } else { (0, order.status) };
    }
    if order.status == Status::Parked {
        order.price = 0;
    }
    order.remaining = order.size;
}

/// A client's reference for an order: usual ones, empty ones, some that are hard to parse, or none.
fn reference(draft: &mut Draft<'_>) -> Option<String> {
    match draft.random.below(100) {
        0..10 => None,
        10..20 => Some(String::new()),
        20..23 => Some(draft.random.pick(&CATALOGUE.odd_texts).clone()),
        23..60 => Some(format!("{}-{}", draft.random.hex(8), draft.random.hex(4))),
        _ => Some(format!("strategy-{}/{}", draft.random.below(9) + 1, draft.random.below(100_000))),
    }
}
