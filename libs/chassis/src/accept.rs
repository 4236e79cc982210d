//! Which forms of an answer a client accepts: `Accept` and `Accept-Encoding` with their qualities (RFC 9110,
//! 12.4 and 12.5). A form with `q=0` is not acceptable; neither header is a reason to refuse (J1).

use http::{
    HeaderMap, HeaderName,
    header::{ACCEPT, ACCEPT_ENCODING},
};

use crate::list_header::{lines, pieces, unquoted};

const GZIP: &str = "gzip";
const IDENTITY: &str = "identity";
const ANY_CODING: &str = "*";

/// Whether the client accepts a media type that it names; no range (`*/*`) names one.
pub fn accepts_type(headers: &HeaderMap, media_type: &str) -> bool {
    is_acceptable(headers, &ACCEPT, media_type).unwrap_or(false)
}

/// Whether the client accepts gzip.
pub fn accepts_gzip(headers: &HeaderMap) -> bool {
    accepts_coding(headers, GZIP).unwrap_or(false)
}

/// Whether gzip is the only form that the client accepts, of answers in plain form and in gzip.
pub fn accepts_gzip_alone(headers: &HeaderMap) -> bool {
    accepts_coding(headers, IDENTITY) == Some(false) && accepts_gzip(headers)
}

/// Whether a content coding is acceptable, by its name or by `*`; `None` when the client does not mention it.
fn accepts_coding(headers: &HeaderMap, coding: &str) -> Option<bool> {
    let is_acceptable = |member| is_acceptable(headers, &ACCEPT_ENCODING, member);
    is_acceptable(coding).or_else(|| is_acceptable(ANY_CODING))
}

/// Whether the member of a list header with this name is acceptable; `None` when the list has none. Of several
/// ones, such as a media type with other parameters, the best counts.
fn is_acceptable(headers: &HeaderMap, name: &HeaderName, member: &str) -> Option<bool> {
    let members = lines(headers, name).flat_map(|line| pieces(line, b','));
    let qualities = members.filter_map(|given| {
        let mut parts = pieces(given, b';');
        let is_named = parts.next()?.trim_ascii().eq_ignore_ascii_case(member.as_bytes());
        is_named.then(|| !parts.any(is_zero_quality))
    });
    qualities.reduce(|one, other| one || other)
}

/// Whether a parameter is `q=0`, with any number of decimals, in any case and spacing.
fn is_zero_quality(parameter: &[u8]) -> bool {
    let Some(equals) = parameter.iter().position(|byte| *byte == b'=') else { return false };
    let (name, value) = (parameter[..equals].trim_ascii(), parameter[equals + 1..].trim_ascii());
    let value = unquoted(value);
    let quality = std::str::from_utf8(&value).ok().and_then(|text| text.parse::<f32>().ok());
    name.eq_ignore_ascii_case(b"q") && quality.is_some_and(|quality| quality <= 0.0)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn headers(name: &HeaderName, lines: &[&'static str]) -> HeaderMap {
        lines.iter().map(|line| (name.clone(), HeaderValue::from_static(line))).collect()
    }

    #[test]
    fn a_form_is_accepted_by_its_name_unless_its_quality_is_zero() {
        let accepts = |lines| accepts_type(&headers(&ACCEPT, lines), "text/event-stream");
        for lines in [
            &["text/event-stream"][..],
            &["*/*", "Text/Event-Stream ; Q=0.001"],
            &["text/event-stream;q=0, text/event-stream;charset=utf-8"],
            &["x;y=\"a\\\",b\";q=0, text/event-stream"],
            &["text/event-stream;q=", "*/*;q=0"],
            &["text/event-stream;q=x"],
            &["text/event-stream;xq=0"],
            &["text/event-stream;x=\"q=0\""],
            &["text/event-stream;x=\";q=0\""],
        ] {
            assert!(accepts(lines), "{lines:?}");
        }
        for lines in [
            &[][..],
            &["", ","],
            &["*/*", "text/*"],
            &["text/event-streams"],
            &["text/event-stream;q=0, */*"],
            &["text/event-stream; Q=0"],
            &["text/event-stream\t; q = 0.000"],
            &["text/event-stream;charset=\"a;b,c\";Q=\"0\""],
            &["x/y;a=\"text/event-stream, b\""],
        ] {
            assert!(!accepts(lines), "{lines:?}");
        }
    }

    #[test]
    fn gzip_is_accepted_by_name_or_by_any_and_identity_unless_refused() {
        // Several lines of the header are separated by `|`.
        for (texts, expected) in [
            (
                &["gzip", "br, GZIP;q=0.5", "*", "br|*;q=0.1", "gzip, *;q=0, identity;q=0.1"][..],
                (true, false),
            ),
            (
                &["gzip;q=0", "gzip;Q=0, identity", "*|gzip;q=0.0", "*;q=0", "identity;q=0", "br", ""],
                (false, false),
            ),
            (&["gzip, identity;q=0", "gzip, *;q=0", "*|identity;Q=0.000"], (true, true)),
        ] {
            for text in texts {
                let headers = headers(&ACCEPT_ENCODING, &text.split('|').collect::<Vec<_>>());
                assert_eq!((accepts_gzip(&headers), accepts_gzip_alone(&headers)), expected, "{text}");
            }
        }
    }
}
