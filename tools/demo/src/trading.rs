//! Trading: the orders that parties send, each from a template; their trades with the book, in auctions and in
//! close-outs; and the fees.

use crate::{
    block::Draft,
    catalogue::CATALOGUE,
    market::{Market, State},
    order::{Force, Order, OrderKind, OrderTemplate, Status},
    world::{Key, Kind, NETWORK},
};

/// The shares of the fees in a trade's value, in hundred-thousandths: for the maker, the network and the liquidity
/// providers.
const FEE_SHARES: [i128; 3] = [20, 50, 100];

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
    /// Fees that the aggressor pays, in the asset's smallest unit; in an auction the buyer.
    fees: [i128; 3],
    /// Number of the auction, 0 in continuous trading.
    batch: i64,
}

impl Market {
    /// Makes the orders of one block.
    pub(crate) fn trade(&mut self, draft: &mut Draft<'_>) {
        self.quote(draft);
        let (now, height) = (draft.time, draft.height);
        draft.begin_transaction();
        self.book.end(draft, Status::Expired, |order| order.force == Force::Gtt && order.expires <= now);
        self.book.end(draft, Status::Cancelled, |order| order.cancelled_at <= height);
        if self.state == State::Active {
            self.fill_passed_orders(draft);
        }
        let mean = self.template().activity as f64 * self.walk.activity(draft.time) / 1_000.0;
        let arrivals = (mean * draft.pace as f64 / 1_000.0) as u64;
        let mut count = arrivals / 1_000 + u64::from(draft.random.chance(arrivals % 1_000));
        if count > 0 && draft.random.chance(40) {
            count += draft.random.below(4);
        }
        for _ in 0..count {
            self.send_order(draft);
        }
        if self.state == State::Active && (height + u64::from(self.number) * 9).is_multiple_of(60) {
            self.mark_to_market(draft);
        }
    }

    /// Trades resting orders that the price has passed, each with a market order of another party, so that the book
    /// is never crossed.
    fn fill_passed_orders(&mut self, draft: &mut Draft<'_>) {
        let price = self.price();
        let passed = self.book.orders.iter().filter(|order| order.provision.is_empty() && order.rests());
        let passed = passed.filter(|order| order.accepts(price));
        let passed: Vec<_> = passed.map(|order| (order.party, order.buy, order.remaining)).collect();
        for (owner, buy, size) in passed {
            draft.begin_transaction();
            let party = trader(draft, owner);
            let order = Order::limit(draft, party, !buy, 0, size);
            self.execute(draft, Order { kind: OrderKind::Market, force: Force::Ioc, ..order }, 0);
        }
    }

    /// Moves pegged orders to the price that they follow when trading begins, and parks them for an auction.
    pub(crate) fn place_pegged(&mut self, draft: &Draft<'_>) {
        let (price, is_parked) = (self.price(), self.in_auction());
        for order in &mut self.book.orders {
            let Some((_, offset)) = order.peg else { continue };
            let follows = if order.buy { price - offset } else { price + offset };
            (order.price, order.status) =
                if is_parked { (0, Status::Parked) } else { (follows.max(1), Status::Active) };
            order.change(draft);
        }
    }

    /// Sends one order of a random party, from a template of the market's phase.
    fn send_order(&mut self, draft: &mut Draft<'_>) {
        let party = trader(draft, NETWORK);
        let (usual, open, price) = (self.template().size, self.open_volume(party), self.price());
        let mut size = (usual / 4 + draft.random.below(usual.unsigned_abs()) as i64).max(1);
        size *= 1 + 4 * i64::from(draft.random.chance(40));
        let mut buy = draft.random.chance(500);
        if open.abs() > usual * 12 && draft.random.chance(850) {
            buy = open < 0;
        }
        if draft.world.balance(self.general_key(party)) < self.value(price, size) / 8 {
            return;
        }
        draft.begin_transaction();
        let mut order = Order::limit(draft, party, buy, price, size);
        if let Some(reference) = reference(draft) {
            order.reference = reference;
        }
        order.cancelled_at = draft.height + draft.random.between(20, 200) as u64;
        order.batch = if draft.random.chance(40) { draft.height } else { 0 };
        let templates = if self.in_auction() { &CATALOGUE.auction } else { &CATALOGUE.continuous };
        apply(template(draft, templates), draft, &mut order, open);
        if order.reason != 0 {
            order.status = Status::Rejected;
        } else if order.peg.is_some() && self.in_auction() {
            (order.status, order.price) = (Status::Parked, 0);
        } else if !self.in_auction() {
            return self.execute(draft, order, 0);
        }
        self.book.add(draft, order);
    }

