//! Percent-encoded texts of paths and queries. What does not decode to UTF-8 is refused where it is used.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

/// A decoded text.
pub(crate) type Text<'a> = Result<Cow<'a, str>, NotUtf8>;

/// The name and value of a field of the path.
pub(crate) type PathField = (&'static str, Text<'static>);

/// A text whose bytes are not UTF-8.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NotUtf8(
    /// The text for errors, with U+FFFD for what cannot be read.
    pub(crate) String,
);

/// Decodes a segment of a path.
pub(crate) fn decode_segment(text: &str) -> Text<'_> {
    of_bytes(text, percent_decode_str(text).into())
}

/// Decodes a name or a value of a query, in which `+` is a space.
pub(crate) fn decode_form(text: &str) -> Text<'_> {
    if !text.contains('+') {
        return decode_segment(text);
    }
    let spaced = text.replace('+', " ");
    of_bytes("", Cow::Owned(percent_decode_str(&spaced).collect()))
}

/// `text`: what borrowed bytes are of.
fn of_bytes<'a>(text: &'a str, bytes: Cow<'a, [u8]>) -> Text<'a> {
    match bytes {
        Cow::Borrowed(_) => Ok(Cow::Borrowed(text)),
        Cow::Owned(bytes) => match String::from_utf8(bytes) {
            Ok(text) => Ok(Cow::Owned(text)),
            Err(error) => Err(NotUtf8(String::from_utf8_lossy(error.as_bytes()).into_owned())),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_decoded_as_utf_8_or_not_at_all() {
        for (text, segment, form) in [
            ("", "", ""),
            ("a+b", "a+b", "a b"),
            ("a%2Bb%20c", "a+b c", "a+b c"),
            ("%C3%a4+%F0%9F%92%B0", "ä+💰", "ä 💰"),
            ("100%+%zz%2", "100%+%zz%2", "100% %zz%2"),
            ("%EF%BF%BD", "\u{fffd}", "\u{fffd}"),
        ] {
            assert_eq!(decode_segment(text).as_deref(), Ok(segment), "{text}");
            assert_eq!(decode_form(text).as_deref(), Ok(form), "{text}");
        }
        for text in ["%FF", "a%c3", "%C0%80", "%ED%A0%80", "%F4%90%80%80", "+%80"] {
            assert!(decode_segment(text).is_err() && decode_form(text).is_err(), "{text}");
        }
        assert_eq!(decode_form("a+%FFb"), Err(NotUtf8("a \u{fffd}b".to_owned())));
    }
}
