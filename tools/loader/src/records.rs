//! The records of a CSV text on its way into COPY: counted with their lines, as PostgreSQL reads them, and
//! with the heights and times of blocks checked, and values that PostgreSQL would store as others.
//!
//! Before version 18 PostgreSQL takes a record `\.` for the end of the text and ignores everything after it.
//! Such a record is sent on in quotes, as the value that it is.

use bytes::Bytes;
use memchr::{memchr, memchr_iter, memchr2, memchr3};
use mesh_store::{
    append::{ColumnKind, MAX_NUMBER_BYTES},
    blocks::BlockFault,
};

use crate::sequence::BlockSequence;

/// A record that COPY would take for the end of its text, in quotes.
const QUOTED_MARKER: &[u8] = b"\"\\.\"";

/// Bytes of a watched field that are read; heights and times are shorter.
const MAX_FIELD_BYTES: usize = 64;

/// Reads a text in pieces of any size. Its state is a few bytes, independently of the length of a record.
pub(crate) struct RecordReader {
    /// The byte that ends a record. The header's end decides; `None` within the header.
    end: Option<u8>,
    /// The header ended with a carriage return; the next byte decides whether a line feed belongs to it.
    after_cr: bool,
    quoted: bool,
    is_open: bool,
    /// The beginning of a record that may be `\.`, until the next piece.
    held: Bytes,
    /// The line on which the current record begins, and the current line; the header is line 1.
    record_line: u64,
    line: u64,
    records: u64,
    column: usize,
    /// The kinds of the columns in the order of the text; empty if no value has to be checked.
    kinds: Vec<ColumnKind>,
    /// The current value, if it has to be checked, up to one byte more than a number has.
    value: Vec<u8>,
    bad_value: Option<BadValue>,
    blocks: Option<WatchedBlocks>,
    /// The first fault of blocks. It counts when heights only rise: in another order a later block may close a
    /// gap.
    bad: Option<BadRecord>,
}

/// The columns of `blocks` that are checked, with their values in the current record.
struct WatchedBlocks {
    columns: [Option<usize>; 2],
    values: [Vec<u8>; 2],
    sequence: BlockSequence,
}

/// A record that may not be stored.
#[derive(Debug)]
pub(crate) struct BadRecord {
    pub(crate) line: u64,
    pub(crate) fault: BlockFault,
}

/// The first value that may not be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BadValue {
    pub(crate) line: u64,
    pub(crate) column: usize,
    pub(crate) value: String,
    pub(crate) reason: &'static str,
}

impl RecordReader {
    /// Reads a text; without a header its records end with line feeds.
    pub(crate) fn new(has_header: bool) -> Self {
        Self {
            end: (!has_header).then_some(b'\n'),
            after_cr: false,
            quoted: false,
            is_open: false,
            held: Bytes::new(),
            record_line: 1,
            line: 1,
            records: 0,
            column: 0,
            kinds: Vec::new(),
            value: Vec::new(),
            bad_value: None,
            blocks: None,
            bad: None,
        }
    }

    pub(crate) fn watch_values(mut self, kinds: Vec<ColumnKind>) -> Self {
        if kinds.iter().copied().any(is_checked) {
            self.kinds = kinds;
        }
        self
    }

    /// Checks the rows of `blocks` that the text with these columns holds; they continue `sequence`.
    pub(crate) fn watch_blocks(mut self, columns: &[String], sequence: BlockSequence) -> Self {
        let column = |name: &str| columns.iter().position(|column| column == name);
        let columns = [column("height"), column("block_time")];
        self.blocks = Some(WatchedBlocks { columns, values: Default::default(), sequence });
        self
    }

