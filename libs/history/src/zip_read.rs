//! Reads the ZIP directory of a segment file: everything that [`crate::zip`] would not write is an error,
//! except for unknown extra fields. Lengths are checked against the object's before use.

use crate::zip::{
    CENTRAL, DEFLATE, DosDate, END, END64, EXTRA64, Entry, IN_ZIP64, IN_ZIP64_SHORT, LOCATOR64, UTF8,
};

/// Bytes after the directory with ZIP64 records.
const END64_BYTES: usize = 56 + 20 + 22;
/// The longest directory that is read; a segment has some 26 members.
const MAX_DIRECTORY: u64 = 1 << 20;

/// Where the directory lies in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DirectoryLocation {
    pub(crate) offset: u64,
    pub(crate) length: u64,
    count: u64,
}

/// Reads the end records; `tail` are the last bytes of a file of `size` bytes.
pub(crate) fn locate_directory(tail: &[u8], size: u64) -> Result<DirectoryLocation, String> {
    let cut = || "it does not end as a ZIP does".to_owned();
    let ends = tail.len().checked_sub(22).ok_or_else(cut)?;
    let mut end = LittleEndianReader(&tail[ends..]);
    if end.take()? != END || end.u32()? != 0 {
        return Err(cut());
    }
    let (here, count) = (end.u16()?, end.u16()?);
    let (length, offset) = (end.u32()?, end.u32()?);
    if here != count || end.u16()? != 0 {
        return Err(cut());
    }
    let (location, trailer) = if count == IN_ZIP64_SHORT || length == IN_ZIP64 || offset == IN_ZIP64 {
        let start = tail.len().checked_sub(END64_BYTES).ok_or_else(cut)?;
        (locate_directory64(&tail[start..ends], size)?, END64_BYTES)
    } else {
        (DirectoryLocation { offset: offset.into(), length: length.into(), count: count.into() }, 22)
    };
    if location.length > MAX_DIRECTORY {
        return Err(format!("a directory of {} bytes", location.length));
    }
    let whole = location.offset.checked_add(location.length).and_then(|end| end.checked_add(trailer as u64));
    if whole != Some(size) {
        return Err(format!("the directory's figures do not fit a file of {size} bytes"));
    }
    Ok(location)
}

fn locate_directory64(records: &[u8], size: u64) -> Result<DirectoryLocation, String> {
    let wrong = || "its ZIP64 records are wrong".to_owned();
    let mut fields = LittleEndianReader(records);
    if fields.take()? != END64 || fields.u64()? != 44 {
        return Err(wrong());
    }
    fields.take::<12>()?;
    let (here, count, length, offset) = (fields.u64()?, fields.u64()?, fields.u64()?, fields.u64()?);
    if here != count || fields.take()? != LOCATOR64 || fields.u32()? != 0 {
        return Err(wrong());
    }
    if fields.u64()? != size.wrapping_sub(END64_BYTES as u64) || fields.u32()? != 1 {
        return Err(wrong());
    }
    Ok(DirectoryLocation { offset, length, count })
}

/// Reads the directory's records.
pub(crate) fn entries(directory: &[u8], location: DirectoryLocation) -> Result<Vec<Entry>, String> {
    let mut fields = LittleEndianReader(directory);
    let mut entries = Vec::new();
    while !fields.0.is_empty() {
        entries.push(entry(&mut fields)?);
    }
    if entries.len() as u64 != location.count {
        return Err(format!("{} members in the directory, not {}", entries.len(), location.count));
    }
    Ok(entries)
}

