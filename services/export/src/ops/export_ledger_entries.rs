//! ExportLedgerEntries: the ledger of one party and asset as CSV, by keyset reads up to a bound fixed at the
//! opening.

use std::sync::Arc;

use actix::{Context, Handler};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use jiff::Timestamp;
use mesh_bus::{CancelOnDrop, Chunks, Open, OpenReply, Pull};
use mesh_problem::Problem;
use mesh_store::{ReadError, TimeUs, head_of};
use proto_msgs::{
    numbers::export_ledger_entries::{ASSET_ID_MISSING, DATE_RANGE, LEDGER, PARTY_ID_MISSING},
    v2::{DateRange, ExportInfo, ExportLedgerEntriesRequest},
};

use super::ledger::{
    position::LedgerPosition,
    walk::{ByteBudget, Filter, Walk},
};
use crate::Export;

/// The requested span of block times in nanoseconds, start inclusive, end exclusive; `None` is unbounded
/// (L1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range {
    start_ns: Option<i64>,
    end_ns: Option<i64>,
}

impl Range {
    fn read(range: Option<&DateRange>) -> Result<Self, Problem> {
        let non_zero = |ns: Option<i64>| ns.filter(|ns| *ns != 0);
        let start_ns = non_zero(range.and_then(|range| range.start_timestamp));
        let end_ns = non_zero(range.and_then(|range| range.end_timestamp));
        let wrong =
            |message: &str, inner: String| Err(Problem::invalid(DATE_RANGE, message).with_inner(inner));
        for (name, ns) in [("startTimestamp", start_ns), ("endTimestamp", end_ns)] {
            if let Some(ns) = ns.filter(|ns| *ns < 0) {
                return wrong("a time of the date range is negative", format!("dateRange.{name} {ns}"));
            }
        }
        if let (Some(start), Some(end)) = (start_ns, end_ns)
            && end < start
        {
            return wrong("the date range ends before it starts", format!("start {start}, end {end}"));
        }
        Ok(Self { start_ns, end_ns })
    }

    /// The last time in the range that can be stored, when `bound` is the newest stored time.
    fn until(self, bound: Option<TimeUs>) -> Option<TimeUs> {
        let before_end = self.end_ns.map(|end| TimeUs(TimeUs::at_or_after_ns(end).0 - 1));
        bound.map(|bound| before_end.map_or(bound, |end| end.min(bound)))
    }

    /// Its part of the file name (L7).
    fn in_name(self) -> String {
        let seconds = |ns: i64| {
            let at = Timestamp::from_second(ns.div_euclid(1_000_000_000)).unwrap_or_default();
            at.strftime("%Y-%m-%dT%H_%M_%SZ").to_string()
        };
        let start = self.start_ns.map(|ns| format!("_{}", seconds(ns))).unwrap_or_default();
        let end = self.end_ns.map(|ns| format!("-{}", seconds(ns))).unwrap_or_default();
        format!("{start}{end}")
    }
}

fn read(request: &ExportLedgerEntriesRequest) -> Result<Range, Problem> {
    if request.party_id.is_empty() {
        return Err(Problem::invalid(PARTY_ID_MISSING, "party id is missing"));
    }
    if request.asset_id.is_empty() {
        return Err(Problem::invalid(ASSET_ID_MISSING, "asset id is missing"));
    }
    Range::read(request.date_range.as_ref())
}

impl Handler<Open<ExportLedgerEntriesRequest>> for Export {
    type Result = CancelOnDrop<Result<OpenReply, Problem>>;

    fn handle(&mut self, open: Open<ExportLedgerEntriesRequest>, _: &mut Context<Self>) -> Self::Result {
        let Open { request, scope, .. } = open;
        let store = self.store.clone();
        scope.run(async move {
            let failed = |error: ReadError| error.problem(LEDGER);
            let range = read(&request)?;
            let row = store.point(include_str!("../../sql/ledger_bound.sql"), &[]).await.map_err(failed)?;
            let bound = head_of(&row).map_err(failed)?.map(|(_, time_ns)| TimeUs::at_or_before_ns(time_ns));
            let first = LedgerPosition::start(bound, range.start_ns.map(TimeUs::at_or_after_ns)).write()?;
            let ExportLedgerEntriesRequest { party_id, asset_id, .. } = request;
            Ok(OpenReply {
                info: ExportInfo {
                    file_name: format!("ledger_entries_{party_id}_{asset_id}{}.csv", range.in_name()),
                    chain_id: row.try_get("chain_id").map_err(ReadError::from).map_err(failed)?,
                    ..ExportInfo::default()
                },
                first: Bytes::copy_from_slice(first.as_bytes()),
                from_byte: 0,
                content_type: "text/csv".to_owned(),
                etag: String::new(),
                crc32c: None,
            })
        })
    }
}

