//! The application of a consensus node: checks transactions by the network's rules, executes the blocks that the node
//! has decided, and stores them. The node is a CometBFT, or the development node in the same process.
//!
//! For a CometBFT, whose mempool it does not see, it has two states of the spam rules: `delivered` after the chain's
//! blocks, and `checked`, a copy of it that also counts checked transactions and is reset at each block. For the
//! development node `checked` is enough: a block has transactions of the mempool, which have been counted.

use std::{io, path::Path, sync::Arc};

use bytes::Bytes;
use mesh_transaction::{Admission, Block, Candidate, Network, Refusal, SpamFilter, TxHash};
use parking_lot::{Mutex, MutexGuard};
use sha2::{Digest, Sha256};
use tendermint_proto::v0_38::abci::ExecTxResult;
use tokio::{sync::watch, task::spawn_blocking};

use crate::{
    chain_file::{Blocks, ChainFile},
    execution::Execution,
    file::BlockFile,
    positions::TxPositions,
    settings::Checks,
    stored::StoredBlock,
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
    /// Its lock is not held during a write to the file.
    state: Mutex<State>,
    file: BlockFile,
    heads: watch::Sender<u64>,
}

#[derive(Debug)]
struct State {
    positions: TxPositions,
    /// The state of the spam rules after the newest block; `None` for the development node.
    delivered: Option<SpamFilter>,
    /// The same, with the transactions in the mempool.
    checked: SpamFilter,
    execution: Execution,
    hash: AppHash,
    blocks: Blocks,
    finalized: Option<Finalized>,
}

/// A block that is decided and not stored yet.
#[derive(Debug)]
struct Finalized {
    stored: Arc<StoredBlock>,
    spam: Option<SpamFilter>,
    execution: Execution,
    hash: AppHash,
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

impl Application {
    /// Opens a chain file, which [`ChainFile::create`] made, and continues after its blocks. The file names the chain.
    pub async fn open(network: Network, file: &Path, checks: Checks) -> io::Result<Self> {
        Self::open_for(network, file, checks, true).await
    }

