//! The orders that parties send to a market: each is drawn from a few templates, trades or rests, and expires
//! or is cancelled later.

use crate::{
    block::Draft,
    catalogue::CATALOGUE,
    market::{Market, State},
    order::{Force, Order, OrderKind, Peg, Status},
    price::activity_at,
    world::World,
};

/// Order errors of continuous trading: wrong market or id, missing account, margin, size, price, fees, pegs
/// and so on.
const ERRORS: [i64; 15] = [1, 2, 7, 14, 14, 15, 17, 18, 21, 25, 27, 36, 47, 49, 50];

impl Market {
    /// Makes the orders of one block. `pace` is the block's duration in thousandths of the mean.
    pub(crate) fn trade(&mut self, world: &mut World, draft: &mut Draft, pace: u64) {
        if !self.in_auction() && self.state != State::Active {
            return;
        }
        self.quote(draft, pace);
        self.end_old_orders(draft);
        if self.state == State::Active {
            self.fill_passed_orders(world, draft);
        }
        let mean = self.template().activity as f64 * activity_at(draft.time) / 1_000.0 * self.walk.activity();
        let arrivals = (mean * pace as f64 / 1_000.0) as u64;
        let mut count = arrivals / 1_000 + u64::from(draft.random.chance(arrivals % 1_000));
        if count > 0 && draft.random.chance(40) {
            count += draft.random.below(4);
        }
        for _ in 0..count {
            self.send_order(world, draft);
        }
        if self.state == State::Active && (draft.height + u64::from(self.number) * 9).is_multiple_of(60) {
            self.mark_to_market(world, draft);
        }
    }

    /// Ends the orders that expire or are cancelled in this block.
    fn end_old_orders(&mut self, draft: &mut Draft) {
        let (now, height) = (draft.time, draft.height);
        draft.begin_transaction();
        self.book.end(draft, Status::Expired, |order| order.expires.is_some_and(|time| time <= now));
        self.book.end(draft, Status::Cancelled, |order| order.cancelled_at <= height);
    }

    /// Trades resting orders that the price has passed, each with a market order of another party.
    fn fill_passed_orders(&mut self, world: &mut World, draft: &mut Draft) {
        let price = self.price();
        let own = self.book.orders.iter().filter(|order| order.provision.is_none());
        let passed = own.filter(|order| order.rests() && order.accepts(price));
        let passed: Vec<_> = passed.map(|order| (order.party, order.buy, order.remaining)).collect();
        for (owner, buy, size) in passed {
            let party = draft.random.between(3, i64::from(world.party_count()) - 1) as u16;
            if party != owner {
                draft.begin_transaction();
                let order = Order::limit(draft, party, !buy, 0, size);
                let order = Order { kind: OrderKind::Market, force: Force::Ioc, ..order };
                self.execute(world, draft, order, 0);
            }
        }
    }

    /// Moves pegged orders to the price that they follow when trading begins, and parks them for an auction.
    pub(crate) fn place_pegged(&mut self, draft: &Draft) {
        let (price, is_parked) = (self.price(), self.in_auction());
        for order in &mut self.book.orders {
            let Some(peg) = order.peg else { continue };
            let follows = if order.buy { price - peg.offset } else { price + peg.offset };
            (order.price, order.status) =
                if is_parked { (0, Status::Parked) } else { (follows.max(1), Status::Active) };
            order.change(draft);
        }
    }

