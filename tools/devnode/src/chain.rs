//! The chain of one node: the caller commits blocks, clients broadcast transactions, and each block includes
//! those in the mempool. The table's lock is never held across an await or a write to disk.

use std::{
    io,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use mesh_transaction::{Block, Candidate, Refusal, SpamRules, TxHash};
use parking_lot::{Mutex, MutexGuard};
use sha2::{Digest, Sha256};
use tokio::{
    sync::{Mutex as AsyncMutex, Semaphore, watch},
    task::spawn_blocking,
    time::{sleep, timeout},
};

use crate::{
    broadcasts::Broadcasts,
    file::{BlockFile, BlockReader, StoredBlock, StoredTx},
    mempool::{BroadcastError, Pending},
    open::OpenChain,
    settings::{Checks, Settings},
    table::Table,
};

/// A handle on the chain; clones share it.
#[derive(Clone, Debug)]
pub struct Chain {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    settings: Settings,
    table: Mutex<Table>,
    /// The async lock serialises commits.
    file: AsyncMutex<Arc<Mutex<BlockFile>>>,
    reader: Arc<BlockReader>,
    commits: Semaphore,
    heads: watch::Sender<u64>,
    broadcasts: Option<Broadcasts>,
}

/// Why a block was not committed.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// Its height is not above the newest one's.
    #[error("block {height} does not follow block {newest}")]
    NotNewer {
        /// The block's height.
        height: u64,
        /// The newest block's height.
        newest: u64,
    },
    /// The file could not be written; the transactions stay in the mempool.
    #[error("the block could not be kept")]
    File(#[from] io::Error),
}

/// The result of a transaction in a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// The height of the block.
    pub height: u64,
    /// The position in the block.
    pub index: u32,
    /// The transaction.
    pub tx: Bytes,
    /// `None` when it succeeded.
    pub refusal: Option<Refusal>,
}

/// A block of the window, with its transactions in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BlockWithTxs {
    pub(crate) block: Block,
    pub(crate) previous: Option<Block>,
    pub(crate) txs: Vec<Bytes>,
}

