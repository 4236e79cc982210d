//! The names in a request that its operation does not have (J11): reported in the header `X-Ignored`, or as an
//! error that suggests a similar name.

use std::fmt::Write;

use http::HeaderValue;
use mesh_problem::{MALFORMED, Problem};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use strsim::jaro_winkler;

/// Greatest number of names reported for one request.
const MAX_NAMES: usize = 10;

/// Longest reported name, characters.
const MAX_CHARS: usize = 64;

/// Longest reported list of known names, characters; a longer list is left out.
const MAX_KNOWN_CHARS: usize = 200;

/// Least similarity of a suggested name; 1 = equal.
const MIN_SIMILARITY: f64 = 0.8;

/// The escaped characters of a name: all but visible ASCII, and the separators of a list of names.
const ESCAPED: &AsciiSet = &CONTROLS.add(b' ').add(b',').add(b'"').add(b'%').add(b'\\');

/// Distinct unknown names in the order of the request, as they are reported.
#[derive(Debug, Default)]
pub(crate) struct UnknownNames {
    names: Vec<String>,
    /// Whether there are more names than are reported.
    is_cut: bool,
    /// Whether `atBlock` is among them, reported or not.
    has_at_block: bool,
}

/// The error for `atBlock` where it is unknown: it is never ignored, because the answer would be of another block (B5).
pub(super) fn no_at_block() -> Problem {
    Problem::invalid(MALFORMED, "this operation has no `atBlock`: its answer is always the newest")
        .with_inner("atBlock")
}

/// The error for a watch with `atBlock` (B5).
pub(crate) fn watch_at_block() -> Problem {
    Problem::invalid(MALFORMED, "a watch has no `atBlock`: it follows the newest block").with_inner("atBlock")
}

impl UnknownNames {
    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Whether `atBlock` is unknown, in either spelling (J2).
    pub(super) fn has_at_block(&self) -> bool {
        self.has_at_block
    }

    /// Adds a name as the request has it.
    pub(super) fn push(&mut self, name: &str) {
        self.has_at_block |= matches!(name, "atBlock" | "at_block");
        if self.is_cut {
            return;
        }
        self.push_printable(printable(name));
    }

    /// Adds other names.
    pub(crate) fn append(&mut self, others: Self) {
        others.names.into_iter().for_each(|name| self.push_printable(name));
    }

    fn push_printable(&mut self, name: String) {
        if self.names.contains(&name) {
            return;
        }
        self.is_cut |= self.names.len() == MAX_NAMES;
        if !self.is_cut {
            self.names.push(name);
        }
    }

    /// The value of `X-Ignored`, if any name is unknown.
    pub(crate) fn header(&self) -> Option<HeaderValue> {
        (!self.is_empty()).then(|| HeaderValue::try_from(self.names.join(", ")).ok())?
    }

    /// The error for these names; it suggests the most similar known name for each, or lists all known names.
    pub(super) fn refusal(&self, reason: &str, known: &[String]) -> Problem {
        let mut inner = String::new();
        let mut others = Vec::new();
        for name in &self.names {
            match most_similar(name, known) {
                Some(meant) => {
                    let _ = write!(inner, "{}{name}: did you mean {meant}?", separator(&inner));
                }
                None => others.push(name.as_str()),
            }
        }
        if !others.is_empty() {
            let _ = write!(inner, "{}{}", separator(&inner), others.join(", "));
            let known = known.join(", ");
            if known.len() <= MAX_KNOWN_CHARS {
                let _ = write!(inner, " (known: {known})");
            }
        }
        if self.is_cut {
            inner.push_str("; and more");
        }
        Problem::invalid(MALFORMED, reason).with_inner(inner)
    }
}

fn separator(text: &str) -> &'static str {
    if text.is_empty() { "" } else { "; " }
}

/// A name in visible ASCII, other characters percent-encoded, cut between two characters. An empty one is
/// `""`.
fn printable(name: &str) -> String {
    if name.is_empty() {
        return "\"\"".to_owned();
    }
    let mut text = String::new();
    let mut buffer = [0; 4];
    for letter in name.chars() {
        let start = text.len();
        text.extend(utf8_percent_encode(letter.encode_utf8(&mut buffer), ESCAPED));
        if text.len() > MAX_CHARS {
            text.truncate(start);
            break;
        }
    }
    text
}

