//! Verification of a whole segment file: every byte is either compared with what must be there or inflated,
//! counted and hashed. Each part is inflated by itself, so rows that refer back into a header are found.

use std::{collections::VecDeque, fs::File, io::Read, mem, os::unix::fs::FileExt, path::Path};

use bytes::Bytes;
use flate2::{Decompress, FlushDecompress, Status};

use crate::{
    block_rows::BlockRows,
    csv::CsvError,
    csv_validator::CsvValidator,
    digest::{Digest, Sha256},
    error::HistoryError,
    index::{BLOCK_BYTES, FINAL_BLOCK, MAX_HEADER_BYTES, PartIndex, PartKind},
    member::PartMeter,
    metadata,
    name::SegmentName,
    opener::{SegmentOpener, Step},
    segment::Segment,
    zip::directory,
};

/// Checks a segment file's bytes, which come front to back in pieces of any size. Inflates on the calling
/// thread.
pub struct Verifier {
    segment: Segment,
    plan: VecDeque<Check>,
    at: u64,
    /// The checks of the current member's text.
    member: Option<TextChecks>,
}

/// A run of bytes of the file and how it is checked.
enum Check {
    /// Must be exactly these bytes.
    Exact { what: String, bytes: Bytes },
    /// A whole deflated member with this digest.
    Whole { what: &'static str, inflate: Box<PartInflater>, digest: Digest },
    /// A part of the member of this number.
    Part { member: usize, kind: PartKind, inflate: Box<PartInflater> },
}

/// A deflate stream that is being inflated.
struct PartInflater {
    inflate: Decompress,
    stored_left: u64,
    meter: PartMeter,
    ended: bool,
}

/// The checks of one member's plain text.
#[derive(Default)]
struct TextChecks {
    sha256: Sha256,
    header: Vec<u8>,
    is_behind_header: bool,
    rules: CsvValidator,
    /// The first violation of the CSV dialect. A wrong hash or checksum is reported instead, because it
    /// locates damage more precisely.
    broken: Option<CsvError>,
}

impl Verifier {
    /// Plans the verification of an open segment.
    pub fn new(segment: &Segment) -> Verifier {
        let date = segment.date();
        let exact = |what: &str, bytes| Check::Exact { what: what.to_owned(), bytes: Bytes::from(bytes) };
        let (head, tail) = (&segment.metadata_entry, &segment.index_entry);
        let whole = |what, stored, digest| Check::Whole { what, inflate: PartInflater::new(stored), digest };
        let mut plan = VecDeque::from([
            exact(metadata::NAME, head.local_header()),
            whole(metadata::NAME, head.stored, segment.id),
        ]);
        let mut entries = vec![head.clone()];
        for (number, member) in segment.members.iter().enumerate() {
            let (entry, index) = (member.entry(date), &member.index);
            plan.push_back(exact(&entry.name, entry.local_header()));
            for kind in [PartKind::Header, PartKind::Rows] {
                let inflate = PartInflater::new(index.part(kind).stored);
                plan.push_back(Check::Part { member: number, kind, inflate });
            }
            plan.push_back(exact(&entry.name, FINAL_BLOCK.to_vec()));
            entries.push(entry);
        }
        entries.push(tail.clone());
        plan.push_back(exact(crate::index::NAME, tail.local_header()));
        plan.push_back(whole(crate::index::NAME, tail.stored, segment.index_digest));
        plan.push_back(exact(
            "the directory",
            directory(&entries, tail.offset + tail.local_length() + tail.stored),
        ));
        Verifier { segment: segment.clone(), plan, at: 0, member: None }
    }

    /// Takes the next bytes of the file.
    ///
    /// # Errors
    ///
    /// The first fault and its position.
    pub fn write(&mut self, mut bytes: &[u8]) -> Result<(), HistoryError> {
        while !bytes.is_empty() {
            let taken = self.step(bytes).map_err(|what| self.damaged(&what))?;
            self.at += taken as u64;
            bytes = &bytes[taken..];
        }
        Ok(())
    }

    /// Ends the verification.
    ///
    /// # Errors
    ///
    /// The file is shorter than its index says.
    pub fn finish(self) -> Result<(), HistoryError> {
        if self.plan.is_empty() { Ok(()) } else { Err(self.damaged("it ends too early")) }
    }

    fn damaged(&self, what: &str) -> HistoryError {
        HistoryError::damaged(&self.segment.name, format!("{what} (near byte {})", self.at))
    }

    /// Checks bytes against the next item of the plan; returns how many were checked.
    fn step(&mut self, bytes: &[u8]) -> Result<usize, String> {
        let Some(check) = self.plan.front_mut() else {
            return Err("there are bytes after the directory".to_owned());
        };
        let taken = match check {
            Check::Exact { what, bytes: expected } => {
                let length = expected.len().min(bytes.len());
                if expected.split_to(length) != bytes[..length] {
                    return Err(format!("{what}: the frame is damaged"));
                }
                (length, expected.is_empty())
            }
            Check::Whole { what, inflate, .. } => {
                let text = self.member.get_or_insert_default();
                let taken = inflate.take(bytes, |plain| text.sha256.update(plain));
                (taken.map_err(|error| format!("{what}: {error}"))?, inflate.stored_left == 0)
            }
            Check::Part { member, kind, inflate } => {
                let text = self.member.get_or_insert_default();
                if *kind == PartKind::Rows && !mem::replace(&mut text.is_behind_header, true) {
                    let member = &self.segment.members[*member];
                    text.rules.rows = BlockRows::of(&self.segment, member, &text.header);
                }
                let taken = inflate.take(bytes, |plain| text.take(plain, *kind));
                let name = &self.segment.members[*member].index.name;
                (taken.map_err(|error| format!("{name}: {error}"))?, inflate.stored_left == 0)
            }
        };
        if taken.1
            && let Some(check) = self.plan.pop_front()
        {
            self.end(check)?;
        }
        Ok(taken.0)
    }

