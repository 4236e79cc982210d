//! The position of a ledger export: the bound fixed at the opening, the last entry sent, and the totals so
//! far.

use mesh_bus::Position;
use mesh_problem::{MALFORMED, NOT_MAPPED, Problem};
use mesh_store::TimeUs;

const VERSION: u8 = 1;
const LENGTH: usize = 2 + 6 * 8;

/// The key that no entry is below.
const BEFORE_ALL: TimeUs = TimeUs(i64::MIN);

/// The position that a pull of the ledger starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LedgerPosition {
    /// Block time of the newest block at the opening: nothing later is exported. `None` when the store was
    /// empty.
    pub(crate) bound: Option<TimeUs>,
    /// Key of the entry that was sent last: block time, entry time.
    pub(crate) after: (TimeUs, TimeUs),
    /// Whether the header record was sent.
    pub(crate) has_header: bool,
    /// Bytes of the next record that were sent.
    pub(crate) skip: u64,
    /// Bytes sent so far.
    pub(crate) bytes: u64,
    /// Records sent so far, the header not counted.
    pub(crate) rows: u64,
}

impl LedgerPosition {
    /// The beginning of an export from a time on.
    pub(crate) fn start(bound: Option<TimeUs>, from: Option<TimeUs>) -> Self {
        let after = (from.unwrap_or(BEFORE_ALL), BEFORE_ALL);
        Self { bound, after, has_header: false, skip: 0, bytes: 0, rows: 0 }
    }

    /// Encodes it.
    ///
    /// # Errors
    /// Internal, when it is longer than a position may be.
    pub(crate) fn write(&self) -> Result<Position, Problem> {
        let flags = u8::from(self.has_header) | u8::from(self.bound.is_some()) << 1;
        let mut bytes = Vec::with_capacity(LENGTH);
        bytes.extend([VERSION, flags]);
        for time in [self.bound.unwrap_or_default(), self.after.0, self.after.1] {
            bytes.extend(time.0.to_be_bytes());
        }
        for count in [self.skip, self.bytes, self.rows] {
            bytes.extend(count.to_be_bytes());
        }
        Position::new(bytes).ok_or_else(|| Problem::internal(NOT_MAPPED, "a position is too long"))
    }

    /// Decodes it.
    ///
    /// # Errors
    /// Malformed, when the position is not one of this export.
    pub(crate) fn read(position: &Position) -> Result<Self, Problem> {
        Self::parse(position.as_bytes())
            .ok_or_else(|| Problem::invalid(MALFORMED, "the position is not of this export"))
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let (&[VERSION, flags], numbers) = bytes.split_first_chunk()? else { return None };
        let (numbers, []) = numbers.as_chunks::<8>() else { return None };
        let &[bound, block, entry, skip, sent, rows] = numbers else { return None };
        let time = |bytes| TimeUs(i64::from_be_bytes(bytes));
        (flags < 4).then(|| Self {
            bound: (flags & 2 != 0).then(|| time(bound)),
            after: (time(block), time(entry)),
            has_header: flags & 1 != 0,
            skip: u64::from_be_bytes(skip),
            bytes: u64::from_be_bytes(sent),
            rows: u64::from_be_bytes(rows),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_reads_back() {
        let start = LedgerPosition::start(Some(TimeUs(7)), None);
        let end = LedgerPosition {
            has_header: true,
            skip: 3,
            bytes: u64::MAX,
            rows: 9,
            after: (TimeUs(-1), TimeUs(5)),
            ..start
        };
        for position in [start, end, LedgerPosition::start(None, Some(TimeUs(1)))] {
            assert_eq!(LedgerPosition::read(&position.write().unwrap()).unwrap(), position);
        }
    }

    #[test]
    fn other_bytes_are_refused() {
        let whole = LedgerPosition::start(None, None).write().unwrap();
        let whole = whole.as_bytes();
        let wrong = [
            &[][..],
            &whole[1..],
            &whole[..whole.len() - 1],
            &[0; LENGTH],
            &[VERSION, 9],
            &[VERSION; LENGTH + 8],
        ];
        for bytes in wrong {
            let position = Position::new(bytes.to_vec()).unwrap();
            assert_eq!(LedgerPosition::read(&position).unwrap_err().number(), MALFORMED, "{bytes:?}");
        }
    }
}
