//! What moves a market: the price that informed parties have in mind, and the parties that trade on it.

use crate::block::Draft;
use crate::book::{Force, Order, OrderKind, Peg, Reference, Status};
use crate::catalogue::ODD_TEXTS;
use crate::liquidity::is_kept_by_provider;
use crate::market::{Market, State};
use crate::moment::Moment;
use crate::world::World;

/// How busy each hour of the day (UTC) is, in thousandths of the mean.
const BUSY_HOURS: [f64; 24] = [
    620.0, 540.0, 480.0, 450.0, 470.0, 560.0, 720.0, 930.0, 1_120.0, 1_200.0, 1_160.0, 1_090.0, 1_080.0,
    1_260.0, 1_520.0, 1_640.0, 1_560.0, 1_380.0, 1_210.0, 1_090.0, 1_010.0, 930.0, 810.0, 700.0,
];

/// Most orders that rest in a market besides the providers' own.
const MOST_RESTING: usize = 40;

/// The last parties never take anything back, and trade with more than they can afford.
fn reckless_from(world: &World) -> u16 {
    world.party_count() - world.party_count() / 8
}

fn busyness(time: Moment) -> f64 {
    let hour = time.hour_of_day();
    let (from, part) = (hour as usize % 24, hour % 1.0);
    BUSY_HOURS[from] * (1.0 - part) + BUSY_HOURS[(from + 1) % 24] * part
}

impl Market {
    /// Moves the fair price on: a random walk whose liveliness comes in clusters, with a weak pull home.
    pub(crate) fn walk(&mut self, draft: &mut Draft, elapsed_us: i64) {
        let template = self.template();
        let days = elapsed_us.clamp(0, 3_600_000_000) as f64 / 86_400_000_000.0;
        let liveliness = self.excitement as f64 / 1_000.0;
        let deviation = template.daily_volatility / 10_000.0 * days.sqrt() * liveliness;
        let home = template.price as f64 * 1_000_000.0;
        let fair = self.fair_micro as f64;
        let pull = (home / fair - 1.0) * 0.2 * days;
        let moved = fair * (1.0 + (deviation * draft.dice.normal()).clamp(-0.2, 0.2) + pull);
        self.fair_micro = moved.clamp(home / 5.0, home * 5.0) as i64;
        let usual_block = days * 4_320.0;
        let shock = usual_block * 4.0 / 1_000.0 > draft.dice.unit();
        if shock {
            self.excitement = self.excitement * draft.dice.between(15, 35) / 10;
        }
        let calming = (0.02 * usual_block).min(1.0);
        let next = self.excitement as f64 + (900.0 - self.excitement as f64) * calming;
        self.excitement = (next as i64).clamp(400, 5_000);
    }

    /// Lets everybody act for the length of one block. `pace` is that length in thousandths of the usual.
    pub(crate) fn act(&mut self, world: &mut World, draft: &mut Draft, pace: u64) {
        if self.in_auction() || self.state == State::Active {
            self.expire(draft);
            self.quote(world, draft, pace);
            self.change_minds(world, draft, pace);
            let liveliness = 0.6 + 0.4 * self.excitement as f64 / 1_000.0;
            let template = self.template();
            let expected = template.activity as f64 * busyness(draft.time) / 1_000.0 * liveliness;
            let arrivals = (expected * pace as f64 / 1_000.0) as u64;
            let mut count = arrivals / 1_000 + u64::from(draft.dice.chance(arrivals % 1_000));
            if count > 0 && draft.dice.chance(40) {
                count += draft.dice.below(4);
            }
            for _ in 0..count {
                self.arrive(world, draft);
            }
        }
        if self.state == State::Active {
            if draft.height.is_multiple_of(20) {
                self.reprice_pegged(draft);
            }
            if (draft.height + u64::from(self.number) * 9).is_multiple_of(60) {
                self.mark_to_market(world, draft);
            }
        }
    }

    fn expire(&mut self, draft: &mut Draft) {
        let now = draft.time;
        let due = |order: &Order| order.expires.is_some_and(|time| time <= now);
        if self.orders.iter().any(due) {
            draft.begin_transaction();
            self.stop_orders(draft, Status::Expired, due);
        }
    }

    /// Cancels some resting orders and changes others.
    fn change_minds(&mut self, world: &mut World, draft: &mut Draft, pace: u64) {
        let reckless_from = reckless_from(world);
        let traders = |order: &&Order| !is_kept_by_provider(order) && order.party < reckless_from;
        let resting = self.orders.iter().filter(traders).count();
        let oldest = self.orders.iter().filter(traders).map(|order| order.priority).min();
        let crowded = if resting > MOST_RESTING { oldest } else { None };
        let (cancels, amends) = (10 * pace / 1_000 + 1, 4 * pace / 1_000 + 1);
        for at in (0..self.orders.len()).rev() {
            let order = &self.orders[at];
            if !traders(&order) {
                continue;
            }
            if crowded == Some(order.priority) || draft.dice.chance(cancels) {
                draft.begin_transaction();
                let mut order = self.orders.remove(at);
                order.status = Status::Cancelled;
                order.updated = draft.time;
                let party = order.party;
                self.keep(draft, order);
                self.rebalance(world, draft, party);
            } else if order.peg.is_none() && draft.dice.chance(amends) {
                self.amend(world, draft, at);
            }
        }
    }

