//! Positions in a stream, and its totals.

use bytes::Bytes;

/// Greatest length of one chunk in bytes (S1): with its envelope below a bus payload of 1 MiB.
pub const MAX_CHUNK_BYTES: usize = 512 << 10;

/// Greatest length of a position in bytes.
pub const MAX_POSITION_BYTES: usize = 1 << 10;

/// Most positions of later pulls in the header of a chunk.
pub const MAX_POSITIONS_AHEAD: usize = 3;

/// A position in a stream: self-contained, and opaque to all but the operation that made it (S3).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Position(Bytes);

impl Position {
    /// A position of these bytes; `None` when they are more than [`MAX_POSITION_BYTES`].
    pub fn new(bytes: impl Into<Bytes>) -> Option<Self> {
        let bytes = bytes.into();
        (bytes.len() <= MAX_POSITION_BYTES).then_some(Self(bytes))
    }

    /// The bytes it was made of.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Totals of a whole stream, sent with its end (S7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Totals {
    /// Length of the whole file in bytes.
    pub bytes: u64,
    /// Rows of the whole file, when they were counted.
    pub rows: Option<u64>,
}
