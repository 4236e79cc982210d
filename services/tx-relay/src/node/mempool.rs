//! The node's mempool as of a moment ago: requests for many transactions share one call to the node.

use std::{collections::HashSet, time::Duration};

use mesh_transaction::TxHash;
use tokio::{sync::Mutex, time::Instant};

use super::rpc::CallError;

/// Most transactions that are read: CometBFT returns no more of them.
pub(super) const MAX_WAITING: usize = 100;

/// For how long a reading answers requests.
const MAX_AGE: Duration = Duration::from_millis(100);

/// The hashes of the first transactions in the mempool, or why they were not read.
type Reading = Result<HashSet<TxHash>, CallError>;

/// The last reading, and when it ended.
#[derive(Default)]
pub(super) struct Mempool(Mutex<Option<(Instant, Reading)>>);

impl Mempool {
    /// Whether the mempool has a transaction; reads it when the last reading is too old. A reading that failed answers
    /// those that waited for it, too.
    pub(super) async fn contains(
        &self,
        hash: &TxHash,
        read: impl AsyncFnOnce() -> Reading,
    ) -> Result<bool, CallError> {
        let mut reading = self.0.lock().await;
        let last = reading.take().filter(|(at, _)| at.elapsed() < MAX_AGE);
        let last = match last {
            Some(last) => last,
            None => {
                let found = read().await;
                (Instant::now(), found)
            }
        };
        let (_, found) = reading.insert(last);
        found.as_ref().map(|hashes| hashes.contains(hash)).map_err(CallError::clone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn those_that_wait_for_a_reading_share_it_also_when_it_fails() {
        let (mempool, hash) = (Mempool::default(), TxHash::of(b"tx"));
        let late = async || Err(CallError::Late);
        let again = async || unreachable!("it was read a moment ago");
        let (one, other) = tokio::join!(mempool.contains(&hash, late), mempool.contains(&hash, again));
        assert!(matches!((one, other), (Err(CallError::Late), Err(CallError::Late))));
    }
}
