//! What readers rely on in the rows of `blocks` (DATA_MODEL W1): heights without a gap, and block times that
//! rise with them.

use std::fmt;

use tokio_postgres::{GenericClient, Row};

use crate::{error::StoreError, seal::within};

/// A break in the sequence of blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BlockFault {
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
    pub(crate) fn height(&self) -> i64 {
        match self {
            Self::Missing { to, .. } => to.saturating_add(1),
            Self::NotLater { height } => *height,
        }
    }

    fn between(before: i64, height: i64) -> Option<Self> {
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

/// Checks blocks one after the other, as texts of a CSV. It finds every fault of blocks that come by rising
/// height with times as PostgreSQL prints them in UTC, and knows when it cannot tell.
#[derive(Debug, Default)]
pub(crate) struct BlockSequence {
    height: Option<i64>,
    time: Vec<u8>,
    /// A height did not rise, so that gaps cannot be seen.
    is_unordered: bool,
    /// A time has another form.
    is_untimed: bool,
}

impl BlockSequence {
    /// The sequence behind a stored block, whose time is a text of PostgreSQL in UTC.
    pub(crate) fn after(head: Option<(i64, String)>) -> Self {
        let (height, time) = head.unzip();
        Self { height, time: time.unwrap_or_default().into_bytes(), ..Self::default() }
    }

    /// Whether every height was above the one before it.
    pub(crate) fn is_ordered(&self) -> bool {
        !self.is_unordered
    }

    /// Whether the database must check the stored rows.
    pub(crate) fn is_unsure(&self) -> bool {
        self.is_unordered || self.is_untimed
    }

    /// Checks the next block.
    pub(crate) fn check(&mut self, height: &[u8], time: &[u8]) -> Result<(), BlockFault> {
        let height = std::str::from_utf8(height).ok().and_then(|text| text.trim().parse().ok());
        let Some(height) = height.filter(|height| self.height.is_none_or(|before| before < *height)) else {
            // A height that is no number, or there already, COPY refuses.
            self.is_unordered = true;
            return Ok(());
        };
        if let Some(before) = self.height.replace(height)
            && !self.is_unordered
            && let Some(missing) = BlockFault::between(before, height)
        {
            return Err(missing);
        }
        let time = utc(time).unwrap_or_default();
        self.is_untimed |= time.is_empty();
        // Such texts sort like their times.
        if !self.is_unsure() && time <= &self.time[..] {
            return Err(BlockFault::NotLater { height });
        }
        self.time.clear();
        self.time.extend_from_slice(time);
        Ok(())
    }
}

/// A time of four-digit years as PostgreSQL prints it in UTC: `2023-06-20 10:31:20[.fraction]+00`.
fn utc(text: &[u8]) -> Option<&[u8]> {
    let text = text.trim_ascii();
    let plain = text.strip_suffix(b"+00")?;
    let (date, rest) = plain.split_at_checked(19)?;
    let fits = |(shape, byte): (&u8, &u8)| if *shape == b'0' { byte.is_ascii_digit() } else { shape == byte };
    let is_date = b"0000-00-00 00:00:00".iter().zip(date).all(fits);
    let is_fraction = rest.is_empty() || rest[0] == b'.' && rest[1..].iter().all(u8::is_ascii_digit);
    (is_date && is_fraction).then_some(text)
}

/// The first fault of the blocks of `relation` in a span of heights, which it must hold completely; `None`
/// stands for the span of what it holds.
pub(crate) async fn first_fault(
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
