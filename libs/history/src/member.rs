//! One CSV member, deflated so that its rows can be spliced (H4): [header][full flush][rows][full
//! flush][final empty block], each part by its own compressor, since rows must never refer back into the
//! header.

use std::{
    io::{self, Write},
    mem,
};

use flate2::{Compress, Compression, FlushCompress};

use crate::{
    csv::{CsvError, RecordSplitter, columns},
    digest::Sha256,
    error::HistoryError,
    index::{BLOCK_BYTES, FINAL_BLOCK, MAX_HEADER_BYTES, MemberIndex, PartIndex, join_blocks},
    metadata::MemberMetadata,
};

/// The deflate level of stored segments, which are sealed once and downloaded often: up to a fifth smaller
/// than level 2 for 7 % more CPU time of a sealing; level 6 saves nothing more. Level 1 compresses text with much
/// hex badly.
pub const DEFAULT_LEVEL: u32 = 5;

/// Plain bytes per call of the compressor. Always full, so that the stored bytes do not depend on the pieces
/// of the input.
const BUFFER_BYTES: usize = 128 << 10;
const OUT: usize = 64 << 10;

/// Takes the CSV text of one table, header record first, in pieces of any size, and writes the stored bytes.
/// Deflates on the calling thread.
pub struct MemberEncoder<W> {
    name: String,
    sink: W,
    level: Compression,
    deflate: Compress,
    out: Vec<u8>,
    buffer: Vec<u8>,
    header: Option<(PartIndex, Vec<String>)>,
    records: RecordSplitter,
    rows: u64,
    part: PartMeter,
    sha256: Sha256,
}

/// A finished member: its sink, and the description of the text. Offsets count from the member's start.
#[derive(Debug)]
pub struct Encoded<W> {
    /// The sink with the stored bytes.
    pub sink: W,
    /// For `metadata.json`.
    pub metadata: MemberMetadata,
    /// For `layout.json`.
    pub index: MemberIndex,
}

impl<W: Write> MemberEncoder<W> {
    /// Starts the member of this name, e.g. `history/trades.csv`, at a deflate level from 0 to 9.
    pub fn new(name: &str, sink: W, level: u32) -> MemberEncoder<W> {
        let level = Compression::new(level.min(9));
        MemberEncoder {
            name: name.to_owned(),
            sink,
            level,
            deflate: Compress::new(level, false),
            out: vec![0; OUT],
            buffer: Vec::with_capacity(BUFFER_BYTES),
            header: None,
            records: RecordSplitter::default(),
            rows: 0,
            part: PartMeter::default(),
            sha256: Sha256::default(),
        }
    }

    /// Takes the next piece of the text.
    ///
    /// # Errors
    ///
    /// The header record is too long, or the sink fails. The member is lost then.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), HistoryError> {
        let mut rows = bytes;
        if self.header.is_none() {
            let end = self.records.end(bytes);
            let (header, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
            if self.buffer.len() + header.len() > MAX_HEADER_BYTES {
                return Err(self.csv(CsvError::LongHeader(MAX_HEADER_BYTES)));
            }
            self.buffer.extend_from_slice(header);
            if end.is_none() {
                return Ok(());
            }
            self.end_header()?;
            rows = rest;
        }
        self.rows += self.records.count(rows);
        self.take(rows)
    }

    /// Ends the member; a missing line feed at the end of the text is added.
    ///
    /// # Errors
    ///
    /// The text ends inside a quoted value or before its header, or the sink fails.
    pub fn finish(mut self) -> Result<Encoded<W>, HistoryError> {
        let open = self.records.finish().map_err(|error| self.csv(error))?;
        if open {
            self.write(b"\n")?;
        }
        let (header, columns) = self.header.take().ok_or_else(|| self.csv(CsvError::NoHeader))?;
        let mut rows = PartIndex::default();
        if self.part.plain > 0 || !self.buffer.is_empty() {
            rows = self.end_part()?;
        }
        rows.offset = header.stored;
        self.sink.write_all(&FINAL_BLOCK).map_err(HistoryError::io("writing a member"))?;
        let metadata = MemberMetadata {
            name: self.name.clone(),
            columns,
            rows: self.rows,
            bytes: header.plain + rows.plain,
            sha256: self.sha256.finish(),
        };
        let index = MemberIndex { name: self.name, header, rows };
        Ok(Encoded { sink: self.sink, metadata, index })
    }