impl Handler<Pull<ExportLedgerEntriesRequest>> for Export {
    type Result = CancelOnDrop<Result<Chunks, Problem>>;

    fn handle(&mut self, pull: Pull<ExportLedgerEntriesRequest>, _: &mut Context<Self>) -> Self::Result {
        let Pull { request, position, budget, scope } = pull;
        let (store, accounts) = (self.store.clone(), Arc::clone(&self.ledger_accounts));
        let cache = Arc::clone(&self.ledger_walks);
        let pulled = self.metrics.pulled("ExportLedgerEntries");
        scope.run(async move {
            let range = read(&request)?;
            let start = LedgerPosition::read(&position)?;
            let until = range.until(start.bound);
            let filter = Filter { party: request.party_id, asset: request.asset_id, until };
            let piece = budget.chunk_bytes();
            let pull = piece.saturating_mul(budget.chunks as usize);
            let walk = match cache.take(&filter, &position) {
                Some(mut walk) => {
                    // The next pull is expected to be as large as this one.
                    walk.resume(ByteBudget { piece, pull, next_pull: pull });
                    walk
                }
                None => Walk::new(store, accounts, filter, start, ByteBudget { piece, pull, next_pull: 0 }),
            };
            let pieces = stream::try_unfold(Some((walk, budget.chunks)), move |walk| {
                let (pulled, cache) = (pulled.clone(), Arc::clone(&cache));
                async move {
                    let Some((mut walk, chunks)) = walk else { return Ok(None) };
                    let Some(piece) = walk.next().await? else { return Ok(None) };
                    pulled.inc_by(piece.bytes.len() as u64);
                    if chunks > 1 {
                        return Ok(Some((piece, Some((walk, chunks - 1)))));
                    }
                    // Inserted before the piece is sent, because the next pull may arrive right after it.
                    if walk.can_resume() {
                        cache.insert(walk.filter.clone(), piece.after.clone(), walk);
                    }
                    Ok(Some((piece, None)))
                }
            });
            Ok(Chunks { next_positions: Vec::new(), pieces: pieces.boxed() })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: i64, end: i64) -> Result<Range, u32> {
        let range = DateRange { start_timestamp: Some(start), end_timestamp: Some(end) };
        Range::read(Some(&range)).map_err(|problem| problem.number())
    }

    #[test]
    fn a_range_that_is_negative_or_inverted_is_refused() {
        for (start, end) in [(-1, 0), (0, -1), (2, 1), (-2, -1)] {
            assert_eq!(range(start, end), Err(DATE_RANGE), "{start} {end}");
        }
        assert_eq!(range(0, 0), Ok(Range { start_ns: None, end_ns: None }));
        assert_eq!(range(5, 5), Ok(Range { start_ns: Some(5), end_ns: Some(5) }));
    }

    #[test]
    fn bounds_between_two_microseconds_are_rounded_up() {
        let range = range(1001, 3001).unwrap();
        assert_eq!(range.start_ns.map(TimeUs::at_or_after_ns), Some(TimeUs(2)));
        assert_eq!(range.until(Some(TimeUs(9))), Some(TimeUs(3)), "below 4, which is 3001 ns rounded up");
        assert_eq!(range.until(Some(TimeUs(1))), Some(TimeUs(1)));
        assert_eq!(range.until(None), None);
    }

    #[test]
    fn the_range_is_in_the_name_as_far_as_it_is_given() {
        let start = 1_687_257_080_999_999_999;
        assert_eq!(range(start, start).unwrap().in_name(), "_2023-06-20T10_31_20Z-2023-06-20T10_31_20Z");
        assert_eq!(range(0, start).unwrap().in_name(), "-2023-06-20T10_31_20Z");
        assert_eq!(range(start, 0).unwrap().in_name(), "_2023-06-20T10_31_20Z");
        assert_eq!(range(0, 0).unwrap().in_name(), "");
    }
}
