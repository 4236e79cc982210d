//! The newest stored block, as a writer continues it.

use tokio_postgres::Client;

use crate::{error::StoreError, time::TimeUs};

/// The chain of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredChain {
    /// Its name, once there is one.
    pub chain_id: Option<String>,
    /// Its newest block, or the one that was requested.
    pub head: Option<StoredHead>,
}

/// The newest stored block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredHead {
    /// Its height.
    pub height: u64,
    /// Its hash, lower-case hex.
    pub hash: String,
    /// Its time.
    pub time: TimeUs,
    /// The latest of its time and of the row times that follow from it; the next block is later.
    pub latest_time: TimeUs,
}

/// Reads the chain's name and a block, the newest one without a height.
pub(super) async fn read(client: &Client, height: Option<u64>) -> Result<StoredChain, StoreError> {
    let height = height.map(u64::cast_signed);
    let row = client.query_one(include_str!("../../sql/stored_head.sql"), &[&height]).await;
    let row = row.map_err(StoreError::in_step("reading a block"))?;
    let head = row.get::<_, Option<i64>>("height").map(|height| StoredHead {
        height: height.unsigned_abs(),
        hash: row.get("hash"),
        time: row.get("block_time"),
        latest_time: row.get("latest_time"),
    });
    Ok(StoredChain { chain_id: row.get("chain_id"), head })
}
