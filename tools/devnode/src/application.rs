//! The application of a real consensus node: checks transactions by the network's rules and stores the blocks
//! that the node has decided, in the file format of the development node.
//!
//! It has two states of the spam rules: `delivered` after the chain's blocks, and `checked`, a copy of it
//! that also counts the transactions in the node's mempool and is reset at each block.

use std::{io, path::Path, sync::Arc};

use bytes::Bytes;
use mesh_transaction::{Admission, Block, Candidate, Network, Refusal, SpamFilter, TxHash};
use parking_lot::{Mutex, MutexGuard};
use sha2::{Digest, Sha256};
use tokio::{sync::watch, task::spawn_blocking};

use crate::{
    execution::Execution,
    file::{BlockFile, BlockReader},
    open::{Blocks, OpenChain},
    settings::Checks,
    stored::StoredBlock,
    table::{TxPositions, record_positions, refuse_replay},
};

/// A digest over all blocks: their heights and the hashes of their transactions. Empty before the first.
pub(crate) type AppHash = Vec<u8>;

/// A handle on the application; clones share it.
#[derive(Clone, Debug)]
pub struct Application {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    network: Network,
    checks: Checks,
    state: Mutex<State>,
    file: Mutex<BlockFile>,
    reader: Arc<BlockReader>,
    heads: watch::Sender<u64>,
}

#[derive(Debug)]
struct State {
    positions: TxPositions,
    /// The state of the spam rules after the newest block.
    delivered: SpamFilter,
    /// The same, with the transactions checked since that block.
    checked: SpamFilter,
    execution: Execution,
    hash: AppHash,
    blocks: Blocks,
    finalized: Option<Finalized>,
}

/// A block that is decided and not stored yet.
#[derive(Clone, Debug)]
struct Finalized {
    stored: StoredBlock,
    spam: SpamFilter,
    execution: Execution,
    hash: AppHash,
}

