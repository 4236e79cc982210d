//! The state machine: where in which message the connection is, and what may come there.

use memchr::memchr3;

use crate::{
    field::{self, Field, Name},
    host::Host,
    refusal::{Ambiguity, Refusal},
};

/// What no reader of HTTP/1 takes where a connection stops being clear, whatever it has made of the bytes before.
/// Once these come in the place of the rest, a server refuses the request that it is reading.
pub const POISON: &[u8] = b"\r\r\r\n\r\n";

/// With what an HTTP/2 connection begins.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// How much of the preface says that it is one.
const TELLING: usize = 14;

/// Most digits of a chunk's size, leading zeros among them: as many as a 64-bit number has.
const CHUNK_DIGITS: u8 = 16;

const CODING: &[u8] = b"chunked";

/// Sees the messages that a connection is made of.
pub trait Watch {
    /// A request's head has ended.
    fn head(&mut self) {}
    /// Bytes of its body came, in pieces of any size.
    fn body(&mut self, _bytes: &[u8]) {}
    /// The request has ended.
    fn end(&mut self) {}
}

/// Nobody watches.
impl Watch for () {}

/// Follows the bytes from a client.
#[derive(Debug, Clone)]
pub struct Framing {
    place: Place,
    refused: Option<Ambiguity>,
    /// Requests of which a byte has come.
    begun: usize,
    /// The last eight bytes of the request line so far.
    tail: u64,
    name: Name,
    host: Host,
    is_11: bool,
    has_host: bool,
    has_length: bool,
    has_coding: bool,
    /// Whether the fields are those behind a chunked body.
    is_behind: bool,
    /// What is left of the body or the chunk.
    left: u64,
    digits: u8,
}

/// What is expected next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The rest of an HTTP/2 preface of which so much has come, or a request.
    Preface(usize),
    /// Frames.
    Http2,
    Request,
    EmptyLineLf,
    RequestLine,
    /// The line feed of a request line or a field.
    LineLf,
    Field,
    Name,
    Value,
    Host(Value),
    Length(Value),
    /// How many bytes of the coding's name have come.
    Coding(Value, usize),
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

/// A place in a value that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Value {
    Before,
    Within,
    Behind,
}

impl Default for Framing {
    fn default() -> Self {
        Self {
            place: Place::Preface(0),
            refused: None,
            begun: 0,
            tail: 0,
            name: Name::default(),
            host: Host::default(),
            is_11: false,
            has_host: false,
            has_length: false,
            has_coding: false,
            is_behind: false,
            left: 0,
            digits: 0,
        }
    }
}

