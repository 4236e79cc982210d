//! Header fields that are lists (RFC 9110, 5.6): their lines, members and quoted texts.

use std::borrow::Cow;

use http::{HeaderMap, HeaderName};

/// The lines of a header.
pub fn lines<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a [u8]> + use<'a> {
    headers.get_all(name).iter().map(http::HeaderValue::as_bytes)
}

/// The pieces of a list; a delimiter in a quoted text is none. A quote without its end quotes the rest.
pub fn pieces(list: &[u8], delimiter: u8) -> impl Iterator<Item = &[u8]> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    list.split(move |byte| {
        let is_literal = is_escaped;
        is_escaped = is_quoted && !is_literal && *byte == b'\\';
        is_quoted ^= *byte == b'"' && !is_literal;
        *byte == delimiter && !is_quoted
    })
}

/// A word without its quotes and escapes.
pub fn unquoted(word: &[u8]) -> Cow<'_, [u8]> {
    let inside = word.strip_prefix(b"\"").and_then(|word| word.strip_suffix(b"\""));
    let Some(inside) = inside else { return Cow::Borrowed(word) };
    let mut is_escaped = false;
    let is_kept = |byte: &u8| {
        is_escaped = *byte == b'\\' && !is_escaped;
        !is_escaped
    };
    Cow::Owned(inside.iter().copied().filter(is_kept).collect())
}
