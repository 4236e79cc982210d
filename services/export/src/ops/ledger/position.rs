//! Where a pull of the ledger begins: the bound fixed at the opening, the last entry given, and what was given so far.

use mesh_bus::Position;
use mesh_problem::{MALFORMED, NOT_MAPPED, Problem};
use mesh_store::TimeUs;

const VERSION: u8 = 1;
const LENGTH: usize = 2 + 6 * 8;

/// The key that no entry is below.
const BEFORE_ALL: TimeUs = TimeUs(i64::MIN);

/// A place in a ledger export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// Block time of the newest block at the opening: nothing later is exported. None of an empty store.
    pub(crate) bound: Option<TimeUs>,
    /// Key of the entry that was given last: block time, entry time.
    pub(crate) after: (TimeUs, TimeUs),
    /// Whether the header record was given.
    pub(crate) has_header: bool,
    /// How many bytes of the next record were given.
    pub(crate) skip: u64,
    /// Bytes given so far.
    pub(crate) bytes: u64,
    /// Records given so far, the header not counted.
    pub(crate) rows: u64,
}

impl Place {
    /// The beginning of an export from a time on.
    pub(crate) fn start(bound: Option<TimeUs>, from: Option<TimeUs>) -> Self {
        let after = (from.unwrap_or(BEFORE_ALL), BEFORE_ALL);
        Self { bound, after, has_header: false, skip: 0, bytes: 0, rows: 0 }
    }

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

    pub(crate) fn read(position: &Position) -> Result<Self, Problem> {
        Self::parse(position.as_bytes())
            .ok_or_else(|| Problem::invalid(MALFORMED, "the position is not of this export"))
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let (&[VERSION, flags], numbers) = bytes.split_first_chunk()? else { return None };
        let (numbers, []) = numbers.as_chunks::<8>() else { return None };
        let &[bound, block, entry, skip, given, rows] = numbers else { return None };
        let time = |bytes| TimeUs(i64::from_be_bytes(bytes));
        (flags < 4).then(|| Self {
            bound: (flags & 2 != 0).then(|| time(bound)),
            after: (time(block), time(entry)),
            has_header: flags & 1 != 0,
            skip: u64::from_be_bytes(skip),
            bytes: u64::from_be_bytes(given),
            rows: u64::from_be_bytes(rows),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read() {
        let start = Place::start(Some(TimeUs(7)), None);
        let end = Place {
            has_header: true,
            skip: 3,
            bytes: u64::MAX,
            rows: 9,
            after: (TimeUs(-1), TimeUs(5)),
            ..start
        };
        for place in [start, end, Place::start(None, Some(TimeUs(1)))] {
            assert_eq!(Place::read(&place.write().unwrap()).unwrap(), place);
        }
    }

    #[test]
    fn other_bytes_are_refused() {
        let whole = Place::start(None, None).write().unwrap();
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
            assert_eq!(Place::read(&position).unwrap_err().number(), MALFORMED, "{bytes:?}");
        }
    }
}
