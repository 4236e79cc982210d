//! ExportLedgerEntries: the ledger of one party and asset as CSV, by keyset reads up to a bound fixed at the
//! opening.

use std::sync::Arc;

use actix::{Context, Handler};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use jiff::Timestamp;
use mesh_bus::{CancelOnDrop, Chunks, Head, Open, OpenReply, Pull};
use mesh_problem::Problem;
use mesh_store::{ReadError, TimeRange, TimeUs, head_of};
use proto_msgs::{
    numbers::export_ledger_entries::{ASSET_ID_MISSING, DATE_RANGE, LEDGER, PARTY_ID_MISSING},
    v2::{DateRange, ExportInfo, ExportLedgerEntriesRequest},
};

use super::ledger::{
    position::LedgerPosition,
    walk::{ByteBudget, Filter, Walk},
};
use crate::Export;

/// The last block time in the range that can be stored, when `bound` is the newest stored time.
fn until(range: TimeRange, bound: Option<TimeUs>) -> Option<TimeUs> {
    bound.map(|bound| range.last().map_or(bound, |last| last.min(bound)))
}

/// The range in the file name (L7).
fn in_name(range: TimeRange) -> String {
    let seconds = |ns: i64| {
        let at = Timestamp::from_second(ns.div_euclid(1_000_000_000)).unwrap_or_default();
        at.strftime("%Y-%m-%dT%H_%M_%SZ").to_string()
    };
    let start = range.start_ns.map(|ns| format!("_{}", seconds(ns))).unwrap_or_default();
    let end = range.end_ns.map(|ns| format!("-{}", seconds(ns))).unwrap_or_default();
    format!("{start}{end}")
}

fn read(request: &ExportLedgerEntriesRequest) -> Result<TimeRange, Problem> {
    if request.party_id.is_empty() {
        return Err(Problem::invalid(PARTY_ID_MISSING, "party id is missing"));
    }
    if request.asset_id.is_empty() {
        return Err(Problem::invalid(ASSET_ID_MISSING, "asset id is missing"));
    }
    let DateRange { start_timestamp, end_timestamp } = request.date_range.unwrap_or_default();
    TimeRange::read(DateRange::PARAMETERS, [start_timestamp, end_timestamp], DATE_RANGE)
}

impl Handler<Open<ExportLedgerEntriesRequest>> for Export {
    type Result = CancelOnDrop<Result<OpenReply, Problem>>;

    fn handle(&mut self, open: Open<ExportLedgerEntriesRequest>, _: &mut Context<Self>) -> Self::Result {
        let Open { request, scope, .. } = open;
        let store = self.store.clone();
        scope.run(async move {
            let failed = |error: ReadError| error.problem(LEDGER);
            let range = read(&request)?;
            let row =
                store.point(include_str!("../../sql/ledger_bound.sql"), &[], None).await.map_err(failed)?;
            let head = head_of(&row).map_err(failed)?.map(|(height, time_ns)| Head { height, time_ns });
            let bound = head.map(|head| TimeUs::at_or_before_ns(head.time_ns));
            let first = LedgerPosition::start(bound, range.first()).write()?;
            let ExportLedgerEntriesRequest { party_id, asset_id, .. } = request;
            Ok(OpenReply {
                info: ExportInfo {
                    file_name: format!("ledger_entries_{party_id}_{asset_id}{}.csv", in_name(range)),
                    chain_id: row.try_get("chain_id").map_err(ReadError::from).map_err(failed)?,
                    ..ExportInfo::default()
                },
                first: Bytes::copy_from_slice(first.as_bytes()),
                from_byte: 0,
                content_type: "text/csv".to_owned(),
                etag: String::new(),
                is_permanent: false,
                crc32c: None,
                head,
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
            let until = until(range, start.bound);
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

    fn range(start: i64, end: i64) -> TimeRange {
        TimeRange::read(["start", "end"], [Some(start), Some(end)], DATE_RANGE).unwrap()
    }

    #[test]
    fn the_range_is_in_the_name_as_far_as_it_is_given() {
        let start = 1_687_257_080_999_999_999;
        assert_eq!(in_name(range(start, start)), "_2023-06-20T10_31_20Z-2023-06-20T10_31_20Z");
        assert_eq!(in_name(range(0, start)), "-2023-06-20T10_31_20Z");
        assert_eq!(in_name(range(start, 0)), "_2023-06-20T10_31_20Z");
        assert_eq!(in_name(range(0, 0)), "");
    }
}
