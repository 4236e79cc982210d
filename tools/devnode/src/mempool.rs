//! The mempool: transactions that wait for a block, and the cache of recent hashes. Order and texts of the
//! refusals are CometBFT's.

use std::collections::{BTreeMap, HashMap, VecDeque};

use bytes::Bytes;
use mesh_transaction::TxHash;

use crate::settings::Limits;

/// Why a transaction is rejected before its check. The texts are CometBFT's, because clients match them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BroadcastError {
    /// The node is catching up.
    #[error("endpoint is closed while node is catching up")]
    CatchingUp,
    /// The mempool is full.
    #[error(
        "mempool is full: number of txs {txs} (max: {most_txs}), total txs bytes {bytes} (max: {most_bytes})"
    )]
    Full {
        /// Number of transactions that wait.
        txs: usize,
        /// Limit of their number.
        most_txs: usize,
        /// Their bytes.
        bytes: usize,
        /// Limit of their bytes.
        most_bytes: usize,
    },
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
    /// Too many commit calls wait.
    #[error("max_subscription_clients {0} reached")]
    Commits(usize),
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
    pub(crate) hash: TxHash,
    pub(crate) tx: Bytes,
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
        Self { limits, waiting: VecDeque::new(), bytes: 0, cache: Cache::new(limits.cache) }
    }

    /// Admits a transaction to its check, and adds its hash to the cache.
    pub(crate) fn enter(&mut self, hash: TxHash, bytes: usize) -> Result<(), BroadcastError> {
        self.room_for(bytes)?;
        if bytes > self.limits.tx_bytes {
            return Err(BroadcastError::TooLarge { most: self.limits.tx_bytes, actual: bytes });
        }
        if self.cache.push(hash) { Ok(()) } else { Err(BroadcastError::Cached) }
    }

    /// Adds a transaction that passed its check. When the mempool has filled up meanwhile, it is dropped and
    /// false returned, though its sender gets a success, as in CometBFT.
    pub(crate) fn keep(&mut self, pending: Pending) -> bool {
        if self.room_for(pending.tx.len()).is_err() {
            self.cache.remove(&pending.hash);
            return false;
        }
        self.bytes += pending.tx.len();
        self.waiting.push_back(pending);
        true
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
        mut is_valid: impl FnMut(&TxHash) -> bool,
    ) {
        let waiting = std::mem::take(&mut self.waiting);
        for pending in waiting {
            match delivered.get(&pending.hash) {
                None if is_valid(&pending.hash) => {
                    self.waiting.push_back(pending);
                    continue;
                }
                Some(true) => {
                    self.cache.push(pending.hash);
                }
                None | Some(false) => self.refuse(&pending.hash),
            }
            self.bytes -= pending.tx.len();
        }
    }

    /// Number and bytes of the waiting transactions.
    pub(crate) fn size(&self) -> (usize, usize) {
        (self.waiting.len(), self.bytes)
    }

    /// The first `most` waiting transactions.
    pub(crate) fn first(&self, most: usize) -> Vec<Bytes> {
        self.waiting.iter().take(most).map(|pending| pending.tx.clone()).collect()
    }

    fn room_for(&self, bytes: usize) -> Result<(), BroadcastError> {
        let Limits { mempool_txs: most_txs, mempool_bytes: most_bytes, .. } = self.limits;
        if self.waiting.len() >= most_txs || bytes.saturating_add(self.bytes) > most_bytes {
            return Err(BroadcastError::Full {
                txs: self.waiting.len(),
                most_txs,
                bytes: self.bytes,
                most_bytes,
            });
        }
        Ok(())
    }
}

/// A bounded set of hashes that evicts the least recently used.
#[derive(Debug)]
struct Cache {
    most: usize,
    clock: u64,
    last_used: HashMap<TxHash, u64>,
    order: BTreeMap<u64, TxHash>,
}

impl Cache {
    fn new(most: usize) -> Self {
        Self { most, clock: 0, last_used: HashMap::new(), order: BTreeMap::new() }
    }

