//! What readers rely on in the rows of `blocks` (DATA_MODEL W1): heights without a gap, and block times that
//! rise with them.

use std::fmt;

use tokio_postgres::{GenericClient, Row};

use crate::{error::StoreError, seal::within};

/// The table whose rows are the blocks.
pub const BLOCKS: &str = "blocks";

/// A break in the sequence of blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockFault {
    /// Heights are missing between two blocks, or at an end of a span.
    Missing {
        /// The first of them.
        from: i64,
        /// The last of them.
        to: i64,
    },
    /// A block is not later than the one before it.
    NotLater {
        /// Its height.
        height: i64,
    },
}

impl BlockFault {
    /// The height at which it is found: that of the first block behind the break.
    pub fn height(&self) -> i64 {
        match self {
            Self::Missing { to, .. } => to.saturating_add(1),
            Self::NotLater { height } => *height,
        }
    }

    /// The heights that are missing between two blocks.
    pub fn between(before: i64, height: i64) -> Option<Self> {
        let from = before.saturating_add(1);
        (height > from).then(|| Self::Missing { from, to: height - 1 })
    }

    fn read(row: &Row) -> Result<Self, tokio_postgres::Error> {
        let (height, before) = (row.try_get(0)?, row.try_get(1)?);
        Ok(Self::between(before, height).unwrap_or(Self::NotLater { height }))
    }
}

impl fmt::Display for BlockFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { from, to } if from == to => write!(f, "height {from} is missing"),
            Self::Missing { from, to } => write!(f, "heights {from} to {to} are missing"),
            Self::NotLater { height } => {
                write!(f, "block {height} is not later than block {}", height.saturating_sub(1))
            }
        }
    }
}

/// The first fault of the blocks of `relation` in a span of heights, which it must hold completely; `None`
/// stands for the span of what it holds.
///
/// # Errors
/// The statement fails.
pub async fn first_fault(
    client: &impl GenericClient,
    relation: &str,
    span: Option<(i64, i64)>,
) -> Result<Option<BlockFault>, StoreError> {
    const STEP: &str = "checking the sequence of blocks";
    let sql = format!(
        "WITH span AS (
            SELECT height, block_time FROM {relation}
            WHERE ($1::int8 IS NULL OR height >= $1) AND ($2::int8 IS NULL OR height <= $2)
        ), pair AS (
            SELECT height, lag(height, 1, coalesce($1, height) - 1) OVER by_height AS before,
                block_time <= lag(block_time) OVER by_height AS is_late
            FROM span WINDOW by_height AS (ORDER BY height)
        )
        SELECT height, before FROM pair WHERE height <> before + 1 OR is_late
        UNION ALL
        SELECT $2 + 1, coalesce(max(height), $1 - 1) FROM span HAVING $2 IS NOT NULL AND max(height) IS DISTINCT FROM $2
        ORDER BY 1 LIMIT 1"
    );
    let (low, high) = span.unzip();
    let row = within(STEP, client.query_opt(&sql, &[&low, &high])).await?;
    row.as_ref().map(BlockFault::read).transpose().map_err(StoreError::in_step(STEP))
}