    fn csv(&self, source: CsvError) -> HistoryError {
        HistoryError::Csv { member: self.name.clone(), source }
    }

    fn end_header(&mut self) -> Result<(), HistoryError> {
        let columns = columns(&self.buffer).map_err(|error| self.csv(error))?;
        let header = self.end_part()?;
        self.header = Some((header, columns));
        Ok(())
    }

    /// Collects plain bytes and deflates full buffers.
    fn take(&mut self, mut bytes: &[u8]) -> Result<(), HistoryError> {
        while self.buffer.len() + bytes.len() >= BUFFER_BYTES {
            let (now, later) = bytes.split_at(BUFFER_BYTES - self.buffer.len());
            self.buffer.extend_from_slice(now);
            self.deflate_buffer(FlushCompress::None)?;
            bytes = later;
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    fn end_part(&mut self) -> Result<PartIndex, HistoryError> {
        self.deflate_buffer(FlushCompress::Full)?;
        // A new compressor for the next part. A full flush would do, but only as the library implements it.
        self.deflate = Compress::new(self.level, false);
        Ok(mem::take(&mut self.part).finish())
    }

    fn deflate_buffer(&mut self, flush: FlushCompress) -> Result<(), HistoryError> {
        let failed = HistoryError::io("writing a member");
        self.sha256.update(&self.buffer);
        self.part.plain(&self.buffer);
        let mut input = &self.buffer[..];
        loop {
            let (taken, given) = (self.deflate.total_in(), self.deflate.total_out());
            if let Err(error) = self.deflate.compress(input, &mut self.out, flush) {
                return Err(failed(io::Error::other(error)));
            }
            input = &input[(self.deflate.total_in() - taken) as usize..];
            let stored = &self.out[..(self.deflate.total_out() - given) as usize];
            self.part.stored(stored);
            if let Err(error) = self.sink.write_all(stored) {
                return Err(failed(error));
            }
            if input.is_empty() && stored.len() < self.out.len() {
                break;
            }
        }
        self.buffer.clear();
        Ok(())
    }
}

/// Lengths and checksums of a part that is being written or read.
#[derive(Default)]
pub(crate) struct PartMeter {
    plain: u64,
    crc32: crc32fast::Hasher,
    pub(crate) stored: u64,
    block: u32,
    blocks: Vec<u32>,
}

impl PartMeter {
    pub(crate) fn plain(&mut self, bytes: &[u8]) {
        self.plain += bytes.len() as u64;
        self.crc32.update(bytes);
    }

    pub(crate) fn stored(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let capacity = (BLOCK_BYTES - self.stored % BLOCK_BYTES) as usize;
            let (now, later) = bytes.split_at(capacity.min(bytes.len()));
            self.block = crc32c::crc32c_append(self.block, now);
            self.stored += now.len() as u64;
            if now.len() == capacity {
                self.blocks.push(mem::take(&mut self.block));
            }
            bytes = later;
        }
    }

    pub(crate) fn finish(mut self) -> PartIndex {
        if !self.stored.is_multiple_of(BLOCK_BYTES) {
            self.blocks.push(self.block);
        }
        PartIndex {
            offset: 0,
            stored: self.stored,
            plain: self.plain,
            crc32: self.crc32.finalize(),
            crc32c: join_blocks(&self.blocks, self.stored),
            blocks: self.blocks,
        }
    }
}
