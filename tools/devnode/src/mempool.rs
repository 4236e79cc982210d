//! Transactions that wait for a block, and the hashes of those seen: what CometBFT calls mempool and cache,
//! with its order of refusals and its words.

use std::collections::{BTreeMap, HashMap, VecDeque};

use bytes::Bytes;
use mesh_transaction::TxHash;

use crate::settings::Limits;

/// Why a transaction is turned away before it is checked. The words are CometBFT's: clients go by them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BroadcastError {
    /// The node is behind the others.
    #[error("endpoint is closed while node is catching up")]
    CatchingUp,
    /// No room for one more.
    #[error(
        "mempool is full: number of txs {txs} (max: {most_txs}), total txs bytes {bytes} (max: {most_bytes})"
    )]
    Full {
        /// Transactions that wait.
        txs: usize,
        /// Most of them.
        most_txs: usize,
        /// Their bytes.
        bytes: usize,
        /// Most of those.
        most_bytes: usize,
    },
    /// More bytes than a transaction may have.
    #[error("Tx too large. Max size is {most}, but got {actual}")]
    TooLarge {
        /// Most bytes.
        most: usize,
        /// Bytes that it has.
        actual: usize,
    },
    /// It was seen before.
    #[error("tx already exists in cache")]
    Cached,
    /// Too many commit calls wait.
    #[error("max_subscription_clients {0} reached")]
    Commits(usize),
    /// A commit call waited in vain; the transaction may still come into a block.
    #[error("timed out waiting for tx to be included in a block")]
    TimedOut,
    /// The node goes away before it has judged.
    #[error("node is being stopped")]
    Stopping,
}

/// A transaction that waits for a block.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    pub(crate) hash: TxHash,
    pub(crate) tx: Bytes,
}

/// The transactions that wait, in the order in which they were taken, and the hashes seen.
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

    /// Lets a transaction in to be checked, and remembers that it was seen.
    pub(crate) fn enter(&mut self, hash: TxHash, bytes: usize) -> Result<(), BroadcastError> {
        self.room_for(bytes)?;
        if bytes > self.limits.tx_bytes {
            return Err(BroadcastError::TooLarge { most: self.limits.tx_bytes, actual: bytes });
        }
        if self.cache.push(hash) { Ok(()) } else { Err(BroadcastError::Cached) }
    }

    /// Keeps a transaction that passed its check. Others may have come meanwhile: without room it is
    /// forgotten, though its sender hears that it passed, as CometBFT has it.
    pub(crate) fn keep(&mut self, pending: Pending) -> bool {
        if self.room_for(pending.tx.len()).is_err() {
            self.cache.remove(&pending.hash);
            return false;
        }
        self.bytes += pending.tx.len();
        self.waiting.push_back(pending);
        true
    }

    /// Forgets a transaction that did not pass its check, so that it can be sent again.
    pub(crate) fn refuse(&mut self, hash: &TxHash) {
        if !self.limits.keep_refused {
            self.cache.remove(hash);
        }
    }

    /// The transactions for the next block, which wait on until [`settle`](Self::settle).
    pub(crate) fn reap(&self) -> Vec<Pending> {
        let mut bytes = 0;
        let fits = |pending: &&Pending| {
            bytes += pending.tx.len();
            bytes <= self.limits.block_bytes || bytes == pending.tx.len()
        };
        self.waiting.iter().take_while(fits).cloned().collect()
    }

    /// A block holds these: those that succeeded stay known, the others may be sent again. Of those that wait
    /// on, only what still stands remains.
    pub(crate) fn settle(
        &mut self,
        delivered: &HashMap<TxHash, bool>,
        mut stands: impl FnMut(&TxHash) -> bool,
    ) {
        let waiting = std::mem::take(&mut self.waiting);
        for pending in waiting {
            match delivered.get(&pending.hash) {
                None if stands(&pending.hash) => {
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

    /// How many wait, and their bytes.
    pub(crate) fn size(&self) -> (usize, usize) {
        (self.waiting.len(), self.bytes)
    }

    /// The first that wait.
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

/// A bounded set that forgets what was longest not seen.
#[derive(Debug)]
struct Cache {
    most: usize,
    clock: u64,
    seen: HashMap<TxHash, u64>,
    order: BTreeMap<u64, TxHash>,
}

impl Cache {
    fn new(most: usize) -> Self {
        Self { most, clock: 0, seen: HashMap::new(), order: BTreeMap::new() }
    }

    /// Adds a hash, or marks it as seen just now; tells whether it is new.
    fn push(&mut self, hash: TxHash) -> bool {
        self.clock += 1;
        let before = self.seen.insert(hash, self.clock);
        if let Some(before) = before {
            self.order.remove(&before);
        }
        self.order.insert(self.clock, hash);
        if self.seen.len() > self.most
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.seen.remove(&oldest);
        }
        before.is_none()
    }

    fn remove(&mut self, hash: &TxHash) {
        if let Some(at) = self.seen.remove(hash) {
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
        // What no longer stands goes.
        mempool.settle(&HashMap::new(), |_| false);
        assert_eq!(mempool.size(), (0, 0));
        mempool.enter(all[2].hash, 1).unwrap();
        // A transaction larger than a block has one to itself.
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
        assert_eq!((cache.seen.len(), cache.order.len()), (2, 2));
    }
}
