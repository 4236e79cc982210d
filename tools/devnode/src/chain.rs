//! The chain of one node: the caller makes blocks, clients broadcast transactions, and each block includes those
//! in the mempool. The [`Application`] in the same process checks, executes and stores, as it does for a CometBFT.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use mesh_demo::MIN_BLOCK_GAP_US;
use mesh_transaction::{Block, Candidate, Refusal, TxHash};
use parking_lot::{Mutex, MutexGuard};
use sha2::{Digest, Sha256};
use tokio::{
    task::spawn_blocking,
    time::{sleep, timeout},
};

use crate::{
    application::{Application, Delivered},
    broadcasts::Broadcasts,
    mempool::{BroadcastError, Mempool, Pending},
    settings::Settings,
    stored::StoredBlock,
};

/// A handle on the chain; clones share it.
#[derive(Clone, Debug)]
pub struct Chain {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    settings: Settings,
    application: Application,
    /// Locked before the application's state, never during a write to the disk.
    mempool: Mutex<Mempool>,
    /// A block that could not be written. It is written before any other. The lock is held while a block is made and
    /// written.
    made: Mutex<Option<Arc<StoredBlock>>>,
    catching_up: AtomicBool,
    broadcasts: Option<Broadcasts>,
}

impl Chain {
    /// Opens the chain file of the settings as [`Application::open`] does.
    pub async fn open(settings: Settings) -> io::Result<Self> {
        let broadcasts = settings.broadcasts.as_deref().map(Broadcasts::open).transpose()?;
        let (network, file, checks) = (settings.network.clone(), &settings.file, settings.checks);
        let shared = Shared {
            application: Application::open_for(network, file, checks, false).await?,
            mempool: Mutex::new(Mempool::new(settings.limits)),
            made: Mutex::new(None),
            catching_up: AtomicBool::new(false),
            broadcasts,
            settings,
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Makes the next block, which includes the transactions of the mempool, and returns it once it is synced to the
    /// disk. A block that could not be written is written by the next call.
    pub async fn next_block(&self) -> io::Result<Block> {
        let chain = self.clone();
        spawn_blocking(move || chain.next_block_now()).await.map_err(io::Error::other)?
    }

    fn next_block_now(&self) -> io::Result<Block> {
        let mut made = self.shared.made.lock();
        let stored = match made.take() {
            Some(stored) => stored,
            None => self.make()?,
        };
        match self.application().commit(|| self.mempool()) {
            Ok(mut mempool) => {
                let is_valid = |candidate: &Candidate| self.application().check(candidate, true).is_ok();
                mempool.settle(&stored.outcomes(), is_valid);
                Ok(stored.block())
            }
            Err(error) => {
                *made = Some(stored);
                Err(error)
            }
        }
    }

    fn make(&self) -> io::Result<Arc<StoredBlock>> {
        let waiting = self.mempool().reap();
        let block = self.following(&waiting);
        let txs = waiting.into_iter().map(|Pending { tx, candidate }| (tx, Ok(candidate)));
        Ok(self.application().finalize(&block, txs.collect())?.0)
    }

    /// The block after the newest one, with these transactions.
    fn following(&self, waiting: &[Pending]) -> Block {
        let newest = self.newest();
        // The rows of a block have times up to one microsecond for each transfer after its own.
        let newest_txs = self.application().newest_txs() as u64;
        let rows = Duration::from_micros(MIN_BLOCK_GAP_US.unsigned_abs() + newest_txs);
        let earliest = newest.as_ref().map_or(Duration::ZERO, |newest| newest.time + rows);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        // Whole microseconds, rounded up so that the distance stays.
        let time_us = now.max(earliest).as_nanos().div_ceil(1_000);
        let time = Duration::from_micros(u64::try_from(time_us).unwrap_or(u64::MAX));
        let (height, previous) = newest.map_or((0, String::new()), |newest| (newest.height, newest.hash));
        let hash = hash_of(self.application().chain_id(), height + 1, time, &previous, waiting);
        Block { height: height + 1, hash, time }
    }

    /// The newest block.
    pub fn newest(&self) -> Option<Block> {
        self.application().bounds().1
    }

    /// Sets whether the node reports that it is catching up; it then refuses transactions. For drills.
    pub fn catch_up(&self, catching_up: bool) {
        self.shared.catching_up.store(catching_up, Relaxed);
    }

    pub(crate) fn is_catching_up(&self) -> bool {
        self.shared.catching_up.load(Relaxed)
    }

    /// Checks a broadcast transaction and adds it to the mempool. Returns the hash, and the reason of a
    /// refusal.
    pub async fn broadcast(
        &self,
        method: &str,
        tx: Bytes,
    ) -> Result<(TxHash, Option<Refusal>), BroadcastError> {
        let hash = TxHash::of(&tx);
        if let Some(broadcasts) = &self.shared.broadcasts {
            broadcasts.note(method, &hash);
        }
        if self.is_catching_up() {
            return Err(BroadcastError::CatchingUp);
        }
        self.mempool().enter(hash, tx.len())?;
        // The hash is in the cache now, so the check must complete even if the caller is dropped.
        let delay = self.shared.settings.check_delay;
        if delay.is_zero() {
            return Ok((hash, self.take(hash, tx).err()));
        }
        let chain = self.clone();
        let judging = tokio::spawn(async move {
            sleep(delay).await;
            chain.take(hash, tx).err()
        });
        Ok((hash, judging.await.map_err(|_| BroadcastError::Stopping)?))
    }

    /// Checks a transaction whose hash is in the cache already.
    fn take(&self, hash: TxHash, tx: Bytes) -> Result<(), Refusal> {
        let read = self.application().read(&tx);
        let mut mempool = self.mempool();
        let checked = read.and_then(|candidate| {
            if mempool.has_filled_up(&hash, tx.len()) {
                return Ok(());
            }
            self.application().check(&candidate, false)?;
            mempool.keep(Pending { tx, candidate });
            Ok(())
        });
        if checked.is_err() {
            mempool.refuse(&hash);
        }
        checked
    }

    /// Broadcasts a transaction and waits until it is in a block.
    pub async fn broadcast_commit(
        &self,
        tx: Bytes,
    ) -> Result<(TxHash, Result<Delivered, Refusal>), BroadcastError> {
        let mut heights = self.application().heights();
        let begun = *heights.borrow_and_update();
        let (hash, refusal) = self.broadcast("broadcast_tx_commit", tx).await?;
        if let Some(refusal) = refusal {
            return Ok((hash, Err(refusal)));
        }
        let waiting = async {
            loop {
                if let Ok(Some(delivered)) = self.application().find(&hash).await
                    && delivered.height > begun
                {
                    return Some(delivered);
                }
                heights.changed().await.ok()?;
            }
        };
        match timeout(self.shared.settings.limits.commit_wait, waiting).await {
            Ok(Some(delivered)) => Ok((hash, Ok(delivered))),
            Ok(None) | Err(_) => Err(BroadcastError::TimedOut),
        }
    }

    /// Number and bytes of the transactions in the mempool, and the first `most` of them.
    pub fn waiting(&self, most: usize) -> (usize, usize, Vec<Bytes>) {
        let mempool = self.mempool();
        let (txs, bytes) = mempool.size();
        (txs, bytes, mempool.first(most))
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    pub(crate) fn application(&self) -> &Application {
        &self.shared.application
    }

    fn mempool(&self) -> MutexGuard<'_, Mempool> {
        self.shared.mempool.lock()
    }
}

/// The hash of a block: SHA-256 over what determines it. The results follow from these and the blocks before.
fn hash_of(chain_id: &str, height: u64, time: Duration, previous: &str, txs: &[Pending]) -> String {
    let begun = format!("{chain_id}/{height}/{}/{previous}", time.as_nanos());
    let hashes = txs.iter().map(|pending| pending.candidate.hash);
    let hasher = hashes.fold(Sha256::new_with_prefix(begun), |all, hash| all.chain_update(hash.bytes()));
    hex::encode(hasher.finalize())
}
