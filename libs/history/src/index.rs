//! `layout.json` (H4): where each part of each member lies in the object, and its checksums. Exports are laid
//! out from it alone.

use serde::{Deserialize, Serialize};

use crate::{
    crc::{CRC32, CRC32C},
    metadata::Metadata,
    zip::{DosDate, Entry},
};

/// The member's name in a segment file.
pub(crate) const NAME: &str = "layout.json";
/// The longest text that is read: the index of some 700 GB of stored bytes.
pub(crate) const MAX_BYTES: u64 = 16 << 20;
/// Stored bytes under one block checksum; a read checks whole blocks.
pub const BLOCK_BYTES: u64 = 512 << 10;
/// The longest header record.
pub(crate) const MAX_HEADER_BYTES: usize = 64 << 10;
/// The end of a member after its rows: a final deflate block without data.
pub(crate) const FINAL_BLOCK: [u8; 2] = [0x03, 0x00];

/// No deflate stream inflates to more than this many times its length.
const MOST_INFLATION: u64 = 1032;

/// The index of all CSV members.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SegmentIndex {
    /// Always 1.
    pub format_version: u32,
    /// Always [`BLOCK_BYTES`].
    pub block_bytes: u64,
    /// The CSV members in the order of the metadata.
    pub members: Vec<MemberIndex>,
}

/// The two parts of a member; a final block of two bytes follows the rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemberIndex {
    /// As in the metadata.
    pub name: String,
    /// The header record.
    pub header: PartIndex,
    /// All rows; of no length when there are none.
    pub rows: PartIndex,
}

/// Which part of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PartKind {
    Header,
    Rows,
}

impl MemberIndex {
    pub(crate) fn part(&self, kind: PartKind) -> &PartIndex {
        match kind {
            PartKind::Header => &self.header,
            PartKind::Rows => &self.rows,
        }
    }

    /// The member in a ZIP's directory, with its local header at `offset`.
    pub(crate) fn entry(&self, offset: u64, date: DosDate) -> Entry {
        let MemberIndex { name, header, rows } = self;
        Entry {
            name: name.clone(),
            crc32: CRC32.join(header.crc32, rows.crc32, rows.plain),
            stored: header.stored + rows.stored + FINAL_BLOCK.len() as u64,
            plain: header.plain + rows.plain,
            offset,
            date,
        }
    }
}

/// Stored bytes that inflate by themselves and end on a byte.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartIndex {
    /// Where the part starts in the object.
    pub offset: u64,
    /// Length of the stored bytes.
    pub stored: u64,
    /// Length of the plain bytes.
    pub plain: u64,
    /// CRC-32 of the plain bytes.
    pub crc32: u32,
    /// CRC-32C of the stored bytes.
    pub crc32c: u32,
    /// CRC-32C of every [`BLOCK_BYTES`] of stored bytes, counted from the part's start.
    pub blocks: Vec<u32>,
}

impl PartIndex {
    /// Where the part ends in the object.
    pub(crate) fn end(&self) -> Option<u64> {
        self.offset.checked_add(self.stored)
    }

    fn check(&self, name: &str) -> Result<(), String> {
        if self.plain > self.stored.saturating_mul(MOST_INFLATION) || (self.plain == 0) != (self.stored == 0)
        {
            return Err(format!("{name}: {} stored bytes cannot be {} plain ones", self.stored, self.plain));
        }
        if self.blocks.len() as u64 != self.stored.div_ceil(BLOCK_BYTES) {
            return Err(format!("{name}: {} checksums for {} bytes", self.blocks.len(), self.stored));
        }
        let joined = join_blocks(&self.blocks, self.stored);
        if joined != self.crc32c || (self.plain == 0 && self.crc32 != 0) {
            return Err(format!("{name}: the checksums do not add up"));
        }
        Ok(())
    }
}

/// The checksum of a whole part from those of its blocks.
pub(crate) fn join_blocks(blocks: &[u32], stored: u64) -> u32 {
    let mut left = stored;
    blocks.iter().fold(0, |joined, block| {
        let length = left.min(BLOCK_BYTES);
        left -= length;
        CRC32C.join(joined, *block, length)
    })
}

