//! Position of a party in a market: open volume, cost, realised profit and loss.

use serde::{Deserialize, Serialize};

use crate::labels::labelled;

labelled! {
    /// The close-out state of a party whose margin is too small.
    Distress {
        #[default]
        None = "POSITION_STATUS_UNSPECIFIED",
        OrdersClosed = "POSITION_STATUS_ORDERS_CLOSED",
        Distressed = "POSITION_STATUS_DISTRESSED",
        ClosedOut = "POSITION_STATUS_CLOSED_OUT",
    }
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
    /// Unrealised profit and loss of the open volume at a price.
    pub(crate) fn unrealised(&self, price: i64) -> i128 {
        let worth = i128::from(self.open.abs()) * i128::from(price);
        i128::from(self.open.signum()) * (worth - self.entry)
    }

    /// Takes a trade of the given size, negative when sold.
    fn trade(&mut self, size: i64, price: i64) {
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

    /// Closes the open volume at a price.
    pub(crate) fn close(&mut self, price: i64) {
        self.realised += self.unrealised(price);
        (self.open, self.entry) = (0, 0);
    }
}

/// A party's position in a market.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Position {
    /// The position with all trades so far.
    pub(crate) pending: Holding,
    /// The position as of the last settlement.
    pub(crate) settled: Holding,
    /// Value of the open volume at the last settlement plus the payments of trades since, in price times
    /// size. The next settlement pays the difference to its present value.
    pub(crate) basis: i128,
    /// Losses that the party could not pay, in the asset's smallest unit.
    pub(crate) loss: i128,
    /// Profits that the party did not get because others could not pay, in the asset's smallest unit.
    pub(crate) socialised: i128,
    pub(crate) distress: Distress,
    /// Whether a settlement ever changed the position.
    pub(crate) has_settled: bool,
    /// Hash of the transaction of the present block that changed the position.
    #[serde(skip)]
    pub(crate) changed: Option<String>,
    /// Whether the change of the present block is a settlement.
    #[serde(skip)]
    pub(crate) settles: bool,
}

impl Position {
    /// Takes a trade of the given size, negative when sold.
    pub(crate) fn trade(&mut self, size: i64, price: i64, transaction: &str) {
        self.basis += i128::from(size) * i128::from(price);
        self.pending.trade(size, price);
        self.changed = Some(transaction.to_owned());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_trip_leaves_no_basis_but_the_profit() {
        let mut position = Position::default();
        position.trade(10, 100, "");
        position.trade(5, 130, "");
        assert_eq!(quotient(position.pending.entry, 15), "110");
        position.trade(-20, 120, "");
        assert_eq!(position.pending, Holding { open: -5, entry: 600, realised: 150 });
        position.trade(5, 110, "");
        assert_eq!(position.pending, Holding { open: 0, entry: 0, realised: 200 });
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
