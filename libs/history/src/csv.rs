//! The CSV dialect of the history (DATA_MODEL 6): where records end, and what a record's fields are.
//!
//! A record ends at a line feed outside quotes; quotes inside a quoted value are doubled. An unquoted empty
//! field is NULL, a quoted empty one is the empty text.

use std::borrow::Cow;

use memchr::{memchr, memchr2};

/// A violation of the dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CsvError {
    /// The text ended inside a quoted value.
    #[error("a quoted value has no end")]
    OpenQuote,
    /// A quote inside an unquoted value, or text after a closing quote.
    #[error("a quote is not allowed here")]
    StrayQuote,
    /// There is no header record.
    #[error("there is no header record")]
    NoHeader,
    /// The header record is longer than any table's.
    #[error("the header record is longer than {0} bytes")]
    LongHeader(usize),
    /// The text ends without a line feed.
    #[error("the last record has no line feed")]
    OpenRecord,
    /// A record ends with a carriage return and a line feed.
    #[error("a record ends with a carriage return")]
    CarriageReturn,
    /// A record does not have as many fields as the header.
    #[error("record {record} has {found} fields, not {expected}")]
    Fields {
        /// Counted from 1 after the header.
        record: u64,
        /// Its number of fields.
        found: u64,
        /// The header's number of fields.
        expected: u64,
    },
    /// Bytes that are not UTF-8.
    #[error("the text is not UTF-8")]
    NotUtf8,
}

/// Finds the ends of records in text that comes in pieces of any size; keeps two bits between pieces.
#[derive(Debug, Clone, Default)]
pub struct RecordSplitter {
    quoted: bool,
    open: bool,
}

impl RecordSplitter {
    /// The length up to and including the end of the current record, or `None` when it continues after
    /// `bytes`.
    pub fn end(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        loop {
            let rest = &bytes[at..];
            let found = if self.quoted { memchr(b'"', rest) } else { memchr2(b'"', b'\n', rest) };
            let Some(found) = found else {
                self.open |= !bytes.is_empty();
                return None;
            };
            at += found + 1;
            if bytes[at - 1] == b'\n' {
                self.open = false;
                return Some(at);
            }
            self.quoted = !self.quoted;
        }
    }

    /// How many records end in `bytes`.
    pub fn count(&mut self, mut bytes: &[u8]) -> u64 {
        let mut ended = 0;
        while let Some(end) = self.end(bytes) {
            ended += 1;
            bytes = &bytes[end..];
        }
        ended
    }

    /// Whether the text ends with a record without a line feed.
    ///
    /// # Errors
    ///
    /// The text ends inside a quoted value.
    pub fn finish(&self) -> Result<bool, CsvError> {
        if self.quoted { Err(CsvError::OpenQuote) } else { Ok(self.open) }
    }
}

/// The fields of one record, with or without its line end.
pub fn fields(record: &[u8]) -> Fields<'_> {
    let record = record.strip_suffix(b"\n").unwrap_or(record);
    Fields { rest: Some(record.strip_suffix(b"\r").unwrap_or(record)) }
}

/// The names in a header record.
pub(crate) fn columns(header: &[u8]) -> Result<Vec<String>, CsvError> {
    fields(header)
        .map(|field| Ok(String::from_utf8_lossy(&field?.unwrap_or_default()).into_owned()))
        .collect()
}

/// The fields of one record in order: `None` is NULL, `Some("")` the empty text. Ends after an error.
#[derive(Debug, Clone)]
pub struct Fields<'a> {
    rest: Option<&'a [u8]>,
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Option<Cow<'a, [u8]>>, CsvError>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.rest.take()?;
        let (value, after) = match rest.strip_prefix(b"\"") {
            Some(quoted) => match unquote(quoted) {
                Ok((value, after)) => (Some(value), after),
                Err(error) => return Some(Err(error)),
            },
            None => {
                let (plain, after) = rest.split_at(memchr(b',', rest).unwrap_or(rest.len()));
                if memchr(b'"', plain).is_some() {
                    return Some(Err(CsvError::StrayQuote));
                }
                ((!plain.is_empty()).then_some(Cow::Borrowed(plain)), after)
            }
        };
        self.rest = match after {
            [] => None,
            [b',', next @ ..] => Some(next),
            _ => return Some(Err(CsvError::StrayQuote)),
        };
        Some(Ok(value))
    }
}

