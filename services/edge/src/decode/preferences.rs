//! `Prefer` (RFC 7240): whether a request with unknown names is refused (J11), and how long a read waits for its
//! block (B3). Other preferences are ignored.

use std::{borrow::Cow, str};

use http::{HeaderMap, HeaderName};

use crate::decode::list_header::{lines, pieces, unquoted};

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
        for (line, seconds) in [
            ("wait=5", Some(5)),
            ("Wait = \"7\";x=\"a,b\"", Some(7)),
            ("handling=strict, wait=0", Some(0)),
            ("wait=010", Some(10)),
            ("wait=11", Some(10)),
            ("wait=99999999999999999999999", Some(10)),
            ("wait=3, wait=4", Some(3)),
            ("wait=x, wait=4", None),
            ("wait", None),
            ("wait=", None),
            ("wait=-1", None),
            ("wait=+1", None),
            ("wait=1.5", None),
            ("wait=5s", None),
            ("waits=5", None),
            ("x;wait=5", None),
            ("x=\"wait=5\"", None),
        ] {
            assert_eq!(wait_seconds(&headers(&[line.as_bytes()])), seconds, "{line}");
        }
    }

    #[test]
    fn strict_handling_is_found_among_other_preferences_and_anything_else_is_lenient() {
        for line in [
            "handling=strict",
            "Handling = STRICT",
            "handling=\"strict\"",
            "handling=\"st\\rict\"",
            "handling=strict;x",
            "handling=strict; a=b ;c=\"d;e\"",
            "respond-async, wait=100, handling=strict",
            "respond-async,,handling=strict,",
            "foo=\"a, handling=lenient, \\\"b\", handling=strict",
            "handling=strict, handling=lenient",
            "caf\u{e9}, handling=strict",
        ] {
            assert_eq!(handling(&[line.as_bytes()]), Handling::Strict, "{line:?}");
        }
        assert_eq!(handling(&[b"return=minimal; handling=lenient", b"handling=strict"]), Handling::Strict);
        assert_eq!(handling(&[b"", b"handling=strict"]), Handling::Strict);
        assert_eq!(handling(&[]), Handling::Lenient);
        for line in [
            "", "handling", "handling=", "handling=\"\"", "handling=lenient",
            "handling=lenient, handling=strict", "handling=stricter", "handling=\"strict",
            "handling=strict\"", "handlings=strict", "strict", "return=minimal; handling=strict",
            "foo=\"handling=strict\"", "foo=\"a, handling=strict", "foo=\", handling=strict, \"",
        ] {
            assert_eq!(handling(&[line.as_bytes()]), Handling::Lenient, "{line:?}");
        }
    }

    /// A word of RFC 7240, as it is or quoted with some letters escaped.
    fn word(dice: &mut SmallRng, text: &str) -> String {
        let is_token = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if is_token && dice.random_bool(0.5) {
            return text.to_owned();
        }
        let mut quoted = String::from('"');
        for letter in text.chars() {
            if matches!(letter, '"' | '\\') || dice.random_bool(0.2) {
                quoted.push('\\');
            }
            quoted.push(letter);
        }
        quoted + "\""
    }

    fn space(dice: &mut SmallRng) -> &'static str {
        ["", "", " ", "\t", "  "].choose(dice).copied().unwrap_or_default()
    }

    /// `name=value`, or the name alone for a value that is empty.
    fn pair(dice: &mut SmallRng, name: &str, value: &str) -> String {
        let mut pair: String = name
            .chars()
            .map(|letter| if dice.random_bool(0.3) { letter.to_ascii_uppercase() } else { letter })
            .collect();
        if !value.is_empty() || dice.random_bool(0.5) {
            pair += &format!("{}={}{}", space(dice), space(dice), word(dice, value));
        }
        pair
    }

    #[test]
    fn any_spelling_of_a_list_of_preferences_has_the_handling_and_the_wait_that_come_first() {
        let mut dice = SmallRng::seed_from_u64(7240);
        let names = ["handling", "return", "wait", "x"];
        let values = [
            "strict", "lenient", "", "3", "12", "a,b", "a;b=c", "\"", "\\", "handling=strict",
            ", handling=strict, wait=3,",
        ];
        for _ in 0..20_000 {
            let (mut lines, mut line) = (Vec::new(), String::new());
            let (mut first, mut first_wait) = (None, None);
            for _ in 0..dice.random_range(0..5) {
                let name = names.choose(&mut dice).unwrap();
                let value = values.choose(&mut dice).unwrap();
                match *name {
                    "handling" => _ = first.get_or_insert(*value),
                    "wait" => _ = first_wait.get_or_insert(*value),
                    _ => {}
                }
                line += &format!("{}{}", space(&mut dice), pair(&mut dice, name, value));
                for _ in 0..dice.random_range(0..3) {
                    let (name, value) = (names.choose(&mut dice).unwrap(), values.choose(&mut dice).unwrap());
                    line += &format!("{};{}", space(&mut dice), space(&mut dice));
                    line += &pair(&mut dice, name, value);
                }
                line += space(&mut dice);
                match dice.random_bool(0.3) {
                    true => lines.push(std::mem::take(&mut line)),
                    false => line.push(','),
                }
            }
            lines.push(line);
            let expected = if first == Some("strict") { Handling::Strict } else { Handling::Lenient };
            let lines: Vec<&[u8]> = lines.iter().map(|line| line.as_bytes()).collect();
            assert_eq!(handling(&lines), expected, "{}", lines.join(&b'|').escape_ascii());
            let expected =
                first_wait.and_then(|value| value.parse().ok()).map(|seconds: u64| seconds.min(10));
            let wait = wait_seconds(&headers(&lines));
            assert_eq!(wait, expected, "{}", lines.join(&b'|').escape_ascii());
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
