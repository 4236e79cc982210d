//! The rules against spam (contract 5.5) as a state machine: its inputs are blocks and transactions, and each
//! transaction is admitted or refused. It reads no clock; time is that of the blocks.
//!
//! Its memory is limited by the window of blocks: the state of a block is dropped when it leaves the window.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    time::Duration,
};

use crate::{candidate::Candidate, encoding::TxHash, refusal::Refusal, rules::SpamRules, work::Puzzle};

/// Longest `tid`, bytes. Each is stored until its block leaves the window.
const MAX_TID_BYTES: usize = 256;

/// A block, as work is done on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its height.
    pub height: u64,
    /// Its hash, 64 lower-case hex digits.
    pub hash: String,
    /// Its time, since 1970.
    pub time: Duration,
}

/// The proof of work of an admitted transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admission {
    /// The height of the block that the work was done on.
    pub height: u64,
    /// How many zero bits the work has on it.
    pub bits: u32,
}

/// The state: the blocks of the window with the admitted transactions of each.
#[derive(Clone, Debug)]
pub struct SpamFilter {
    prefix: String,
    rules: SpamRules,
    now: Duration,
    /// Oldest first, in rising height.
    window: VecDeque<WindowBlock>,
    admitted: HashMap<TxHash, Admitted>,
    tids: HashSet<String>,
    /// Parties and when they may send again.
    bars: HashMap<String, Duration>,
}

/// A block of the window, with the rules in force at it, which apply to work on it.
#[derive(Clone, Debug)]
struct WindowBlock {
    block: Block,
    rules: SpamRules,
    parties: HashMap<String, Usage>,
    hashes: HashSet<TxHash>,
}

/// What a party has sent with work on one block.
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    transactions: u64,
    bits: u64,
}

#[derive(Clone, Debug)]
struct Admitted {
    tid: String,
    admission: Admission,
}

/// Why a transaction is refused, and whether its party is to be barred for it.
struct Refused {
    refusal: Refusal,
    bars: Option<Duration>,
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Self { refusal, bars: None }
    }
}

impl SpamFilter {
    /// A filter without blocks, which refuses everything. The prefix is that of the network's preimages.
    #[must_use]
    pub fn new(prefix: impl Into<String>) -> Self {
        Self {
            prefix: prefix.into(),
            rules: SpamRules::default(),
            now: Duration::ZERO,
            window: VecDeque::new(),
            admitted: HashMap::new(),
            tids: HashSet::new(),
            bars: HashMap::new(),
        }
    }

    /// Adds a block with the rules in force from it on. Ignored unless it is higher than the blocks before.
    pub fn begin(&mut self, block: Block, rules: SpamRules) {
        if self.window.back().is_some_and(|newest| block.height <= newest.block.height) {
            return;
        }
        let newest = block.height;
        self.now = self.now.max(block.time);
        self.rules = rules;
        let entry = WindowBlock { block, rules, parties: HashMap::new(), hashes: HashSet::new() };
        self.window.push_back(entry);
        let past = u64::from(rules.past_blocks);
        while self.window.front().is_some_and(|oldest| newest - oldest.block.height >= past) {
            let Some(oldest) = self.window.pop_front() else { break };
            for hash in &oldest.hashes {
                if let Some(taken) = self.admitted.remove(hash) {
                    self.tids.remove(&taken.tid);
                }
            }
        }
        self.bars.retain(|_, until| *until > self.now);
    }

    /// Replaces the rules of a block that was added before. They also apply to later blocks when it is the
    /// newest.
    pub fn amend_rules(&mut self, height: u64, rules: SpamRules) {
        if let Some(entry) = entry(&mut self.window, height) {
            entry.rules = rules;
        }
        if self.window.back().is_none_or(|newest| newest.block.height <= height) {
            self.rules = rules;
        }
    }

    /// Adds the bars of another state.
    pub fn merge_bans(&mut self, other: &Self) {
        for (party, until) in &other.bars {
            let own = self.bars.entry(party.clone()).or_default();
            *own = (*own).max(*until);
        }
    }

    /// The result that [`admit`](Self::admit) would have, without changing anything.
    ///
    /// # Errors
    /// The refusal of the network.
    pub fn check(&self, candidate: &Candidate) -> Result<Admission, Refusal> {
        self.find(candidate).map_err(|refused| refused.refusal)
    }

