//! The rules of DATA_MODEL 6 for a whole table's text, in pieces of any size: UTF-8, records that end with
//! one line feed, quotes only around whole values, and as many fields in each record as the header names.

use memchr::{memchr, memchr3};

use crate::{block_rows::BlockRows, csv::CsvError};

/// Checks text against the rules; its state between pieces is a few bytes.
#[derive(Debug, Default)]
pub(crate) struct CsvValidator {
    state: State,
    /// Commas of the current record.
    commas: u64,
    /// Commas of the header, once it has ended.
    header_commas: Option<u64>,
    records: u64,
    /// The byte before the piece.
    last: u8,
    utf8: Utf8Validator,
    /// The check that gets the values of the rows that follow, too.
    pub(crate) rows: Option<BlockRows>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    /// At the start of a field.
    #[default]
    Start,
    Plain,
    Quoted,
    /// After a quote inside a quoted field: its end, or half of a doubled one.
    Quote,
}

impl CsvValidator {
    /// Checks the next piece of the text.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), CsvError> {
        self.utf8.write(bytes)?;
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            let rest = &bytes[at..];
            at += match (self.state, byte) {
                (State::Quoted, _) => {
                    let quote = memchr(b'"', rest);
                    self.take_value(&rest[..quote.unwrap_or(rest.len())]);
                    if quote.is_some() {
                        self.state = State::Quote;
                    }
                    quote.map_or(rest.len(), |quote| quote + 1)
                }
                (State::Start | State::Quote, b'"') => {
                    self.state = State::Quoted;
                    1
                }
                (_, b',') => {
                    self.commas += 1;
                    self.state = State::Start;
                    1
                }
                (_, b'\n') => {
                    let before = if at == 0 { self.last } else { bytes[at - 1] };
                    self.end_record(before)?;
                    1
                }
                (State::Start | State::Plain, byte) if byte != b'"' => {
                    self.state = State::Plain;
                    let length = memchr3(b'"', b',', b'\n', rest).unwrap_or(rest.len());
                    self.take_value(&rest[..length]);
                    length
                }
                _ => return Err(CsvError::StrayQuote),
            };
        }
        self.last = bytes.last().copied().unwrap_or(self.last);
        Ok(())
    }

    /// Ends the text and returns the number of records, including the header.
    pub(crate) fn finish(self) -> Result<u64, CsvError> {
        match self.state {
            State::Quoted => return Err(CsvError::OpenQuote),
            State::Start if self.commas == 0 => {}
            _ => return Err(CsvError::OpenRecord),
        }
        if self.records == 0 {
            return Err(CsvError::NoHeader);
        }
        self.utf8.finish()?;
        Ok(self.records)
    }

    fn end_record(&mut self, before: u8) -> Result<(), CsvError> {
        if before == b'\r' {
            return Err(CsvError::CarriageReturn);
        }
        let record = self.records;
        self.records += 1;
        let expected = *self.header_commas.get_or_insert(self.commas);
        if self.commas != expected {
            return Err(CsvError::Fields { record, found: self.commas + 1, expected: expected + 1 });
        }
        self.commas = 0;
        self.state = State::Start;
        if let Some(rows) = &mut self.rows {
            rows.end_row();
        }
        Ok(())
    }

    fn take_value(&mut self, piece: &[u8]) {
        if let Some(rows) = &mut self.rows {
            rows.take(self.commas, piece);
        }
    }
}

/// UTF-8 in pieces: `cut` holds the beginning of a character that the last piece cut.
#[derive(Debug, Default)]
struct Utf8Validator {
    cut: Vec<u8>,
}

impl Utf8Validator {
    fn write(&mut self, mut bytes: &[u8]) -> Result<(), CsvError> {
        while !self.cut.is_empty() {
            let Some((&byte, rest)) = bytes.split_first() else { return Ok(()) };
            self.cut.push(byte);
            bytes = rest;
            match std::str::from_utf8(&self.cut) {
                Ok(_) => self.cut.clear(),
                Err(error) if error.error_len().is_none() => {}
                Err(_) => return Err(CsvError::NotUtf8),
            }
        }
        match std::str::from_utf8(bytes) {
            Ok(_) => Ok(()),
            Err(error) if error.error_len().is_none() => {
                self.cut.extend_from_slice(&bytes[error.valid_up_to()..]);
                Ok(())
            }
            Err(_) => Err(CsvError::NotUtf8),
        }
    }

    fn finish(&self) -> Result<(), CsvError> {
        if self.cut.is_empty() { Ok(()) } else { Err(CsvError::NotUtf8) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same for every way to cut the text in pieces of one length.
    fn check(text: &[u8]) -> Result<u64, CsvError> {
        let in_pieces = |length: usize| {
            let mut rules = CsvValidator::default();
            text.chunks(length).try_for_each(|piece| rules.write(piece))?;
            rules.finish()
        };
        let whole = in_pieces(text.len().max(1));
        for length in 1..text.len() {
            assert_eq!(in_pieces(length), whole, "pieces of {length}");
        }
        whole
    }

    #[test]
    fn what_postgresql_writes_follows_the_rules() {
        let text = "id,\"a,b\"\n,\"\"\n\"x\r\n\"\"y\"\",\",é\nNULL,\\N\n";
        assert_eq!(check(text.as_bytes()), Ok(4));
        assert_eq!(check(b"id\n\n\"\"\n"), Ok(3));
    }

    #[test]
    fn what_breaks_a_rule_is_refused() {
        for (text, what) in [
            (&b""[..], CsvError::NoHeader),
            (b"id", CsvError::OpenRecord),
            (b"id,a\n1,", CsvError::OpenRecord),
            (b"id\n\"1", CsvError::OpenQuote),
            (b"id\n\"1\"", CsvError::OpenRecord),
            (b"id\n\"1\"2\n", CsvError::StrayQuote),
            (b"id\n1\"2\"\n", CsvError::StrayQuote),
            (b"id\n1\r\n", CsvError::CarriageReturn),
            (b"id\n\"1\"\r\n", CsvError::StrayQuote),
            (b"id,a\n1,2\n3\n", CsvError::Fields { record: 2, found: 1, expected: 2 }),
            (b"id,a\n1,2,\n", CsvError::Fields { record: 1, found: 3, expected: 2 }),
            (b"id\n\xff\n", CsvError::NotUtf8),
            (b"id\n\"\xc3\"\n", CsvError::NotUtf8),
        ] {
            assert_eq!(check(text), Err(what), "{:?}", String::from_utf8_lossy(text));
        }
    }
}
