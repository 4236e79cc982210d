//! Field names: their bytes, and the three names that matter for framing.

/// A field by its meaning for framing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Field {
    Length,
    Coding,
    Host,
    Other,
}

const LENGTH: &[u8] = b"content-length";
const CODING: &[u8] = b"transfer-encoding";
const HOST: &[u8] = b"host";

/// Longest of these names.
const LONGEST: usize = CODING.len();

impl Field {
    fn named(name: &[u8]) -> Self {
        match name.len() {
            4 if name.eq_ignore_ascii_case(HOST) => Self::Host,
            14 if name.eq_ignore_ascii_case(LENGTH) => Self::Length,
            17 if name.eq_ignore_ascii_case(CODING) => Self::Coding,
            _ => Self::Other,
        }
    }
}

/// A name that is received in pieces.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FieldName {
    bytes: [u8; LONGEST],
    length: usize,
}

impl FieldName {
    /// Whether no piece was received.
    pub(crate) fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Adds a piece that is not the last; of a longer name only the fact is stored.
    pub(crate) fn begin(&mut self, piece: &[u8]) {
        let end = self.length + piece.len();
        if let Some(target) = self.bytes.get_mut(self.length..end) {
            target.copy_from_slice(piece);
            self.length = end;
        } else {
            self.length = LONGEST + 1;
        }
    }

    /// The field, with the last piece of its name.
    pub(crate) fn end(&mut self, piece: &[u8]) -> Field {
        if self.is_empty() {
            return Field::named(piece);
        }
        self.begin(piece);
        let field = self.bytes.get(..self.length).map_or(Field::Other, Field::named);
        self.length = 0;
        field
    }
}

/// The bytes of field names (RFC 9110, 5.6.2).
const IN_NAMES: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = matches!(
            byte as u8,
            b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+'
                | b'-' | b'.' | b'^' | b'_' | b'`' | b'|' | b'~'
        );
        byte += 1;
    }
    table
};

/// The number of leading bytes that belong to a name.
pub(crate) fn name_length(bytes: &[u8]) -> usize {
    bytes.iter().position(|byte| !IN_NAMES[usize::from(*byte)]).unwrap_or(bytes.len())
}