    /// Reads the next piece; returns what to send to the server for it.
    pub(crate) fn read(&mut self, piece: Bytes) -> Vec<Bytes> {
        let piece = match std::mem::take(&mut self.held) {
            held if held.is_empty() => piece,
            held => [held, piece].concat().into(),
        };
        let (mut out, mut sent, mut at) = (Vec::with_capacity(1), 0, 0);
        while at < piece.len() {
            let rest = &piece[at..];
            if self.is_at_start() && rest[0] == b'\\' {
                match rest.get(1..3) {
                    Some([b'.', b'\n' | b'\r']) => {
                        out.extend([piece.slice(sent..at), Bytes::from_static(QUOTED_MARKER)]);
                        at += 2;
                        sent = at;
                        self.take_value(br"\.");
                        continue;
                    }
                    None if br"\.".starts_with(rest) => {
                        self.held = piece.slice(at..);
                        break;
                    }
                    _ => {}
                }
            }
            at += self.step(rest);
        }
        out.push(piece.slice(sent..at));
        out.retain(|piece| !piece.is_empty());
        out
    }

    /// Ends the text; returns what is left to send and the number of records after the header.
    pub(crate) fn finish(&mut self) -> (Bytes, u64) {
        let held = std::mem::take(&mut self.held);
        // The beginning of a marker is an ordinary value.
        self.take_value(&held);
        let rest = if &held[..] == br"\." { Bytes::from_static(QUOTED_MARKER) } else { held };
        if self.is_open && self.end.is_some() {
            self.end_record();
        }
        (rest, self.records)
    }

    /// The first value that may not be stored, as soon as it was read.
    pub(crate) fn bad_value(&self) -> Option<&BadValue> {
        self.bad_value.as_ref()
    }

    /// The first fault of the blocks, when they came by rising height.
    pub(crate) fn take_fault(&mut self) -> Option<BadRecord> {
        let is_ordered = self.blocks.as_ref().is_some_and(|blocks| blocks.sequence.is_ordered());
        self.bad.take().filter(|_| is_ordered)
    }

    /// Whether the rows of `blocks` came in an order or a form that leaves the check to the database.
    pub(crate) fn is_unsure(&self) -> bool {
        self.blocks.as_ref().is_some_and(|blocks| blocks.sequence.is_unsure())
    }

    fn is_at_start(&self) -> bool {
        !self.is_open && self.end.is_some() && !self.after_cr
    }

    /// Reads up to the next byte that means something; returns the number of bytes.
    fn step(&mut self, rest: &[u8]) -> usize {
        if std::mem::take(&mut self.after_cr) {
            let is_pair = rest[0] == b'\n';
            self.end = Some(if is_pair { b'\n' } else { b'\r' });
            return usize::from(is_pair);
        }
        let found = match self.end {
            _ if self.quoted => memchr(b'"', rest),
            None => memchr3(b'"', b'\r', b'\n', rest),
            Some(end) if self.blocks.is_some() || !self.kinds.is_empty() => memchr3(b'"', b',', end, rest),
            Some(end) => memchr2(b'"', end, rest),
        };
        let value = &rest[..found.unwrap_or(rest.len())];
        self.take_value(value);
        let Some(found) = found else { return rest.len() };
        match rest[found] {
            b'"' => {
                self.is_open = true;
                self.quoted = !self.quoted;
            }
            b',' => {
                self.is_open = true;
                self.end_value();
                self.column += 1;
            }
            byte if self.end.is_none() => {
                self.after_cr = byte == b'\r';
                self.end = Some(b'\n');
                self.begin_record();
            }
            _ => self.end_record(),
        }
        found + 1
    }

    fn take_value(&mut self, value: &[u8]) {
        self.is_open |= !value.is_empty();
        if self.quoted {
            self.line += memchr_iter(self.end.unwrap_or(b'\n'), value).count() as u64;
        }
        if self.end.is_some() && self.kinds.get(self.column).copied().is_some_and(is_checked) {
            let most = (MAX_NUMBER_BYTES + 1).saturating_sub(self.value.len());
            self.value.extend_from_slice(&value[..value.len().min(most)]);
        }
        let Some(blocks) = self.blocks.as_mut().filter(|_| self.end.is_some()) else { return };
        for (column, field) in blocks.columns.iter().zip(&mut blocks.values) {
            if *column == Some(self.column) {
                let most = MAX_FIELD_BYTES.saturating_sub(field.len());
                field.extend_from_slice(&value[..value.len().min(most)]);
            }
        }
    }