    /// Trades an order with the other side of the book and sets its status. In continuous trading each trade has the
    /// resting order's price; the trades of an auction, whose number is `batch`, have the market's.
    fn execute(&mut self, draft: &mut Draft<'_>, mut order: Order, batch: i64) {
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
            let fees = self.charge(draft, order.party, maker, self.value(price, size));
            let (own, other) = ((order.party, &*order.id), (maker, &*maker_order));
            let (buyer, seller) = if order.buy { (own, other) } else { (other, own) };
            let aggressor = if batch > 0 { 0 } else { order.side() };
            self.record(draft, &Trade { buyer, seller, price, size, aggressor, kind: 1, fees, batch });
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
    fn record(&mut self, draft: &mut Draft<'_>, trade: &Trade<'_>) {
        for (party, signed) in [(trade.buyer.0, trade.size), (trade.seller.0, -trade.size)] {
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
            buyer: draft.world.party_id(trade.buyer.0), seller: draft.world.party_id(trade.seller.0),
            aggressor: trade.aggressor, buy_order: trade.buyer.1, sell_order: trade.seller.1, type: trade.kind,
            buyer_maker_fee: bought[0], buyer_infrastructure_fee: bought[1], buyer_liquidity_fee: bought[2],
            seller_maker_fee: sold[0], seller_infrastructure_fee: sold[1], seller_liquidity_fee: sold[2],
            buyer_auction_batch: trade.batch, seller_auction_batch: trade.batch,
        }
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

    /// Orders that accept the present price, on either side.
    fn accepting(&self) -> impl Fn(&Order) -> bool + use<> {
        let price = self.price();
        move |order| order.rests() && order.accepts(price)
    }

    /// The volume that would trade at the present price if the auction ended now.
    pub(crate) fn indicative_volume(&self) -> i64 {
        let accepting = self.accepting();
        let volume = |buy| -> i64 {
            let side = self.book.orders.iter().filter(|order| order.buy == buy && accepting(order));
            side.map(|order| order.remaining).sum()
        };
        volume(true).min(volume(false))
    }

    /// Ends an auction: orders on both sides that accept the present price trade at it.
    pub(crate) fn uncross(&mut self, draft: &mut Draft<'_>) {
        let accepting = self.accepting();
        let bids = self.book.orders.extract_if(.., |order| order.buy && accepting(order));
        for bid in bids.collect::<Vec<_>>() {
            self.execute(draft, bid, self.auctions);
        }
        self.book.end(draft, Status::Cancelled, |order| order.force == Force::Gfa || accepting(order));
    }

    /// Closes a party's position out: the network takes it over and trades it with the first provider.
    pub(crate) fn close_out(&mut self, draft: &mut Draft<'_>, party: u16) {
        let (open, price) = (self.open_volume(party), self.price());
        let (buy, size) = (open < 0, open.abs());
        if size == 0 {
            return;
        }
        let orders = [
            (NETWORK, buy, 0, OrderKind::Network, Force::Fok),
            (party, buy, 0, OrderKind::Network, Force::Unspecified),
            (0, !buy, price, OrderKind::Limit, Force::Ioc),
        ];
        let [network, closed, provider] = orders.map(|(party, buy, price, kind, force)| {
            let order = Order::limit(draft, party, buy, price, size);
            Order { kind, force, status: Status::Filled, remaining: 0, ..order }
        });
        for (kind, other) in [(2, &provider), (3, &closed)] {
            let (own, other) = ((NETWORK, &*network.id), (other.party, &*other.id));
            let network_buys = buy == (kind == 2);
            let (buyer, seller) = if network_buys { (own, other) } else { (other, own) };
            let aggressor = if network_buys { 1 } else { 2 };
            let trade = Trade { buyer, seller, price, size, aggressor, kind, fees: [0; 3], batch: 0 };
            self.record(draft, &trade);
        }
        for order in [network, closed, provider] {
            self.book.add(draft, order);
        }
    }
}

/// A random trader other than this one; the first three parties are providers.
fn trader(draft: &mut Draft<'_>, other: u16) -> u16 {
    let party = draft.random.between(3, i64::from(draft.world.traders) - 1) as u16;
    let next = if party + 1 < draft.world.traders { party + 1 } else { 3 };
    if party == other { next } else { party }
}

/// Picks a template by its share.
fn template<'a>(draft: &mut Draft<'_>, templates: &'a [OrderTemplate]) -> &'a OrderTemplate {
    let mut place = draft.random.below(templates.iter().map(|template| template.share).sum());
    let is_chosen = |template: &&OrderTemplate| {
        let is_chosen = place < template.share;
        place = place.saturating_sub(template.share);
        is_chosen
    };
    templates.iter().find(is_chosen).unwrap_or(&templates[0])
}

/// Gives an order the form of a template.
fn apply(template: &OrderTemplate, draft: &mut Draft<'_>, order: &mut Order, open: i64) {
    (order.kind, order.force, order.post_only, order.reduce_only) =
        (template.kind, template.force, template.post_only, template.reduce_only);
    let away = order.price * draft.random.between(template.away.0, template.away.1) / 10_000;
    let usual = if order.buy { order.price - away } else { order.price + away }.max(1);
    order.price = if order.kind == OrderKind::Market { 0 } else { usual };
    if template.times > 0 {
        order.size *= draft.random.between(1, template.times);
    }
    if order.force == Force::Gtt {
        order.expires = draft.time.plus_seconds(draft.random.between(60, 1_800));
    }
    if template.pegged {
        let own_side = if order.buy { 2 } else { 3 };
        let reference = if draft.random.chance(400) { 1 } else { own_side };
        order.peg = Some((reference, (order.price * draft.random.between(2, 20) / 10_000).max(1)));
    }
    if !template.reasons.is_empty() {
        order.reason = *draft.random.pick(&template.reasons);
    }
    if order.reduce_only {
        order.buy = open < 0;
        order.reason = if open == 0 { 50 } else { 0 };
        order.size = order.size.min(open.abs().max(1));
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
