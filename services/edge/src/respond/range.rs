//! Range requests (RFC 9110, 14; contract X4a): one range of bytes.

use std::ops::Range;

use http::{HeaderMap, header::RANGE};

/// A range of bytes as requested, before the file's length is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestedRange {
    /// From this byte to the end.
    From(u64),
    /// From the first to the last byte, both included.
    Between(u64, u64),
    /// This many bytes at the end.
    Last(u64),
}

impl RequestedRange {
    /// The range of the headers. `None`, the whole file, for none, several, another unit or malformed ones.
    pub(crate) fn of_headers(headers: &HeaderMap) -> Option<Self> {
        let mut values = headers.get_all(RANGE).iter();
        let (value, None) = (values.next()?, values.next()) else { return None };
        let (unit, ranges) = value.to_str().ok()?.split_once('=')?;
        if !unit.trim().eq_ignore_ascii_case("bytes") {
            return None;
        }
        // Empty list elements are ignored (RFC 9110, 5.6.1).
        let mut ranges = ranges.split(',').map(str::trim).filter(|range| !range.is_empty());
        let (range, None) = (ranges.next()?, ranges.next()) else { return None };
        match range.split_once('-')? {
            ("", length) => parse_number(length).map(Self::Last),
            (first, "") => parse_number(first).map(Self::From),
            (first, last) => {
                let (first, last) = (parse_number(first)?, parse_number(last)?);
                (first <= last).then_some(Self::Between(first, last))
            }
        }
    }

    /// The first byte, if it is known without the file's length.
    pub(crate) fn first(self) -> Option<u64> {
        match self {
            Self::From(first) | Self::Between(first, _) => Some(first),
            Self::Last(_) => None,
        }
    }

    /// The range within a file of this length; `None` when it is not satisfiable.
    pub(crate) fn within(self, length: u64) -> Option<Range<u64>> {
        let range = match self {
            Self::From(first) => first..length,
            Self::Between(first, last) => first..length.min(last.saturating_add(1)),
            Self::Last(bytes) => length.saturating_sub(bytes)..length,
        };
        (range.start < range.end).then_some(range)
    }
}

/// Plain digits; a number beyond 64 bits is larger than every file.
fn parse_number(text: &str) -> Option<u64> {
    let is_plain = !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
    is_plain.then(|| text.parse().unwrap_or(u64::MAX))
}
