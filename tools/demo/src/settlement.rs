//! Payments of positions: margins, mark to market, close-outs of parties that cannot pay, and the final
//! settlement.

use crate::{
    block::Draft,
    market::Market,
    order::Status,
    position::Distress,
    world::{Key, Kind, World},
};

/// Share of the position's value that is the maintenance margin, in thousandths.
const MARGIN_PER_MILLE: i128 = 50;

/// The search, initial and release levels computed from a maintenance margin.
pub(crate) fn levels_above(maintenance: i128) -> [i128; 3] {
    [11, 12, 14].map(|tenths| maintenance * tenths / 10)
}

impl Market {
    /// The maintenance margin of an open volume.
    fn maintenance(&self, volume: i64) -> i128 {
        self.value(self.settlement_price(), volume.abs()) * MARGIN_PER_MILLE / 1_000
    }

    /// Whether a party could pay the margin and the fees if its volume grew by this size.
    pub(crate) fn can_afford(&self, world: &World, party: u16, size: i64) -> bool {
        let [_, initial, _] = levels_above(self.maintenance(self.open_volume(party).abs() + size));
        let needed = initial + self.value(self.settlement_price(), size) / 400;
        let margin = self.party_key(party, Kind::Margin);
        world.balance(self.general_key(party)) + world.balance(margin) >= needed
    }

    /// Moves money between a party's general and margin account as its position requires. Returns whether it
    /// had enough.
    pub(crate) fn rebalance(&mut self, world: &mut World, draft: &mut Draft, party: u16) -> bool {
        let maintenance = self.maintenance(self.open_volume(party));
        let [search, initial, release] = levels_above(maintenance);
        let (margin, general) = (self.party_key(party, Kind::Margin), self.general_key(party));
        let held = world.balance(margin);
        if held < search {
            world.take(draft, general, margin, initial - held, "MARGIN_LOW");
        } else if held > release {
            world.take(draft, margin, general, held - initial, "MARGIN_HIGH");
        }
        if maintenance > 0 || held > 0 {
            self.margins.insert(party, (maintenance, draft.hash()));
        }
        world.balance(margin) >= maintenance
    }

    /// Settles all positions at the present price, and closes out those whose margin is not enough.
    pub(crate) fn mark_to_market(&mut self, world: &mut World, draft: &mut Draft) {
        draft.begin_transaction();
        self.mark = self.price();
        self.move_profit(world, draft, "MTM_LOSS", "MTM_WIN");
        let parties: Vec<u16> = self.positions.keys().copied().collect();
        for party in parties {
            if !self.rebalance(world, draft, party) {
                self.step_distress(world, draft, party);
            } else if let Some(position) = self.positions.get_mut(&party) {
                position.distress = Distress::None;
            }
        }
        self.positions.retain(|_, position| position.pending.open != 0 || position.changed.is_some());
        self.data_changed = true;
    }

    /// Pays gains and losses since the last settlement through the settlement account.
    fn move_profit(&mut self, world: &mut World, draft: &mut Draft, loss: &str, win: &str) {
        let (settlement, scale) = (self.network_key(Kind::Settlement), self.scale());
        let mut flows: Vec<(u16, i128)> = Vec::new();
        for (&party, position) in &mut self.positions {
            let worth = i128::from(position.pending.open) * i128::from(self.mark);
            let flow = (worth - position.basis) * scale;
            if flow == 0 && position.pending.open == 0 {
                continue;
            }
            position.basis = worth;
            position.changed = Some(draft.hash());
            position.settles = true;
            flows.push((party, flow));
        }
        for &(party, flow) in flows.iter().filter(|(_, flow)| *flow < 0) {
            self.collect(world, draft, party, -flow, loss);
        }
        // The flows sum to zero; unpaid losses reduce the last gains.
        for (party, flow) in flows.into_iter().filter(|(_, flow)| *flow > 0) {
            let paid = world.take(draft, settlement, self.party_key(party, Kind::Margin), flow, win);
            self.positions.entry(party).or_default().socialised += flow - paid;
        }
    }

    /// Collects a loss: from the margin account, then the general account, then the insurance.
    fn collect(&mut self, world: &mut World, draft: &mut Draft, party: u16, owed: i128, reason: &str) {
        let settlement = self.network_key(Kind::Settlement);
        let mut left = owed;
        for from in [self.party_key(party, Kind::Margin), self.general_key(party)] {
            left -= world.take(draft, from, settlement, left, reason);
        }
        self.positions.entry(party).or_default().loss += left;
        world.take(draft, self.network_key(Kind::Insurance), settlement, left, reason);
    }

    /// Makes the next close-out step of a party whose margin is too small: at the first settlement its orders
    /// are stopped, at the second it is distressed, at the third its position is closed out and the rest of
    /// its margin confiscated.
    fn step_distress(&mut self, world: &mut World, draft: &mut Draft, party: u16) {
        let position = self.positions.entry(party).or_default();
        position.changed = Some(draft.hash());
        position.distress = match position.distress {
            Distress::None => Distress::OrdersClosed,
            Distress::OrdersClosed => Distress::Distressed,
            _ => Distress::ClosedOut,
        };
        let is_last = position.distress == Distress::ClosedOut;
        self.book.end(draft, Status::Stopped, |order| order.party == party);
        if !is_last {
            return;
        }
        draft.begin_transaction();
        self.close_out(world, draft, party);
        let (margin, scale) = (self.party_key(party, Kind::Margin), self.scale());
        let flow = -std::mem::take(&mut self.positions.entry(party).or_default().basis) * scale;
        self.collect(world, draft, party, (-flow).max(0), "MTM_LOSS");
        world.take(draft, self.network_key(Kind::Settlement), margin, flow, "MTM_WIN");
        let rest = world.balance(margin);
        world.transfer(draft, margin, self.network_key(Kind::Insurance), rest, "MARGIN_CONFISCATED");
        self.margins.remove(&party);
    }

    /// Closes all positions at the final price and empties the market's accounts.
    pub(crate) fn settle_finally(&mut self, world: &mut World, draft: &mut Draft) {
        self.mark = self.price();
        self.move_profit(world, draft, "LOSS", "WIN");
        let clear = |world: &mut World, draft: &mut Draft, from: Key, to: Key| {
            let held = world.balance(from);
            world.transfer(draft, from, to, held, "CLEAR_ACCOUNT");
        };
        for party in 0..world.party_count() {
            clear(world, draft, self.party_key(party, Kind::Margin), self.general_key(party));
        }
        for position in self.positions.values_mut() {
            position.pending.close(self.mark);
            position.basis = 0;
        }
        let pool = Key::global(self.asset(), Kind::GlobalInsurance);
        for kind in [Kind::Insurance, Kind::Settlement] {
            clear(world, draft, self.network_key(kind), pool);
        }
    }
}
