//! `Prefer` (RFC 7240): whether a request with unknown names is refused (J11). Other preferences are ignored.

use http::{HeaderMap, HeaderName};

use crate::decode::list_header::{lines, pieces, unquoted};

pub(crate) const PREFER: HeaderName = HeaderName::from_static("prefer");

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
    /// The preference of the headers. Of several ones the first counts (RFC 7240, 2).
    pub(crate) fn of_headers(headers: &HeaderMap) -> Self {
        let mut preferences = lines(headers, &PREFER).flat_map(|line| pieces(line, b','));
        preferences.find_map(Self::of_preference).unwrap_or_default()
    }

    /// The handling, if this is the preference of that name.
    fn of_preference(preference: &[u8]) -> Option<Self> {
        // Parameters of the preference are ignored.
        let bare = pieces(preference, b';').next()?;
        let (name, value) = match bare.iter().position(|byte| *byte == b'=') {
            Some(equals) => (&bare[..equals], &bare[equals + 1..]),
            None => (bare, &b""[..]),
        };
        if !name.trim_ascii().eq_ignore_ascii_case(b"handling") {
            return None;
        }
        let is_strict = unquoted(value.trim_ascii()).eq_ignore_ascii_case(b"strict");
        Some(if is_strict { Self::Strict } else { Self::Lenient })
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use rand::{Rng, SeedableRng, rngs::SmallRng, seq::IndexedRandom};

    use super::*;

    fn handling(lines: &[&[u8]]) -> Handling {
        let headers =
            lines.iter().map(|line| (PREFER, HeaderValue::from_bytes(line).expect("a header value")));
        Handling::of_headers(&headers.collect())
    }

    #[test]
    fn strict_handling_is_found_among_other_preferences() {
        for lines in [
            &["handling=strict"][..],
            &["Handling = STRICT"],
            &["handling=\"strict\""],
            &["handling=\"st\\rict\""],
            &["handling=strict;x"],
            &["handling=strict; a=b ;c=\"d;e\""],
            &["respond-async, wait=100, handling=strict"],
            &["respond-async,,handling=strict,"],
            &["return=minimal; handling=lenient", "handling=strict"],
            &["foo=\"a, handling=lenient, \\\"b\", handling=strict"],
            &["", "handling=strict"],
            &["handling=strict, handling=lenient"],
            &["caf\u{e9}, handling=strict"],
        ] {
            let lines: Vec<&[u8]> = lines.iter().map(|line| line.as_bytes()).collect();
            assert_eq!(handling(&lines), Handling::Strict, "{lines:?}");
        }
    }

    #[test]
    fn anything_else_is_lenient() {
        for lines in [
            &[][..],
            &[""],
            &["handling"],
            &["handling="],
            &["handling=\"\""],
            &["handling=lenient"],
            &["handling=lenient, handling=strict"],
            &["handling=stricter"],
            &["handling=\"strict"],
            &["handling=strict\""],
            &["handlings=strict"],
            &["strict"],
            &["return=minimal; handling=strict"],
            &["foo=\"handling=strict\""],
            &["foo=\"a, handling=strict"],
            &["foo=\", handling=strict, \""],
        ] {
            let lines: Vec<&[u8]> = lines.iter().map(|line| line.as_bytes()).collect();
            assert_eq!(handling(&lines), Handling::Lenient, "{lines:?}");
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
    fn any_spelling_of_a_list_of_preferences_has_the_handling_that_comes_first() {
        let mut dice = SmallRng::seed_from_u64(7240);
        let names = ["handling", "return", "wait", "x"];
        let values =
            ["strict", "lenient", "", "a,b", "a;b=c", "\"", "\\", "handling=strict", ", handling=strict,"];
        for _ in 0..20_000 {
            let (mut lines, mut line, mut first) = (Vec::new(), String::new(), None);
            for _ in 0..dice.random_range(0..5) {
                let name = names.choose(&mut dice).unwrap();
                let value = values.choose(&mut dice).unwrap();
                if *name == "handling" {
                    first.get_or_insert(*value);
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
