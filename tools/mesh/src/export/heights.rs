//! Resolves the range of blocks of an export: `first` and `last`, and with `--snap` whole segments.

use proto_msgs::v2::HistorySegment;

use super::args::Height;

/// First and last height, both included.
pub(super) type Span = (u64, u64);

pub(super) fn resolve_heights(from: Height, to: Height, segments: &[HistorySegment]) -> Result<Span, String> {
    let spans = || segments.iter().filter_map(span);
    let height = |height| match height {
        Height::At(height) => Some(height),
        Height::First => spans().map(|(from, _)| from).min(),
        Height::Last => spans().map(|(_, to)| to).max(),
    };
    height(from)
        .zip(height(to))
        .ok_or_else(|| "no segment of the history is sealed yet; wait for it, or name the blocks".to_owned())
}

/// The smallest run of whole segments that covers the heights. A height outside all segments stays unchanged
/// and the gateway refuses it, so that the result never has fewer blocks than requested.
pub(super) fn snap_to_segments((from, to): Span, segments: &[HistorySegment]) -> Span {
    let holding =
        |height| segments.iter().filter_map(span).find(|(from, to)| (*from..=*to).contains(&height));
    let start = holding(from).map_or(from, |(start, _)| start);
    let end = holding(to).map_or(to, |(_, end)| end);
    (start, end)
}

fn span(segment: &HistorySegment) -> Option<Span> {
    Some((segment.from_height.try_into().ok()?, segment.to_height.try_into().ok()?))
}