impl SegmentIndex {
    /// Reads the text of a `layout.json` and checks it against the metadata.
    ///
    /// # Errors
    ///
    /// Describes the mistake in it.
    pub fn read(text: &[u8], metadata: &Metadata) -> Result<SegmentIndex, String> {
        let index: SegmentIndex = serde_json::from_slice(text).map_err(|error| format!("{NAME}: {error}"))?;
        index.check(metadata).map_err(|what| format!("{NAME}: {what}"))?;
        Ok(index)
    }

    fn check(&self, metadata: &Metadata) -> Result<(), String> {
        if self.format_version != 1 || self.block_bytes != BLOCK_BYTES {
            return Err(format!(
                "format version {} with blocks of {} bytes is not known",
                self.format_version, self.block_bytes
            ));
        }
        if self.members.len() != metadata.members.len() {
            return Err(format!("{} members, not {}", self.members.len(), metadata.members.len()));
        }
        let mut free = 0;
        for (member, expected) in self.members.iter().zip(&metadata.members) {
            let MemberIndex { name, header, rows } = member;
            if *name != expected.name {
                return Err(format!("{name} in the place of {}", expected.name));
            }
            header.check(name)?;
            rows.check(name)?;
            if header.stored == 0 || header.plain > MAX_HEADER_BYTES as u64 {
                return Err(format!("{name}: a header record of {} bytes", header.plain));
            }
            if (rows.plain == 0) != (expected.rows == 0) || rows.plain < expected.rows {
                return Err(format!("{name}: {} rows in {} bytes", expected.rows, rows.plain));
            }
            if header.plain.checked_add(rows.plain) != Some(expected.bytes) {
                return Err(format!("{name}: the parts are not {} bytes", expected.bytes));
            }
            if header.offset < free || header.end() != Some(rows.offset) {
                return Err(format!("{name}: the parts are not contiguous"));
            }
            free = rows.end().and_then(|end| end.checked_add(2)).ok_or("an offset is too large")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::tests::metadata;

    fn part(offset: u64, stored: u64, plain: u64) -> PartIndex {
        let blocks: Vec<u32> = (0..stored.div_ceil(BLOCK_BYTES)).map(|n| 77 + n as u32).collect();
        let crc32c = join_blocks(&blocks, stored);
        PartIndex { offset, stored, plain, crc32: u32::from(plain > 0), crc32c, blocks }
    }

    fn index() -> SegmentIndex {
        let member = |name: &str, header, rows| MemberIndex { name: name.to_owned(), header, rows };
        let members = vec![
            member("history/orders.csv", part(100, 10, 14), part(110, BLOCK_BYTES + 1, 46)),
            member("history/trades.csv", part(600_000, 10, 14), part(600_010, 0, 0)),
            member("currentstate/accounts.csv", part(600_100, 10, 14), part(600_110, 9, 16)),
        ];
        SegmentIndex { format_version: 1, block_bytes: BLOCK_BYTES, members }
    }

    #[test]
    fn a_wrong_one_is_an_error() {
        type Change = fn(&mut SegmentIndex);
        let wrong: [(&str, Change); 15] = [
            ("a header record", |f| f.members[0].header = part(100, 0, 0)),
            ("not known", |f| f.format_version = 2),
            ("not known", |f| f.block_bytes = 1),
            ("members, not", |f| f.members.truncate(2)),
            ("in the place of", |f| f.members.swap(0, 1)),
            ("cannot be", |f| f.members[2].rows.plain = 9 * 1032 + 1),
            ("cannot be", |f| f.members[1].rows.plain = 1),
            ("checksums for", |f| f.members[0].rows.blocks.truncate(1)),
            ("add up", |f| f.members[0].rows.blocks[1] += 1),
            ("add up", |f| f.members[0].header.crc32c += 1),
            ("rows in", |f| f.members[2].rows = part(600_110, 0, 0)),
            ("the parts are not", |f| f.members[0].header.plain += 1),
            ("not contiguous", |f| f.members[1].header.offset = 5),
            ("not contiguous", |f| f.members[1].rows.offset += 1),
            ("too large", |f| {
                f.members[2].header.offset = u64::MAX - 20;
                f.members[2].rows.offset = u64::MAX - 10;
            }),
        ];
        for (what, change) in wrong {
            let mut index = index();
            change(&mut index);
            let error = SegmentIndex::read(&serde_json::to_vec(&index).unwrap(), &metadata()).unwrap_err();
            assert!(error.contains(what), "{what}: {error}");
        }
    }
}
