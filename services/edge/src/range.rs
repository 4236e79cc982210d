//! The part of a file that a client asks for (RFC 9110, 14; contract X4a): one range of bytes.

use std::ops::Range;

use http::{HeaderMap, header::RANGE};

/// One range of bytes, as it is asked for without knowing the file's length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// From this byte to the end.
    From(u64),
    /// From this byte to that one, which is included.
    Between(u64, u64),
    /// So many bytes at the end.
    Last(u64),
}

impl Part {
    /// What the headers ask for; nothing means the whole file, as do several ranges, another unit, or what cannot be
    /// understood.
    pub(crate) fn wanted(headers: &HeaderMap) -> Option<Self> {
        let mut values = headers.get_all(RANGE).iter();
        let (value, None) = (values.next()?, values.next()) else { return None };
        let (unit, ranges) = value.to_str().ok()?.split_once('=')?;
        if !unit.trim().eq_ignore_ascii_case("bytes") {
            return None;
        }
        // Empty elements of a list say nothing.
        let mut ranges = ranges.split(',').map(str::trim).filter(|range| !range.is_empty());
        let (range, None) = (ranges.next()?, ranges.next()) else { return None };
        match range.split_once('-')? {
            ("", length) => number(length).map(Self::Last),
            (first, "") => number(first).map(Self::From),
            (first, last) => {
                let (first, last) = (number(first)?, number(last)?);
                (first <= last).then_some(Self::Between(first, last))
            }
        }
    }

    /// The first byte, as far as it is known without the file's length.
    pub(crate) fn first(self) -> Option<u64> {
        match self {
            Self::From(first) | Self::Between(first, _) => Some(first),
            Self::Last(_) => None,
        }
    }

    /// The bytes of a file of this length; nothing when it has none of them.
    pub(crate) fn of(self, length: u64) -> Option<Range<u64>> {
        let range = match self {
            Self::From(first) => first..length,
            Self::Between(first, last) => first..length.min(last.saturating_add(1)),
            Self::Last(bytes) => length.saturating_sub(bytes)..length,
        };
        (range.start < range.end).then_some(range)
    }
}

/// Plain digits; a number that is too large for us is larger than every file.
fn number(text: &str) -> Option<u64> {
    let is_plain = !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
    is_plain.then(|| text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn wanted(values: &[&'static str]) -> Option<Part> {
        Part::wanted(&values.iter().map(|value| (RANGE, HeaderValue::from_static(value))).collect())
    }

    #[test]
    fn one_range_of_bytes_is_understood() {
        for (value, part) in [
            ("bytes=0-0", Part::Between(0, 0)),
            ("bytes=5-", Part::From(5)),
            ("Bytes = 5-9 , ", Part::Between(5, 9)),
            ("bytes=-7", Part::Last(7)),
            ("bytes=0-99999999999999999999", Part::Between(0, u64::MAX)),
        ] {
            assert_eq!(wanted(&[value]), Some(part), "{value}");
        }
    }

    #[test]
    fn everything_else_means_the_whole_file() {
        for value in [
            "",
            "bytes",
            "bytes=",
            "bytes=-",
            "bytes=a-",
            "bytes=1-2-3",
            "bytes=9-5",
            "bytes=+1-2",
            "rows=1-2",
        ] {
            assert_eq!(wanted(&[value]), None, "{value}");
        }
        assert_eq!(wanted(&["bytes=0-1,3-4"]), None, "several ranges");
        assert_eq!(wanted(&["bytes=0-1", "bytes=3-4"]), None, "several headers");
        assert_eq!(wanted(&[]), None);
    }

    #[test]
    fn a_range_is_cut_at_the_end_of_the_file() {
        for (part, length, range) in [
            (Part::From(0), 10, Some(0..10)),
            (Part::From(9), 10, Some(9..10)),
            (Part::From(10), 10, None),
            (Part::Between(2, 3), 10, Some(2..4)),
            (Part::Between(2, 99), 10, Some(2..10)),
            (Part::Between(0, u64::MAX), 10, Some(0..10)),
            (Part::Between(10, 12), 10, None),
            (Part::Last(3), 10, Some(7..10)),
            (Part::Last(30), 10, Some(0..10)),
            (Part::Last(0), 10, None),
            (Part::Last(1), 0, None),
        ] {
            assert_eq!(part.of(length), range, "{part:?} of {length}");
        }
    }
}
