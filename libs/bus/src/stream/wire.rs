//! The format of pulls and chunks: one header each, of words with a space between. Positions are base64url.
//!
//! Pull, in addition to `Mesh-Ask`, with the operation's request as payload: `Mesh-Pull: <stream> <chunks>
//! <bytes> p=<position>`. Chunk, with its bytes as payload, to the pull's own reply subject: `Mesh-Chunk:
//! <crc> <stream> <index> p=<position> a=<position after it>`, then up to three `t=<where a pull begins>` of
//! the next pull and of those after it if each has the same budget, then optionally `stop` (no bytes: the
//! pull ends here, the stream does not) or `end=<bytes>` or `end=<bytes>/<rows>`. `<stream>` and `<crc>` are
//! hexadecimal; the CRC-32 is that of the payload and of all words behind the CRC.

use std::fmt::Write;

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use bytes::Bytes;

use super::position::{MAX_CHUNK_BYTES, MAX_POSITION_BYTES, MAX_POSITIONS_AHEAD, Position, Totals};

/// Most chunks of one pull.
const MAX_CHUNKS: u32 = 64;

/// The most that one pull may give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PullBudget {
    /// Most chunks, at least one.
    pub chunks: u32,
    /// Most bytes, all chunks together.
    pub bytes: u32,
}

impl PullBudget {
    /// Greatest length of each chunk, bytes.
    pub fn chunk_bytes(&self) -> usize {
        ((self.bytes / self.chunks.max(1)) as usize).clamp(1, MAX_CHUNK_BYTES)
    }
}

/// The header of a pull.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullHeader {
    /// Id of the stream, chosen by its reader.
    pub stream: u64,
    /// The most that the answer may contain.
    pub budget: PullBudget,
    /// Where the bytes begin.
    pub position: Position,
}

impl PullHeader {
    /// The value of the header.
    pub fn write(&self) -> String {
        let PullBudget { chunks, bytes } = self.budget;
        let mut text = format!("{:x} {chunks} {bytes}", self.stream);
        write_position(&mut text, 'p', &self.position);
        text
    }

    /// Reads the value of the header; `None` when it is malformed or asks for too much.
    pub fn read(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let stream = u64::from_str_radix(words.next()?, 16).ok()?;
        let chunks = words.next()?.parse().ok().filter(|chunks| (1..=MAX_CHUNKS).contains(chunks))?;
        let bytes = words.next()?.parse().ok().filter(|bytes| *bytes > 0)?;
        let position = read_position(words.next()?.strip_prefix("p=")?)?;
        Some(Self { stream, budget: PullBudget { chunks, bytes }, position })
    }
}

/// One message of the answer to a pull.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// Id of the stream.
    pub stream: u64,
    /// Index in the answer to the pull, from 0.
    pub index: u32,
    /// Where its bytes begin.
    pub position: Position,
    /// The position after its bytes.
    pub after: Position,
    /// The positions of the next pulls, as far as they are known before this one has ended.
    pub next_positions: Vec<Position>,
    /// What follows it.
    pub mark: Mark,
    /// The payload.
    pub bytes: Bytes,
}

/// What follows a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// More chunks, in this pull or the next.
    More,
    /// No more chunks in this pull, although its budget is not used up; this message has no bytes.
    Stop,
    /// The end of the stream.
    End(Totals),
}

impl Chunk {
    /// The value of the header.
    pub fn write(&self) -> String {
        let mut words = format!("{:x} {}", self.stream, self.index);
        write_position(&mut words, 'p', &self.position);
        write_position(&mut words, 'a', &self.after);
        for position in &self.next_positions {
            write_position(&mut words, 't', position);
        }
        let _ = match self.mark {
            Mark::More => Ok(()),
            Mark::Stop => write!(words, " stop"),
            Mark::End(Totals { bytes, rows: None }) => write!(words, " end={bytes}"),
            Mark::End(Totals { bytes, rows: Some(rows) }) => write!(words, " end={bytes}/{rows}"),
        };
        format!("{:08x} {words}", checksum(&self.bytes, &words))
    }

    /// Reads a chunk; `None` when any bit differs from what was sent.
    pub fn read(text: &str, bytes: Bytes) -> Option<Self> {
        let (crc, words) = text.split_once(' ')?;
        if bytes.len() > MAX_CHUNK_BYTES || u32::from_str_radix(crc, 16).ok()? != checksum(&bytes, words) {
            return None;
        }
        let mut words = words.split(' ');
        let stream = u64::from_str_radix(words.next()?, 16).ok()?;
        let index = words.next()?.parse().ok()?;
        let position = read_position(words.next()?.strip_prefix("p=")?)?;
        let after = read_position(words.next()?.strip_prefix("a=")?)?;
        let (mut next_positions, mut mark) = (Vec::new(), Mark::More);
        for word in words {
            match word.split_once('=') {
                Some(("t", position)) if next_positions.len() < MAX_POSITIONS_AHEAD => {
                    next_positions.push(read_position(position)?);
                }
                Some(("end", totals)) => mark = Mark::End(read_totals(totals)?),
                None if word == "stop" => mark = Mark::Stop,
                _ => return None,
            }
        }
        Some(Self { stream, index, position, after, next_positions, mark, bytes })
    }
}

