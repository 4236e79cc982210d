//! The first record of a CSV file: the names of its columns, in PostgreSQL's dialect.

/// Reads the header record at the beginning of `start`, the first bytes of a file; `whole` says that these
/// are all bytes of the file. A byte order mark is skipped. The error describes the mistake in the header.
pub(super) fn parse(start: &[u8], whole: bool) -> Result<Vec<String>, String> {
    let text = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start);
    if text.is_empty() {
        return Err("the file is empty, a header with column names was expected".to_owned());
    }
    let mut names = Vec::new();
    let mut name = Vec::new();
    let mut quoted = false;
    let mut bytes = text.iter().copied().peekable();
    let mut ended = false;
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' if quoted && bytes.peek() == Some(&b'"') => {
                bytes.next();
                name.push(b'"');
            }
            b'"' => quoted = !quoted,
            b',' if !quoted => names.push(column(std::mem::take(&mut name))?),
            b'\n' | b'\r' if !quoted => {
                ended = true;
                break;
            }
            other => name.push(other),
        }
    }
    if !ended && !whole {
        return Err(format!("the header is longer than {} bytes", start.len()));
    }
    if quoted {
        return Err("a quote in the header is not closed".to_owned());
    }
    names.push(column(name)?);
    let mut sorted: Vec<&String> = names.iter().collect();
    sorted.sort();
    if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(format!("the header names column {:?} twice", twice[0]));
    }
    Ok(names)
}

fn column(name: Vec<u8>) -> Result<String, String> {
    String::from_utf8(name).map_err(|_| "the header is not UTF-8".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(start: &str) -> Vec<String> {
        parse(start.as_bytes(), true).unwrap()
    }

    #[test]
    fn quotes_and_a_byte_order_mark_are_not_part_of_a_name() {
        assert_eq!(names("\u{feff}\"timestamp\",id\r\n"), ["timestamp", "id"]);
        assert_eq!(names("\"a,b\",\"say \"\"x\"\"\",\"two\nlines\"\n"), ["a,b", "say \"x\"", "two\nlines"]);
    }

    #[test]
    fn broken_headers_are_refused_with_their_reason() {
        for (start, reason) in [
            ("", "the file is empty, a header with column names was expected"),
            ("\u{feff}", "the file is empty, a header with column names was expected"),
            ("id,\"height\n", "a quote in the header is not closed"),
            ("id,hash,id\n", "the header names column \"id\" twice"),
        ] {
            assert_eq!(parse(start.as_bytes(), true).unwrap_err(), reason);
        }
        assert_eq!(parse(b"id,\xff\n", true).unwrap_err(), "the header is not UTF-8");
        assert_eq!(parse(b"id,hei", false).unwrap_err(), "the header is longer than 6 bytes");
    }
}
