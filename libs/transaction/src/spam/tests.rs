//! Each rule by itself, and all of them against a plain model under random traffic.

use rand::{Rng, SeedableRng, rngs::SmallRng};

use super::*;
use crate::{
    candidate::Proof,
    refusal::{SPAM, VALIDATION_FAILED},
};

const PREFIX: &str = "Net";

fn block(height: u64) -> Block {
    Block { height, hash: format!("{height:064x}"), time: Duration::from_secs(1000 + height) }
}

fn rules(difficulty: u32, tx_per_block: u32, increasing: bool) -> SpamRules {
    SpamRules { difficulty, past_blocks: 5, tx_per_block, increasing, bar: Duration::from_secs(30) }
}

fn at_height(height: u64, rules: SpamRules) -> SpamFilter {
    let mut spam = SpamFilter::new(PREFIX);
    for height in height.saturating_sub(9).max(1)..=height {
        spam.begin(block(height), rules);
    }
    spam
}

/// A transaction with exactly so many bits on a block, and none on the four after it.
fn exact(party: &str, tid: &str, height: u64, bits: u32) -> Candidate {
    let puzzle = |height| Puzzle::new(PREFIX, &block(height).hash, tid);
    let (own, others) = (puzzle(height), [height + 1, height + 2, height + 3, height + 4].map(puzzle));
    let good = |nonce: &u64| {
        own.bits(*nonce) == bits && others.iter().all(|other| bits == 0 || other.bits(*nonce) == 0)
    };
    candidate(party, tid, (0..).find(good).unwrap())
}

/// A transaction with exactly so many bits on the newest block.
fn on_newest(party: &str, tid: &str, height: u64, bits: u32) -> Candidate {
    let puzzle = Puzzle::new(PREFIX, &block(height).hash, tid);
    candidate(party, tid, (0..).find(|nonce| puzzle.bits(*nonce) == bits).unwrap())
}

fn candidate(party: &str, tid: &str, nonce: u64) -> Candidate {
    Candidate {
        hash: TxHash::of(format!("{party} {tid} {nonce}").as_bytes()),
        party: party.to_owned(),
        proof: Some(Proof { tid: tid.to_owned(), nonce }),
    }
}

fn refused(outcome: Result<Admission, Refusal>, code: u32, reason: &str) {
    let refusal = outcome.unwrap_err();
    assert_eq!(refusal.code, code, "{refusal}");
    assert!(refusal.reason.contains(reason), "{refusal}");
}

#[test]
fn work_counts_on_the_blocks_of_the_window_only() {
    let mut spam = at_height(10, rules(3, 100, false));
    for (height, is_taken) in [(5, false), (6, true), (10, true), (11, false)] {
        let tx = exact("a", &format!("t{height}"), height, 3);
        match is_taken {
            true => assert_eq!(spam.admit(&tx), Ok(Admission { height, bits: 3 })),
            false => refused(spam.admit(&tx), SPAM, "last 5 blocks"),
        }
    }
    // Too few bits, another prefix, no work at all.
    refused(spam.check(&exact("a", "small", 10, 2)), SPAM, "not good");
    let mut other = at_height(10, rules(3, 100, false));
    other.prefix.clear();
    refused(other.check(&exact("a", "t10", 10, 3)), SPAM, "not good");
    let without = Candidate { proof: None, ..exact("a", "t", 10, 3) };
    refused(spam.check(&without), SPAM, "missing");
    for tid in [String::new(), "t".repeat(MAX_TID_BYTES + 1)] {
        refused(spam.check(&candidate("a", &tid, 0)), SPAM, "1 to 256 bytes");
    }
    refused(SpamFilter::new(PREFIX).check(&exact("a", "t", 1, 3)), SPAM, "not good");
}

#[test]
fn a_tid_and_a_hash_are_used_once_inside_the_window() {
    let mut spam = at_height(10, rules(2, 100, false));
    let tx = exact("a", "t", 8, 2);
    spam.admit(&tx).unwrap();
    refused(spam.admit(&tx), VALIDATION_FAILED, "before");
    refused(spam.admit(&exact("b", "t", 10, 2)), SPAM, "proof of work tid already used");
    // The block of the first one leaves the window, and its quota with it.
    spam.begin(block(12), rules(2, 100, false));
    refused(spam.check(&exact("b", "t", 12, 2)), SPAM, "already used");
    assert!(spam.admission(&tx.hash).is_ok());
    spam.begin(block(13), rules(2, 100, false));
    refused(spam.admission(&tx.hash), SPAM, "last 5 blocks");
    spam.admit(&exact("b", "t", 13, 2)).unwrap();
    refused(spam.check(&tx), SPAM, "already used");
}

