//! Makes a segment file (H2). Members are deflated into unnamed temporary files first, in any order and on
//! any threads, because `metadata.json` is the first member and describes all others. The file is then
//! written once, front to back, with complete local headers.

use std::{
    fs::File,
    io::{self, BufWriter, Seek, Write},
    path::Path,
};

use flate2::{Compression, write::DeflateEncoder};
use serde::Serialize;

use crate::{
    digest::Digest,
    error::HistoryError,
    index::{self, BLOCK_BYTES, MemberIndex, SegmentIndex},
    member::{Encoded, MemberEncoder},
    metadata::{self, MemberMetadata, Metadata, member_order},
    name::SegmentName,
    zip::{DosDate, Entry, directory},
};

/// The description of a segment without its members.
#[derive(Debug, Clone)]
pub struct Span {
    /// The chain's own id.
    pub chain_id: String,
    /// Schema version (H8).
    pub database_version: u32,
    /// First height.
    pub height_from: u64,
    /// Last height.
    pub height_to: u64,
    /// Time of the first block, nanoseconds since 1970.
    pub block_time_from: i64,
    /// Time of the last block, nanoseconds since 1970.
    pub block_time_to: i64,
    /// Id of the segment before, `None` for the first.
    pub previous_id: Option<Digest>,
}

/// A member that is being deflated into a temporary file. The file has no name, so that a crash leaves
/// nothing.
pub struct StagedMember {
    encoder: MemberEncoder<BufWriter<File>>,
}

/// A member that is ready to be put into a segment file.
#[derive(Debug)]
pub struct ReadyMember(Encoded<File>);

impl StagedMember {
    /// Starts the member of this name, e.g. `history/trades.csv`, with its temporary file in `folder`.
    ///
    /// # Errors
    ///
    /// No file can be created there.
    pub fn new(name: &str, level: u32, folder: &Path) -> Result<StagedMember, HistoryError> {
        let file = tempfile::tempfile_in(folder).map_err(HistoryError::io("making a temporary file"))?;
        Ok(StagedMember {
            encoder: MemberEncoder::new(name, BufWriter::with_capacity(256 << 10, file), level),
        })
    }

    /// Takes the next piece of the table's CSV text, header record first. Deflates on the calling thread.
    ///
    /// # Errors
    ///
    /// As [`MemberEncoder::write`].
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), HistoryError> {
        self.encoder.write(bytes)
    }

    /// Ends the member.
    ///
    /// # Errors
    ///
    /// As [`MemberEncoder::finish`].
    pub fn finish(self) -> Result<ReadyMember, HistoryError> {
        let Encoded { sink, metadata, index } = self.encoder.finish()?;
        let file = sink
            .into_inner()
            .map_err(|error| HistoryError::Io { step: "writing a member", source: error.into_error() })?;
        Ok(ReadyMember(Encoded { sink: file, metadata, index }))
    }
}

impl ReadyMember {
    /// Name, columns, rows, length and hash of the member.
    pub fn metadata(&self) -> &MemberMetadata {
        &self.0.metadata
    }

    /// The same member for another segment file. Both share one temporary file and its read position, so they
    /// must not be assembled at the same time.
    ///
    /// # Errors
    ///
    /// The file's handle cannot be duplicated.
    pub fn duplicate(&self) -> Result<ReadyMember, HistoryError> {
        let Encoded { sink, metadata, index } = &self.0;
        let sink = sink.try_clone().map_err(HistoryError::io("sharing a temporary file"))?;
        Ok(ReadyMember(Encoded { sink, metadata: metadata.clone(), index: index.clone() }))
    }
}