/// The value after an opening quote, and the rest after its closing quote.
fn unquote(quoted: &[u8]) -> Result<(Cow<'_, [u8]>, &[u8]), CsvError> {
    let mut value = Cow::Borrowed(&quoted[..0]);
    let mut rest = quoted;
    loop {
        let quote = memchr(b'"', rest).ok_or(CsvError::OpenQuote)?;
        let (piece, after) = (&rest[..quote], &rest[quote + 1..]);
        if value.is_empty() {
            value = Cow::Borrowed(piece);
        } else {
            value.to_mut().extend_from_slice(piece);
        }
        let Some(next) = after.strip_prefix(b"\"") else { return Ok((value, after)) };
        value.to_mut().push(b'"');
        rest = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(record: &str) -> Result<Vec<Option<String>>, CsvError> {
        let text = |value: Cow<'_, [u8]>| String::from_utf8(value.into_owned()).unwrap();
        fields(record.as_bytes()).map(|field| Ok(field?.map(text))).collect()
    }

    #[test]
    fn null_and_the_empty_text_differ() {
        let fields = read("a,,\"\",\"he said \"\"x, y\"\"\",\"\"\"\"\r\n").unwrap();
        let text = |value: &str| Some(value.to_owned());
        assert_eq!(fields, [text("a"), None, text(""), text("he said \"x, y\""), text("\"")]);
        assert_eq!(read("\n").unwrap(), [None]);
        assert_eq!(read("\"\"").unwrap(), [text("")]);
        assert_eq!(read("a,").unwrap(), [text("a"), None]);
    }

    #[test]
    fn what_is_not_of_the_dialect_is_refused() {
        assert_eq!(read("\"a").unwrap_err(), CsvError::OpenQuote);
        assert_eq!(read("a\"b").unwrap_err(), CsvError::StrayQuote);
        assert_eq!(read("\"a\"b,c").unwrap_err(), CsvError::StrayQuote);
    }

    #[test]
    fn record_ends_do_not_depend_on_the_pieces() {
        let records =
            ["a,\"\",é\n", "\"x\"\"\n\",\r\n", "\n", ",\"\r\n,\"\n", "\"\"\"\"\r\n", "\"\n\"\n", "\"\"\n"];
        let text = records.concat();
        let ends: Vec<usize> = (1..=records.len()).map(|count| records[..count].concat().len()).collect();
        for length in 1..=text.len() {
            let (mut splitter, mut counter) = (RecordSplitter::default(), RecordSplitter::default());
            let (mut found, mut count, mut at) = (Vec::new(), 0, 0);
            for piece in text.as_bytes().chunks(length) {
                count += counter.count(piece);
                let mut taken = 0;
                while let Some(end) = splitter.end(&piece[taken..]) {
                    taken += end;
                    found.push(at + taken);
                }
                at += piece.len();
            }
            assert_eq!((&found, count), (&ends, ends.len() as u64), "pieces of {length}");
            assert_eq!(splitter.finish(), Ok(false));
        }
    }

    #[test]
    fn an_unfinished_record_is_noticed() {
        let mut records = RecordSplitter::default();
        assert_eq!(records.count(b"a\nb"), 1);
        assert_eq!(records.finish(), Ok(true));
        assert_eq!(records.count(b",\"c"), 0);
        assert_eq!(records.finish(), Err(CsvError::OpenQuote));
    }
}