/// The known name that is most similar to a name, if any is similar enough.
fn most_similar<'a>(name: &str, known: &'a [String]) -> Option<&'a str> {
    let best =
        known.iter().map(|known| (similarity(name, known), known)).max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 >= MIN_SIMILARITY).then_some(best.1)
}

/// How similar two dotted names are. The last parts decide, since a common object would make any two names
/// similar; a name without its object, or with one too many, may be meant all the same.
fn similarity(name: &str, known: &str) -> f64 {
    let (name, known) = (comparable(name), comparable(known));
    if name.replace('.', "") == known.replace('.', "") {
        return 1.0;
    }
    match (name.rsplit_once('.'), known.rsplit_once('.')) {
        (None, None) => jaro_winkler(&name, &known),
        (None, Some((_, last))) => jaro_winkler(&name, last),
        (Some((_, last)), None) => jaro_winkler(last, &known),
        (Some((object, last)), Some((known_object, known_last))) => {
            jaro_winkler(object, known_object).min(jaro_winkler(last, known_last))
        }
    }
}

/// A name without what its spelling changes: upper case, and the underscores of snake_case.
fn comparable(name: &str) -> String {
    name.chars().filter(|letter| *letter != '_').map(|letter| letter.to_ascii_lowercase()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unknown(names: &[&str]) -> UnknownNames {
        let mut unknown = UnknownNames::default();
        names.iter().for_each(|name| unknown.push(name));
        unknown
    }

    fn header(names: &[&str]) -> String {
        unknown(names).header().map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default()
    }

    fn inner(names: &[&str], known: &[&str]) -> String {
        let known: Vec<String> = known.iter().map(|name| (*name).to_owned()).collect();
        let problem = unknown(names).refusal("a parameter is unknown", &known);
        assert_eq!(problem.number(), MALFORMED);
        problem.details[0].inner.clone()
    }

    #[test]
    fn a_told_name_is_visible_ascii_without_a_comma() {
        assert_eq!(header(&["a,b", "a b", "ä", "\0\r\n", "", "\"", "a%2Cb"]), {
            "a%2Cb, a%20b, %C3%A4, %00%0D%0A, \"\", %22, a%252Cb"
        });
        for byte in 0..=u8::MAX {
            let header = header(&[&char::from(byte).to_string()]);
            assert!(header.bytes().all(|byte| byte.is_ascii_graphic() && byte != b','), "{byte}: {header}");
        }
    }

    #[test]
    fn ten_names_of_64_characters_are_told_at_most() {
        let long = "x".repeat(70);
        assert_eq!(header(&[&long]), long[..64]);
        let umlauts = "ä".repeat(70);
        assert_eq!(header(&[&umlauts]), "%C3%A4".repeat(10), "no escape is cut");
        let names: Vec<String> = (0..12).map(|number| number.to_string()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(header(&names), "0, 1, 2, 3, 4, 5, 6, 7, 8, 9");
        assert!(inner(&names, &[]).ends_with("; and more"));
        assert!(!inner(&names[..10], &[]).contains("more"));
    }

    #[test]
    fn a_refusal_says_what_was_meant() {
        let known = ["partyId", "nodeId", "filter.fromEpoch", "pagination.first", "pretty"];
        for (meant, names) in [
            ("partyId", &["party", "PARTYID", "party_ids", "partId", "filter.partyId"][..]),
            ("pagination.first", &["first", "pagination.frist", "paginationFirst"]),
            ("filter.fromEpoch", &["from_epoch", "filters.from"]),
            ("pretty", &["prety"]),
        ] {
            for &given in names {
                assert_eq!(inner(&[given], &known), format!("{given}: did you mean {meant}?"));
            }
        }
        for given in ["foo", "pagination.size", "filter.assetIds", "limit", "x", ""] {
            assert!(!inner(&[given], &known).contains("did you mean"), "{given}");
        }
    }

    #[test]
    fn a_refusal_of_names_that_are_like_none_lists_the_known_ones_when_they_are_few() {
        let known = ["party", "market", "pretty"];
        assert_eq!(inner(&["foo", "bar"], &known), "foo, bar (known: party, market, pretty)");
        assert_eq!(
            inner(&["foo", "partyId"], &known),
            "partyId: did you mean party?; foo (known: party, market, pretty)"
        );
        let many: Vec<String> = (0..40).map(|number| format!("number{number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(inner(&["foo"], &many), "foo");
    }
}
