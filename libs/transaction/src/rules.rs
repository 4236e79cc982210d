//! The network parameters of the rules against spam, with their keys, ranges and defaults (data model,
//! section 4).

use std::{str::FromStr, time::Duration};

use crate::work::MAX_BITS;

/// A party is barred for this part of an epoch,
const EPOCH_PART: u32 = 48;
/// and at least so long.
const SHORTEST_BAR: Duration = Duration::from_secs(30);

/// The rules in force from one block to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpamRules {
    /// Zero bits that every transaction needs, 0 to 256.
    pub difficulty: u32,
    /// Blocks on which work counts, 5 to 500, the newest one among them.
    pub past_blocks: u32,
    /// Transactions of a party per block at that difficulty, at least 1.
    pub tx_per_block: u32,
    /// Whether more of them need more bits (otherwise there are no more).
    pub increasing: bool,
    /// How long a party is barred when it exceeds the quota.
    pub bar: Duration,
}

/// A stored parameter that is not in force, because it is out of its range; its default is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the network parameter {key} = {stored:?} is out of its range")]
pub struct OutOfRange {
    /// The key of the parameter.
    pub key: &'static str,
    /// What is stored.
    pub stored: String,
}

impl Default for SpamRules {
    fn default() -> Self {
        Self { difficulty: 15, past_blocks: 100, tx_per_block: 2, increasing: false, bar: SHORTEST_BAR }
    }
}

impl SpamRules {
    /// The keys of the parameters.
    pub const KEYS: [&str; 4] = [
        "spam.pow.difficulty", "spam.pow.numberOfPastBlocks", "spam.pow.numberOfTxPerBlock",
        "spam.pow.increaseDifficulty",
    ];

    /// The rules of stored parameters: absent ones and those out of range get their default. The duration of
    /// a bar is derived from the length of an epoch.
    pub fn stored(
        mut parameter: impl FnMut(&str) -> Option<String>,
        epoch: Option<Duration>,
    ) -> (Self, Vec<OutOfRange>) {
        let usual = Self::default();
        let mut wrong = Vec::new();
        let mut read = |key, lowest: u32, highest: u32, usual: u32| {
            let Some(stored) = parameter(key) else { return usual };
            match u32::from_str(stored.trim()) {
                Ok(value) if (lowest..=highest).contains(&value) => value,
                _ => {
                    wrong.push(OutOfRange { key, stored });
                    usual
                }
            }
        };
        let [difficulty, past_blocks, tx_per_block, increasing] = Self::KEYS;
        let rules = Self {
            difficulty: read(difficulty, 0, MAX_BITS, usual.difficulty),
            past_blocks: read(past_blocks, 5, 500, usual.past_blocks),
            tx_per_block: read(tx_per_block, 1, u32::MAX, usual.tx_per_block),
            increasing: read(increasing, 0, 1, 0) == 1,
            bar: epoch.map_or(SHORTEST_BAR, |epoch| (epoch / EPOCH_PART).max(SHORTEST_BAR)),
        };
        (rules, wrong)
    }

    /// The sum of bits that so many transactions of one party on one block need together: each further full
    /// quota takes one bit more.
    pub(crate) fn bits_needed(&self, transactions: u64) -> u64 {
        let quota = u64::from(self.tx_per_block.max(1));
        let (full, rest) = (transactions / quota, transactions % quota);
        let steps = full.saturating_mul(full.saturating_sub(1)) / 2;
        let at_base = transactions.saturating_mul(self.difficulty.into());
        at_base.saturating_add(steps.saturating_mul(quota)).saturating_add(full.saturating_mul(rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worked_figure_of_the_contract() {
        let rules = SpamRules { difficulty: 5, tx_per_block: 10, ..SpamRules::default() };
        assert_eq!(rules.bits_needed(33), 204);
        assert_eq!(rules.bits_needed(0), 0);
    }

    #[test]
    fn the_sum_is_that_of_the_single_steps() {
        for (difficulty, tx_per_block) in [(0, 1), (1, 1), (5, 10), (15, 2), (256, 7)] {
            let rules = SpamRules { difficulty, tx_per_block, ..SpamRules::default() };
            let mut sum = 0;
            for transaction in 0..100 {
                assert_eq!(rules.bits_needed(transaction), sum);
                sum += u64::from(difficulty) + transaction / u64::from(tx_per_block);
            }
        }
        let rules = SpamRules { difficulty: 256, tx_per_block: 1, ..SpamRules::default() };
        assert!(rules.bits_needed(u64::MAX) > rules.bits_needed(1000));
    }

    #[test]
    fn stored_parameters_count_inside_their_ranges() {
        let stored = |key: &str| {
            let value = match key {
                "spam.pow.difficulty" => "256",
                "spam.pow.numberOfPastBlocks" => "4",
                "spam.pow.numberOfTxPerBlock" => " 7 ",
                "spam.pow.increaseDifficulty" => "1",
                other => panic!("no such parameter: {other}"),
            };
            Some(value.to_owned())
        };
        let (rules, wrong) = SpamRules::stored(stored, Some(Duration::from_secs(4800)));
        let bar = Duration::from_secs(100);
        let expected =
            SpamRules { difficulty: 256, past_blocks: 100, tx_per_block: 7, increasing: true, bar };
        assert_eq!(rules, expected);
        assert_eq!(wrong, [OutOfRange { key: "spam.pow.numberOfPastBlocks", stored: "4".into() }]);
        let short = Some(Duration::from_secs(60));
        assert_eq!(SpamRules::stored(|_| None, short), (SpamRules::default(), Vec::new()));
    }
}