impl Framing {
    /// Takes the next bytes.
    ///
    /// # Errors
    /// When they stop being clear; from then on nothing is.
    pub fn feed(&mut self, bytes: &[u8], watch: &mut impl Watch) -> Result<(), Refusal> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let step = match self.refused {
                Some(reason) => Err(reason),
                None => self.step(rest, watch),
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

    /// How many requests have begun.
    pub fn begun(&self) -> usize {
        self.begun
    }

    /// Whether no request has begun without having ended.
    pub fn is_between_requests(&self) -> bool {
        matches!(self.place, Place::Preface(0) | Place::Http2 | Place::Request)
    }

    /// Whether a request's head has ended and its body has not. What is refused is refused there.
    pub fn is_in_body(&self) -> bool {
        let is_in_chunk = matches!(
            self.place,
            Place::ChunkSize
                | Place::ChunkSpace
                | Place::Extension
                | Place::ChunkLf
                | Place::Chunk
                | Place::ChunkEnd
                | Place::ChunkEndLf
        );
        is_in_chunk || self.is_behind || self.place == Place::Body
    }

    /// Whether the whole preface of HTTP/2 has come.
    pub fn is_http2(&self) -> bool {
        self.place == Place::Http2
    }

    /// Takes at least one byte, or says what is wrong with the first.
    fn step(&mut self, rest: &[u8], watch: &mut impl Watch) -> Result<usize, Ambiguity> {
        let byte = rest[0];
        match self.place {
            Place::Preface(read) => self.preface(read, byte),
            Place::Http2 => Ok(rest.len()),
            Place::Request => Ok(self.request(byte)),
            Place::EmptyLineLf => self.line_feed(byte, Place::Request),
            Place::RequestLine => self.request_line(rest),
            Place::LineLf => self.line_feed(byte, Place::Field),
            Place::Field => self.field(rest),
            Place::Name => self.name(rest),
            Place::Value => self.text(rest, Place::LineLf),
            Place::Host(at) => self.host(at, rest),
            Place::Length(at) => self.length(at, byte),
            Place::Coding(at, read) => self.coding(at, read, byte),
            Place::FieldsLf => self.fields_end(byte, watch),
            Place::Body | Place::Chunk => Ok(self.body(rest, watch)),
            Place::ChunkSize => self.chunk_size(byte),
            Place::ChunkSpace => self.chunk_space(byte),
            Place::Extension => self.text(rest, Place::ChunkLf),
            Place::ChunkLf => {
                let next = if self.left == 0 { Place::Field } else { Place::Chunk };
                self.is_behind = self.left == 0;
                self.line_feed(byte, next)
            }
            Place::ChunkEnd if byte == b'\r' => Ok(self.go(Place::ChunkEndLf)),
            Place::ChunkEnd => Err(if byte == b'\n' { Ambiguity::BareLf } else { Ambiguity::ChunkEnd }),
            Place::ChunkEndLf => {
                self.digits = 0;
                self.line_feed(byte, Place::ChunkSize)
            }
        }
    }

    /// One byte further.
    fn go(&mut self, next: Place) -> usize {
        self.place = next;
        1
    }

    fn line_feed(&mut self, byte: u8, next: Place) -> Result<usize, Ambiguity> {
        if byte == b'\n' { Ok(self.go(next)) } else { Err(Ambiguity::BareCr) }
    }

    /// The rest of a line that says nothing, and its carriage return.
    fn text(&mut self, rest: &[u8], next: Place) -> Result<usize, Ambiguity> {
        let length = of_text(rest);
        match rest.get(length) {
            None => Ok(length),
            // Most lines come whole.
            Some(b'\r') if next == Place::LineLf && rest.get(length + 1) == Some(&b'\n') => {
                Ok(length + 1 + self.go(Place::Field))
            }
            Some(b'\r') => Ok(length + self.go(next)),
            Some(_) if length > 0 => Ok(length),
            Some(byte) => Err(broken_by(*byte)),
        }
    }

    fn preface(&mut self, read: usize, byte: u8) -> Result<usize, Ambiguity> {
        if byte == PREFACE[read] {
            self.begun = 1;
            let is_whole = read + 1 == PREFACE.len();
            return Ok(self.go(if is_whole { Place::Http2 } else { Place::Preface(read + 1) }));
        }
        match read {
            0 => Ok(self.request(byte)),
            1..TELLING => {
                self.tail = PREFACE[..read].iter().fold(0, |tail, byte| (tail << 8) | u64::from(*byte));
                self.place = Place::RequestLine;
                self.request_line(&[byte])
            }
            _ => Err(Ambiguity::Version),
        }
    }

    fn request(&mut self, byte: u8) -> usize {
        if byte == b'\r' {
            return self.go(Place::EmptyLineLf);
        }
        (self.has_host, self.has_length, self.has_coding, self.is_behind) = (false, false, false, false);
        (self.tail, self.left, self.digits) = (0, 0, 0);
        self.begun += 1;
        self.place = Place::RequestLine;
        0
    }

    fn request_line(&mut self, rest: &[u8]) -> Result<usize, Ambiguity> {
        let length = of_text(rest);
        let (text, end) = rest.split_at(length);
        match text.last_chunk() {
            Some(last) => self.tail = u64::from_be_bytes(*last),
            None => self.tail = text.iter().fold(self.tail, |tail, byte| (tail << 8) | u64::from(*byte)),
        }
        match end.first() {
            Some(b'\r') => {}
            Some(byte) if length == 0 => return Err(broken_by(*byte)),
            _ => return Ok(length),
        }
        self.is_11 = self.tail == u64::from_be_bytes(*b"HTTP/1.1");
        if self.is_11 || self.tail == u64::from_be_bytes(*b"HTTP/1.0") {
            return Ok(length + self.go(Place::LineLf));
        }
        if length > 0 { Ok(length) } else { Err(Ambiguity::Version) }
    }

    fn field(&mut self, rest: &[u8]) -> Result<usize, Ambiguity> {
        match rest[0] {
            b'\r' => Ok(self.go(Place::FieldsLf)),
            b' ' | b'\t' => Err(Ambiguity::Folding),
            b':' => Err(Ambiguity::Name),
            _ => {
                self.place = Place::Name;
                self.name(rest)
            }
        }
    }

    fn name(&mut self, rest: &[u8]) -> Result<usize, Ambiguity> {
        let length = field::of_name(rest);
        let name = &rest[..length];
        match rest.get(length) {
            Some(b':') => {}
            Some(byte) if length == 0 => {
                return Err(match byte {
                    b'\n' | 0 => broken_by(*byte),
                    _ => Ambiguity::Name,
                });
            }
            _ => {
                self.name.begin(name);
                return Ok(length);
            }
        }
        // The colon itself says that a field is one too many; the name before it is clear.
        let mut kept = self.name;
        match self.value_of(kept.end(name)) {
            Ok(value) => {
                self.name = kept;
                let read = length + self.go(value);
                if value != Place::Value {
                    return Ok(read);
                }
                // Most values come with their name; what is wrong with one is the next step's.
                Ok(read + self.text(&rest[read..], Place::LineLf).unwrap_or(0))
            }
            Err(reason) if length == 0 => Err(reason),
            Err(_) => {
                self.name.begin(name);
                Ok(length)
            }
        }
    }

    /// How the value of a field is read.
    fn value_of(&mut self, field: Field) -> Result<Place, Ambiguity> {
        if self.is_behind && field != Field::Other {
            return Err(Ambiguity::Trailer);
        }
        match field {
            Field::Other => return Ok(Place::Value),
            Field::Host if self.has_host => return Err(Ambiguity::Hosts),
            Field::Length if self.has_length => return Err(Ambiguity::Lengths),
            Field::Coding if self.has_coding || !self.is_11 => return Err(Ambiguity::Codings),
            Field::Length if self.has_coding => return Err(Ambiguity::LengthAndCoding),
            Field::Coding if self.has_length => return Err(Ambiguity::LengthAndCoding),
            Field::Host => (self.has_host, self.host) = (true, Host::default()),
            Field::Length => self.has_length = true,
            Field::Coding => self.has_coding = true,
        }
        Ok(match field {
            Field::Host => Place::Host(Value::Before),
            Field::Length => Place::Length(Value::Before),
            Field::Coding => Place::Coding(Value::Before, 0),
            _ => Place::Value,
        })
    }

    /// Bytes of the value of `Host`, which may be empty (RFC 9112, 3.2).
    fn host(&mut self, mut at: Value, rest: &[u8]) -> Result<usize, Ambiguity> {
        for (read, byte) in rest.iter().enumerate() {
            at = match (at, *byte) {
                (Value::Before, b' ' | b'\t') => at,
                (Value::Within | Value::Behind, b' ' | b'\t') if self.host.may_end() => Value::Behind,
                (Value::Before, b'\r') => return Ok(read + self.go(Place::LineLf)),
                (_, b'\r') if self.host.may_end() => return Ok(read + self.go(Place::LineLf)),
                (Value::Before | Value::Within, byte) if self.host.take(byte) => Value::Within,
                (_, b'\n' | 0) if read == 0 => return Err(broken_by(*byte)),
                _ if read == 0 => return Err(Ambiguity::Host),
                // What comes before is clear.
                _ => {
                    self.place = Place::Host(at);
                    return Ok(read);
                }
            };
        }
        self.place = Place::Host(at);
        Ok(rest.len())
    }

    fn length(&mut self, at: Value, byte: u8) -> Result<usize, Ambiguity> {
        match (at, byte) {
            (_, b'\n' | 0) => Err(broken_by(byte)),
            (Value::Within | Value::Behind, b'\r') => Ok(self.go(Place::LineLf)),
            (Value::Before, b' ' | b'\t') => Ok(1),
            (_, b' ' | b'\t') => Ok(self.go(Place::Length(Value::Behind))),
            (Value::Before | Value::Within, b'0'..=b'9') => {
                let length =
                    self.left.checked_mul(10).and_then(|left| left.checked_add(u64::from(byte - b'0')));
                self.left = length.ok_or(Ambiguity::Length)?;
                Ok(self.go(Place::Length(Value::Within)))
            }
            _ => Err(Ambiguity::Length),
        }
    }

    fn coding(&mut self, at: Value, read: usize, byte: u8) -> Result<usize, Ambiguity> {
        let is_whole = read == CODING.len();
        match byte {
            b'\n' | 0 => Err(broken_by(byte)),
            b'\r' if is_whole => Ok(self.go(Place::LineLf)),
            b' ' | b'\t' if at == Value::Before => Ok(1),
            b' ' | b'\t' if is_whole => Ok(self.go(Place::Coding(Value::Behind, read))),
            _ if at != Value::Behind && CODING.get(read) == Some(&byte.to_ascii_lowercase()) => {
                Ok(self.go(Place::Coding(Value::Within, read + 1)))
            }
            _ => Err(Ambiguity::Coding),
        }
    }

    /// The line feed of the empty line behind the fields.
    fn fields_end(&mut self, byte: u8, watch: &mut impl Watch) -> Result<usize, Ambiguity> {
        if byte != b'\n' {
            return Err(Ambiguity::BareCr);
        }
        if self.is_behind {
            return Ok(self.message_end(watch));
        }
        if self.is_11 && !self.has_host {
            return Err(Ambiguity::NoHost);
        }
        watch.head();
        if self.has_coding {
            return Ok(self.go(Place::ChunkSize));
        }
        if self.left > 0 {
            return Ok(self.go(Place::Body));
        }
        Ok(self.message_end(watch))
    }

    fn message_end(&mut self, watch: &mut impl Watch) -> usize {
        watch.end();
        self.is_behind = false;
        self.go(Place::Request)
    }

    /// Bytes of a body or a chunk.
    fn body(&mut self, rest: &[u8], watch: &mut impl Watch) -> usize {
        let length = usize::try_from(self.left).map_or(rest.len(), |left| left.min(rest.len()));
        watch.body(&rest[..length]);
        self.left -= length as u64;
        if self.left == 0 {
            match self.place {
                Place::Chunk => self.place = Place::ChunkEnd,
                _ => _ = self.message_end(watch),
            }
        }
        length
    }

    fn chunk_size(&mut self, byte: u8) -> Result<usize, Ambiguity> {
        if let Some(digit) = char::from(byte).to_digit(16) {
            if self.digits == CHUNK_DIGITS {
                return Err(Ambiguity::ChunkSize);
            }
            self.digits += 1;
            self.left = (self.left << 4) | u64::from(digit);
            return Ok(1);
        }
        match byte {
            b'\n' | 0 => Err(broken_by(byte)),
            _ if self.digits == 0 => Err(Ambiguity::ChunkSize),
            b' ' | b'\t' => Ok(self.go(Place::ChunkSpace)),
            _ => self.chunk_size_end(byte),
        }
    }

    /// White space behind a size has a right to be there only before an extension.
    fn chunk_space(&mut self, byte: u8) -> Result<usize, Ambiguity> {
        match byte {
            b' ' | b'\t' => Ok(1),
            b'\r' => Err(Ambiguity::ChunkSize),
            _ => self.chunk_size_end(byte),
        }
    }

    fn chunk_size_end(&mut self, byte: u8) -> Result<usize, Ambiguity> {
        match byte {
            b'\r' => Ok(self.go(Place::ChunkLf)),
            b';' => Ok(self.go(Place::Extension)),
            b'\n' | 0 => Err(broken_by(byte)),
            _ => Err(Ambiguity::ChunkSize),
        }
    }
}

/// How many bytes there are before one that ends a line or never stands in one.
fn of_text(bytes: &[u8]) -> usize {
    memchr3(b'\r', b'\n', 0, bytes).unwrap_or(bytes.len())
}

/// What is wrong with a byte that stands in no line.
fn broken_by(byte: u8) -> Ambiguity {
    if byte == 0 { Ambiguity::Nul } else { Ambiguity::BareLf }
}
