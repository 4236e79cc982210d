//! The node's mempool as of a moment ago: requests for many transactions share one call to the node.

use std::{collections::HashSet, time::Duration};

use mesh_transaction::TxHash;
use tokio::{sync::Mutex, time::Instant};

use super::rpc::CallError;

/// Most transactions that are read: CometBFT returns no more of them.
pub(super) const MAX_WAITING: usize = 100;

/// For how long a reading answers requests.
const MAX_AGE: Duration = Duration::from_millis(100);

/// The hashes of the first transactions in the mempool.
#[derive(Default)]
pub(super) struct Mempool(Mutex<Option<(Instant, HashSet<TxHash>)>>);

impl Mempool {
    /// Whether the mempool has a transaction; reads it when the last reading is too old.
    pub(super) async fn contains(
        &self,
        hash: &TxHash,
        read: impl AsyncFnOnce() -> Result<HashSet<TxHash>, CallError>,
    ) -> Result<bool, CallError> {
        let mut reading = self.0.lock().await;
        match reading.as_ref() {
            Some((at, hashes)) if at.elapsed() < MAX_AGE => Ok(hashes.contains(hash)),
            _ => {
                let hashes = read().await?;
                let is_in_it = hashes.contains(hash);
                *reading = Some((Instant::now(), hashes));
                Ok(is_in_it)
            }
        }
    }
}
