//! ExportNetworkHistory: one table over whole segments, as a ZIP whose every byte is known before the first
//! is read.
//!
//! A position is the layout's fingerprint and an offset, so any replica gives the same bytes.

use std::sync::Arc;

use actix::{Addr, Context, Handler};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use mesh_bus::{CancelOnDrop, Chunks, MAX_POSITIONS_AHEAD, Open, OpenReply, Piece, Position, Pull, Totals};
use mesh_history::{HistoryError, Layout, LayoutError, SegmentList};
use mesh_problem::{Code, MALFORMED, Problem, error_chain};
use proto_msgs::{
    numbers::export_network_history::{BOUNDARY, HEIGHTS, MISSING, OTHER_CHAIN, TABLE_MISSING, UNREADABLE},
    v2::{ExportInfo, ExportNetworkHistoryRequest, Table},
};

use crate::{Catalogue, Export, Refresh};

/// Most bytes that one pull reads, also when its budget is larger.
const READ_AT_MOST: usize = 4 << 20;

/// Length of a fingerprint's text in a position.
const FINGERPRINT: usize = 32;

/// A validated request. Whether segments cover its range is not checked yet.
#[derive(Debug, Clone, Copy)]
struct Selection {
    table: Table,
    from: u64,
    to: u64,
}

impl Selection {
    fn read(request: &ExportNetworkHistoryRequest) -> Result<Self, Problem> {
        let table = Table::try_from(request.table).ok().filter(|table| *table != Table::Unspecified);
        let table = table.ok_or_else(|| Problem::invalid(TABLE_MISSING, "table is missing"))?;
        let height = |name: &str, height: Option<i64>| {
            let height = height.ok_or_else(|| Problem::invalid(HEIGHTS, format!("{name} is missing")))?;
            let negative = |_| Problem::invalid(HEIGHTS, format!("{name} is negative"));
            u64::try_from(height).map_err(|error| negative(error).with_inner(height.to_string()))
        };
        let (from, to) = (height("fromBlock", request.from_block)?, height("toBlock", request.to_block)?);
        if from > to {
            let problem = Problem::invalid(HEIGHTS, "fromBlock is greater than toBlock");
            return Err(problem.with_inner(format!("fromBlock {from}, toBlock {to}")));
        }
        Ok(Self { table, from, to })
    }

    fn key(&self) -> (Table, u64, u64) {
        (self.table, self.from, self.to)
    }
}

impl Handler<Open<ExportNetworkHistoryRequest>> for Export {
    type Result = CancelOnDrop<Result<OpenReply, Problem>>;

    fn handle(&mut self, open: Open<ExportNetworkHistoryRequest>, _: &mut Context<Self>) -> Self::Result {
        let Open { request, from_byte, scope } = open;
        let (listing, layouts, catalogue) =
            (self.listing.borrow().clone(), self.layouts.clone(), self.catalogue.clone());
        scope.run(async move {
            let selection = Selection::read(&request)?;
            let lay_out = |list: &Arc<SegmentList>| {
                let layout = layouts.borrow_mut().get_or_make(list, selection.key());
                let layout = layout.map_err(|error| layout_problem(&error, &selection, list));
                check_chain(named_chain(&request), layout.as_deref().ok(), list)?;
                layout
            };
            let layout = match listing.segments.as_ref().map(lay_out) {
                Some(Ok(layout)) => layout,
                // The listing may be older than that of the replica which the client saw before.
                _ => lay_out(&list_again(&catalogue).await?)?,
            };
            let from_byte = from_byte.min(layout.length);
            Ok(OpenReply {
                info: ExportInfo {
                    file_name: layout.file_name.clone(),
                    chain_id: layout.chain_id.clone(),
                    table: Some(selection.table.as_str_name().to_owned()),
                    total_bytes: Some(layout.length),
                    total_rows: Some(layout.rows),
                },
                first: Bytes::copy_from_slice(position(&layout, from_byte)?.as_bytes()),
                from_byte,
                content_type: "application/zip".to_owned(),
                etag: layout.fingerprint.clone(),
                crc32c: Some(layout.crc32c),
                head: None,
                is_permanent: named_chain(&request).is_some(),
            })
        })
    }
}

