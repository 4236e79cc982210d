//! The next span to seal: as the database has it, checked, and described for its segment.

use mesh_history::{Segment, SegmentList, SegmentName, Span};
use mesh_store::{ReadError, Row, Snapshot, TimeUs};

use super::SealError;

/// The statement that finds it, for [`NextSpan::read`].
pub(super) const NEXT_SPAN: &str = include_str!("../../sql/next_span.sql");

/// The next span as read from the database.
pub(super) struct NextSpan {
    pub(super) blocks: Option<SpanBlocks>,
    pub(super) is_complete: bool,
    pub(super) chain_id: Option<String>,
}

/// The first and the last block of a span.
#[derive(Debug, Clone, Copy)]
pub(super) struct SpanBlocks {
    from: i64,
    to: i64,
    time_from: TimeUs,
    time_to: TimeUs,
}

impl NextSpan {
    pub(super) fn read(row: &Row) -> Result<Self, ReadError> {
        let heights = (row.try_get("height_from")?, row.try_get("height_to")?);
        let times = (row.try_get("time_from")?, row.try_get("time_to")?);
        let blocks = match (heights, times) {
            ((Some(from), Some(to)), (Some(time_from), Some(time_to))) => {
                Some(SpanBlocks { from, to, time_from, time_to })
            }
            _ => None,
        };
        let is_complete: Option<bool> = row.try_get("is_complete")?;
        Ok(Self { blocks, is_complete: is_complete.unwrap_or(false), chain_id: row.try_get("chain_id")? })
    }
}

impl SpanBlocks {
    /// Refuses a span that lacks blocks, begins behind a gap, or whose times do not rise (W1): what is sealed is
    /// never replaced. `last`: the end of the segment before, -1 without one.
    pub(super) async fn check(self, snapshot: &Snapshot<'_>, last: i64) -> Result<(), SealError> {
        let Self { from: first, to, time_from, time_to } = self;
        let from = if last < 0 { first } else { last + 1 };
        match snapshot.fault_of_blocks((from, to), (time_from, time_to)).await? {
            None => Ok(()),
            Some(fault) => Err(SealError::Refused { from, to, fault }),
        }
    }

    /// The description of the span's segment, which continues the one before it.
    pub(super) fn describe(
        self,
        chain_id: String,
        version: i32,
        list: &SegmentList,
    ) -> Result<Span, SealError> {
        let unfit = |what: String| SealError::Unfit(what);
        let height =
            |height: i64| u64::try_from(height).map_err(|_| unfit(format!("there is a block {height}")));
        let (from, to) = (height(self.from)?, height(self.to)?);
        let before = |name: &SegmentName| name.height_to.checked_add(1) == Some(from);
        if let Some(broken) = list.unreadable.iter().find(|unreadable| before(&unreadable.name)) {
            return Err(unfit(format!("{}, which comes before, cannot be read", broken.name)));
        }
        let previous: Option<&Segment> =
            list.segments.iter().find(|segment| before(&segment.name)).map(std::ops::Deref::deref);
        let (block_time_from, block_time_to) = (self.time_from.ns(), self.time_to.ns());
        if let Some(previous) = previous.filter(|previous| block_time_from <= previous.block_time_to) {
            let fault = format!("block {from} is not later than the last one of {}", previous.name);
            return Err(SealError::Refused { from: self.from, to: self.to, fault });
        }
        Ok(Span {
            chain_id,
            database_version: u32::try_from(version).unwrap_or(0).max(1),
            height_from: from,
            height_to: to,
            block_time_from,
            block_time_to,
            previous_id: previous.map(|segment| segment.id),
        })
    }
}