    /// Makes a resting order smaller, or moves it away from the other side.
    fn amend(&mut self, world: &mut World, draft: &mut Draft, at: usize) {
        draft.begin_transaction();
        let step = (self.fair() / 2_000).max(1);
        let order = &mut self.orders[at];
        if order.remaining > 3 && draft.dice.chance(500) {
            let less = order.remaining / 3;
            order.remaining -= less;
            order.size -= less;
        } else {
            order.price = (order.price + if order.buy { -step } else { step }).max(1);
            order.priority = world.next_serial();
        }
        order.version += 1;
        order.updated = draft.time;
        order.changed = Some(draft.transaction());
        self.stirred = true;
    }

    /// One order of somebody who comes by.
    fn arrive(&mut self, world: &mut World, draft: &mut Draft) {
        let party = draft.dice.between(3, i64::from(world.party_count()) - 1) as u16;
        let reckless = party >= reckless_from(world);
        let base = self.template().size;
        let open = self.positions.get(&party).map_or(0, |position| position.open);
        let mut size = (base / 4 + draft.dice.below(base.unsigned_abs()) as i64).max(1);
        if reckless {
            size *= 4;
        } else if draft.dice.chance(40) {
            size *= 5;
        }
        let mut buy = draft.dice.chance(500);
        if reckless && open != 0 && draft.dice.chance(800) {
            // Some only ever add to what they have, until the market takes it from them.
            buy = open > 0;
        }
        if !reckless && open.abs() > base * 12 && draft.dice.chance(850) {
            buy = open < 0;
        }
        if !self.can_carry(world, party, buy, size) && draft.dice.chance(930) {
            return;
        }
        let fair = self.fair();
        let mut order = Order::limit(world, draft, party, buy, fair, size);
        order.reference = reference(draft);
        if draft.dice.chance(40) {
            order.batch = world.next_serial() as i64;
        }
        if self.in_auction() {
            self.shape_for_auction(draft, &mut order);
        } else if reckless && draft.dice.chance(400) {
            let distance = fair * draft.dice.between(60, 300) / 10_000;
            order.price = (if buy { fair - distance } else { fair + distance }).max(1);
        } else {
            self.shape_for_trading(draft, &mut order, open);
        }
        self.submit(world, draft, order);
    }

    /// Gives an order for continuous trading its kind and price.
    fn shape_for_trading(&self, draft: &mut Draft, order: &mut Order, open: i64) {
        let fair = self.fair();
        let away = |draft: &mut Draft, low: i64, high: i64| fair * draft.dice.between(low, high) / 10_000;
        let sign = if order.buy { 1 } else { -1 };
        let passive = fair - sign * away(draft, 5, 60);
        let eager = fair + sign * away(draft, 8, 25);
        order.price = passive.max(1);
        match draft.dice.below(1_000) {
            0..330 => (order.kind, order.force, order.price) = (OrderKind::Market, Force::Ioc, 0),
            330..370 => {
                (order.kind, order.force, order.price) = (OrderKind::Market, Force::Fok, 0);
                order.size *= draft.dice.between(1, 30);
            }
            370..540 => order.price = eager,
            540..720 => {}
            720..800 => {
                order.force = Force::Gtt;
                order.expires = Some(draft.time.plus_seconds(draft.dice.between(60, 1_800)));
            }
            800..850 => {
                (order.force, order.price) =
                    (Force::Ioc, if draft.dice.chance(700) { eager } else { passive });
                order.size *= draft.dice.between(1, 8);
            }
            850..885 => (order.force, order.price) = (Force::Fok, eager),
            885..930 => order.force = Force::Gfn,
            930..955 => order.peg = Some(self.peg(draft, order.buy)),
            955..970 => {
                order.post_only = true;
                order.price =
                    if draft.dice.chance(800) { passive } else { fair + sign * away(draft, 20, 60) };
            }
            970..985 => {
                (order.kind, order.force, order.price) = (OrderKind::Market, Force::Ioc, 0);
                order.reduce_only = true;
                if draft.dice.chance(800) && open != 0 {
                    order.buy = open < 0;
                    order.size = order.size.min(open.abs());
                }
            }
            985..993 => order.force = Force::Gfa,
            _ => {
                // Wrong id, missing account, invalid size, no fee money, foreign order, out of price bounds.
                order.reason = *draft.dice.pick(&[1, 2, 7, 15, 17, 18, 21, 27, 36, 47]);
            }
        }
        order.price = order.price.max(0);
        order.remaining = order.size;
    }

    /// Gives an order for an auction its kind and price.
    fn shape_for_auction(&self, draft: &mut Draft, order: &mut Order) {
        order.price = (self.fair() + self.fair() * draft.dice.between(-30, 30) / 10_000).max(1);
        match draft.dice.below(1_000) {
            0..650 => {}
            650..850 => order.force = Force::Gfa,
            850..890 => order.force = Force::Ioc,
            890..920 => order.force = Force::Fok,
            920..940 => order.force = Force::Gfn,
            _ => order.peg = Some(self.peg(draft, order.buy)),
        }
    }

    fn peg(&self, draft: &mut Draft, buy: bool) -> Peg {
        let own_side = if buy { Reference::BestBid } else { Reference::BestAsk };
        let reference = if draft.dice.chance(400) { Reference::Mid } else { own_side };
        Peg { reference, offset: (self.fair() * draft.dice.between(2, 20) / 10_000).max(1) }
    }
}

/// A client's own name for an order: usual ones, none, empty ones, and now and then a nasty one.
fn reference(draft: &mut Draft) -> Option<String> {
    match draft.dice.below(100) {
        0..10 => None,
        10..20 => Some(String::new()),
        20..23 => Some((*draft.dice.pick(ODD_TEXTS)).to_owned()),
        23..60 => Some(format!("{}-{}", draft.dice.hex(8), draft.dice.hex(4))),
        _ => Some(format!("strategy-{}/{}", draft.dice.below(9) + 1, draft.dice.below(100_000))),
    }
}
