//! Positions of parties in a market: the effect of trades, settlements and their payments, and close-outs.

use serde::{Deserialize, Serialize};

use crate::{
    block::Draft,
    market::Market,
    order::Status,
    world::{Key, Kind},
};

/// The close-out state of a party whose margin is too small.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Distress {
    #[default]
    Unspecified,
    OrdersClosed,
    Distressed,
    ClosedOut,
}

/// Volume with its cost and its profit, in price times size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Holding {
    /// Volume, negative when short.
    pub(crate) open: i64,
    /// Cost of the open volume, never negative.
    pub(crate) entry: i128,
    /// Realised profit and loss.
    pub(crate) realised: i128,
}

impl Holding {
    pub(crate) fn unrealised(&self, price: i64) -> i128 {
        let worth = i128::from(self.open.abs()) * i128::from(price);
        i128::from(self.open.signum()) * (worth - self.entry)
    }

    /// Takes a trade of the given size, negative when sold.
    pub(crate) fn trade(&mut self, size: i64, price: i64) {
        let closing = if self.open.signum() == -size.signum() { size.abs().min(self.open.abs()) } else { 0 };
        if closing > 0 {
            let cost = self.entry * i128::from(closing) / i128::from(self.open.abs());
            let proceeds = i128::from(closing) * i128::from(price);
            self.realised += i128::from(self.open.signum()) * (proceeds - cost);
            self.entry -= cost;
        }
        self.entry += i128::from(size.abs() - closing) * i128::from(price);
        self.open += size;
    }
}

/// A party's position in a market.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Position {
    /// The position with all trades so far.
    pub(crate) pending: Holding,
    /// The position as of the last settlement.
    pub(crate) settled: Holding,
    /// Losses that the party could not pay, in the asset's smallest unit.
    pub(crate) loss: i128,
    /// Profits that the party did not get because others could not pay, in the asset's smallest unit.
    pub(crate) socialised: i128,
    pub(crate) distress: Distress,
}

impl Market {
    /// Settles all positions at the present price, and makes the next step of the market's close-out.
    pub(crate) fn mark_to_market(&mut self, draft: &mut Draft<'_>) {
        draft.begin_transaction();
        self.pay_profits(draft, "MTM_LOSS", "MTM_WIN");
        self.step_close_out(draft);
        self.positions
            .retain(|party, position| position.pending.open != 0 || self.touched.contains_key(party));
        self.data_changed = true;
    }

    /// Pays gains and losses since the last settlement through the settlement account. They sum to zero.
    fn pay_profits(&mut self, draft: &mut Draft<'_>, loss: &str, win: &str) {
        let (settlement, scale, before) = (self.network_key(Kind::Settlement), self.scale(), self.mark);
        let (asset, market) = (self.asset(), self.number);
        self.mark = self.price();
        let profit = |holding: &Holding, price| holding.realised + holding.unrealised(price);
        let mut gains = Vec::new();
        for (&party, position) in &mut self.positions {
            let flow = (profit(&position.pending, self.mark) - profit(&position.settled, before)) * scale;
            position.settled = position.pending;
            self.touched.insert(party, draft.transaction.clone());
            if flow > 0 {
                gains.push((party, flow));
            }
            let general = Key::general(asset, party);
            let margin = Key { market, kind: Kind::Margin, ..general };
            let paid = draft.take(margin, settlement, -flow, loss);
            position.loss += (-flow).max(0) - paid - draft.take(general, settlement, -flow - paid, loss);
        }
        // Losses that could not be paid reduce the last gains.
        for (party, flow) in gains {
            let paid = draft.take(settlement, self.party_key(party, Kind::Margin), flow, win);
            self.positions.entry(party).or_default().socialised += flow - paid;
        }
    }

