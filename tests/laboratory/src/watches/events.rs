//! The blocks of lines of a stream of events, wherever its bytes are split.

use std::{
    hash::{DefaultHasher, Hasher as _},
    str,
    time::Duration,
};

/// The bytes of a stream that are not yet a whole block of lines.
#[derive(Default)]
pub(crate) struct EventParser {
    text: Vec<u8>,
    /// No block ends before this position.
    searched: usize,
}

/// A block of lines. Only sizes and digests of data stay: clients are many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EventBlock {
    /// The id, which only answers have.
    pub(crate) height: Option<u64>,
    /// Whether it says why there is no answer.
    pub(crate) is_problem: bool,
    /// Equal for equal data.
    pub(crate) digest: u64,
    /// The pause before a client comes back.
    pub(crate) retry: Option<Duration>,
    /// Length of the whole block.
    pub(crate) bytes: usize,
}

impl EventParser {
    /// Adds the next bytes of the stream.
    pub(crate) fn push(&mut self, piece: &[u8]) {
        self.text.extend_from_slice(piece);
    }

    /// The next whole block.
    pub(crate) fn next_block(&mut self) -> Option<EventBlock> {
        let unsearched = &self.text[self.searched..];
        let Some(end) = unsearched.windows(2).position(|two| two == b"\n\n") else {
            self.searched = self.text.len().saturating_sub(1);
            return None;
        };
        let end = self.searched + end;
        let block = EventBlock::parse(&self.text[..end]);
        self.text.drain(..end + 2);
        self.searched = 0;
        Some(block)
    }

    /// Whether no block has begun.
    pub(crate) fn is_between_blocks(&self) -> bool {
        self.text.is_empty()
    }
}

impl EventBlock {
    fn parse(lines: &[u8]) -> Self {
        let mut block = Self { bytes: lines.len() + 2, ..Self::default() };
        let mut hasher = DefaultHasher::new();
        for line in lines.split(|byte| *byte == b'\n') {
            let number = |value: &[u8]| str::from_utf8(value).ok()?.parse::<u64>().ok();
            if let Some(value) = line.strip_prefix(b"id: ") {
                block.height = number(value);
            } else if let Some(value) = line.strip_prefix(b"retry: ") {
                block.retry = number(value).map(Duration::from_millis);
            } else if let Some(value) = line.strip_prefix(b"event: ") {
                block.is_problem = value == b"problem";
            } else if let Some(value) = line.strip_prefix(b"data: ") {
                hasher.write(value);
            }
        }
        block.digest = hasher.finish();
        block
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_the_same_wherever_their_bytes_are_split() {
        let text = b"retry: 1000\nid: 57\nevent: answer\ndata: {}\n\n: 58\n\nevent: problem\ndata: {\"a\":1}\n\nid: 59";
        let found = |length: usize| {
            let (mut parser, mut blocks) = (EventParser::default(), Vec::new());
            for piece in text.chunks(length) {
                parser.push(piece);
                blocks.extend(std::iter::from_fn(|| parser.next_block()));
            }
            (blocks, parser.is_between_blocks())
        };
        let (blocks, is_between) = found(text.len());
        let [first, comment, problem] = blocks[..] else { panic!("{blocks:?}") };
        assert_eq!(
            (first.height, first.retry, first.is_problem),
            (Some(57), Some(Duration::from_secs(1)), false)
        );
        assert_eq!((comment.height, comment.bytes, comment.is_problem), (None, 6, false));
        assert_eq!((problem.height, problem.is_problem, is_between), (None, true, false));
        assert_ne!(problem.digest, first.digest);
        for length in 1..20 {
            assert_eq!(found(length), (blocks.clone(), false), "{length}");
        }
    }
}