    fn end(&mut self, check: Check) -> Result<(), String> {
        match check {
            Check::Exact { .. } => Ok(()),
            Check::Whole { what, inflate, digest } => {
                let text = mem::take(&mut self.member).unwrap_or_default();
                let right = inflate.ended && text.sha256.finish() == digest;
                if right { Ok(()) } else { Err(format!("{what}: the text has changed")) }
            }
            Check::Part { member, kind, inflate } => {
                let member = &self.segment.members[member];
                let index = &member.index;
                inflate.check(index.part(kind)).map_err(|what| format!("{}: {what}", index.name))?;
                if kind == PartKind::Header {
                    return Ok(());
                }
                let text = mem::take(&mut self.member).unwrap_or_default();
                text.check(member).map_err(|what| format!("{}: {what}", index.name))
            }
        }
    }
}

impl PartInflater {
    fn new(stored: u64) -> Box<PartInflater> {
        Box::new(PartInflater {
            inflate: Decompress::new(false),
            stored_left: stored,
            meter: PartMeter::default(),
            ended: false,
        })
    }

    /// Inflates the bytes that belong to the stream; returns their number.
    fn take(&mut self, bytes: &[u8], mut plain: impl FnMut(&[u8])) -> Result<usize, String> {
        let in_block = BLOCK_BYTES - self.meter.stored % BLOCK_BYTES;
        let length = (bytes.len() as u64).min(self.stored_left).min(in_block) as usize;
        let mut input = &bytes[..length];
        self.meter.stored(input);
        self.stored_left -= length as u64;
        let mut out = [0; 32 << 10];
        loop {
            if self.ended {
                return if input.is_empty() {
                    Ok(length)
                } else {
                    Err("the stream ends too early".to_owned())
                };
            }
            let (taken, given) = (self.inflate.total_in(), self.inflate.total_out());
            let status = self.inflate.decompress(input, &mut out, FlushDecompress::None);
            self.ended = status.map_err(|error| error.to_string())? == Status::StreamEnd;
            input = &input[(self.inflate.total_in() - taken) as usize..];
            let text = &out[..(self.inflate.total_out() - given) as usize];
            self.meter.plain(text);
            plain(text);
            if input.is_empty() && text.len() < out.len() {
                return Ok(length);
            }
        }
    }

    /// Checks a part against its index.
    fn check(self, part: &PartIndex) -> Result<(), String> {
        let metered = self.meter.finish();
        if self.ended || metered.blocks != part.blocks {
            return Err("the stored bytes have changed".to_owned());
        }
        if metered.plain != part.plain || metered.crc32 != part.crc32 {
            return Err("the text has changed".to_owned());
        }
        Ok(())
    }
}

impl TextChecks {
    fn take(&mut self, plain: &[u8], kind: PartKind) {
        self.sha256.update(plain);
        if self.broken.is_none() {
            self.broken = self.rules.write(plain).err();
        }
        if kind == PartKind::Header {
            // A longer header fails the check against its index, so the rest of it is not stored.
            let capacity = MAX_HEADER_BYTES - self.header.len().min(MAX_HEADER_BYTES);
            self.header.extend_from_slice(&plain[..capacity.min(plain.len())]);
        }
    }

    fn check(mut self, member: &crate::segment::Member) -> Result<(), String> {
        if self.sha256.finish() != member.sha256 {
            return Err("its hash is not the metadata's".to_owned());
        }
        let block_rows = self.rules.rows.take();
        let records = match self.broken {
            Some(broken) => Err(broken),
            None => self.rules.finish(),
        };
        let rows = records.map_err(|broken| broken.to_string())?.saturating_sub(1);
        if rows != member.rows {
            return Err(format!("{rows} rows, not {}", member.rows));
        }
        member.check_header(&self.header)?;
        block_rows.map_or(Ok(()), BlockRows::finish)
    }
}

/// Opens and verifies a local segment file by reading all of it.
///
/// # Errors
///
/// The first fault.
pub fn verify_file(name: &SegmentName, path: &Path) -> Result<Segment, HistoryError> {
    const STEP: &str = "reading a segment file";
    let mut file = File::open(path).map_err(HistoryError::io(STEP))?;
    let size = file.metadata().map_err(HistoryError::io(STEP))?.len();
    let mut opening = SegmentOpener::new(name.clone(), size);
    let segment = loop {
        match opening.step()? {
            Step::Done(done) => break done.0,
            Step::Read(range) => {
                let mut bytes = vec![0; (range.end - range.start) as usize];
                file.read_exact_at(&mut bytes, range.start).map_err(HistoryError::io(STEP))?;
                opening.supply(&range, bytes.into())?;
            }
        }
    };
    let mut verifier = Verifier::new(&segment);
    let mut piece = vec![0; 1 << 20];
    loop {
        let length = file.read(&mut piece).map_err(HistoryError::io(STEP))?;
        if length == 0 {
            verifier.finish()?;
            return Ok(segment);
        }
        verifier.write(&piece[..length])?;
    }
}