    /// In one of five settlements a party with a large position begins to be closed out: its orders are
    /// stopped, at the next settlement it is distressed, at the third its position is closed out and its
    /// margin confiscated.
    fn step_close_out(&mut self, draft: &mut Draft<'_>) {
        let largest = |(party, position): &(&u16, &Position)| (position.pending.open.abs(), **party);
        let traders = self.positions.iter().filter(|(party, _)| **party > 2);
        let chosen = traders.max_by_key(largest).map(|(party, _)| *party);
        let victim = self.victim.or_else(|| chosen.filter(|_| draft.random.chance(200)));
        let Some(party) = victim else { return };
        let position = self.positions.entry(party).or_default();
        position.distress = match position.distress {
            Distress::Unspecified if self.victim.is_none() => Distress::OrdersClosed,
            Distress::OrdersClosed => Distress::Distressed,
            Distress::Distressed => Distress::ClosedOut,
            _ => Distress::Unspecified,
        };
        let distress = position.distress;
        self.victim = Some(party).filter(|_| distress != Distress::Unspecified);
        self.book.end(draft, Status::Stopped, |order| order.party == party);
        if distress == Distress::ClosedOut {
            draft.begin_transaction();
            self.close_out(draft, party);
            let margin = self.party_key(party, Kind::Margin);
            let rest = draft.world.balance(margin);
            draft.transfer(margin, self.network_key(Kind::Insurance), rest, "MARGIN_CONFISCATED");
        }
    }

    /// Moves money between a party's general and margin account as its position requires, and writes the
    /// levels.
    pub(crate) fn update_margin(&mut self, draft: &mut Draft<'_>, party: u16, hash: &str) {
        let price = if self.mark > 0 { self.mark } else { self.price() };
        let open = self.positions.get(&party).map_or(0, |position| position.pending.open.abs());
        let maintenance = self.value(price, open) / 20;
        let [search, initial, release] = [11, 12, 14].map(|tenths| maintenance * tenths / 10);
        let (margin, general) = (self.party_key(party, Kind::Margin), self.general_key(party));
        let held = draft.world.balance(margin);
        if maintenance == 0 && held == 0 {
            return;
        }
        if held < search {
            draft.take(general, margin, initial - held, "MARGIN_LOW");
        } else if held > release {
            draft.take(margin, general, held - initial, "MARGIN_HIGH");
        }
        let account = draft.account_id(margin);
        row! { draft, margin_levels:
            account_id: account, maintenance_margin: maintenance, search_level: search,
            initial_margin: initial, collateral_release_level: release, tx_hash: hash,
        }
    }

    /// Closes all positions at the final price and empties the market's accounts.
    pub(crate) fn settle_finally(&mut self, draft: &mut Draft<'_>) {
        self.pay_profits(draft, "LOSS", "WIN");
        let insurance = Key::global(self.asset(), Kind::GlobalInsurance);
        let of_network = [Kind::Insurance, Kind::Settlement].map(|kind| (self.network_key(kind), insurance));
        let of_parties = (0..draft.world.traders)
            .map(|party| (self.party_key(party, Kind::Margin), self.general_key(party)));
        for (from, to) in of_parties.chain(of_network).collect::<Vec<_>>() {
            let held = draft.world.balance(from);
            draft.transfer(from, to, held, "CLEAR_ACCOUNT");
        }
        for position in self.positions.values_mut() {
            let realised = position.pending.realised + position.pending.unrealised(self.mark);
            position.pending = Holding { realised, ..Holding::default() };
        }
    }
}

/// A quotient as a decimal number: whole when it is, with 16 decimals otherwise.
pub(crate) fn quotient(dividend: i128, divisor: i128) -> String {
    const UNIT: i128 = 10_000_000_000_000_000;
    let divisor = divisor.max(1);
    let (whole, rest) = (dividend / divisor, dividend % divisor);
    if rest == 0 {
        return whole.to_string();
    }
    let fraction = (rest * UNIT + divisor / 2) / divisor;
    format!("{}.{:016}", whole + fraction / UNIT, fraction % UNIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holding_has_the_cost_and_the_profit_of_its_trades() {
        let mut holding = Holding::default();
        holding.trade(10, 100);
        holding.trade(5, 130);
        assert_eq!((quotient(holding.entry, 15), holding.unrealised(120)), ("110".to_owned(), 150));
        holding.trade(-20, 120);
        assert_eq!(holding, Holding { open: -5, entry: 600, realised: 150 });
        holding.trade(5, 110);
        assert_eq!(holding, Holding { open: 0, entry: 0, realised: 200 });
        assert_eq!([quotient(2, 3), quotient(8, 4), quotient(0, 0)], ["0.6666666666666667", "2", "0"]);
    }
}