/// Writes a segment file of these members, which may come in any order.
///
/// # Errors
///
/// The members do not fit together, or a file fails. The contents of `out` are undefined then.
pub fn assemble(
    span: &Span,
    mut members: Vec<ReadyMember>,
    out: &mut impl Write,
) -> Result<(SegmentName, Digest), HistoryError> {
    let name = SegmentName::new(&span.chain_id, span.database_version, span.height_from, span.height_to);
    members.sort_by(|a, b| member_order(&a.0.metadata.name).cmp(&member_order(&b.0.metadata.name)));
    let metadata = Metadata {
        format_version: metadata::FORMAT,
        chain_id: span.chain_id.clone(),
        database_version: span.database_version,
        height_from: span.height_from,
        height_to: span.height_to,
        block_time_from: span.block_time_from,
        block_time_to: span.block_time_to,
        previous_history_segment_id: span.previous_id,
        members: members.iter().map(|member| member.0.metadata.clone()).collect(),
    };
    metadata.check().map_err(HistoryError::Unfit)?;
    let metadata_text = text(&metadata, metadata::MAX_BYTES)?;
    write(span, &metadata_text, members, out)?;
    Ok((name, Digest::of(&metadata_text)))
}

fn write(
    span: &Span,
    metadata_text: &[u8],
    members: Vec<ReadyMember>,
    out: &mut impl Write,
) -> Result<(), HistoryError> {
    let failed = |source| HistoryError::Io { step: "writing a segment file", source };
    let date = DosDate::of(span.block_time_to);
    let mut entries = Vec::with_capacity(members.len() + 2);
    let mut offset = put_text(metadata::NAME, metadata_text, date, 0, &mut entries, out).map_err(failed)?;
    let mut placed = Vec::with_capacity(members.len());
    for ReadyMember(Encoded { mut sink, metadata, index }) in members {
        let (entry, index) = moved(index, offset, date);
        out.write_all(&entry.local_header()).map_err(failed)?;
        sink.rewind().map_err(failed)?;
        let copied = io::copy(&mut sink, out).map_err(failed)?;
        if copied != entry.stored {
            return Err(HistoryError::Unfit(format!("{}: {copied} bytes in its file", metadata.name)));
        }
        offset += entry.local_length() + entry.stored;
        entries.push(entry);
        placed.push(index);
    }
    let index = SegmentIndex { format_version: 1, block_bytes: BLOCK_BYTES, members: placed };
    let index_text = text(&index, index::MAX_BYTES)?;
    let offset = put_text(index::NAME, &index_text, date, offset, &mut entries, out).map_err(failed)?;
    out.write_all(&directory(&entries, offset)).map_err(failed)?;
    out.flush().map_err(failed)
}

/// Converts a member's index, which counts from the member's start, to its offset in the object.
fn moved(mut index: MemberIndex, offset: u64, date: DosDate) -> (Entry, MemberIndex) {
    let entry = index.entry(offset, date);
    index.header.offset = offset + entry.local_length();
    index.rows.offset = index.header.offset + index.header.stored;
    (entry, index)
}

fn text(value: &impl Serialize, most: u64) -> Result<Vec<u8>, HistoryError> {
    let text = serde_json::to_vec(value).map_err(|error| HistoryError::Unfit(error.to_string()))?;
    if text.len() as u64 > most {
        return Err(HistoryError::Unfit(format!("{} bytes of figures", text.len())));
    }
    Ok(text)
}

/// Writes a member that is in memory; returns the offset after it.
fn put_text(
    name: &str,
    text: &[u8],
    date: DosDate,
    offset: u64,
    entries: &mut Vec<Entry>,
    out: &mut impl Write,
) -> io::Result<u64> {
    let mut deflate = DeflateEncoder::new(Vec::new(), Compression::new(6));
    deflate.write_all(text)?;
    let stored = deflate.finish()?;
    let entry = Entry {
        name: name.to_owned(),
        crc32: crc32fast::hash(text),
        stored: stored.len() as u64,
        plain: text.len() as u64,
        offset,
        date,
    };
    out.write_all(&entry.local_header())?;
    out.write_all(&stored)?;
    let end = offset + entry.local_length() + entry.stored;
    entries.push(entry);
    Ok(end)
}
