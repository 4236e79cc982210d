//! The state machine over the bytes of a connection: where in which message they are, and what may follow.

use memchr::{memchr, memchr3};

use crate::{
    field::FieldName,
    host::Host,
    refusal::{Ambiguity, Refusal},
};

/// Bytes that every HTTP/1 parser refuses, in whichever state it is. In the place of the ambiguous rest they
/// make a server refuse the request that it is reading.
pub const POISON: &[u8] = b"\r\r\r\n\r\n";

/// The first bytes of an HTTP/2 connection.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Bytes of the preface that no HTTP/1 request begins with.
const PREFACE_ONLY: usize = 14;

/// Most digits of a chunk's size, leading zeros included: those of a 64-bit number.
pub(crate) const CHUNK_DIGITS: u8 = 16;

pub(crate) const CODING: &[u8] = b"chunked";

/// Observes the messages of a connection.
pub trait Observer {
    /// A request's head has ended.
    fn head(&mut self) {}
    /// Bytes of its body, in pieces of any size.
    fn body(&mut self, _bytes: &[u8]) {}
    /// The request has ended.
    fn end(&mut self) {}
}

/// Ignores the messages.
impl Observer for () {}

/// Follows the bytes from a client and refuses the first ambiguous one.
#[derive(Debug, Clone)]
pub struct Framing {
    pub(crate) state: State,
    pub(crate) refused: Option<Ambiguity>,
    /// Requests of which a byte has been received.
    pub(crate) begun: usize,
    /// The last eight bytes of the request line so far.
    pub(crate) tail: u64,
    /// Whether the method of the request line has ended.
    pub(crate) is_after_method: bool,
    pub(crate) name: FieldName,
    pub(crate) host: Host,
    pub(crate) is_11: bool,
    pub(crate) has_host: bool,
    pub(crate) has_length: bool,
    pub(crate) has_coding: bool,
    /// Whether the fields are the trailer of a chunked body.
    pub(crate) is_trailer: bool,
    /// Bytes left of the body or the chunk.
    pub(crate) left: u64,
    pub(crate) digits: u8,
}

/// What is expected next; `…Lf` is the line feed that ends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// An HTTP/2 preface of which this many bytes were received, or a request.
    Preface(usize),
    /// Frames of HTTP/2, which are not checked.
    Http2,
    Request,
    EmptyLineLf,
    RequestLine,
    /// The line feed of a request line or a field.
    LineLf,
    Field,
    Name,
    Value,
    Host(ValuePart),
    Length(ValuePart),
    /// With the number of bytes of `chunked` so far.
    Coding(ValuePart, usize),
    FieldsLf,
    Body,
    ChunkSize,
    ChunkSpace,
    Extension,
    ChunkLf,
    Chunk,
    ChunkEnd,
    ChunkEndLf,
}

/// The position in a field's value, without the white space around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValuePart {
    Before,
    Within,
    After,
}

impl Default for Framing {
    fn default() -> Self {
        Self {
            state: State::Preface(0),
            refused: None,
            begun: 0,
            tail: 0,
            is_after_method: false,
            name: FieldName::default(),
            host: Host::default(),
            is_11: false,
            has_host: false,
            has_length: false,
            has_coding: false,
            is_trailer: false,
            left: 0,
            digits: 0,
        }
    }
}