    /// Admits a transaction or refuses it. Its party is barred when it exceeds a quota that more work does
    /// not extend.
    ///
    /// # Errors
    /// The refusal of the network.
    pub fn admit(&mut self, candidate: &Candidate) -> Result<Admission, Refusal> {
        match self.find(candidate) {
            Ok(admission) => {
                self.restore(candidate, admission);
                Ok(admission)
            }
            Err(Refused { refusal, bars }) => {
                if let Some(bar) = bars {
                    self.bars.insert(candidate.party.clone(), self.now.saturating_add(bar));
                }
                Err(refusal)
            }
        }
    }

    /// Restores an admission after a restart; ignored when its block is not in the window (any more).
    pub fn restore(&mut self, candidate: &Candidate, admission: Admission) {
        let Some(proof) = &candidate.proof else { return };
        let Some(entry) = entry(&mut self.window, admission.height) else { return };
        if !entry.hashes.insert(candidate.hash) {
            return;
        }
        let used = entry.parties.entry(candidate.party.clone()).or_default();
        used.transactions += 1;
        used.bits += u64::from(admission.bits);
        self.tids.insert(proof.tid.clone());
        self.admitted.insert(candidate.hash, Admitted { tid: proof.tid.clone(), admission });
    }

    /// The admission of a transaction that still counts.
    ///
    /// # Errors
    /// When the block of its proof of work is no longer in the window.
    pub fn admission(&self, hash: &TxHash) -> Result<Admission, Refusal> {
        self.admitted.get(hash).map(|taken| taken.admission).ok_or_else(|| self.off_window())
    }

    /// The rules since the newest block.
    #[must_use]
    pub fn rules(&self) -> &SpamRules {
        &self.rules
    }

    fn find(&self, candidate: &Candidate) -> Result<Admission, Refused> {
        if self.admitted.contains_key(&candidate.hash) {
            return Err(Refusal::replay().into());
        }
        if let Some(until) = self.bars.get(&candidate.party) {
            let left = until.saturating_sub(self.now).as_secs_f64().ceil();
            return Err(Refusal::spam(format!("party is barred for {left} more seconds")).into());
        }
        let proof = candidate.proof.as_ref().ok_or_else(|| Refusal::spam("proof of work is missing"))?;
        if proof.tid.is_empty() || proof.tid.len() > MAX_TID_BYTES {
            return Err(
                Refusal::spam(format!("proof of work tid must have 1 to {MAX_TID_BYTES} bytes")).into()
            );
        }
        if self.tids.contains(&proof.tid) {
            return Err(Refusal::spam("proof of work tid already used").into());
        }
        // The newest block first: most work is done on it.
        let found = self.window.iter().rev().find_map(|entry| {
            let bits = Puzzle::new(&self.prefix, &entry.block.hash, &proof.tid).bits(proof.nonce);
            (bits >= entry.rules.difficulty).then_some((entry, bits))
        });
        let (entry, bits) = found.ok_or_else(|| self.off_window())?;
        self.within_quota(entry, &candidate.party, bits)?;
        Ok(Admission { height: entry.block.height, bits })
    }

    fn within_quota(&self, entry: &WindowBlock, party: &str, bits: u32) -> Result<(), Refused> {
        let rules = &entry.rules;
        let used = entry.parties.get(party).copied().unwrap_or_default();
        let transactions = used.transactions + 1;
        if transactions <= u64::from(rules.tx_per_block) {
            return Ok(());
        }
        if !rules.increasing {
            let reason =
                format!("more than {} transactions for one block, party is barred", rules.tx_per_block);
            return Err(Refused { refusal: Refusal::spam(reason), bars: Some(self.rules.bar) });
        }
        let (needed, shown) = (rules.bits_needed(transactions), used.bits + u64::from(bits));
        match shown >= needed {
            true => Ok(()),
            false => Err(Refusal::spam(format!(
                "proof of work is too small for {transactions} transactions for one block: {shown} of {needed} bits"
            ))
            .into()),
        }
    }

    fn off_window(&self) -> Refusal {
        Refusal::spam(format!(
            "proof of work is not good for any of the last {} blocks",
            self.rules.past_blocks
        ))
    }
}

fn entry(window: &mut VecDeque<WindowBlock>, height: u64) -> Option<&mut WindowBlock> {
    let at = window.binary_search_by_key(&height, |entry| entry.block.height).ok()?;
    window.get_mut(at)
}

#[cfg(test)]
mod tests;
