//! Writes ZIP files (H5, X9): members of deflated bytes with known sizes and checksums, so that local headers
//! are complete and no descriptors follow. The same members give the same bytes.

use jiff::{Timestamp, tz::TimeZone};

pub(crate) const LOCAL: [u8; 4] = *b"PK\x03\x04";
pub(crate) const CENTRAL: [u8; 4] = *b"PK\x01\x02";
pub(crate) const END: [u8; 4] = *b"PK\x05\x06";
pub(crate) const END64: [u8; 4] = *b"PK\x06\x06";
pub(crate) const LOCATOR64: [u8; 4] = *b"PK\x06\x07";

/// In a 4-byte field: the value is in the ZIP64 extra field or record.
pub(crate) const IN_ZIP64: u32 = u32::MAX;
/// The same in a 2-byte field.
pub(crate) const IN_ZIP64_SHORT: u16 = u16::MAX;
/// Flag bit 11: the name is UTF-8.
pub(crate) const UTF8: u16 = 1 << 11;
pub(crate) const DEFLATE: u16 = 8;
const VERSION: u16 = 20;
const VERSION64: u16 = 45;
/// Tag of the ZIP64 extra field.
pub(crate) const EXTRA64: u16 = 1;

/// A member's fields in local header and directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) crc32: u32,
    pub(crate) stored: u64,
    pub(crate) plain: u64,
    /// Where the local header starts.
    pub(crate) offset: u64,
    pub(crate) date: DosDate,
}

/// A time in UTC in ZIP's form: a resolution of two seconds, from 1980 to 2107.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DosDate {
    pub(crate) date: u16,
    pub(crate) time: u16,
}

impl DosDate {
    /// The date of a block's time in nanoseconds since 1970, rounded down.
    pub(crate) fn of(time_ns: i64) -> DosDate {
        const FIRST: DosDate = DosDate { date: 1 << 5 | 1, time: 0 };
        const LAST: DosDate = DosDate { date: 127 << 9 | 12 << 5 | 31, time: 23 << 11 | 59 << 5 | 29 };
        let moment = Timestamp::from_nanosecond(i128::from(time_ns)).unwrap_or(Timestamp::MAX);
        let moment = moment.to_zoned_datetime(TimeZone::UTC);
        // Every part is a small positive number.
        let small = |part: i8| part as u16;
        match moment.year() {
            ..1980 => FIRST,
            1980..=2107 => DosDate {
                date: ((moment.year() - 1980) as u16) << 9 | small(moment.month()) << 5 | small(moment.day()),
                time: small(moment.hour()) << 11 | small(moment.minute()) << 5 | (small(moment.second()) / 2),
            },
            _ => LAST,
        }
    }
}

impl Entry {
    /// The local header, with both sizes in ZIP64 form when one of them needs it.
    pub(crate) fn local_header(&self) -> Vec<u8> {
        let large = self.large();
        let mut bytes = Vec::with_capacity(50 + self.name.len());
        bytes.extend(LOCAL);
        put16(&mut bytes, if large { VERSION64 } else { VERSION });
        self.put_common(&mut bytes, large);
        put16(&mut bytes, if large { 20 } else { 0 });
        bytes.extend(self.name.as_bytes());
        if large {
            put16(&mut bytes, EXTRA64);
            put16(&mut bytes, 16);
            bytes.extend(self.plain.to_le_bytes());
            bytes.extend(self.stored.to_le_bytes());
        }
        bytes
    }

    /// Length of the local header.
    pub(crate) fn local_length(&self) -> u64 {
        30 + self.name.len() as u64 + if self.large() { 20 } else { 0 }
    }

    /// Where the member's stored bytes end.
    pub(crate) fn end(&self) -> Option<u64> {
        self.offset.checked_add(self.local_length())?.checked_add(self.stored)
    }

    fn large(&self) -> bool {
        self.stored >= u64::from(IN_ZIP64) || self.plain >= u64::from(IN_ZIP64)
    }

    /// Flags to name length, which local and central header share.
    fn put_common(&self, bytes: &mut Vec<u8>, large: bool) {
        let size = |size: u64| if large { IN_ZIP64 } else { size as u32 };
        put16(bytes, UTF8);
        put16(bytes, DEFLATE);
        put16(bytes, self.date.time);
        put16(bytes, self.date.date);
        put32(bytes, self.crc32);
        put32(bytes, size(self.stored));
        put32(bytes, size(self.plain));
        // Names are short: chain id, table, numbers.
        put16(bytes, self.name.len() as u16);
    }