fn checksum(bytes: &[u8], words: &str) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(bytes);
    crc.update(words.as_bytes());
    crc.finalize()
}

fn write_position(text: &mut String, name: char, position: &Position) {
    text.extend([' ', name, '=']);
    BASE64_URL_SAFE_NO_PAD.encode_string(position.as_bytes(), text);
}

fn read_position(text: &str) -> Option<Position> {
    if text.len() > MAX_POSITION_BYTES * 4 / 3 + 4 {
        return None;
    }
    Position::new(BASE64_URL_SAFE_NO_PAD.decode(text).ok()?)
}

fn read_totals(text: &str) -> Option<Totals> {
    let (bytes, rows) = match text.split_once('/') {
        Some((bytes, rows)) => (bytes, Some(rows.parse().ok()?)),
        None => (text, None),
    };
    Some(Totals { bytes: bytes.parse().ok()?, rows })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(bytes: &'static [u8]) -> Position {
        Position::new(bytes).unwrap()
    }

    fn chunk(next_positions: Vec<Position>, mark: Mark) -> Chunk {
        let (position, after) = (position(b""), position(&[0xff, 0, 0x3e]));
        Chunk { stream: u64::MAX, index: 7, position, after, next_positions, mark, bytes: "bytes".into() }
    }

    #[test]
    fn headers_are_read_as_they_were_written() {
        let pull = PullHeader {
            stream: 0xab,
            budget: PullBudget { chunks: 4, bytes: 2 << 20 },
            position: position(&[0; MAX_POSITION_BYTES]),
        };
        assert_eq!(PullHeader::read(&pull.write()), Some(pull));
        let ends =
            [Totals { bytes: u64::MAX, rows: None }, Totals { bytes: 0, rows: Some(3) }].map(Mark::End);
        for mark in [Mark::More, Mark::Stop].into_iter().chain(ends) {
            for then in 0..=MAX_POSITIONS_AHEAD {
                let chunk = chunk(vec![position(b"then"); then], mark);
                assert_eq!(Chunk::read(&chunk.write(), chunk.bytes.clone()), Some(chunk));
            }
        }
    }

    #[test]
    fn a_flipped_bit_anywhere_is_seen() {
        let chunk = chunk(vec![position(b"then")], Mark::End(Totals { bytes: 5, rows: Some(1) }));
        let text = chunk.write();
        for at in 0..text.len() * 8 {
            let mut flipped = text.clone().into_bytes();
            flipped[at / 8] ^= 1 << (at % 8);
            // The CRC is the same in upper and lower case.
            let Ok(flipped) = String::from_utf8(flipped) else { continue };
            if at / 8 >= 8 || !flipped.eq_ignore_ascii_case(&text) {
                assert_eq!(Chunk::read(&flipped, chunk.bytes.clone()), None, "{flipped}");
            }
        }
        assert_eq!(Chunk::read(&text, "bytez".into()), None);
        assert_eq!(Chunk::read(&text, "".into()), None);
    }

    #[test]
    fn the_documented_vectors_are_read_and_written() {
        let document = include_str!("../../../../docs/pull-streams.md");
        let (_, vectors) = document.split_once("| payload | `Mesh-Chunk` |").unwrap();
        let mut chunks = 0;
        for line in vectors.lines().filter_map(|line| line.strip_prefix("| `")) {
            let (payload, header) = line.trim_end_matches("` |").split_once("` | `").unwrap();
            let payload = hex::decode(payload.trim_matches(['(', ')']).trim_start_matches("none")).unwrap();
            let chunk = Chunk::read(header, payload.into()).unwrap_or_else(|| panic!("{header}"));
            assert_eq!(chunk.write(), header);
            chunks += 1;
        }
        let (_, pulls) = vectors.split_once("```\n").unwrap();
        let pulls: Vec<&str> = pulls.lines().take_while(|line| *line != "```").collect();
        for pull in &pulls {
            assert_eq!(PullHeader::read(pull).unwrap().write(), *pull);
        }
        assert_eq!((chunks, pulls.len()), (5, 2), "a vector was overlooked");
    }

    #[test]
    fn headers_that_ask_for_too_much_or_are_malformed_are_not_read() {
        for text in
            ["", "1", "1 0 5 p=", "1 65 5 p=", "1 1 0 p=", "1 1 5", "1 1 5 p=?", "x 1 5 p=", "1 -1 5 p="]
        {
            assert_eq!(PullHeader::read(text), None, "{text}");
        }
        assert!(PullHeader::read("1 1 5 p=").is_some());
        let long = "A".repeat(MAX_POSITION_BYTES * 4 / 3 + 2);
        assert_eq!(PullHeader::read(&format!("1 1 5 p={long}")), None);
        let long = Bytes::from(vec![0; MAX_CHUNK_BYTES + 1]);
        let too_long = Chunk { bytes: long.clone(), ..chunk(Vec::new(), Mark::More) };
        assert_eq!(Chunk::read(&too_long.write(), long), None);
        let too_far = chunk(vec![position(b"then"); MAX_POSITIONS_AHEAD + 1], Mark::More);
        assert_eq!(Chunk::read(&too_far.write(), too_far.bytes), None);
    }
}