    fn end_value(&mut self) {
        if self.value.is_empty() {
            return;
        }
        let value = str::from_utf8(&self.value).unwrap_or_default();
        if let Some(reason) = self.kinds[self.column].fault(value) {
            let (line, value) = (self.record_line, value.chars().take(MAX_FIELD_BYTES).collect());
            self.bad_value.get_or_insert(BadValue { line, column: self.column, value, reason });
        }
        self.value.clear();
    }

    fn end_record(&mut self) {
        self.end_value();
        self.records += 1;
        if let Some(blocks) = &mut self.blocks {
            let [height, time] = &mut blocks.values;
            if let Err(fault) = blocks.sequence.check(height, time) {
                self.bad.get_or_insert(BadRecord { line: self.record_line, fault });
            }
            height.clear();
            time.clear();
        }
        self.begin_record();
    }

    fn begin_record(&mut self) {
        self.line += 1;
        self.record_line = self.line;
        self.column = 0;
        self.is_open = false;
    }
}

fn is_checked(kind: ColumnKind) -> bool {
    matches!(kind, ColumnKind::Decimal(_) | ColumnKind::Time | ColumnKind::Hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_are_quoted_and_records_counted_whatever_the_pieces() {
        for (text, sent, records) in [
            ("a\n\\.\nb\n", "a\n\"\\.\"\nb\n", 2),
            ("a\r\n\\.\r\n\\.\r\n", "a\r\n\"\\.\"\r\n\"\\.\"\r\n", 2),
            ("a\r\\.\rb", "a\r\"\\.\"\rb", 2),
            ("a\n\\.", "a\n\"\\.\"", 1),
            ("a\n\\", "a\n\\", 1),
            ("a\n\\.x\n\\\n.\n", "a\n\\.x\n\\\n.\n", 3),
            ("\"\n\\.\n\"\n\"\n\\.\n\"\"\"\n", "\"\n\\.\n\"\n\"\n\\.\n\"\"\"\n", 1),
            ("\\.\nb\n", "\\.\nb\n", 1),
            ("a\n\n", "a\n\n", 1),
            ("a\r\n", "a\r\n", 0),
            ("a", "a", 0),
            ("", "", 0),
        ] {
            for length in 1..=text.len().max(1) {
                let (mut reader, mut out) = (RecordReader::new(true), Vec::new());
                for piece in text.as_bytes().chunks(length) {
                    out.extend(reader.read(Bytes::copy_from_slice(piece)));
                }
                let (rest, counted) = reader.finish();
                assert_eq!([out.concat(), rest.to_vec()].concat(), sent.as_bytes(), "{text:?} by {length}");
                assert_eq!(counted, records, "{text:?} by {length}");
            }
        }
    }

    #[test]
    fn the_first_value_that_may_not_be_stored_is_named() {
        let text = "note,price\n0.5,\"1\"\n\"a\n\"\"0.5,\",2.0\n,\"1\".5\n,.25";
        for length in 1..text.len() {
            let kinds = vec![ColumnKind::Value, ColumnKind::Decimal(0)];
            let mut reader = RecordReader::new(true).watch_values(kinds);
            let pieces = text.as_bytes().chunks(length).map(Bytes::copy_from_slice);
            pieces.for_each(|piece| drop(reader.read(piece)));
            let bad = reader.bad_value().unwrap();
            assert_eq!((bad.line, bad.column, &*bad.value), (5, 1, "1.5"), "by {length}");
        }
    }

    #[test]
    fn a_fault_of_blocks_is_named_with_the_line_on_which_its_record_begins() {
        let text = "block_time,hash,height\n2024-01-01 00:00:00+00,\"a\n\n\",1\n2024-01-01 00:00:01+00,b,3\n";
        for length in 1..text.len() {
            let columns = ["block_time", "hash", "height"].map(str::to_owned);
            let mut reader = RecordReader::new(true).watch_blocks(&columns, BlockSequence::default());
            let pieces = text.as_bytes().chunks(length).map(Bytes::copy_from_slice);
            pieces.for_each(|piece| drop(reader.read(piece)));
            reader.finish();
            let bad = reader.take_fault().unwrap();
            assert_eq!((bad.line, bad.fault), (5, BlockFault::Missing { from: 2, to: 2 }));
        }
    }
}
