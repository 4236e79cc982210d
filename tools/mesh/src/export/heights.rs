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

#[cfg(test)]
mod tests {
    use super::*;

    /// 1-10, one that an upgrade closed early, and a gap.
    fn segments() -> Vec<HistorySegment> {
        let spans = [(31, 40), (15, 20), (11, 14), (1, 10)];
        let segment =
            |(from_height, to_height)| HistorySegment { from_height, to_height, ..Default::default() };
        spans.into_iter().map(segment).collect()
    }

    #[test]
    fn the_ends_have_names() {
        let segments = segments();
        assert_eq!(resolve_heights(Height::First, Height::Last, &segments), Ok((1, 40)));
        assert_eq!(resolve_heights(Height::At(5), Height::Last, &segments), Ok((5, 40)));
        assert_eq!(resolve_heights(Height::At(5), Height::At(6), &[]), Ok((5, 6)));
        resolve_heights(Height::First, Height::At(6), &[]).unwrap_err();
    }

    #[test]
    fn whole_segments_cover_the_requested_heights() {
        for (requested, span) in [
            ((1, 10), (1, 10)),
            ((2, 10), (1, 10)),
            ((5, 5), (1, 10)),
            ((10, 11), (1, 14)),
            ((12, 16), (11, 20)),
            ((12, 25), (11, 25)),
            ((0, 5), (0, 10)),
            ((35, 99), (31, 99)),
        ] {
            assert_eq!(snap_to_segments(requested, &segments()), span, "{requested:?}");
        }
        assert_eq!(snap_to_segments((3, 4), &[]), (3, 4));
    }
}