fn entry(fields: &mut LittleEndianReader<'_>) -> Result<Entry, String> {
    let signature: [u8; 4] = fields.take()?;
    fields.take::<4>()?;
    let (flags, method) = (fields.u16()?, fields.u16()?);
    if signature != CENTRAL || flags & !UTF8 != 0 || method != DEFLATE {
        return Err("a directory record is not a plain deflated member's".to_owned());
    }
    let date = DosDate { time: fields.u16()?, date: fields.u16()? };
    let (crc32, stored, plain) = (fields.u32()?, fields.u32()?, fields.u32()?);
    let (name, extra, comment) = (fields.u16()?, fields.u16()?, fields.u16()?);
    fields.take::<8>()?;
    let offset = fields.u32()?;
    let name = String::from_utf8(fields.bytes(name.into())?.to_vec()).map_err(|error| error.to_string())?;
    let mut sizes = LittleEndianReader(extra64(fields.bytes(extra.into())?)?);
    fields.bytes(comment.into())?;
    let mut wide = |value: u32| if value == IN_ZIP64 { sizes.u64() } else { Ok(value.into()) };
    let (plain, stored, offset) = (wide(plain)?, wide(stored)?, wide(offset)?);
    Ok(Entry { name, crc32, stored, plain, offset, date })
}

/// The ZIP64 field in the extra fields; empty when there is none.
fn extra64(extra: &[u8]) -> Result<&[u8], String> {
    let mut fields = LittleEndianReader(extra);
    while !fields.0.is_empty() {
        let (tag, length) = (fields.u16()?, fields.u16()?);
        let value = fields.bytes(length.into())?;
        if tag == EXTRA64 {
            return Ok(value);
        }
    }
    Ok(&[])
}

/// Reads consecutive little-endian fields.
struct LittleEndianReader<'a>(&'a [u8]);

impl<'a> LittleEndianReader<'a> {
    fn bytes(&mut self, length: usize) -> Result<&'a [u8], String> {
        let (now, later) = self.0.split_at_checked(length).ok_or("a record is cut")?;
        self.0 = later;
        Ok(now)
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let (now, later) = self.0.split_first_chunk().ok_or("a record is cut")?;
        self.0 = later;
        Ok(*now)
    }

    fn u16(&mut self) -> Result<u16, String> {
        self.take().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, String> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, String> {
        self.take().map(u64::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zip::directory;

    fn sample(count: usize, offset: u64) -> (Vec<Entry>, Vec<u8>, u64) {
        let entry = |n: usize| Entry {
            name: format!("{n}é.csv"),
            crc32: n as u32,
            stored: [5, 0xFFFF_FFFF, 0xFFFF_FFFE][n % 3],
            plain: [7, 0x1_0000_0000, 0x1_0000_0001, 0xFFFF_FFFE][n % 4],
            offset: offset * n as u64 / count as u64,
            date: DosDate::of(1_687_257_081_900_000_000),
        };
        let entries: Vec<Entry> = (0..count).map(entry).collect();
        let bytes = directory(&entries, offset);
        let size = offset + bytes.len() as u64;
        (entries, bytes, size)
    }

    #[test]
    fn what_is_written_is_read() {
        for (count, offset) in
            [(1, 0), (26, 0xFFFF_FFFE), (26, 0xFFFF_FFFF), (26, 1 << 40), (70_000, 1 << 33)]
        {
            let (entries, bytes, size) = sample(count, offset);
            if count > 1000 {
                assert!(locate_directory(&bytes, size).unwrap_err().starts_with("a directory of"));
                continue;
            }
            let location = locate_directory(&bytes, size).unwrap();
            assert_eq!(location.offset, offset);
            let directory = &bytes[..location.length as usize];
            assert_eq!(super::entries(directory, location).unwrap(), entries);
        }
    }

    #[test]
    fn a_cut_or_grown_file_is_noticed() {
        for offset in [1000, 1 << 33] {
            let (_, bytes, size) = sample(5, offset);
            assert!(locate_directory(&bytes, size + 1).is_err());
            assert!(locate_directory(&bytes, size - 1).is_err());
            for length in 0..bytes.len() {
                assert!(locate_directory(&bytes[..length], offset + length as u64).is_err(), "{length}");
            }
        }
    }
}
