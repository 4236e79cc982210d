//! What a party holds in a market, and the rows that tell of it.

use serde::{Deserialize, Serialize};

use crate::block::Draft;
use crate::catalogue::ASSETS;
use crate::market::Market;
use crate::tables::Table;
use crate::world::World;

/// How a holder stands towards the margin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Standing {
    #[default]
    Sound,
    OrdersClosed,
    Distressed,
    ClosedOut,
}

impl Standing {
    fn name(self) -> &'static str {
        match self {
            Standing::Sound => "POSITION_STATUS_UNSPECIFIED",
            Standing::OrdersClosed => "POSITION_STATUS_ORDERS_CLOSED",
            Standing::Distressed => "POSITION_STATUS_DISTRESSED",
            Standing::ClosedOut => "POSITION_STATUS_CLOSED_OUT",
        }
    }
}

/// Volume with what it cost and what it brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stake {
    /// Volume, negative when short.
    pub(crate) open: i64,
    /// Price times size of the open volume, never negative.
    pub(crate) entry: i128,
    /// Profit and loss taken, in price times size.
    pub(crate) realised: i128,
}

/// A party's position in a market.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Position {
    pub(crate) open: i64,
    /// The position with all trades so far.
    pub(crate) pending: Stake,
    /// The position as of the last settlement.
    pub(crate) settled: Stake,
    /// What the open volume was worth at the last settlement plus what was paid in trades since, in price
    /// times size. The difference to its worth now is what the next settlement moves.
    pub(crate) basis: i128,
    /// What the party could not pay, in the asset's smallest unit.
    pub(crate) loss: i128,
    /// What the party did not get because others could not pay.
    pub(crate) socialised: i128,
    pub(crate) standing: Standing,
    /// Whether a settlement ever touched it. Absent from the state files of earlier releases.
    #[serde(default)]
    pub(crate) has_settled: bool,
    /// Transaction of the present block that touched the position.
    #[serde(skip)]
    pub(crate) changed: Option<usize>,
    /// Whether that was a settlement.
    #[serde(skip)]
    pub(crate) was_settled: bool,
}

impl Position {
    /// Takes a trade of the given size, negative when sold.
    pub(crate) fn trade(&mut self, size: i64, price: i64, transaction: usize) {
        self.basis += i128::from(size) * i128::from(price);
        let stake = &mut self.pending;
        let closing =
            if stake.open.signum() == -size.signum() { size.abs().min(stake.open.abs()) } else { 0 };
        if closing > 0 {
            let cost = stake.entry * i128::from(closing) / i128::from(stake.open.abs());
            let proceeds = i128::from(closing) * i128::from(price);
            stake.realised += i128::from(stake.open.signum()) * (proceeds - cost);
            stake.entry -= cost;
        }
        stake.entry += i128::from(size.abs() - closing) * i128::from(price);
        stake.open += size;
        self.open = stake.open;
        self.changed = Some(transaction);
    }
}

/// A quotient as a decimal number: whole when it is, with 16 decimals otherwise.
pub(crate) fn quotient(dividend: i128, divisor: i128) -> String {
    let divisor = divisor.max(1);
    let (size, sign) = (dividend.unsigned_abs(), if dividend < 0 { "-" } else { "" });
    let divisor = divisor.unsigned_abs();
    let (whole, rest) = (size / divisor, size % divisor);
    if rest == 0 {
        return format!("{sign}{whole}");
    }
    const UNIT: u128 = 10_000_000_000_000_000;
    let fraction = (rest * UNIT + divisor / 2) / divisor;
    format!("{sign}{}.{:016}", whole + fraction / UNIT, fraction % UNIT)
}

impl Market {
    /// Writes one row for every position that the block touched.
    pub(crate) fn flush_positions(&mut self, world: &World, draft: &mut Draft) {
        let mut positions = std::mem::take(&mut self.positions);
        for (&party, position) in &mut positions {
            let Some(transaction) = position.changed.take() else { continue };
            if std::mem::take(&mut position.was_settled) {
                position.settled = position.pending;
                position.has_settled = true;
            }
            // Networks name no transaction before the first settlement.
            let hash = if position.has_settled { draft.hash_of(transaction) } else { String::new() };
            self.write_position(world, draft, party, position, &hash);
            if position.standing == Standing::ClosedOut && position.open == 0 {
                position.standing = Standing::Sound;
            }
        }
        self.positions = positions;
    }

    fn write_position(&self, world: &World, draft: &mut Draft, party: u16, position: &Position, hash: &str) {
        let scale = self.scale();
        let template = self.template();
        let asset_scale = 10i128.pow(ASSETS[usize::from(template.asset)].decimals - template.decimals);
        let unrealised = |stake: &Stake| {
            let worth = i128::from(stake.open.abs()) * i128::from(self.mark);
            (i128::from(stake.open.signum()) * (worth - stake.entry) * scale).to_string()
        };
        let figures = |stake: &Stake| {
            let volume = i128::from(stake.open.abs());
            [
                (stake.realised * scale).to_string(),
                unrealised(stake),
                quotient(stake.entry * asset_scale, volume),
                quotient(stake.entry, volume),
            ]
        };
        let mut row = draft.rows.row(Table::Positions).text(world.market_id(self.number));
        row = row.text(world.party_id(party)).number(position.settled.open);
        for figure in figures(&position.settled) {
            row = row.text(&figure);
        }
        row = row.number(position.loss).number(-position.socialised).text(hash).time(draft.time);
        row = row.number(position.pending.open);
        for figure in figures(&position.pending) {
            row = row.text(&figure);
        }
        row.number(position.socialised).text(position.standing.name()).end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_trip_leaves_no_basis_but_the_profit() {
        let mut position = Position::default();
        position.trade(10, 100, 0);
        position.trade(5, 130, 0);
        assert_eq!(quotient(position.pending.entry, 15), "110");
        position.trade(-20, 120, 0);
        assert_eq!(position.pending, Stake { open: -5, entry: 600, realised: 150 });
        position.trade(5, 110, 0);
        assert_eq!(position.pending, Stake { open: 0, entry: 0, realised: 200 });
        assert_eq!(position.basis, -200);
    }

    #[test]
    fn a_quotient_has_sixteen_decimals_or_none() {
        assert_eq!(quotient(-10, 4), "-2.5000000000000000");
        assert_eq!(quotient(2, 3), "0.6666666666666667");
        assert_eq!(quotient(8, 4), "2");
        assert_eq!(quotient(0, 0), "0");
    }
}
