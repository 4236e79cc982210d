//! Messages on the wire: a flag and a length before each. A call brings one.

use bytes::{Buf, BufMut, Bytes};
use mesh_problem::{Code, MALFORMED, Problem};
use tonic::{
    Status,
    codec::{EncodeBuf, Encoder},
};

use crate::body::too_large;

/// What stands before a message.
pub(super) const PREFIX_BYTES: usize = 5;

/// The one message of a call.
pub(super) fn message(mut body: Bytes, at_most: usize) -> Result<Bytes, Problem> {
    if body.len() < PREFIX_BYTES {
        return Err(Problem::invalid(MALFORMED, "a call brings one message"));
    }
    let (flag, length) = (body.get_u8(), body.get_u32());
    if flag != 0 {
        // What the protocol asks for, since no compression was announced.
        let reason = "the message says that it is compressed, and the call does not say how";
        return Err(Problem::new(Code::Internal, MALFORMED, reason));
    }
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    if length > at_most {
        return Err(too_large(at_most).problem);
    }
    match body.len() {
        came if came == length => Ok(body),
        came if came < length => Err(Problem::invalid(MALFORMED, "the message breaks off")),
        _ => Err(Problem::invalid(MALFORMED, "a call brings one message")),
    }
}

/// Writes messages that are encoded already, each in pieces that belong end to end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Untouched;

impl Encoder for Untouched {
    type Item = Vec<Bytes>;
    type Error = Status;

    fn encode(&mut self, parts: Vec<Bytes>, into: &mut EncodeBuf<'_>) -> Result<(), Status> {
        into.reserve(parts.iter().map(Bytes::len).sum());
        for part in parts {
            into.put(part);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_brings_one_message() {
        let read = |bytes: &'static [u8]| message(Bytes::from_static(bytes), 3);
        assert_eq!(read(&[0, 0, 0, 0, 0]).unwrap(), Bytes::new());
        assert_eq!(read(&[0, 0, 0, 0, 3, 1, 2, 3]).unwrap(), [1, 2, 3].as_slice());
        for (wrong, code) in [
            (&[][..], Code::InvalidArgument),
            (&[0, 0, 0, 0], Code::InvalidArgument),
            (&[0, 0, 0, 0, 3, 1, 2], Code::InvalidArgument),
            (&[0, 0, 0, 0, 1, 1, 2], Code::InvalidArgument),
            (&[0, 0, 0, 0, 4, 1, 2, 3, 4], Code::ResourceExhausted),
            (&[0, 0xff, 0xff, 0xff, 0xff], Code::ResourceExhausted),
            (&[1, 0, 0, 0, 1, 1], Code::Internal),
        ] {
            assert_eq!(read(wrong).unwrap_err().code, code, "{wrong:?}");
        }
    }
}
