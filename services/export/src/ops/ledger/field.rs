//! A field of a CSV record as PostgreSQL's COPY writes it (DATA_MODEL 6): NULL and the empty text differ.

/// Writes a comma and a field: nothing for NULL, quoted when it is empty or holds a comma, a quote or a line
/// break.
pub(super) fn write_text(out: &mut Vec<u8>, text: Option<&str>) {
    out.push(b',');
    let Some(text) = text else { return };
    let is_plain = |byte: u8| !matches!(byte, b',' | b'"' | b'\r' | b'\n');
    if !text.is_empty() && text.bytes().all(is_plain) {
        out.extend_from_slice(text.as_bytes());
        return;
    }
    out.push(b'"');
    for byte in text.bytes() {
        if byte == b'"' {
            out.push(b'"');
        }
        out.push(byte);
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_and_the_empty_text_differ_and_text_is_quoted_when_necessary() {
        let mut out = Vec::new();
        for text in
            [None, Some(""), Some("plain x"), Some("a,b"), Some("say \"x\""), Some("a\r"), Some("a\nb")]
        {
            write_text(&mut out, text);
        }
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, ",,\"\",plain x,\"a,b\",\"say \"\"x\"\"\",\"a\r\",\"a\nb\"");
    }
}