impl Handler<Pull<ExportNetworkHistoryRequest>> for Export {
    type Result = CancelOnDrop<Result<Chunks, Problem>>;

    fn handle(&mut self, pull: Pull<ExportNetworkHistoryRequest>, _: &mut Context<Self>) -> Self::Result {
        let Pull { request, position: at, budget, scope } = pull;
        let (layouts, catalogue) = (self.layouts.clone(), self.catalogue.clone());
        let segments = self.segments.clone();
        let pulled = self.metrics.pulled("ExportNetworkHistory");
        scope.run(async move {
            let selection = Selection::read(&request)?;
            let (fingerprint, offset) = read_position(&at)?;
            let known = layouts.borrow_mut().get(selection.key(), &fingerprint);
            let layout = match known {
                Some(layout) => layout,
                None => {
                    // A new listing contains every segment of the opening that was not removed since.
                    let list = list_again(&catalogue).await?;
                    let layout = layouts.borrow_mut().get_or_make(&list, selection.key());
                    let layout = layout.map_err(|error| layout_problem(&error, &selection, &list))?;
                    if layout.fingerprint != fingerprint {
                        let what = "the segments of this export have changed";
                        return Err(Problem::internal(UNREADABLE, what));
                    }
                    layout
                }
            };
            if offset > layout.length {
                return Err(Problem::invalid(MALFORMED, "the position is past the end"));
            }
            let chunk = budget.chunk_bytes();
            let most = chunk.saturating_mul(budget.chunks as usize).min(READ_AT_MOST);
            let bytes = match segments.read(&layout, offset, most).await {
                Err(HistoryError::Gone { object }) => {
                    let list = list_again(&catalogue).await?;
                    return Err(gone_problem(&object, &list, &selection));
                }
                read => read.map_err(|error| history_problem(&error))?,
            };
            pulled.inc_by(bytes.len() as u64);
            let end = offset + bytes.len() as u64;
            if bytes.is_empty() && end < layout.length {
                return Err(Problem::internal(UNREADABLE, "the export gave no bytes"));
            }
            let next = |at: u64| (at < layout.length).then_some(at);
            let next_positions = std::iter::successors(next(end), |at| next(layout.read_end(*at, most)));
            let next_positions = next_positions
                .take(MAX_POSITIONS_AHEAD)
                .map(|at| position(&layout, at))
                .collect::<Result<_, _>>()?;
            let pieces = split(&layout, offset, &bytes, chunk);
            Ok(Chunks { next_positions, pieces: stream::iter(pieces).boxed() })
        })
    }
}

/// The segments by a listing that begins now.
async fn list_again(catalogue: &Addr<Catalogue>) -> Result<Arc<SegmentList>, Problem> {
    let listing = catalogue.send(Refresh).await.map_err(|error| unavailable(&error.to_string()))?;
    match (listing.failure, listing.segments) {
        (None, Some(list)) => Ok(list),
        (failure, _) => Err(unavailable(failure.as_deref().unwrap_or("nothing was listed yet"))),
    }
}

/// The chain that a request names; an empty name is none.
fn named_chain(request: &ExportNetworkHistoryRequest) -> Option<&str> {
    request.chain_id.as_deref().filter(|chain| !chain.is_empty())
}

/// Refuses a request that names another chain than the one of its segments; where no segments cover its range,
/// than the one of the newest.
fn check_chain(named: Option<&str>, layout: Option<&Layout>, list: &SegmentList) -> Result<(), Problem> {
    let newest = || list.segments.last().map(|segment| segment.chain_id.as_str());
    match (named, layout.map(|layout| layout.chain_id.as_str()).or_else(newest)) {
        (Some(named), Some(held)) if named != held => {
            let problem = Problem::invalid(OTHER_CHAIN, "the history is of another chain");
            Err(problem.with_inner(format!("the chain is {held}")))
        }
        _ => Ok(()),
    }
}

