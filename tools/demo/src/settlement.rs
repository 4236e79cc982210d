//! Money of positions: margins, marking to market, close-outs of those who cannot pay, and the last settlement.

use crate::block::Draft;
use crate::book::Status;
use crate::market::Market;
use crate::position::Standing;
use crate::tables::Table;
use crate::world::{Key, Kind, World, reason};

/// Margin levels of a party in a market, in the asset's smallest unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Levels {
    maintenance: i128,
    search: i128,
    initial: i128,
    release: i128,
}

impl Levels {
    fn of(maintenance: i128) -> Levels {
        Levels {
            maintenance,
            search: maintenance * 11 / 10,
            initial: maintenance * 12 / 10,
            release: maintenance * 14 / 10,
        }
    }
}

/// Share of the exposure that must be held, in thousandths.
const MARGIN_PER_MILLE: i128 = 50;

impl Market {
    fn reference_price(&self) -> i64 {
        if self.mark > 0 { self.mark } else { self.fair() }
    }

    /// Greatest volume that a party would hold if one side of its orders traded, and more of that side came.
    fn exposure(&self, party: u16, more: Option<(bool, i64)>) -> i64 {
        let open = self.positions.get(&party).map_or(0, |position| position.open);
        let resting = |buy: bool| {
            let own = self.orders.iter().filter(|order| order.party == party && order.buy == buy);
            let extra = more.filter(|(side, _)| *side == buy).map_or(0, |(_, size)| size);
            own.map(|order| order.remaining).sum::<i64>() + extra
        };
        (open + resting(true)).abs().max((open - resting(false)).abs())
    }

    fn levels_for(&self, volume: i64) -> Levels {
        Levels::of(self.value(self.reference_price(), volume) * MARGIN_PER_MILLE / 1_000)
    }

    /// Whether a party could carry an order of this size, with its fees.
    pub(crate) fn can_carry(&self, world: &World, party: u16, buy: bool, size: i64) -> bool {
        let needed = self.levels_for(self.exposure(party, Some((buy, size)))).initial
            + self.value(self.reference_price(), size) / 400;
        world.balance(Key::general(self.asset(), party)) + world.balance(self.margin_key(party)) >= needed
    }

    /// Brings a party's margin account to where its exposure wants it. Says whether that worked out.
    pub(crate) fn rebalance(&mut self, world: &mut World, draft: &mut Draft, party: u16) -> bool {
        let levels = self.levels_for(self.exposure(party, None));
        let (margin, general) = (self.margin_key(party), Key::general(self.asset(), party));
        let held = world.balance(margin);
        if held < levels.search {
            world.take(draft, general, margin, levels.initial - held, reason::MARGIN_LOW);
        } else if held > levels.release {
            world.take(draft, margin, general, held - levels.initial, reason::MARGIN_HIGH);
        }
        if levels.maintenance > 0 || held > 0 {
            self.levels.insert(party, (levels, draft.transaction()));
        }
        world.balance(margin) >= levels.maintenance
    }

    /// Settles all positions at the present price, and closes out those who cannot go on.
    pub(crate) fn mark_to_market(&mut self, world: &mut World, draft: &mut Draft) {
        draft.begin_transaction();
        let ((bid, _), (ask, _)) = (self.best_level(true, true), self.best_level(false, true));
        if bid > 0 && ask > 0 {
            self.mark = (bid + ask) / 2;
        }
        self.move_profit(world, draft, reason::MTM_LOSS, reason::MTM_WIN);
        let parties: Vec<u16> = self.positions.keys().copied().collect();
        for &party in &parties {
            if !self.rebalance(world, draft, party) {
                self.relieve(world, draft, party);
            } else if let Some(position) = self.positions.get_mut(&party) {
                position.standing = Standing::Sound;
            }
        }
        self.positions.retain(|_, position| position.open != 0 || position.changed.is_some());
        self.stirred = true;
    }

    /// Moves what positions won and lost since the last settlement, by way of the settlement account.
    fn move_profit(&mut self, world: &mut World, draft: &mut Draft, loss: &str, win: &str) {
        let (settlement, scale) = (self.network_key(Kind::Settlement), self.scale());
        let mut wins: Vec<(u16, i128)> = Vec::new();
        let mut losses: Vec<(u16, i128)> = Vec::new();
        for (&party, position) in &mut self.positions {
            let worth = i128::from(position.open) * i128::from(self.mark);
            let flow = (worth - position.basis) * scale;
            if flow == 0 && position.open == 0 {
                continue;
            }
            position.basis = worth;
            position.changed = Some(draft.transaction());
            position.was_settled = true;
            match flow {
                0 => {}
                1.. => wins.push((party, flow)),
                _ => losses.push((party, -flow)),
            }
        }
        for (party, owed) in losses {
            self.collect(world, draft, party, owed, loss);
        }
        let total: i128 = wins.iter().map(|(_, amount)| amount).sum();
        let available = world.balance(settlement);
        let share = if available < total { available as f64 / total as f64 } else { 1.0 };
        for (party, amount) in wins {
            let due = if share < 1.0 { (amount as f64 * share) as i128 } else { amount };
            let paid = world.take(draft, settlement, self.margin_key(party), due.min(amount), win);
            if let Some(position) = self.positions.get_mut(&party) {
                position.socialised += amount - paid;
            }
        }
    }