    /// The directory's record. When one number needs ZIP64, all three have it, because some readers expect
    /// both sizes in the extra field before an offset.
    fn put_central(&self, bytes: &mut Vec<u8>) {
        let large = self.large() || self.offset >= u64::from(IN_ZIP64);
        bytes.extend(CENTRAL);
        // Made by "FAT": no host data, no attributes.
        put16(bytes, VERSION64);
        put16(bytes, if large { VERSION64 } else { VERSION });
        self.put_common(bytes, large);
        put16(bytes, if large { 28 } else { 0 });
        // Comment, disk, attributes.
        bytes.extend([0; 10]);
        put32(bytes, if large { IN_ZIP64 } else { self.offset as u32 });
        bytes.extend(self.name.as_bytes());
        if large {
            put16(bytes, EXTRA64);
            put16(bytes, 24);
            bytes.extend(self.plain.to_le_bytes());
            bytes.extend(self.stored.to_le_bytes());
            bytes.extend(self.offset.to_le_bytes());
        }
    }
}

/// The directory that starts at `offset`, with everything behind it.
pub(crate) fn directory(entries: &[Entry], offset: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(entries.iter().map(|entry| 74 + entry.name.len()).sum::<usize>() + 98);
    for entry in entries {
        entry.put_central(&mut bytes);
    }
    let (length, count) = (bytes.len() as u64, entries.len() as u64);
    let many = count >= u64::from(IN_ZIP64_SHORT);
    let far = offset >= u64::from(IN_ZIP64) || length >= u64::from(IN_ZIP64);
    if many || far {
        bytes.extend(END64);
        bytes.extend(44_u64.to_le_bytes());
        put16(&mut bytes, VERSION64);
        put16(&mut bytes, VERSION64);
        bytes.extend([0; 8]);
        for figure in [count, count, length, offset] {
            bytes.extend(figure.to_le_bytes());
        }
        bytes.extend(LOCATOR64);
        put32(&mut bytes, 0);
        bytes.extend((offset + length).to_le_bytes());
        put32(&mut bytes, 1);
    }
    bytes.extend(END);
    put32(&mut bytes, 0);
    let count = if many { IN_ZIP64_SHORT } else { count as u16 };
    put16(&mut bytes, count);
    put16(&mut bytes, count);
    put32(&mut bytes, length.min(u64::from(IN_ZIP64)) as u32);
    put32(&mut bytes, offset.min(u64::from(IN_ZIP64)) as u32);
    put16(&mut bytes, 0);
    bytes
}

fn put16(bytes: &mut Vec<u8>, value: u16) {
    bytes.extend(value.to_le_bytes());
}

fn put32(bytes: &mut Vec<u8>, value: u32) {
    bytes.extend(value.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_utc_and_stay_in_range() {
        // 2023-06-20 10:31:21.9
        let date = DosDate::of(1_687_257_081_900_000_000);
        assert_eq!(date, DosDate { date: 43 << 9 | 6 << 5 | 20, time: 10 << 11 | 31 << 5 | 10 });
        for time_ns in [0, -1, i64::MIN] {
            assert_eq!(DosDate::of(time_ns), DosDate { date: 0x21, time: 0 });
        }
        assert_eq!(DosDate::of(i64::MAX), DosDate { date: 0xFF9F, time: 0xBF7D });
    }

    #[test]
    fn sizes_move_to_zip64_at_the_marker() {
        for (size, needs) in [(0xFFFF_FFFE, false), (0xFFFF_FFFF, true), (0x1_0000_0000, true)] {
            let mut entry = Entry {
                name: "é.csv".to_owned(),
                crc32: 7,
                stored: 5,
                plain: size,
                offset: 0,
                date: DosDate::of(0),
            };
            let header = entry.local_header();
            assert_eq!(header.len() as u64, entry.local_length());
            assert_eq!(header.len() == 30 + 6 + 20, needs);
            assert_eq!(header[4..6], if needs { [45, 0] } else { [20, 0] });
            (entry.plain, entry.offset) = (5, size);
            assert_eq!(entry.local_length(), 36);
            let central = directory(&[entry], size);
            assert_eq!(central[6..8], if needs { [45, 0] } else { [20, 0] });
            assert_eq!(central.len(), if needs { 46 + 6 + 28 + 56 + 20 + 22 } else { 46 + 6 + 22 });
        }
    }
}