#[test]
fn one_more_than_the_quota_bars_the_party_for_a_time() {
    let mut spam = at_height(10, rules(2, 2, false));
    spam.admit(&exact("a", "1", 10, 2)).unwrap();
    spam.admit(&exact("a", "2", 10, 9)).unwrap();
    spam.admit(&exact("a", "3", 9, 2)).unwrap();
    spam.admit(&exact("b", "4", 10, 2)).unwrap();
    let more = exact("a", "5", 10, 9);
    // `check` changes nothing.
    refused(spam.check(&more), SPAM, "more than 2");
    spam.check(&exact("a", "6", 8, 2)).unwrap();
    refused(spam.admit(&more), SPAM, "more than 2");
    refused(spam.admit(&exact("a", "6", 8, 2)), SPAM, "barred for 30 more seconds");
    spam.admit(&exact("b", "7", 10, 2)).unwrap();
    // 30 s, by the time of the blocks.
    spam.begin(Block { time: block(10).time + Duration::from_secs(29), ..block(11) }, rules(2, 2, false));
    refused(spam.check(&exact("a", "8", 11, 2)), SPAM, "barred for 1 more");
    spam.begin(Block { time: block(10).time + Duration::from_secs(30), ..block(12) }, rules(2, 2, false));
    spam.admit(&exact("a", "8", 12, 2)).unwrap();
}

#[test]
fn what_is_restored_counts_as_if_it_had_been_admitted() {
    let mut first = at_height(10, rules(2, 1, false));
    let tx = exact("a", "t", 9, 2);
    let admission = first.admit(&tx).unwrap();
    let mut second = at_height(10, rules(2, 1, false));
    second.restore(&tx, admission);
    second.restore(&tx, admission);
    refused(second.check(&tx), VALIDATION_FAILED, "before");
    refused(second.check(&exact("b", "t", 10, 2)), SPAM, "already used");
    refused(second.check(&exact("a", "u", 9, 2)), SPAM, "more than 1");
    let gone = Admission { height: 5, bits: 2 };
    let other = exact("b", "v", 10, 2);
    second.restore(&other, gone);
    second.admit(&other).unwrap();
}

#[test]
fn work_is_judged_by_the_rules_of_its_block() {
    let mut spam = at_height(10, rules(4, 1, false));
    spam.begin(block(11), rules(6, 2, false));
    spam.admit(&exact("a", "old", 10, 4)).unwrap();
    refused(spam.check(&exact("a", "small", 11, 5)), SPAM, "not good");
    spam.admit(&exact("a", "1", 11, 6)).unwrap();
    spam.admit(&exact("a", "2", 11, 6)).unwrap();
    // A lower block is ignored.
    spam.begin(block(11), rules(0, 9, false));
    assert_eq!(spam.rules().difficulty, 6);
}

/// A simple independent implementation of the rules: lists that are searched linearly.
struct Model {
    rules: SpamRules,
    newest: u64,
    taken: Vec<(Candidate, Admission)>,
    bars: Vec<(String, Duration)>,
}