    /// Sends one order of a random party. The last eighth of the parties is reckless: they trade more than
    /// they can afford and close no position themselves.
    fn send_order(&mut self, world: &mut World, draft: &mut Draft) {
        let parties = world.party_count();
        let party = draft.random.between(3, i64::from(parties) - 1) as u16;
        let reckless = party >= parties - parties / 8;
        let (usual, open) = (self.template().size, self.open_volume(party));
        let mut size = (usual / 4 + draft.random.below(usual.unsigned_abs()) as i64).max(1);
        size *= if reckless { 4 } else { 1 + 4 * i64::from(draft.random.chance(40)) };
        let mut buy = draft.random.chance(500);
        if reckless && open != 0 && draft.random.chance(800) {
            buy = open > 0;
        } else if !reckless && open.abs() > usual * 12 && draft.random.chance(850) {
            buy = open < 0;
        }
        if !self.can_afford(world, party, size) {
            return;
        }
        draft.begin_transaction();
        let mut order = Order::limit(draft, party, buy, self.price(), size);
        order.reference = reference(draft);
        order.cancelled_at = draft.height + draft.random.between(20, 200) as u64;
        if draft.random.chance(40) {
            order.batch = world.next_serial() as i64;
        }
        if self.in_auction() {
            auction_template(draft, &mut order);
        } else {
            trading_template(draft, &mut order, open);
        }
        order.remaining = order.size;
        if order.reason != 0 {
            order.status = Status::Rejected;
        } else if order.peg.is_some() && self.in_auction() {
            (order.status, order.price) = (Status::Parked, 0);
        } else if !self.in_auction() {
            return self.execute(world, draft, order, 0);
        }
        self.book.add(draft, order);
    }
}

/// Gives an order for continuous trading its kind and price.
fn trading_template(draft: &mut Draft, order: &mut Order, open: i64) {
    let price = order.price;
    let mut away = |low: i64, high: i64| price * draft.random.between(low, high) / 10_000;
    let sign = if order.buy { 1 } else { -1 };
    let (passive, eager) = ((price - sign * away(5, 60)).max(1), (price + sign * away(20, 50)).max(1));
    order.price = passive;
    match draft.random.below(1_000) {
        0..330 => (order.kind, order.force, order.price) = (OrderKind::Market, Force::Ioc, 0),
        330..370 => {
            (order.kind, order.force, order.price) = (OrderKind::Market, Force::Fok, 0);
            order.size *= draft.random.between(1, 60);
        }
        370..540 => order.price = eager,
        540..720 => {}
        720..800 => {
            order.force = Force::Gtt;
            order.expires = Some(draft.time.plus_seconds(draft.random.between(60, 1_800)));
        }
        800..850 => {
            (order.force, order.price) = (Force::Ioc, if draft.random.chance(700) { eager } else { passive });
            order.size *= draft.random.between(1, 30);
        }
        850..885 => (order.force, order.price) = (Force::Fok, eager),
        885..930 => order.force = Force::Gfn,
        930..955 => order.peg = Some(peg(draft, order)),
        955..970 => order.post_only = true,
        970..985 => {
            (order.kind, order.force, order.price) = (OrderKind::Market, Force::Ioc, 0);
            (order.reduce_only, order.buy) = (true, open < 0);
            order.reason = if open == 0 { 50 } else { 0 };
            order.size = order.size.min(open.abs().max(1));
        }
        _ => order.reason = *draft.random.pick(&ERRORS),
    }
}

/// Gives an order for an auction its kind and price; immediate orders are rejected there.
fn auction_template(draft: &mut Draft, order: &mut Order) {
    let price = order.price;
    order.price = (price + price * draft.random.between(-30, 30) / 10_000).max(1);
    match draft.random.below(1_000) {
        0..650 => {}
        650..850 => order.force = Force::Gfa,
        850..890 => (order.force, order.reason) = (Force::Ioc, 32),
        890..920 => (order.force, order.reason) = (Force::Fok, 33),
        920..940 => (order.force, order.reason) = (Force::Gfn, 24),
        _ => order.peg = Some(peg(draft, order)),
    }
}

fn peg(draft: &mut Draft, order: &Order) -> Peg {
    let own_side = if order.buy { 2 } else { 3 };
    let reference = if draft.random.chance(400) { 1 } else { own_side };
    Peg { reference, offset: (order.price * draft.random.between(2, 20) / 10_000).max(1) }
}

/// A client's reference for an order: usual ones, none, empty ones, and some that are hard to parse.
fn reference(draft: &mut Draft) -> Option<String> {
    match draft.random.below(100) {
        0..10 => None,
        10..20 => Some(String::new()),
        20..23 => Some(draft.random.pick(&CATALOGUE.odd_texts).clone()),
        23..60 => Some(format!("{}-{}", draft.random.hex(8), draft.random.hex(4))),
        _ => Some(format!("strategy-{}/{}", draft.random.below(9) + 1, draft.random.below(100_000))),
    }
}
