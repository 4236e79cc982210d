//! `Prefer` (RFC 7240): whether a request with unknown names is refused (J11), and how long a read waits for its
//! block (B3). Other preferences are ignored.

use std::{borrow::Cow, str};

use http::{HeaderMap, HeaderName};
use mesh_chassis::list_header::{lines, pieces, unquoted};

pub(crate) const PREFER: HeaderName = HeaderName::from_static("prefer");

/// Longest wait for a block, seconds; a longer one counts as this.
const MAX_WAIT_S: u64 = 10;

/// The value of a preference without its parameters; empty when it has none. Of several ones of a name the first
/// counts (RFC 7240, 2).
fn preference<'a>(headers: &'a HeaderMap, wanted: &str) -> Option<Cow<'a, [u8]>> {
    let mut preferences = lines(headers, &PREFER).flat_map(|line| pieces(line, b','));
    preferences.find_map(|preference| {
        let bare = pieces(preference, b';').next()?;
        let (name, value) = match bare.iter().position(|byte| *byte == b'=') {
            Some(equals) => (&bare[..equals], &bare[equals + 1..]),
            None => (bare, &b""[..]),
        };
        let is_wanted = name.trim_ascii().eq_ignore_ascii_case(wanted.as_bytes());
        is_wanted.then(|| unquoted(value.trim_ascii()))
    })
}

/// How many seconds a read waits for its block; `None` without a well-formed preference.
pub(crate) fn wait_seconds(headers: &HeaderMap) -> Option<u64> {
    let value = preference(headers, "wait")?;
    let digits = str::from_utf8(&value).ok().filter(|text| !text.is_empty())?;
    // A number beyond 64 bits is longer than every wait.
    let seconds = digits.parse().unwrap_or(u64::MAX).min(MAX_WAIT_S);
    digits.bytes().all(|digit| digit.is_ascii_digit()).then_some(seconds)
}

/// What becomes of a request that its operation does not quite understand.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Handling {
    /// The rest of it is answered.
    #[default]
    Lenient,
    /// It is refused.
    Strict,
}

impl Handling {
    /// The preference of the headers.
    pub(crate) fn of_headers(headers: &HeaderMap) -> Self {
        let is_strict =
            preference(headers, "handling").is_some_and(|value| value.eq_ignore_ascii_case(b"strict"));
        if is_strict { Self::Strict } else { Self::Lenient }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use rand::{Rng, SeedableRng, rngs::SmallRng, seq::IndexedRandom};

    use super::*;

    fn headers(lines: &[&[u8]]) -> HeaderMap {
        let headers =
            lines.iter().map(|line| (PREFER, HeaderValue::from_bytes(line).expect("a header value")));
        headers.collect()
    }

    fn handling(lines: &[&[u8]]) -> Handling {
        Handling::of_headers(&headers(lines))
    }

    #[test]
    fn a_wait_is_a_number_of_seconds_up_to_ten() {
        let wait = |line: &str| wait_seconds(&headers(&[line.as_bytes()]));
        for (line, seconds) in [
            ("wait=5", 5),
            ("Wait\t=  \"7\";x=\"a,b\"", 7),
            ("handling=strict, wait=0", 0),
            ("wait=\"\\01\\0\"", 10),
            ("wait=11", 10),
            ("wait=99999999999999999999999", 10),
            ("wait=3, wait=4", 3),
            ("x;wait=3,y=\", wait=2,\" ;z, wait=4", 4),
        ] {
            assert_eq!(wait(line), Some(seconds), "{line}");
        }
        for line in [
            "wait=x, wait=4", "wait", "wait=", "wait=-1", "wait=+1", "wait=1.5", "wait=5s", "waits=5",
            "x;wait=5", "x=\"wait=5\"",
        ] {
            assert_eq!(wait(line), None, "{line}");
        }
        assert_eq!(wait_seconds(&headers(&[b"x=wait", b"wait=3", b"wait=4"])), Some(3));
    }

    #[test]
    fn strict_handling_is_found_among_other_preferences_and_anything_else_is_lenient() {
        for line in [
            "handling=strict", "Handling = STRICT", "handling=\"strict\"", "handling=\"st\\rict\"",
            "handling=strict;x", "handling=strict; a=b ;c=\"d;e\"", "respond-async,,handling=strict,",
            "wait=100, handling=strict", "x=\"\\\\\", handling=strict", "handling=strict, handling=lenient",
            "caf\u{e9}, handling=strict",
        ] {
            assert_eq!(handling(&[line.as_bytes()]), Handling::Strict, "{line:?}");
        }
        assert_eq!(handling(&[b"x=\"a, handling=lenient, \\\"b\", handling=strict"]), Handling::Strict);
        assert_eq!(handling(&[b"return=minimal; handling=lenient", b"handling=strict"]), Handling::Strict);
        assert_eq!(handling(&[b"", b"handling=strict"]), Handling::Strict);
        assert_eq!(handling(&[]), Handling::Lenient);
        for line in [
            "", "handling", "handling=", "handling=\"\"", "handling=lenient",
            "handling=lenient, handling=strict", "handling=stricter", "handling=\"strict",
            "handling=strict\"", "handlings=strict", "strict", "return=minimal; handling=strict",
            "foo=\"handling=strict\"", "foo=\"a, handling=strict", "foo=\", handling=strict, \"",
            "handling=\", handling=strict,\"", "x=\"\\\", handling=strict",
        ] {
            assert_eq!(handling(&[line.as_bytes()]), Handling::Lenient, "{line:?}");
        }
    }
    #[test]
    fn any_bytes_are_a_preference() {
        let mut dice = SmallRng::seed_from_u64(1);
        let parts: [&[u8]; 10] =
            [b"handling", b"=", b"strict", b"\"", b"\\", b",", b";", b" ", b"\xff", b"handling=strict"];
        for _ in 0..50_000 {
            let count = dice.random_range(0..12);
            let line: Vec<u8> = (0..count)
                .flat_map(|_| parts.choose(&mut dice).copied().unwrap_or_default())
                .copied()
                .collect();
            // A header line does not change the meaning of the next one.
            let alone = handling(&[&line]);
            assert_eq!(handling(&[b"x=\"", &line]), alone, "{}", line.escape_ascii());
            if !line.windows(8).any(|part| part.eq_ignore_ascii_case(b"handling")) {
                assert_eq!(alone, Handling::Lenient, "{}", line.escape_ascii());
            }
        }
    }
}
