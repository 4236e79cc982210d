//! The mempool: transactions that wait for a block, and the cache of recent hashes. Order and texts of the
//! refusals are CometBFT's.

use std::collections::{HashMap, HashSet, VecDeque};

use bytes::Bytes;
use mesh_transaction::{Candidate, TxHash};

use crate::settings::Limits;

/// Why a transaction is rejected before its check. The texts are CometBFT's, because clients match them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BroadcastError {
    /// The node is catching up.
    #[error("endpoint is closed while node is catching up")]
    CatchingUp,
    /// The mempool is full.
    #[error("mempool is full: {0}")]
    Full(String),
    /// The transaction is too large.
    #[error("Tx too large. Max size is {most}, but got {actual}")]
    TooLarge {
        /// Limit of its bytes.
        most: usize,
        /// Its bytes.
        actual: usize,
    },
    /// Its hash is in the cache.
    #[error("tx already exists in cache")]
    Cached,
    /// A commit call timed out; the transaction may still be included in a block.
    #[error("timed out waiting for tx to be included in a block")]
    TimedOut,
    /// The node stops before the check is complete.
    #[error("node is being stopped")]
    Stopping,
}

/// A transaction that waits for a block.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    pub(crate) tx: Bytes,
    pub(crate) candidate: Candidate,
}

/// The waiting transactions in the order of their arrival, and the cache of recent hashes.
#[derive(Debug)]
pub(crate) struct Mempool {
    limits: Limits,
    waiting: VecDeque<Pending>,
    bytes: usize,
    cache: Cache,
}

impl Mempool {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { limits, waiting: VecDeque::new(), bytes: 0, cache: Cache::default() }
    }

    /// Admits a transaction to its check, and adds its hash to the cache.
    pub(crate) fn enter(&mut self, hash: TxHash, bytes: usize) -> Result<(), BroadcastError> {
        self.room_for(bytes)?;
        if bytes > self.limits.tx_bytes {
            return Err(BroadcastError::TooLarge { most: self.limits.tx_bytes, actual: bytes });
        }
        if self.cache.push(hash, self.limits.cache) { Ok(()) } else { Err(BroadcastError::Cached) }
    }

    /// Whether the mempool has filled up during a check. The transaction is then dropped, though its sender gets a
    /// success, as in CometBFT.
    pub(crate) fn has_filled_up(&mut self, hash: &TxHash, bytes: usize) -> bool {
        let is_full = self.room_for(bytes).is_err();
        if is_full {
            self.cache.remove(hash);
        }
        is_full
    }

    pub(crate) fn keep(&mut self, pending: Pending) {
        self.bytes += pending.tx.len();
        self.waiting.push_back(pending);
    }

    /// Removes the hash of a transaction that failed its check, so that it can be sent again.
    pub(crate) fn refuse(&mut self, hash: &TxHash) {
        if !self.limits.keep_refused {
            self.cache.remove(hash);
        }
    }

    /// The transactions for the next block; they stay in the mempool until [`settle`](Self::settle).
    pub(crate) fn reap(&self) -> Vec<Pending> {
        let mut bytes = 0;
        let fits = |pending: &&Pending| {
            bytes += pending.tx.len();
            bytes <= self.limits.block_bytes || bytes == pending.tx.len()
        };
        self.waiting.iter().take_while(fits).cloned().collect()
    }

    /// Removes the transactions of a block: those that succeeded stay in the cache, the others may be sent
    /// again. Of the rest, only those that are still valid remain.
    pub(crate) fn settle(
        &mut self,
        delivered: &HashMap<TxHash, bool>,
        mut is_valid: impl FnMut(&Candidate) -> bool,
    ) {
        for pending in std::mem::take(&mut self.waiting) {
            let hash = &pending.candidate.hash;
            let outcome = delivered.get(hash);
            if outcome.is_none() && is_valid(&pending.candidate) {
                self.waiting.push_back(pending);
                continue;
            }
            if outcome != Some(&true) {
                self.refuse(hash);
            }
            self.bytes -= pending.tx.len();
        }
    }

    pub(crate) fn size(&self) -> (usize, usize) {
        (self.waiting.len(), self.bytes)
    }

    pub(crate) fn first(&self, most: usize) -> Vec<Bytes> {
        self.waiting.iter().take(most).map(|pending| pending.tx.clone()).collect()
    }

    fn room_for(&self, bytes: usize) -> Result<(), BroadcastError> {
        let Limits { mempool_txs, mempool_bytes, .. } = self.limits;
        let (txs, present) = self.size();
        if txs < mempool_txs && bytes.saturating_add(present) <= mempool_bytes {
            return Ok(());
        }
        Err(BroadcastError::Full(format!(
            "number of txs {txs} (max: {mempool_txs}), total txs bytes {present} (max: {mempool_bytes})"
        )))
    }
}

