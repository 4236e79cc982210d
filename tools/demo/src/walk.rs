//! The price of a market: a random walk with volatility clustering; and the trading activity of each hour.

use mesh_store::TimeUs;
use serde::{Deserialize, Serialize};

use crate::{block::Draft, catalogue::Template};

/// Trading activity at each hour of the day (UTC), in thousandths of the mean.
const HOURLY_ACTIVITY: [f64; 24] = [
    620.0, 540.0, 480.0, 450.0, 470.0, 560.0, 720.0, 930.0, 1_120.0, 1_200.0, 1_160.0, 1_090.0, 1_080.0,
    1_260.0, 1_520.0, 1_640.0, 1_560.0, 1_380.0, 1_210.0, 1_090.0, 1_010.0, 930.0, 810.0, 700.0,
];

/// A price that moves with every block.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct PriceWalk {
    /// The price in millionths of the market's smallest unit.
    micro: i64,
    /// Present volatility in thousandths of the market's mean.
    volatility: i64,
}

impl PriceWalk {
    pub(crate) fn new(start: i64) -> Self {
        PriceWalk { micro: start * 1_000_000, volatility: 1_000 }
    }

    /// The price in the market's smallest unit, at least 1.
    pub(crate) fn price(&self) -> i64 {
        (self.micro / 1_000_000).max(1)
    }

    /// Trading activity at a time of day and at the present volatility, in thousandths of the mean.
    pub(crate) fn activity(&self, time: TimeUs) -> f64 {
        let hour = time.0.rem_euclid(86_400_000_000) as f64 / 3_600_000_000.0;
        let (from, part) = (hour as usize % 24, hour % 1.0);
        let usual = HOURLY_ACTIVITY[from] * (1.0 - part) + HOURLY_ACTIVITY[(from + 1) % 24] * part;
        usual * (0.6 + 0.4 * self.volatility as f64 / 1_000.0)
    }

    /// Raises the volatility to at least four times the mean; it decays afterwards.
    pub(crate) fn shock(&mut self) {
        self.volatility = self.volatility.max(4_000);
    }

    /// Moves the price by the time since the last block, with a weak pull towards the first price.
    pub(crate) fn step(&mut self, draft: &mut Draft<'_>, template: &Template) {
        let days = draft.elapsed_us.clamp(0, 3_600_000_000) as f64 / 86_400_000_000.0;
        let volatility = self.volatility as f64 / 1_000.0;
        let deviation = template.daily_volatility / 10_000.0 * days.sqrt() * volatility;
        let (start, price) = (template.price as f64 * 1_000_000.0, self.micro as f64);
        let pull = (start / price - 1.0) * 0.2 * days;
        let moved = price * (1.0 + (deviation * draft.random.normal()).clamp(-0.2, 0.2) + pull);
        self.micro = moved.clamp(start / 5.0, start * 5.0) as i64;
        let usual_blocks = days * 4_320.0;
        if usual_blocks * 4.0 / 1_000.0 > draft.random.unit() {
            self.volatility = self.volatility * draft.random.between(15, 35) / 10;
        }
        let calming = (0.02 * usual_blocks).min(1.0);
        let next = self.volatility as f64 + (900.0 - self.volatility as f64) * calming;
        self.volatility = (next as i64).clamp(400, 5_000);
    }
}
