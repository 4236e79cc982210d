//! The fields of a head: those that frame the message are parsed, others are skipped.

use crate::{
    field::{self, Field},
    framing::{CODING, Framing, Observer, State, ValuePart, line_break_error},
    host::Host,
    refusal::Ambiguity,
};

impl Framing {
    pub(crate) fn field(&mut self, rest: &[u8]) -> Result<usize, Ambiguity> {
        match rest[0] {
            b'\r' => Ok(self.advance(State::FieldsLf)),
            b' ' | b'\t' => Err(Ambiguity::Folding),
            b':' => Err(Ambiguity::Name),
            _ => {
                self.state = State::Name;
                self.name(rest)
            }
        }
    }

    pub(crate) fn name(&mut self, rest: &[u8]) -> Result<usize, Ambiguity> {
        let length = field::name_length(rest);
        let name = &rest[..length];
        match rest.get(length) {
            Some(b':') => {}
            Some(byte) if length == 0 => {
                return Err(match byte {
                    b'\n' | 0 => line_break_error(*byte),
                    _ => Ambiguity::Name,
                });
            }
            _ => {
                self.name.begin(name);
                return Ok(length);
            }
        }
        // A repeated field is refused at its colon; the name before it is unambiguous.
        let mut field_name = self.name;
        match self.value_of(field_name.end(name)) {
            Ok(value) => {
                self.name = field_name;
                let read = length + self.advance(value);
                if value != State::Value {
                    return Ok(read);
                }
                // Most values are received with their name; an error in one is found by the next step.
                Ok(read + self.text(&rest[read..], State::LineLf).unwrap_or(0))
            }
            Err(reason) if length == 0 => Err(reason),
            Err(_) => {
                self.name.begin(name);
                Ok(length)
            }
        }
    }

    /// The state that reads a field's value.
    fn value_of(&mut self, field: Field) -> Result<State, Ambiguity> {
        if self.is_trailer && field != Field::Other {
            return Err(Ambiguity::Trailer);
        }
        match field {
            Field::Other => Ok(State::Value),
            Field::Host if self.has_host => Err(Ambiguity::Hosts),
            Field::Length if self.has_length => Err(Ambiguity::Lengths),
            Field::Coding if self.has_coding || !self.is_11 => Err(Ambiguity::Codings),
            Field::Length if self.has_coding => Err(Ambiguity::LengthAndCoding),
            Field::Coding if self.has_length => Err(Ambiguity::LengthAndCoding),
            Field::Host => {
                (self.has_host, self.host) = (true, Host::default());
                Ok(State::Host(ValuePart::Before))
            }
            Field::Length => {
                self.has_length = true;
                Ok(State::Length(ValuePart::Before))
            }
            Field::Coding => {
                self.has_coding = true;
                Ok(State::Coding(ValuePart::Before, 0))
            }
        }
    }

    /// Bytes of the value of `Host`, which may be empty (RFC 9112, 3.2).
    pub(crate) fn host(&mut self, mut part: ValuePart, rest: &[u8]) -> Result<usize, Ambiguity> {
        for (read, byte) in rest.iter().enumerate() {
            part = match (part, *byte) {
                (ValuePart::Before, b' ' | b'\t') => part,
                (ValuePart::Within | ValuePart::After, b' ' | b'\t') if self.host.may_end() => {
                    ValuePart::After
                }
                (ValuePart::Before, b'\r') => return Ok(read + self.advance(State::LineLf)),
                (_, b'\r') if self.host.may_end() => return Ok(read + self.advance(State::LineLf)),
                (ValuePart::Before | ValuePart::Within, byte) if self.host.take(byte) => ValuePart::Within,
                (_, b'\n' | 0) if read == 0 => return Err(line_break_error(*byte)),
                _ if read == 0 => return Err(Ambiguity::Host),
                // The bytes before are unambiguous.
                _ => {
                    self.state = State::Host(part);
                    return Ok(read);
                }
            };
        }
        self.state = State::Host(part);
        Ok(rest.len())
    }

    pub(crate) fn length(&mut self, part: ValuePart, byte: u8) -> Result<usize, Ambiguity> {
        match (part, byte) {
            (_, b'\n' | 0) => Err(line_break_error(byte)),
            (ValuePart::Within | ValuePart::After, b'\r') => Ok(self.advance(State::LineLf)),
            (ValuePart::Before, b' ' | b'\t') => Ok(1),
            (_, b' ' | b'\t') => Ok(self.advance(State::Length(ValuePart::After))),
            (ValuePart::Before | ValuePart::Within, b'0'..=b'9') => {
                let length =
                    self.left.checked_mul(10).and_then(|left| left.checked_add(u64::from(byte - b'0')));
                self.left = length.ok_or(Ambiguity::Length)?;
                Ok(self.advance(State::Length(ValuePart::Within)))
            }
            _ => Err(Ambiguity::Length),
        }
    }

    pub(crate) fn coding(&mut self, part: ValuePart, read: usize, byte: u8) -> Result<usize, Ambiguity> {
        let is_whole = read == CODING.len();
        match byte {
            b'\n' | 0 => Err(line_break_error(byte)),
            b'\r' if is_whole => Ok(self.advance(State::LineLf)),
            b' ' | b'\t' if part == ValuePart::Before => Ok(1),
            b' ' | b'\t' if is_whole => Ok(self.advance(State::Coding(ValuePart::After, read))),
            _ if part != ValuePart::After && CODING.get(read) == Some(&byte.to_ascii_lowercase()) => {
                Ok(self.advance(State::Coding(ValuePart::Within, read + 1)))
            }
            _ => Err(Ambiguity::Coding),
        }
    }

    /// The line feed of the empty line after the fields.
    pub(crate) fn fields_end(&mut self, byte: u8, observer: &mut impl Observer) -> Result<usize, Ambiguity> {
        if byte != b'\n' {
            return Err(Ambiguity::BareCr);
        }
        if self.is_trailer {
            return Ok(self.message_end(observer));
        }
        if self.is_11 && !self.has_host {
            return Err(Ambiguity::NoHost);
        }
        observer.head();
        if self.has_coding {
            return Ok(self.advance(State::ChunkSize));
        }
        if self.left > 0 {
            return Ok(self.advance(State::Body));
        }
        Ok(self.message_end(observer))
    }

    pub(crate) fn message_end(&mut self, observer: &mut impl Observer) -> usize {
        observer.end();
        self.is_trailer = false;
        self.advance(State::Request)
    }
}
