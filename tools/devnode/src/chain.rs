//! The chain of one node: the caller makes blocks, clients broadcast transactions, and each block includes those
//! in the mempool. The table's lock is never held across an await or a write to disk.

use std::{
    io,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use mesh_demo::MIN_BLOCK_GAP_US;
use mesh_transaction::{Block, Candidate, Refusal, TxHash};
use parking_lot::{Mutex, MutexGuard};
use sha2::{Digest, Sha256};
use tendermint_proto::v0_38::abci::ExecTxResult;
use tokio::{
    sync::{Semaphore, watch},
    task::spawn_blocking,
    time::{sleep, timeout},
};

use crate::{
    broadcasts::Broadcasts,
    execution::Execution,
    file::{BlockFile, BlockReader},
    mempool::{BroadcastError, Mempool, Pending},
    open::OpenChain,
    settings::{Checks, Settings},
    stored::StoredBlock,
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
    /// Its lock is held while a block is made and written.
    writer: Mutex<Writer>,
    reader: Arc<BlockReader>,
    commits: Semaphore,
    heads: watch::Sender<u64>,
    broadcasts: Option<Broadcasts>,
}

/// What makes and writes the next block.
#[derive(Debug)]
struct Writer {
    file: BlockFile,
    execution: Execution,
    /// A block that could not be written. It is written before any other, because its effects have happened.
    made: Option<StoredBlock>,
}

/// The result of a transaction in a block.
#[derive(Clone, Debug, PartialEq)]
pub struct Delivered {
    /// The height of the block.
    pub height: u64,
    /// The position in the block.
    pub index: u32,
    /// The transaction.
    pub tx: Bytes,
    /// The result of its execution.
    pub result: ExecTxResult,
}

impl Chain {
    /// Opens the chain file of the settings, which [`ChainFile::create`](crate::ChainFile::create) made, and continues
    /// after its blocks. The file names the chain.
    pub async fn open(mut settings: Settings) -> io::Result<Self> {
        let opening = spawn_blocking(move || {
            let broadcasts = settings.broadcasts.as_deref().map(Broadcasts::open).transpose()?;
            let chain = OpenChain::open(&settings.file, &settings.network.pow_prefix, |_| {})?;
            settings.network.chain_id.clone_from(&chain.base.chain_id);
            Ok((chain, broadcasts, settings))
        });
        let (opened, broadcasts, settings) = opening.await.unwrap_or_else(|_| Err(interrupted()))?;
        let OpenChain { file, blocks, positions, spam, execution, .. } = opened;
        let heads = watch::Sender::new(blocks.head().0);
        let mempool = Mempool::new(settings.limits);
        let table = Table { mempool, spam, blocks, positions, checks: settings.checks, catching_up: false };
        let shared = Shared {
            reader: Arc::new(file.reader()?),
            table: Mutex::new(table),
            writer: Mutex::new(Writer { file, execution, made: None }),
            commits: Semaphore::new(settings.limits.commits),
            heads,
            broadcasts,
            settings,
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Makes the next block, which includes the transactions of the mempool, and returns it once it is synced to the
    /// disk. A block that could not be written is written by the next call.
    pub async fn next_block(&self) -> io::Result<Block> {
        let chain = self.clone();
        spawn_blocking(move || chain.next_block_now()).await.unwrap_or_else(|_| Err(interrupted()))
    }

    fn next_block_now(&self) -> io::Result<Block> {
        let mut writer = self.shared.writer.lock();
        let stored = match writer.made.take() {
            Some(stored) => stored,
            None => self.make(&mut writer.execution)?,
        };
        let frame = match writer.file.push(&stored) {
            Ok(frame) => frame,
            Err(error) => {
                writer.made = Some(stored);
                return Err(error);
            }
        };
        self.table().committed(&stored, frame);
        self.shared.heads.send_replace(stored.height);
        Ok(stored.block())
    }

    /// Makes the block after the newest one: checks the transactions of the mempool again, and executes them.
    fn make(&self, execution: &mut Execution) -> io::Result<StoredBlock> {
        let mut table = self.table();
        let (height, previous_hash) = table.blocks.head();
        let (height, previous_hash) = (height + 1, previous_hash.to_owned());
        // The rows of a block have times up to one microsecond for each transfer after its own.
        let rows = Duration::from_micros(MIN_BLOCK_GAP_US.unsigned_abs() + table.blocks.newest_txs() as u64);
        let earliest = table.blocks.newest().map_or(Duration::ZERO, |newest| newest.time + rows);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        // Whole microseconds, rounded up so that the distance stays.
        let time_us = now.max(earliest).as_nanos().div_ceil(1_000);
        let time = Duration::from_micros(u64::try_from(time_us).unwrap_or(u64::MAX));
        let waiting = table.mempool.reap();
        let hash = hash_of(&self.shared.settings.network.chain_id, height, time, &previous_hash, &waiting);
        let block = Block { height, hash, time };
        table.spam.begin(block.clone(), execution.rules);
        let txs = waiting.into_iter().map(|pending| (pending.tx, table.admission(&pending.hash))).collect();
        drop(table);
        execution.run(&block, &previous_hash, txs)
    }

    /// The newest block.
    pub fn newest(&self) -> Option<Block> {
        self.table().blocks.newest().cloned()
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
        let mut stored = self.stored(position).await?;
        let (mut results, _) = stored.results()?;
        let at = index as usize;
        if at >= stored.txs.len() {
            return Err(interrupted());
        }
        let (tx, result) = (stored.txs.swap_remove(at).tx, results.swap_remove(at));
        Ok(Some(Delivered { height: stored.height, index, tx, result }))
    }

    /// A block of the file; `None` for other heights.
    pub(crate) async fn block(&self, height: u64) -> io::Result<Option<StoredBlock>> {
        let frame = self.table().blocks.frame(height);
        match frame {
            Some(frame) => self.stored(frame).await.map(Some),
            None => Ok(None),
        }
    }

    /// The first and the newest block, and whether the node is catching up.
    pub(crate) fn status(&self) -> (Option<Block>, Option<Block>, bool) {
        let Table { blocks, catching_up, .. } = &*self.table();
        (blocks.oldest().or(blocks.newest()).cloned(), blocks.newest().cloned(), *catching_up)
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

    fn table(&self) -> MutexGuard<'_, Table> {
        self.shared.table.lock()
    }
}

/// The hash of a block: SHA-256 over what determines it. The results follow from these and the blocks before.
fn hash_of(chain_id: &str, height: u64, time: Duration, previous: &str, txs: &[Pending]) -> String {
    let begun = format!("{chain_id}/{height}/{}/{previous}", time.as_nanos());
    let hasher = txs.iter().fold(Sha256::new_with_prefix(begun), |all, tx| all.chain_update(tx.hash.bytes()));
    hex::encode(hasher.finalize())
}

fn interrupted() -> io::Error {
    io::Error::other("the chain file could not be read")
}