impl Model {
    fn admit(&mut self, tx: &Candidate) -> Result<Admission, u32> {
        let oldest = self.newest.saturating_sub(u64::from(self.rules.past_blocks) - 1).max(1);
        self.taken.retain(|(_, admission)| admission.height >= oldest);
        if self.taken.iter().any(|(other, _)| other.hash == tx.hash) {
            return Err(VALIDATION_FAILED);
        }
        let now = block(self.newest).time;
        let proof = tx.proof.as_ref().unwrap();
        let is_barred = self.bars.iter().any(|(party, until)| *party == tx.party && *until > now);
        let is_used = self.taken.iter().any(|(other, _)| other.proof.as_ref().unwrap().tid == proof.tid);
        if is_barred || is_used {
            return Err(SPAM);
        }
        let bits = |height| Puzzle::new(PREFIX, &block(height).hash, &proof.tid).bits(proof.nonce);
        let heights = (oldest..=self.newest).rev();
        let found =
            heights.map(|height| (height, bits(height))).find(|(_, bits)| *bits >= self.rules.difficulty);
        let (height, bits) = found.ok_or(SPAM)?;
        let mine = |(other, admission): &&(Candidate, Admission)| {
            other.party == tx.party && admission.height == height
        };
        let before: Vec<u64> =
            self.taken.iter().filter(mine).map(|(_, admission)| admission.bits.into()).collect();
        let quota = u64::from(self.rules.tx_per_block);
        let count = before.len() as u64 + 1;
        if count > quota {
            if !self.rules.increasing {
                self.bars.push((tx.party.clone(), now + self.rules.bar));
                return Err(SPAM);
            }
            let needed: u64 = (0..count).map(|at| u64::from(self.rules.difficulty) + at / quota).sum();
            if before.iter().sum::<u64>() + u64::from(bits) < needed {
                return Err(SPAM);
            }
        }
        let admission = Admission { height, bits };
        self.taken.push((tx.clone(), admission));
        Ok(admission)
    }
}

#[test]
fn random_traffic_is_judged_as_by_a_plain_model() {
    let (mut taken, mut barred) = (0, 0);
    for seed in 0..40 {
        let mut rng = SmallRng::seed_from_u64(seed);
        let rules = rules(rng.random_range(0..4), rng.random_range(1..4), rng.random());
        let mut spam = at_height(1, rules);
        let mut model = Model { rules, newest: 1, taken: Vec::new(), bars: Vec::new() };
        for _ in 0..300 {
            if rng.random_ratio(1, 10) {
                model.newest += rng.random_range(1..3);
                // Heights may be skipped, as when a block was missed: the model does not have them.
                for height in spam.window.back().unwrap().block.height + 1..=model.newest {
                    spam.begin(block(height), rules);
                }
            }
            let party = ["a", "b", "c"][rng.random_range(0..3)];
            let tx = candidate(party, &format!("t{}", rng.random_range(0..200)), rng.random_range(0..50));
            let judged = spam.check(&tx);
            let admitted = spam.admit(&tx);
            assert_eq!(judged, admitted);
            barred += usize::from(admitted.as_ref().is_err_and(|refusal| refusal.reason.contains("barred")));
            taken += usize::from(admitted.is_ok());
            assert_eq!(admitted.map_err(|refusal| refusal.code), model.admit(&tx), "seed {seed}: {tx:?}");
        }
        assert_eq!(spam.admitted.len(), spam.tids.len());
        let hashes: usize = spam.window.iter().map(|standing| standing.hashes.len()).sum();
        assert_eq!(hashes, spam.admitted.len());
        assert!(spam.window.len() <= 5);
    }
    assert!(taken > 1000 && barred > 1000, "{taken} taken, {barred} refused by bars");
}

#[test]
fn rules_that_come_late_hold_for_their_block_and_for_those_after_it() {
    let mut spam = at_height(20, rules(6, 100, false));
    let tx = on_newest("a", "t", 20, 4);
    refused(spam.check(&tx), SPAM, "not good");
    spam.amend_rules(19, rules(4, 100, false));
    refused(spam.check(&tx), SPAM, "not good");
    assert_eq!(spam.rules().difficulty, 6);
    spam.amend_rules(20, rules(4, 100, false));
    assert_eq!(spam.check(&tx).unwrap().height, 20);
    assert_eq!(spam.rules().difficulty, 4);
}

#[test]
fn a_bar_is_taken_over_from_another_state_and_ends_at_its_time() {
    let mut strict = at_height(20, rules(0, 1, false));
    let mut other = strict.clone();
    strict.admit(&candidate("a", "1", 0)).unwrap();
    refused(strict.admit(&candidate("a", "2", 0)), SPAM, "barred");
    other.merge_bans(&strict);
    refused(other.check(&candidate("a", "3", 0)), SPAM, "barred for 30");
    other.check(&candidate("b", "3", 0)).unwrap();
    other.begin(Block { time: Duration::from_secs(1050), ..block(21) }, rules(0, 1, false));
    other.check(&candidate("a", "3", 0)).unwrap();
}
