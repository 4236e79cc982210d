//! Bodies: by length, or in chunks.

use crate::{
    framing::{CHUNK_DIGITS, Framing, Observer, State, line_break_error},
    refusal::Ambiguity,
};

impl Framing {
    /// Bytes of a body or a chunk.
    pub(crate) fn body(&mut self, rest: &[u8], observer: &mut impl Observer) -> usize {
        let length = usize::try_from(self.left).map_or(rest.len(), |left| left.min(rest.len()));
        observer.body(&rest[..length]);
        self.left -= length as u64;
        if self.left == 0 {
            match self.state {
                State::Chunk => self.state = State::ChunkEnd,
                _ => _ = self.message_end(observer),
            }
        }
        length
    }

    pub(crate) fn chunk_size(&mut self, byte: u8) -> Result<usize, Ambiguity> {
        if let Some(digit) = char::from(byte).to_digit(16) {
            if self.digits == CHUNK_DIGITS {
                return Err(Ambiguity::ChunkSize);
            }
            self.digits += 1;
            self.left = (self.left << 4) | u64::from(digit);
            return Ok(1);
        }
        match byte {
            b'\n' | 0 => Err(line_break_error(byte)),
            _ if self.digits == 0 => Err(Ambiguity::ChunkSize),
            b' ' | b'\t' => Ok(self.advance(State::ChunkSpace)),
            _ => self.chunk_size_end(byte),
        }
    }

    /// White space after a size is allowed only before an extension.
    pub(crate) fn chunk_space(&mut self, byte: u8) -> Result<usize, Ambiguity> {
        match byte {
            b' ' | b'\t' => Ok(1),
            b'\r' => Err(Ambiguity::ChunkSize),
            _ => self.chunk_size_end(byte),
        }
    }

    pub(crate) fn chunk_size_end(&mut self, byte: u8) -> Result<usize, Ambiguity> {
        match byte {
            b'\r' => Ok(self.advance(State::ChunkLf)),
            b';' => Ok(self.advance(State::Extension)),
            b'\n' | 0 => Err(line_break_error(byte)),
            _ => Err(Ambiguity::ChunkSize),
        }
    }
}