    /// Adds a hash or marks it as used now; returns whether it is new.
    fn push(&mut self, hash: TxHash) -> bool {
        self.clock += 1;
        let before = self.last_used.insert(hash, self.clock);
        if let Some(before) = before {
            self.order.remove(&before);
        }
        self.order.insert(self.clock, hash);
        if self.last_used.len() > self.most
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.last_used.remove(&oldest);
        }
        before.is_none()
    }

    fn remove(&mut self, hash: &TxHash) {
        if let Some(at) = self.last_used.remove(hash) {
            self.order.remove(&at);
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
        Pending { hash: TxHash::of(&tx), tx }
    }

    fn add(mempool: &mut Mempool, pending: &Pending) -> Result<(), BroadcastError> {
        mempool.enter(pending.hash, pending.tx.len())?;
        assert!(mempool.keep(pending.clone()));
        Ok(())
    }

    #[test]
    fn what_has_no_room_is_too_large_or_was_seen_is_turned_away_in_this_order() {
        let mut mempool = Mempool::new(limits());
        let first = pending("a", 50);
        add(&mut mempool, &first).unwrap();
        // At exactly its bound the pool still has room, so the cache answers.
        assert_eq!(add(&mut mempool, &first), Err(BroadcastError::Cached));
        assert_eq!(
            add(&mut mempool, &pending("b", 61)).unwrap_err().to_string(),
            "mempool is full: number of txs 1 (max: 3), total txs bytes 50 (max: 100)"
        );
        let mut empty = Mempool::new(limits());
        assert_eq!(
            add(&mut empty, &pending("b", 61)).unwrap_err().to_string(),
            "Tx too large. Max size is 60, but got 61"
        );
        for name in ["b", "c"] {
            add(&mut mempool, &pending(name, 10)).unwrap();
        }
        let full = BroadcastError::Full { txs: 3, most_txs: 3, bytes: 70, most_bytes: 100 };
        assert_eq!(add(&mut mempool, &pending("b", 10)), Err(full));
    }

    #[test]
    fn refused_transactions_can_be_sent_again_unless_they_are_kept() {
        let tx = pending("a", 10);
        for keep_refused in [false, true] {
            let mut mempool = Mempool::new(Limits { keep_refused, ..limits() });
            mempool.enter(tx.hash, 10).unwrap();
            assert_eq!(mempool.enter(tx.hash, 10), Err(BroadcastError::Cached));
            mempool.refuse(&tx.hash);
            assert_eq!(mempool.enter(tx.hash, 10).is_err(), keep_refused);
        }
    }

    #[test]
    fn a_block_takes_what_fits_and_leaves_the_rest() {
        let mut mempool = Mempool::new(limits());
        let all = [pending("a", 30), pending("b", 20), pending("c", 1)];
        all.iter().for_each(|tx| add(&mut mempool, tx).unwrap());
        let reaped = mempool.reap();
        assert_eq!(reaped.iter().map(|tx| tx.hash).collect::<Vec<_>>(), [all[0].hash, all[1].hash]);
        let delivered = HashMap::from([(all[0].hash, true), (all[1].hash, false)]);
        mempool.settle(&delivered, |_| true);
        assert_eq!(mempool.size(), (1, 1));
        assert_eq!(mempool.first(9), [all[2].tx.clone()]);
        assert_eq!(mempool.enter(all[0].hash, 30), Err(BroadcastError::Cached));
        mempool.enter(all[1].hash, 20).unwrap();
        // Transactions that are no longer valid are removed.
        mempool.settle(&HashMap::new(), |_| false);
        assert_eq!(mempool.size(), (0, 0));
        mempool.enter(all[2].hash, 1).unwrap();
        // A transaction larger than a block's limit gets a block of its own.
        let mut mempool = Mempool::new(limits());
        add(&mut mempool, &pending("d", 60)).unwrap();
        add(&mut mempool, &pending("e", 1)).unwrap();
        assert_eq!(mempool.reap().len(), 1);
    }

    #[test]
    fn the_cache_is_bounded_and_forgets_the_longest_unseen() {
        let mut cache = Cache::new(2);
        let [a, b, c] = ["a", "b", "c"].map(|name| TxHash::of(name.as_bytes()));
        assert!(cache.push(a) && cache.push(b) && !cache.push(a) && cache.push(c));
        assert!(!cache.push(a));
        assert!(cache.push(b), "it was forgotten");
        assert_eq!((cache.last_used.len(), cache.order.len()), (2, 2));
    }
}