/// Bytes from `offset` on as pieces of at most `chunk` bytes; one without bytes at the very end.
fn split(layout: &Arc<Layout>, offset: u64, bytes: &Bytes, chunk: usize) -> Vec<Result<Piece, Problem>> {
    let piece = |from: usize, to: usize| {
        let after = offset + to as u64;
        let end = Totals { bytes: layout.length, rows: Some(layout.rows) };
        Ok(Piece {
            bytes: bytes.slice(from..to),
            after: position(layout, after)?,
            end: (after == layout.length).then_some(end),
        })
    };
    let starts = (0..bytes.len().max(1)).step_by(chunk);
    starts.map(|from| piece(from, (from + chunk).min(bytes.len()))).collect()
}

fn position(layout: &Layout, offset: u64) -> Result<Position, Problem> {
    let mut bytes = layout.fingerprint.clone().into_bytes();
    bytes.extend(offset.to_be_bytes());
    Position::new(bytes).ok_or_else(|| Problem::internal(UNREADABLE, "a position is too long"))
}

fn read_position(position: &Position) -> Result<(String, u64), Problem> {
    let wrong = || Problem::invalid(MALFORMED, "the position is not of this export");
    let (fingerprint, offset) = position.as_bytes().split_at_checked(FINGERPRINT).ok_or_else(wrong)?;
    let fingerprint = std::str::from_utf8(fingerprint).map_err(|_| wrong())?;
    let offset = offset.try_into().map_err(|_| wrong())?;
    Ok((fingerprint.to_owned(), u64::from_be_bytes(offset)))
}

fn layout_problem(error: &LayoutError, selection: &Selection, list: &SegmentList) -> Problem {
    match error {
        LayoutError::Inverted { .. } => Problem::invalid(HEIGHTS, "fromBlock is greater than toBlock"),
        LayoutError::NotBoundary { height, below, above } => {
            // When both heights are the same, an invalid start is reported first.
            let starts = list.segments.iter().any(|segment| segment.height_from == selection.from);
            let is_start = *height == selection.from && !starts;
            let (name, kind) = if is_start { ("fromBlock", "starts") } else { ("toBlock", "ends") };
            let nearest: Vec<String> = [below, above].into_iter().flatten().map(u64::to_string).collect();
            Problem::invalid(BOUNDARY, "height is not on a history segment boundary")
                .with_inner(format!("{name} {height}: nearest valid {kind} {}", nearest.join(", ")))
        }
        LayoutError::Missing { from, to } => Problem::not_found(MISSING, "the range is not held")
            .with_inner(format!("missing blocks {from}-{to}")),
        LayoutError::NoTable { name, .. } => {
            Problem::not_found(UNREADABLE, "a segment of the range does not have the table")
                .with_inner(name.to_string())
        }
        LayoutError::Unreadable(name) => {
            match list.unreadable.iter().find(|unreadable| unreadable.name == *name) {
                Some(found) => history_problem(&found.error),
                None => unreadable(error.to_string()),
            }
            .with_inner(name.to_string())
        }
        LayoutError::Overlap(..) | LayoutError::OtherChain { .. } | LayoutError::TooLarge => {
            unreadable(error.to_string())
        }
    }
}

/// The problem of a segment that was removed (H9) after the layout was made: that of the range by a new listing.
fn gone_problem(object: &str, list: &SegmentList, selection: &Selection) -> Problem {
    match Layout::of(list, &selection.table.relation(), selection.from, selection.to) {
        Err(error) => layout_problem(&error, selection, list),
        Ok(_) => unreadable(format!("{object} was removed")),
    }
}

fn history_problem(error: &HistoryError) -> Problem {
    let cause = error_chain(error);
    if error.is_unreachable() { unavailable(&cause) } else { unreadable(cause) }
}

fn unreadable(cause: String) -> Problem {
    Problem::internal(UNREADABLE, "a segment of the range cannot be read").caused_by(cause)
}

fn unavailable(cause: &str) -> Problem {
    Problem::new(Code::Unavailable, UNREADABLE, "the history cannot be reached").caused_by(cause.to_owned())
}
