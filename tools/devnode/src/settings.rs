//! The settings of a development node.

use std::{path::PathBuf, time::Duration};

use mesh_transaction::Network;

/// The settings with which a node starts.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The network; the id of its chain is that of the file.
    pub network: Network,
    /// The file of its blocks; [`ChainFile::create`](crate::ChainFile::create) makes one.
    pub file: PathBuf,
    /// The checks of a transaction.
    pub checks: Checks,
    /// Its limits.
    pub limits: Limits,
    /// Additional delay of each check of a broadcast transaction, for drills.
    pub check_delay: Duration,
    /// The file to which every broadcast call is written as it comes in, for drills; see
    /// [`received`](crate::received).
    pub broadcasts: Option<PathBuf>,
}

impl Settings {
    /// The defaults: all checks, the limits of a consensus node.
    pub fn new(network: Network, file: impl Into<PathBuf>) -> Self {
        Self {
            network,
            file: file.into(),
            checks: Checks::All,
            limits: Limits::default(),
            check_delay: Duration::ZERO,
            broadcasts: None,
        }
    }
}

/// The checks of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checks {
    /// Signature, replay, proof of work.
    All,
    /// Only that it can be decoded.
    None,
}

/// Limits; the defaults are those of CometBFT where nothing else is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Transactions that wait for a block.
    pub mempool_txs: usize,
    /// Their bytes: 64 MiB, where a consensus node has 1 GiB.
    pub mempool_bytes: usize,
    /// Bytes of one transaction.
    pub tx_bytes: usize,
    /// Number of recent hashes in the cache, whose transactions are rejected.
    pub cache: usize,
    /// Whether hashes of refused transactions stay in the cache.
    pub keep_refused: bool,
    /// Bytes of the transactions of one block; a single larger one gets its own block.
    pub block_bytes: usize,
    /// How long a commit call waits for its block.
    pub commit_wait: Duration,
    /// Connections; one more waits until another ends.
    pub connections: usize,
    /// Bytes of a request: 2 MiB, so that the largest transaction fits in base64, where a consensus node has
    /// 1 MB.
    pub body_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            mempool_txs: 5000,
            mempool_bytes: 64 << 20,
            tx_bytes: 1 << 20,
            cache: 10_000,
            keep_refused: false,
            block_bytes: 4 << 20,
            commit_wait: Duration::from_secs(10),
            connections: 900,
            body_bytes: 2 << 20,
        }
    }
}
