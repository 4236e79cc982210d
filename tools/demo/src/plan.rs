//! The plan of a demo network: a few numbers that determine everything else.

use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use mesh_store::TimeUs;
use serde::{Deserialize, Serialize};

use crate::{error::DemoError, random::Random};

/// The smallest time between two blocks in microseconds. The events of a block have its time plus their
/// position in microseconds, and the next block must be later than all of them.
pub const MIN_BLOCK_GAP_US: i64 = 10_000;

/// The chain id of every demo network.
pub const CHAIN_ID: &str = "demo-0001";

/// Everything that decides the history of a demo network. The same plan gives the same rows to the byte.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Plan {
    /// Source of every random choice.
    pub seed: u64,
    /// Number of blocks of the written history; live blocks follow after it.
    pub blocks: u64,
    /// Markets that trade. Three more are proposed and never open.
    pub markets: usize,
    /// Parties that deposit and trade, at least [`Plan::MIN_PARTIES`].
    pub parties: usize,
    /// Time of the first block in microseconds since 1970.
    pub start_us: i64,
    /// Mean distance of two blocks of the written history in milliseconds.
    pub block_spacing_ms: u64,
}

impl Default for Plan {
    fn default() -> Self {
        Plan {
            seed: 1,
            blocks: 5_000,
            markets: 6,
            parties: 40,
            start_us: 1_767_571_200_000_000,
            block_spacing_ms: 20_160,
        }
    }
}

impl Plan {
    /// The number of parties that have fixed roles in the demo network.
    pub const MIN_PARTIES: usize = 8;

    /// Moves the start so that the written history ends just before `now`.
    #[must_use]
    pub fn ending_at(mut self, now: SystemTime) -> Self {
        let length = Duration::from_millis(self.block_spacing_ms.saturating_mul(self.blocks));
        let now_us = Timestamp::try_from(now).map_or(0, Timestamp::as_microsecond);
        self.start_us = now_us - i64::try_from(length.as_micros()).unwrap_or(i64::MAX / 2);
        self
    }

    /// Checks that the numbers are in their ranges.
    ///
    /// # Errors
    /// [`DemoError::Plan`] when a number is out of its range.
    pub fn check(&self) -> Result<(), DemoError> {
        let spacings = 20..=86_400_000;
        let starts = 0..=7_258_118_400_000_000;
        let rules = [
            ((1..=100_000_000).contains(&self.blocks), "blocks must be between 1 and 100000000"),
            ((1..=1_000).contains(&self.markets), "markets must be between 1 and 1000"),
            ((Self::MIN_PARTIES..=10_000).contains(&self.parties), "parties must be between 8 and 10000"),
            (spacings.contains(&self.block_spacing_ms), "the block spacing must be between 20 ms and a day"),
            (starts.contains(&self.start_us), "the start must lie between the years 1970 and 2200"),
        ];
        match rules.iter().find(|(holds, _)| !holds) {
            Some((_, rule)) => Err(DemoError::Plan((*rule).to_owned())),
            None => Ok(()),
        }
    }

    /// Time of a block of the written history: evenly spread, with some jitter, strictly rising.
    #[must_use]
    pub fn block_time(&self, height: u64) -> TimeUs {
        let spacing_us = self.block_spacing_ms * 1_000;
        let jitter = match height {
            0 | 1 => 0,
            _ => Random::new(self.seed, height ^ 0x7469_6d65).below(spacing_us / 2),
        };
        let offset = height.saturating_sub(1) * spacing_us + jitter;
        TimeUs(self.start_us.saturating_add_unsigned(offset))
    }

    /// The height at `per_mille` thousandths of the history.
    pub(crate) fn height_at(&self, per_mille: u64) -> u64 {
        1 + self.blocks * per_mille / 1_000
    }

    /// One line that is different for different plans; part of the hash of the first block.
    pub(crate) fn fingerprint(&self) -> String {
        format!(
            "{CHAIN_ID}/{}/{}/{}/{}/{}/{}",
            self.seed, self.blocks, self.markets, self.parties, self.start_us, self.block_spacing_ms
        )
    }
}