/// Why a request of the node cannot be answered.
#[derive(Debug, thiserror::Error)]
pub enum ApplicationError {
    /// The node's block does not follow the newest stored one.
    #[error("block {height} does not follow block {newest}")]
    OutOfOrder {
        /// The block's height.
        height: u64,
        /// The newest stored block's height, or the base's.
        newest: u64,
    },
    /// The node has another chain id.
    #[error("this is the application of chain {own:?}, not of {other:?}")]
    OtherChain {
        /// The application's chain.
        own: String,
        /// The node's chain.
        other: String,
    },
    /// Commit without FinalizeBlock.
    #[error("there is no block to commit")]
    NothingFinalized,
    /// The file could not be written; the block is not stored.
    #[error("the block could not be kept")]
    File(#[from] io::Error),
}

impl Application {
    /// Opens a chain file, which [`ChainFile::create`](crate::ChainFile::create) made, and continues after its blocks.
    /// The file names the chain.
    pub async fn open(mut network: Network, file: &Path, checks: Checks) -> io::Result<Self> {
        let (path, prefix) = (file.to_owned(), network.pow_prefix.clone());
        let opening = spawn_blocking(move || {
            let mut hash = AppHash::new();
            let chain = OpenChain::open(&path, &prefix, |stored| hash = digest(&hash, stored))?;
            Ok::<_, io::Error>((chain, hash))
        });
        let (chain, hash) = opening.await.map_err(io::Error::other)??;
        let OpenChain { file, base, blocks, positions, spam, execution } = chain;
        network.chain_id = base.chain_id;
        let heads = watch::Sender::new(blocks.head().0);
        let (delivered, checked) = (spam.clone(), spam);
        let state = State { positions, delivered, checked, execution, hash, blocks, finalized: None };
        let shared = Shared {
            network,
            checks,
            state: Mutex::new(state),
            reader: Arc::new(file.reader()?),
            file: Mutex::new(file),
            heads,
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// The height of the newest stored block as a watch channel; that of the base before the first.
    pub fn heights(&self) -> watch::Receiver<u64> {
        self.shared.heads.subscribe()
    }

    /// A stored block.
    pub async fn block(&self, height: u64) -> io::Result<Option<Block>> {
        let Some(frame) = self.state().blocks.frame(height) else { return Ok(None) };
        let reader = Arc::clone(&self.shared.reader);
        let reading = spawn_blocking(move || reader.block(frame));
        Ok(Some(reading.await.map_err(io::Error::other)??.block()))
    }

    /// The newest height, 0 without a block of the file, and the app hash after it.
    pub(crate) fn status(&self) -> (u64, AppHash) {
        let state = self.state();
        (state.blocks.oldest().map_or(0, |_| state.blocks.head().0), state.hash.clone())
    }

    /// Handles InitChain.
    pub(crate) fn begin(&self, chain_id: &str) -> Result<(), ApplicationError> {
        let own = &self.shared.network.chain_id;
        match own == chain_id {
            true => Ok(()),
            false => Err(ApplicationError::OtherChain { own: own.clone(), other: chain_id.to_owned() }),
        }
    }

    /// Handles CheckTx. ABCI does not say whether the node adds the transaction to its mempool or only checks
    /// it, so both count until the next block.
    pub(crate) fn check(&self, tx: &Bytes) -> Result<(), Refusal> {
        let candidate = self.read(tx)?;
        let mut state = self.state();
        if self.shared.checks == Checks::None {
            return Ok(());
        }
        refuse_replay(&state.positions, &candidate)?;
        // The node rechecks its mempool, and clients may repeat a check: both must succeed again.
        if state.checked.admission(&candidate.hash).is_ok() {
            return Ok(());
        }
        state.checked.admit(&candidate).map(|_| ())
    }

    /// Handles a proposed block: clients may see it at the node before its delivery and use it for proof of
    /// work.
    pub(crate) fn proposed(&self, block: Block) {
        let mut state = self.state();
        let rules = state.execution.rules;
        state.checked.begin(block, rules);
    }

    /// Handles FinalizeBlock: returns the block as it is stored by [`commit`](Self::commit), and the app hash after it.
    /// May be repeated.
    pub(crate) async fn finalize(
        &self,
        block: Block,
        txs: Vec<Bytes>,
    ) -> Result<(StoredBlock, AppHash), ApplicationError> {
        let application = self.clone();
        let executing = spawn_blocking(move || application.finalize_now(&block, txs));
        executing.await.map_err(io::Error::other)?
    }

    fn finalize_now(
        &self,
        block: &Block,
        txs: Vec<Bytes>,
    ) -> Result<(StoredBlock, AppHash), ApplicationError> {
        let read: Vec<_> = txs.iter().map(|tx| self.read(tx)).collect();
        let mut state = self.state();
        let (newest, previous_hash) = state.blocks.head();
        if block.height != newest + 1 {
            return Err(ApplicationError::OutOfOrder { height: block.height, newest });
        }
        let (mut execution, mut spam) = (state.execution.clone(), state.delivered.clone());
        spam.begin(block.clone(), execution.rules);
        let mut delivered = Vec::with_capacity(txs.len());
        for (tx, candidate) in txs.into_iter().zip(read) {
            let admitted = candidate.and_then(|candidate| match self.shared.checks {
                Checks::All => {
                    refuse_replay(&state.positions, &candidate)?;
                    spam.admit(&candidate)
                }
                Checks::None => Ok(Admission { height: 0, bits: 0 }),
            });
            delivered.push((tx, admitted));
        }
        let stored = execution.run(block, previous_hash, delivered)?;
        spam.amend_rules(block.height, execution.rules);
        let hash = digest(&state.hash, &stored);
        state.checked.begin(block.clone(), execution.rules);
        state.checked.amend_rules(block.height, execution.rules);
        state.finalized = Some(Finalized { stored: stored.clone(), spam, execution, hash: hash.clone() });
        Ok((stored, hash))
    }

    /// Stores the finalized block; it is synced to the disk when this returns.
    pub(crate) async fn commit(&self) -> Result<(), ApplicationError> {
        let application = self.clone();
        spawn_blocking(move || application.commit_now()).await.map_err(io::Error::other)?
    }

    fn commit_now(&self) -> Result<(), ApplicationError> {
        let stored = self.state().finalized.as_ref().map(|finalized| finalized.stored.clone());
        let stored = stored.ok_or(ApplicationError::NothingFinalized)?;
        let frame = self.shared.file.lock().push(&stored)?;
        let mut state = self.state();
        if let Some(Finalized { spam, execution, hash, .. }) = state.finalized.take() {
            let mut checked = spam.clone();
            checked.merge_bans(&state.checked);
            (state.delivered, state.checked, state.execution, state.hash) = (spam, checked, execution, hash);
        }
        record_positions(&mut state.positions, &stored, frame);
        state.blocks.push(&stored, frame);
        drop(state);
        self.shared.heads.send_replace(stored.height);
        Ok(())
    }

    fn read(&self, tx: &Bytes) -> Result<Candidate, Refusal> {
        match self.shared.checks {
            Checks::All => Candidate::read(tx, &self.shared.network),
            Checks::None => Candidate::trusted(tx),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock()
    }
}

/// The app hash after one more block.
fn digest(before: &[u8], stored: &StoredBlock) -> AppHash {
    let begun = Sha256::new().chain_update(before).chain_update(stored.height.to_be_bytes());
    let all = stored.txs.iter().fold(begun, |all, tx| all.chain_update(TxHash::of(&tx.tx).bytes()));
    all.finalize().to_vec()
}