    /// Like [`open`](Self::open), for a CometBFT or for the development node.
    pub(crate) async fn open_for(
        mut network: Network,
        file: &Path,
        checks: Checks,
        is_for_cometbft: bool,
    ) -> io::Result<Self> {
        let (path, prefix) = (file.to_owned(), network.pow_prefix.clone());
        let opening = spawn_blocking(move || {
            ChainFile::of_network(&path, &prefix)?.ok_or_else(|| {
                let path = path.display();
                io::Error::other(format!(
                    "there is no chain file {path} of this release; start the node with `mesh up`"
                ))
            })
        });
        let chain = opening.await.map_err(io::Error::other)??;
        let ChainFile { file, base, blocks, positions, spam, execution, hash } = chain;
        network.chain_id = base.chain_id;
        let heads = watch::Sender::new(blocks.head().0);
        let delivered = is_for_cometbft.then(|| spam.clone());
        let state = State { positions, delivered, checked: spam, execution, hash, blocks, finalized: None };
        let shared = Shared { network, checks, state: Mutex::new(state), file, heads };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// The height of the newest stored block as a watch channel; that of the base before the first.
    pub fn heights(&self) -> watch::Receiver<u64> {
        self.shared.heads.subscribe()
    }

    pub(crate) fn chain_id(&self) -> &str {
        &self.shared.network.chain_id
    }

    /// The first block of the file, and the newest one or the base.
    pub(crate) fn bounds(&self) -> (Option<Block>, Option<Block>) {
        let Blocks { oldest, newest, .. } = &self.state().blocks;
        (oldest.clone(), newest.clone())
    }

    pub(crate) fn newest_txs(&self) -> usize {
        self.state().blocks.newest_txs
    }

    pub(crate) async fn block(&self, height: u64) -> io::Result<Option<StoredBlock>> {
        let frame = self.state().blocks.frame(height);
        match frame {
            Some(frame) => self.stored(frame).await.map(Some),
            None => Ok(None),
        }
    }

    /// The result of a transaction that is in a block; `None` for others.
    pub(crate) async fn find(&self, hash: &TxHash) -> io::Result<Option<Delivered>> {
        let Some((frame, index)) = self.state().positions.of(hash) else { return Ok(None) };
        let stored = self.stored(frame).await?;
        let result = stored.results()?.tx_results.into_iter().nth(index as usize);
        let tx = stored.txs.get(index as usize).map(|tx| tx.tx.clone());
        let delivered = |(tx, result)| Delivered { height: stored.height, index, tx, result };
        Ok(tx.zip(result).map(delivered))
    }

    async fn stored(&self, frame: u64) -> io::Result<StoredBlock> {
        let shared = Arc::clone(&self.shared);
        spawn_blocking(move || shared.file.block(frame)).await.map_err(io::Error::other)?
    }

    /// The newest height, 0 without a block of the file, and the app hash after it.
    pub(crate) fn status(&self) -> (u64, AppHash) {
        let state = self.state();
        (state.blocks.oldest.as_ref().map_or(0, |_| state.blocks.head().0), state.hash.clone())
    }

    /// Handles InitChain.
    pub(crate) fn begin(&self, chain_id: &str) -> io::Result<()> {
        let own = self.chain_id();
        if own == chain_id {
            return Ok(());
        }
        Err(io::Error::other(format!("this is the application of chain {own:?}, not of {chain_id:?}")))
    }

    /// Decodes a transaction and verifies its signature.
    pub(crate) fn read(&self, tx: &Bytes) -> Result<Candidate, Refusal> {
        match self.shared.checks {
            Checks::All => Candidate::read(tx, &self.shared.network),
            Checks::None => Candidate::trusted(tx),
        }
    }

    /// Handles CheckTx. ABCI does not say whether the node adds the transaction to its mempool or only checks
    /// it, so both count until the next block. With `may_repeat` a transaction that counts already succeeds again.
    pub(crate) fn check(&self, candidate: &Candidate, may_repeat: bool) -> Result<(), Refusal> {
        let mut state = self.state();
        if self.shared.checks == Checks::None {
            return Ok(());
        }
        state.positions.refuse_replay(candidate)?;
        let is_waiting = state.positions.of(&candidate.hash).is_none();
        if may_repeat && is_waiting && state.checked.admission(&candidate.hash).is_ok() {
            return Ok(());
        }
        state.checked.admit(candidate).map(|_| ())
    }

    /// The result of [`check`](Self::check) without any effect; a transaction that counts already is a replay.
    pub(crate) fn judge(&self, candidate: &Candidate) -> Result<(), Refusal> {
        let state = self.state();
        if self.shared.checks == Checks::None {
            return Ok(());
        }
        state.positions.refuse_replay(candidate)?;
        state.checked.check(candidate).map(|_| ())
    }

    /// Handles a proposed block: clients may see it at the node before its delivery and use it for proof of
    /// work.
    pub(crate) fn proposed(&self, block: Block) {
        let mut state = self.state();
        let rules = state.execution.rules;
        state.checked.begin(block, rules);
    }

    /// Handles FinalizeBlock: returns the block as it is stored by [`commit`](Self::commit), and the app hash after it.
    /// May be repeated, for a CometBFT also with another block.
    pub(crate) fn finalize(
        &self,
        block: &Block,
        txs: Vec<(Bytes, Result<Candidate, Refusal>)>,
    ) -> io::Result<(Arc<StoredBlock>, AppHash)> {
        let mut state = self.state();
        let (newest, previous_hash) = state.blocks.head();
        if block.height != newest + 1 {
            let text = format!("block {} does not follow block {newest}", block.height);
            return Err(io::Error::other(text));
        }
        let previous_hash = previous_hash.to_owned();
        let (mut execution, mut spam) = (state.execution.clone(), state.delivered.clone());
        state.checked.begin(block.clone(), execution.rules);
        if let Some(spam) = &mut spam {
            spam.begin(block.clone(), execution.rules);
        }
        let mut admit = |candidate: Candidate| match (self.shared.checks, &mut spam) {
            (Checks::None, _) => Ok(Admission { height: 0, bits: 0 }),
            (Checks::All, None) => state.checked.admission(&candidate.hash),
            (Checks::All, Some(spam)) => {
                state.positions.refuse_replay(&candidate)?;
                spam.admit(&candidate)
            }
        };
        let admitted = |(tx, candidate): (_, Result<_, _>)| (tx, candidate.and_then(&mut admit));
        let txs = txs.into_iter().map(admitted).collect();
        drop(state);
        let stored = Arc::new(execution.run(block, &previous_hash, txs)?);
        let mut state = self.state();
        let hash = digest(&state.hash, &stored);
        for spam in [Some(&mut state.checked), spam.as_mut()].into_iter().flatten() {
            spam.amend_rules(block.height, execution.rules);
        }
        let finalized = Finalized { stored: Arc::clone(&stored), spam, execution, hash: hash.clone() };
        state.finalized = Some(finalized);
        Ok((stored, hash))
    }

    /// Handles Commit: stores the finalized block; it is synced to the disk when this returns. `lock` runs before the
    /// state changes, and its value is returned: a guard that keeps checks out until the caller is done.
    pub(crate) fn commit<T>(&self, lock: impl FnOnce() -> T) -> io::Result<T> {
        let stored = self.state().finalized.as_ref().map(|finalized| Arc::clone(&finalized.stored));
        let stored = stored.ok_or_else(|| io::Error::other("there is no block to commit"))?;
        let frame = self.shared.file.push(&*stored)?;
        let guard = lock();
        let mut state = self.state();
        if let Some(Finalized { spam, execution, hash, .. }) = state.finalized.take() {
            if let Some(mut checked) = spam.clone() {
                checked.merge_bans(&state.checked);
                state.checked = checked;
            }
            (state.delivered, state.execution, state.hash) = (spam, execution, hash);
        }
        state.positions.add(&stored, frame);
        state.blocks.push(&stored, frame);
        drop(state);
        self.shared.heads.send_replace(stored.height);
        Ok(guard)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock()
    }
}

/// The app hash after one more block.
pub(crate) fn digest(before: &[u8], stored: &StoredBlock) -> AppHash {
    let begun = Sha256::new().chain_update(before).chain_update(stored.height.to_be_bytes());
    let all = stored.txs.iter().fold(begun, |all, tx| all.chain_update(TxHash::of(&tx.tx).bytes()));
    all.finalize().to_vec()
}
