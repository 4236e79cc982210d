//! Field names: which bytes they have, and the three that say where a request ends or whom it is for.

/// A field, as far as framing cares.
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

/// Longest name that matters.
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

/// A name whose pieces come one by one.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Name {
    bytes: [u8; LONGEST],
    length: usize,
}

impl Name {
    /// Whether nothing of it has come yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Keeps a piece that is not the last; of a name that is too long to matter only that it is.
    pub(crate) fn begin(&mut self, piece: &[u8]) {
        let end = self.length + piece.len();
        if let Some(place) = self.bytes.get_mut(self.length..end) {
            place.copy_from_slice(piece);
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

/// The bytes that a field name has (RFC 9110, 5.6.2).
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

/// How many bytes there are of a name.
pub(crate) fn of_name(bytes: &[u8]) -> usize {
    bytes.iter().position(|byte| !IN_NAMES[usize::from(*byte)]).unwrap_or(bytes.len())
}