impl Chain {
    /// Opens or creates the file and continues after its blocks. `recent` are the newest blocks of the store,
    /// in rising order, possibly empty, with their `rules`; a file that contradicts them is renamed.
    pub async fn open(settings: Settings, recent: Vec<Block>, rules: SpamRules) -> io::Result<Self> {
        let opening = spawn_blocking(move || {
            let broadcasts = settings.broadcasts.as_deref().map(Broadcasts::open).transpose()?;
            Ok((OpenChain::open(&settings, &recent, rules)?, broadcasts, settings))
        });
        let (opened, broadcasts, settings) = opening.await.unwrap_or_else(|_| Err(interrupted()))?;
        let OpenChain { file, table } = opened;
        let heads = watch::Sender::new(table.newest().map_or(0, |block| block.height));
        let shared = Shared {
            reader: Arc::new(file.reader()?),
            table: Mutex::new(table),
            file: AsyncMutex::new(Arc::new(Mutex::new(file))),
            commits: Semaphore::new(settings.limits.commits),
            heads,
            broadcasts,
            settings,
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Commits a block, which includes the transactions of the mempool; `rules` hold from it on. Returns
    /// their number once the block is synced to the disk.
    pub async fn commit(&self, block: Block, rules: SpamRules) -> Result<usize, CommitError> {
        let file = self.shared.file.lock().await;
        let stored = self.deliver(&block, rules)?;
        let writing = {
            let (file, stored) = (Arc::clone(&file), stored.clone());
            spawn_blocking(move || file.lock().push(&stored))
        };
        let position = writing.await.unwrap_or_else(|_| Err(interrupted()))?;
        let delivered = stored.txs.len();
        self.table().committed(block, &stored, position);
        self.shared.heads.send_replace(stored.height);
        Ok(delivered)
    }

    /// Makes the block after the newest one and commits it with the same rules, for chains without a store.
    pub async fn next_block(&self) -> Result<Block, CommitError> {
        let (newest, rules) = {
            let table = self.table();
            (table.newest().cloned(), *table.spam.rules())
        };
        let (height, before, earliest) = match &newest {
            Some(block) => (block.height + 1, block.hash.as_str(), block.time + Duration::from_micros(1)),
            None => (1, "", Duration::ZERO),
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let hash = hex::encode(Sha256::digest(format!("{before}:{height}")));
        let block = Block { height, hash, time: now.max(earliest) };
        self.commit(block.clone(), rules).await?;
        Ok(block)
    }

    /// The newest block.
    pub fn newest(&self) -> Option<Block> {
        self.table().newest().cloned()
    }

    /// The height of the newest block as a watch channel; 0 before the first.
    pub fn heights(&self) -> watch::Receiver<u64> {
        self.shared.heads.subscribe()
    }

    /// Sets whether the node reports that it is catching up; it then refuses transactions. For drills.
    pub fn catch_up(&self, catching_up: bool) {
        self.table().catching_up = catching_up;
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
        {
            let mut table = self.table();
            if table.catching_up {
                return Err(BroadcastError::CatchingUp);
            }
            table.mempool.enter(hash, tx.len())?;
        }
        // The hash is in the cache now, so the check must complete even if the caller is dropped.
        let delay = self.shared.settings.check_delay;
        if delay.is_zero() {
            return Ok((hash, self.take(hash, tx)));
        }
        let chain = self.clone();
        let judging = tokio::spawn(async move {
            sleep(delay).await;
            chain.take(hash, tx)
        });
        Ok((hash, judging.await.map_err(|_| BroadcastError::Stopping)?))
    }

    /// Checks a transaction whose hash is in the cache already.
    fn take(&self, hash: TxHash, tx: Bytes) -> Option<Refusal> {
        let read = self.read(&tx);
        let mut table = self.table();
        match read.and_then(|candidate| table.admit(&candidate)) {
            Ok(()) => {
                if !table.mempool.keep(Pending { hash, tx }) {
                    table.spam.withdraw(&hash);
                }
                None
            }
            Err(refusal) => {
                table.mempool.refuse(&hash);
                Some(refusal)
            }
        }
    }

    /// Broadcasts a transaction and waits until it is in a block.
    pub async fn broadcast_commit(
        &self,
        tx: Bytes,
    ) -> Result<(TxHash, Result<Delivered, Refusal>), BroadcastError> {
        let limits = &self.shared.settings.limits;
        let _permit =
            self.shared.commits.try_acquire().map_err(|_| BroadcastError::Commits(limits.commits))?;
        let mut heights = self.heights();
        let begun = *heights.borrow_and_update();
        let (hash, refusal) = self.broadcast("broadcast_tx_commit", tx).await?;
        if let Some(refusal) = refusal {
            return Ok((hash, Err(refusal)));
        }
        let waiting = async {
            loop {
                if let Ok(Some(delivered)) = self.find(&hash).await
                    && delivered.height > begun
                {
                    return Some(delivered);
                }
                heights.changed().await.ok()?;
            }
        };
        match timeout(limits.commit_wait, waiting).await {
            Ok(Some(delivered)) => Ok((hash, Ok(delivered))),
            Ok(None) | Err(_) => Err(BroadcastError::TimedOut),
        }
    }

    /// Checks a transaction without a change of state.
    pub fn check(&self, tx: &Bytes) -> Result<TxHash, Refusal> {
        let candidate = self.read(tx)?;
        self.table().judge(&candidate)?;
        Ok(candidate.hash)
    }

    /// The result of a transaction that is in a block; `None` for others.
    pub async fn find(&self, hash: &TxHash) -> io::Result<Option<Delivered>> {
        let Some((position, index)) = self.table().position_of(hash) else { return Ok(None) };
        let stored = self.stored(position).await?;
        let tx = stored.txs.into_iter().nth(index as usize).ok_or_else(interrupted)?;
        let refusal = (tx.code != 0).then_some(Refusal { code: tx.code, reason: tx.reason });
        Ok(Some(Delivered { height: stored.height, index, tx: tx.tx, refusal }))
    }

    /// A block of the window with its transactions; `None` for other heights.
    pub(crate) async fn block_with_txs(&self, height: u64) -> io::Result<Option<BlockWithTxs>> {
        let Some((block, previous, position)) = self.table().block_at(height) else { return Ok(None) };
        let txs = match position {
            Some(position) => self.stored(position).await?.txs.into_iter().map(|tx| tx.tx).collect(),
            None => Vec::new(),
        };
        Ok(Some(BlockWithTxs { block, previous, txs }))
    }

    /// The oldest and the newest block of the window, and whether the node is catching up.
    pub(crate) fn status(&self) -> (Option<Block>, Option<Block>, bool) {
        let table = self.table();
        (table.oldest().cloned(), table.newest().cloned(), table.catching_up)
    }

    /// Number and bytes of the transactions in the mempool, and the first `most` of them.
    pub fn waiting(&self, most: usize) -> (usize, usize, Vec<Bytes>) {
        let table = self.table();
        let (txs, bytes) = table.mempool.size();
        (txs, bytes, table.mempool.first(most))
    }

    /// The settings of the node.
    pub fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    async fn stored(&self, position: u64) -> io::Result<StoredBlock> {
        let reader = Arc::clone(&self.shared.reader);
        spawn_blocking(move || reader.block(position)).await.unwrap_or_else(|_| Err(interrupted()))
    }

    fn read(&self, tx: &Bytes) -> Result<Candidate, Refusal> {
        match self.shared.settings.checks {
            Checks::All => Candidate::read(tx, &self.shared.settings.network),
            Checks::None => Candidate::trusted(tx),
        }
    }

    /// Begins a block and checks the transactions of the mempool again.
    fn deliver(&self, block: &Block, rules: SpamRules) -> Result<StoredBlock, CommitError> {
        let mut table = self.table();
        let newest = table.newest().map_or(0, |newest| newest.height);
        if block.height <= newest {
            return Err(CommitError::NotNewer { height: block.height, newest });
        }
        table.spam.begin(block.clone(), rules);
        let deliver = |pending: Pending| StoredTx::new(pending.tx, table.admission(&pending.hash));
        let txs = table.mempool.reap().into_iter().map(deliver).collect();
        Ok(StoredBlock::new(block, &rules, txs))
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.shared.table.lock()
    }
}

fn interrupted() -> io::Error {
    io::Error::other("the file of blocks could not be read")
}