/// A bounded set of hashes that evicts the oldest.
#[derive(Debug, Default)]
struct Cache {
    hashes: HashSet<TxHash>,
    order: VecDeque<TxHash>,
}

impl Cache {
    /// Adds a hash to a cache of `most`; returns whether it is new.
    fn push(&mut self, hash: TxHash, most: usize) -> bool {
        let is_new = self.hashes.insert(hash);
        if is_new {
            self.order.push_back(hash);
        }
        if self.order.len() > most
            && let Some(oldest) = self.order.pop_front()
        {
            self.hashes.remove(&oldest);
        }
        is_new
    }

    fn remove(&mut self, hash: &TxHash) {
        if self.hashes.remove(hash) {
            self.order.retain(|known| known != hash);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> Limits {
        Limits { mempool_txs: 3, mempool_bytes: 100, tx_bytes: 60, block_bytes: 50, ..Limits::default() }
    }

    fn pending(name: &'static str, bytes: usize) -> Pending {
        let tx = Bytes::from(name.as_bytes().repeat(bytes / name.len()));
        let candidate = Candidate { hash: TxHash::of(&tx), party: String::new(), proof: None };
        Pending { tx, candidate }
    }

    fn enter(mempool: &mut Mempool, pending: &Pending) -> Result<(), BroadcastError> {
        mempool.enter(pending.candidate.hash, pending.tx.len())
    }

    fn add(mempool: &mut Mempool, pending: &Pending) {
        enter(mempool, pending).unwrap();
        mempool.keep(pending.clone());
    }

    #[test]
    fn a_block_takes_what_fits_and_leaves_the_rest() {
        let mut mempool = Mempool::new(limits());
        let all = [pending("a", 30), pending("b", 20), pending("c", 1)];
        all.iter().for_each(|tx| add(&mut mempool, tx));
        let [a, b, c] = all.each_ref().map(|tx| tx.candidate.hash);
        assert_eq!(mempool.reap().iter().map(|tx| tx.candidate.hash).collect::<Vec<_>>(), [a, b]);
        mempool.settle(&HashMap::from([(a, true), (b, false)]), |candidate| candidate.hash == c);
        assert_eq!((mempool.size(), mempool.first(9)), ((1, 1), vec![all[2].tx.clone()]));
        assert_eq!(enter(&mut mempool, &all[0]), Err(BroadcastError::Cached));
        enter(&mut mempool, &all[1]).unwrap();
        // Transactions that are no longer valid are removed.
        mempool.settle(&HashMap::new(), |_| false);
        assert_eq!(mempool.size(), (0, 0));
        enter(&mut mempool, &all[2]).unwrap();
        // A transaction larger than a block's limit gets its own block.
        let mut mempool = Mempool::new(limits());
        add(&mut mempool, &pending("d", 60));
        add(&mut mempool, &pending("e", 1));
        assert_eq!(mempool.reap().len(), 1);
    }

    #[test]
    fn the_cache_is_bounded_and_evicts_the_oldest() {
        let mut cache = Cache::default();
        let [a, b, c] = ["a", "b", "c"].map(|name| TxHash::of(name.as_bytes()));
        assert!(cache.push(a, 2) && cache.push(b, 2) && !cache.push(a, 2) && cache.push(c, 2));
        assert!(cache.push(a, 2) && !cache.push(c, 2));
        cache.remove(&c);
        assert!(cache.push(c, 2) && !cache.push(a, 2));
    }
}