impl Framing {
    /// Takes the next bytes.
    ///
    /// # Errors
    /// At the first ambiguous byte, and for all bytes after it.
    pub fn feed(&mut self, bytes: &[u8], observer: &mut impl Observer) -> Result<(), Refusal> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let step = match self.refused {
                Some(reason) => Err(reason),
                None => self.step(rest, observer),
            };
            match step {
                Ok(read) => rest = &rest[read..],
                Err(reason) => {
                    self.refused = Some(reason);
                    return Err(Refusal { clear: bytes.len() - rest.len(), reason });
                }
            }
        }
        Ok(())
    }

    /// The number of requests that have begun.
    pub fn begun(&self) -> usize {
        self.begun
    }

    /// Whether no request has begun without having ended.
    pub fn is_between_requests(&self) -> bool {
        matches!(self.state, State::Preface(0) | State::Http2 | State::Request)
    }

    /// Whether the connection is in a request's body.
    pub fn is_in_body(&self) -> bool {
        let is_in_chunk = matches!(
            self.state,
            State::ChunkSize
                | State::ChunkSpace
                | State::Extension
                | State::ChunkLf
                | State::Chunk
                | State::ChunkEnd
                | State::ChunkEndLf
        );
        is_in_chunk || self.is_trailer || self.state == State::Body
    }

    /// Whether the whole preface of HTTP/2 was received.
    pub fn is_http2(&self) -> bool {
        self.state == State::Http2
    }

    /// Takes at least one byte, or returns what is wrong with the first.
    fn step(&mut self, rest: &[u8], observer: &mut impl Observer) -> Result<usize, Ambiguity> {
        let byte = rest[0];
        match self.state {
            State::Preface(read) => self.preface(read, byte),
            State::Http2 => Ok(rest.len()),
            State::Request => Ok(self.request(byte)),
            State::EmptyLineLf => self.line_feed(byte, State::Request),
            State::RequestLine => self.request_line(rest),
            State::LineLf => self.line_feed(byte, State::Field),
            State::Field => self.field(rest),
            State::Name => self.name(rest),
            State::Value => self.text(rest, State::LineLf),
            State::Host(part) => self.host(part, rest),
            State::Length(part) => self.length(part, byte),
            State::Coding(part, read) => self.coding(part, read, byte),
            State::FieldsLf => self.fields_end(byte, observer),
            State::Body | State::Chunk => Ok(self.body(rest, observer)),
            State::ChunkSize => self.chunk_size(byte),
            State::ChunkSpace => self.chunk_space(byte),
            State::Extension => self.text(rest, State::ChunkLf),
            State::ChunkLf => {
                let next = if self.left == 0 { State::Field } else { State::Chunk };
                self.is_trailer = self.left == 0;
                self.line_feed(byte, next)
            }
            State::ChunkEnd if byte == b'\r' => Ok(self.advance(State::ChunkEndLf)),
            State::ChunkEnd => Err(if byte == b'\n' { Ambiguity::BareLf } else { Ambiguity::ChunkEnd }),
            State::ChunkEndLf => {
                self.digits = 0;
                self.line_feed(byte, State::ChunkSize)
            }
        }
    }

    /// Takes one byte and changes the state.
    pub(crate) fn advance(&mut self, next: State) -> usize {
        self.state = next;
        1
    }

    pub(crate) fn line_feed(&mut self, byte: u8, next: State) -> Result<usize, Ambiguity> {
        if byte == b'\n' { Ok(self.advance(next)) } else { Err(Ambiguity::BareCr) }
    }

    /// The rest of a line whose content does not matter, and its carriage return.
    pub(crate) fn text(&mut self, rest: &[u8], next: State) -> Result<usize, Ambiguity> {
        let length = text_length(rest);
        match rest.get(length) {
            None => Ok(length),
            // Most lines are received whole.
            Some(b'\r') if next == State::LineLf && rest.get(length + 1) == Some(&b'\n') => {
                Ok(length + 1 + self.advance(State::Field))
            }
            Some(b'\r') => Ok(length + self.advance(next)),
            Some(_) if length > 0 => Ok(length),
            Some(byte) => Err(line_break_error(*byte)),
        }
    }

    fn preface(&mut self, read: usize, byte: u8) -> Result<usize, Ambiguity> {
        if byte == PREFACE[read] {
            self.begun = 1;
            let is_whole = read + 1 == PREFACE.len();
            return Ok(self.advance(if is_whole { State::Http2 } else { State::Preface(read + 1) }));
        }
        match read {
            0 => Ok(self.request(byte)),
            1..PREFACE_ONLY => {
                self.tail = PREFACE[..read].iter().fold(0, |tail, byte| (tail << 8) | u64::from(*byte));
                self.is_after_method = PREFACE[..read].contains(&b' ');
                self.state = State::RequestLine;
                self.request_line(&[byte])
            }
            _ => Err(Ambiguity::Version),
        }
    }

    fn request(&mut self, byte: u8) -> usize {
        if byte == b'\r' {
            return self.advance(State::EmptyLineLf);
        }
        (self.has_host, self.has_length, self.has_coding, self.is_trailer) = (false, false, false, false);
        (self.tail, self.is_after_method, self.left, self.digits) = (0, false, 0, 0);
        self.begun += 1;
        self.state = State::RequestLine;
        0
    }

    fn request_line(&mut self, rest: &[u8]) -> Result<usize, Ambiguity> {
        let length = text_length(rest);
        if let Some(fragment) = self.find_fragment(&rest[..length]) {
            // The bytes before are unambiguous.
            return if fragment > 0 { Ok(fragment) } else { Err(Ambiguity::Fragment) };
        }
        let (text, end) = rest.split_at(length);
        match text.last_chunk() {
            Some(last) => self.tail = u64::from_be_bytes(*last),
            None => self.tail = text.iter().fold(self.tail, |tail, byte| (tail << 8) | u64::from(*byte)),
        }
        match end.first() {
            Some(b'\r') => {}
            Some(byte) if length == 0 => return Err(line_break_error(*byte)),
            _ => return Ok(length),
        }
        self.is_11 = self.tail == u64::from_be_bytes(*b"HTTP/1.1");
        if self.is_11 || self.tail == u64::from_be_bytes(*b"HTTP/1.0") {
            return Ok(length + self.advance(State::LineLf));
        }
        if length > 0 { Ok(length) } else { Err(Ambiguity::Version) }
    }

    /// Where a fragment begins in the next bytes of the request line. A method may have the same byte.
    fn find_fragment(&mut self, text: &[u8]) -> Option<usize> {
        let target = match self.is_after_method {
            true => 0,
            false => memchr(b' ', text)? + 1,
        };
        self.is_after_method = true;
        Some(target + memchr(b'#', &text[target..])?)
    }
}

/// The number of bytes before a line end or a zero byte.
fn text_length(bytes: &[u8]) -> usize {
    memchr3(b'\r', b'\n', 0, bytes).unwrap_or(bytes.len())
}

/// The error of a bare line feed or a zero byte.
pub(crate) fn line_break_error(byte: u8) -> Ambiguity {
    if byte == 0 { Ambiguity::Nul } else { Ambiguity::BareLf }
}
