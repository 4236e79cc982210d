//! Reads as of a block (contract 11): the answer that a plain read gave when the block was the newest.

use mesh_problem::{ABOVE_HEAD, BELOW_FIRST, OTHER_CHAIN, Problem};
use tokio_postgres::Row;

use super::{ReadError, Store, head_of};
use crate::TimeUs;

/// A block that reads are as of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Past {
    /// Its height.
    pub height: u64,
    /// Its time: rows up to this time are read.
    pub time: TimeUs,
    /// Whether the history up to the block is sealed, so that no row is added to it.
    pub is_sealed: bool,
    /// The newest epoch that had delegations; the least number when there were none.
    pub delegation_epoch: i64,
    /// The newest epoch that had rewards; the least number when there were none.
    pub reward_epoch: i64,
}

/// The block that an answer is as of: `past`, or the newest one, which was read with this row.
///
/// # Errors
/// When the row has no head.
pub fn block_of(row: &Row, past: Option<&Past>) -> Result<Option<(u64, i64)>, ReadError> {
    past.map_or_else(|| head_of(row), |past| Ok(Some((past.height, past.time.ns()))))
}

impl Store {
    /// The block that a request asks for, `None` when it asks for none. `number` is the application number of a read
    /// that fails.
    ///
    /// # Errors
    /// 10045 above the newest block, 10046 below the first one, 10048 when the request names another chain, and the
    /// problem of a failed read.
    pub async fn past(
        &self,
        at_block: Option<u64>,
        chain_id: Option<&str>,
        number: u32,
    ) -> Result<Option<Past>, Problem> {
        if at_block.is_none() && chain_id.is_none() {
            return Ok(None);
        }
        // No stored height is greater than the greatest `int8`.
        let height = at_block.map(|height| i64::try_from(height).unwrap_or(i64::MAX));
        let failed = |error: ReadError| error.problem(number);
        let mut row = self.point(include_str!("past.sql"), &[&height], None).await.map_err(failed)?;
        let newest = |row: &Row| Ok(head_of(row)?.map_or(0, |(height, _)| height));
        if newest(&row).map_err(failed)? < at_block.unwrap_or_default() {
            // A replica may not have the block yet.
            let primary = &self.servers.primary;
            row = primary.point(include_str!("past.sql"), &[&height]).await.map_err(failed)?;
        }
        if let Some(given) = chain_id {
            let chain: Option<&str> = row.try_get("chain_id").map_err(|error| failed(error.into()))?;
            if chain != Some(given) {
                let problem = Problem::invalid(OTHER_CHAIN, "this is another chain");
                return Err(problem.with_inner(format!("the chain is {}", chain.unwrap_or_default())));
            }
        }
        let Some(height) = at_block else { return Ok(None) };
        read(&row, height, newest(&row).map_err(failed)?).map_err(failed)?.map(Some)
    }
}

/// The block, or why there is none.
fn read(row: &Row, height: u64, newest: u64) -> Result<Result<Past, Problem>, ReadError> {
    if height > newest {
        let problem = Problem::not_found(ABOVE_HEAD, "the block is not stored yet");
        return Ok(Err(problem.with_inner(format!("the newest block is {newest}"))));
    }
    let first: Option<i64> = row.try_get("first_height")?;
    let first = first.and_then(|first| u64::try_from(first).ok()).unwrap_or(newest);
    let time: Option<TimeUs> = row.try_get("block_time")?;
    let Some(time) = time.filter(|_| height >= first) else {
        let problem = Problem::invalid(BELOW_FIRST, "the block is before the first stored one");
        return Ok(Err(problem.with_inner(format!("{first} to {newest}"))));
    };
    let epoch = |column| Ok::<_, ReadError>(row.try_get::<_, Option<i64>>(column)?.unwrap_or(i64::MIN));
    Ok(Ok(Past {
        height,
        time,
        is_sealed: row.try_get::<_, Option<bool>>("is_sealed")?.unwrap_or(false),
        delegation_epoch: epoch("delegation_epoch")?,
        reward_epoch: epoch("reward_epoch")?,
    }))
}
