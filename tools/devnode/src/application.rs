//! The application of a real consensus node: checks transactions by the network's rules and stores the blocks
//! that the node has decided, in the file format of the development node.
//!
//! It has two states of the spam rules: `delivered` after the chain's blocks, and `checked`, a copy of it
//! that also counts the transactions in the node's mempool and is reset at each block.

use std::{io, path::Path, sync::Arc};

use bytes::Bytes;
use mesh_transaction::{Admission, Block, Candidate, Network, Refusal, SpamFilter, SpamRules, TxHash};
use parking_lot::{Mutex, MutexGuard};
use sha2::{Digest, Sha256};
use tokio::{sync::watch, task::spawn_blocking};

use crate::{
    file::{BlockFile, BlockReader, StoredBlock, StoredTx},
    open::{StoredChain, replay},
    settings::Checks,
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
    rules: SpamRules,
    hash: AppHash,
    blocks: Blocks,
    finalized: Option<Finalized>,
}

/// The frames of all blocks, by height.
#[derive(Debug, Default)]
struct Blocks {
    first: u64,
    frames: Vec<u64>,
}

/// A block that is decided and not stored yet.
#[derive(Clone, Debug)]
struct Finalized {
    stored: StoredBlock,
    spam: SpamFilter,
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
        /// The newest stored block's height, 0 without any.
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
    /// Opens or creates the file of a chain and continues after its blocks. `rules` hold until
    /// [`amend`](Self::amend).
    pub async fn open(network: Network, file: &Path, checks: Checks, rules: SpamRules) -> io::Result<Self> {
        let (path, chain_id) = (file.to_owned(), network.chain_id.clone());
        let prefix = network.pow_prefix.clone();
        let opening = spawn_blocking(move || {
            let (mut hash, mut blocks) = (AppHash::new(), Blocks::default());
            let chain = StoredChain::read(&path, &chain_id, |stored, frame| {
                hash = digest(&hash, stored.height, stored.txs.iter().map(|tx| &tx.tx));
                blocks.push(stored.height, frame);
            })?;
            let chain = chain.ok_or_else(|| io::Error::other("the file of blocks is of another chain"))?;
            Ok::<_, io::Error>((chain, hash, blocks))
        });
        let (chain, hash, blocks) = opening.await.map_err(io::Error::other)??;
        let StoredChain { file, newest, positions } = chain;
        let mut delivered = replay(&prefix, newest);
        delivered.amend_rules(blocks.newest(), rules);
        let checked = delivered.clone();
        let heads = watch::Sender::new(blocks.newest());
        let state = State { positions, delivered, checked, rules, hash, blocks, finalized: None };
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

    /// The height of the newest stored block as a watch channel; 0 before the first.
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

    /// The height of the first stored block; 0 without any.
    pub fn first(&self) -> u64 {
        self.state().blocks.first
    }

    /// Sets the rules that hold since the block of this height.
    pub fn amend(&self, height: u64, rules: SpamRules) {
        let mut state = self.state();
        let State { delivered, checked, finalized, .. } = &mut *state;
        let finalized = finalized.as_mut().map(|finalized| &mut finalized.spam);
        [delivered, checked].into_iter().chain(finalized).for_each(|spam| spam.amend_rules(height, rules));
        state.rules = rules;
    }

    /// The newest height and the app hash after it.
    pub(crate) fn status(&self) -> (u64, AppHash) {
        let state = self.state();
        (state.blocks.newest(), state.hash.clone())
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
        let rules = state.rules;
        state.checked.begin(block, rules);
    }

    /// Handles FinalizeBlock: returns the results of the transactions, in order, and the app hash. Nothing is
    /// stored yet.
    pub(crate) fn finalize(
        &self,
        block: &Block,
        txs: &[Bytes],
    ) -> Result<(Vec<Result<(), Refusal>>, AppHash), ApplicationError> {
        let read: Vec<_> = txs.iter().map(|tx| self.read(tx)).collect();
        let mut state = self.state();
        let newest = state.blocks.newest();
        if newest > 0 && block.height != newest + 1 {
            return Err(ApplicationError::OutOfOrder { height: block.height, newest });
        }
        let (rules, mut spam) = (state.rules, state.delivered.clone());
        spam.begin(block.clone(), rules);
        let mut delivered = Vec::with_capacity(txs.len());
        for (tx, candidate) in txs.iter().zip(read) {
            let admitted = candidate.and_then(|candidate| match self.shared.checks {
                Checks::All => {
                    refuse_replay(&state.positions, &candidate)?;
                    spam.admit(&candidate)
                }
                Checks::None => Ok(Admission { height: 0, bits: 0 }),
            });
            delivered.push((tx, admitted));
        }
        let hash = digest(&state.hash, block.height, txs);
        let results = delivered.iter().map(|(_, admitted)| admitted.clone().map(|_| ())).collect();
        let txs = delivered.into_iter().map(|(tx, admitted)| StoredTx::new(tx.clone(), admitted)).collect();
        let stored = StoredBlock::new(block, &rules, txs);
        state.checked.begin(block.clone(), rules);
        state.finalized = Some(Finalized { stored, spam, hash: hash.clone() });
        Ok((results, hash))
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
        if let Some(Finalized { spam, hash, .. }) = state.finalized.take() {
            let mut checked = spam.clone();
            checked.merge_bans(&state.checked);
            (state.delivered, state.checked, state.hash) = (spam, checked, hash);
        }
        record_positions(&mut state.positions, &stored, frame);
        state.blocks.push(stored.height, frame);
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

impl Blocks {
    fn push(&mut self, height: u64, frame: u64) {
        if self.frames.is_empty() {
            self.first = height;
        }
        self.frames.push(frame);
    }

    fn newest(&self) -> u64 {
        (self.first + self.frames.len() as u64).saturating_sub(1)
    }

    fn frame(&self, height: u64) -> Option<u64> {
        let at = usize::try_from(height.checked_sub(self.first)?).ok()?;
        self.frames.get(at).copied()
    }
}

/// The app hash after one more block.
fn digest<'a>(before: &[u8], height: u64, txs: impl IntoIterator<Item = &'a Bytes>) -> AppHash {
    let begun = Sha256::new().chain_update(before).chain_update(height.to_be_bytes());
    let all = txs.into_iter().fold(begun, |all, tx| all.chain_update(TxHash::of(tx).bytes()));
    all.finalize().to_vec()
}