    /// Collects a loss: from the margin, from the party's own account, and at last from the insurance.
    fn collect(&mut self, world: &mut World, draft: &mut Draft, party: u16, owed: i128, reason: &str) {
        let settlement = self.network_key(Kind::Settlement);
        let mut left = owed;
        left -= world.take(draft, self.margin_key(party), settlement, left, reason);
        left -= world.take(draft, Key::general(self.asset(), party), settlement, left, reason);
        if let Some(position) = self.positions.get_mut(&party) {
            position.loss += left;
        }
        world.take(draft, self.network_key(Kind::Insurance), settlement, left, reason);
    }

    /// Deals with a party whose margin does not do: first its orders go, then its position.
    fn relieve(&mut self, world: &mut World, draft: &mut Draft, party: u16) {
        let has_orders = self.orders.iter().any(|order| order.party == party);
        let standing = self.positions.get(&party).map_or(Standing::Sound, |position| position.standing);
        if has_orders {
            self.stop_orders(draft, Status::Stopped, |order| order.party == party);
            self.stand(draft, party, Standing::OrdersClosed);
            self.rebalance(world, draft, party);
            return;
        }
        if standing != Standing::Distressed {
            self.stand(draft, party, Standing::Distressed);
            return;
        }
        draft.begin_transaction();
        if !self.close_out(world, draft, party) {
            return;
        }
        let scale = self.scale();
        let mut flow = 0;
        if let Some(position) = self.positions.get_mut(&party) {
            flow = -position.basis * scale;
            position.basis = 0;
            position.was_settled = true;
        }
        if flow < 0 {
            self.collect(world, draft, party, -flow, reason::MTM_LOSS);
        }
        let (margin, settlement) = (self.margin_key(party), self.network_key(Kind::Settlement));
        if flow > 0 {
            world.take(draft, settlement, margin, flow, reason::MTM_WIN);
        }
        let rest = world.balance(margin);
        let insurance = self.network_key(Kind::Insurance);
        world.transfer(draft, margin, insurance, rest, reason::MARGIN_CONFISCATED);
        self.levels.remove(&party);
    }

    fn stand(&mut self, draft: &Draft, party: u16, standing: Standing) {
        if let Some(position) = self.positions.get_mut(&party) {
            position.standing = standing;
            position.changed = Some(draft.transaction());
        }
    }

    /// Pays all positions out for good and empties the market's accounts.
    pub(crate) fn settle_finally(&mut self, world: &mut World, draft: &mut Draft) {
        self.move_profit(world, draft, reason::LOSS, reason::WIN);
        for party in 0..world.party_count() {
            let (margin, general) = (self.margin_key(party), Key::general(self.asset(), party));
            let held = world.balance(margin);
            world.transfer(draft, margin, general, held, reason::CLEAR_ACCOUNT);
        }
        for position in self.positions.values_mut() {
            let stake = &mut position.pending;
            let worth = i128::from(stake.open.abs()) * i128::from(self.mark);
            stake.realised += i128::from(stake.open.signum()) * (worth - stake.entry);
            (stake.open, stake.entry) = (0, 0);
            (position.open, position.basis) = (0, 0);
        }
        let pool = Key::global(self.asset(), Kind::GlobalInsurance);
        for kind in [Kind::Insurance, Kind::Settlement] {
            let key = self.network_key(kind);
            let held = world.balance(key);
            world.transfer(draft, key, pool, held, reason::CLEAR_ACCOUNT);
        }
    }

    /// Writes the margin levels that the block worked out.
    pub(crate) fn flush_levels(&mut self, world: &mut World, draft: &mut Draft) {
        for (party, (levels, transaction)) in std::mem::take(&mut self.levels) {
            let id = world.account_id(draft, self.margin_key(party));
            let hash = draft.hash_of(transaction);
            let row = draft.rows.row(Table::MarginLevels).text(&id).time(draft.time);
            let row = row.number(levels.maintenance).number(levels.search).number(levels.initial);
            row.number(levels.release).text(&hash).time(draft.time).end();
        }
    }
}
