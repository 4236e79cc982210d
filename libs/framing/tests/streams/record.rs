//! The result of reading a stream with framing.

use mesh_framing::{Ambiguity, Framing, Observer};

/// A request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Request {
    /// The received part of its body.
    pub(crate) body: Vec<u8>,
    /// Whether its end was received.
    pub(crate) is_whole: bool,
}

/// The requests of a stream and its first ambiguous byte.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Record {
    /// The requests with a complete head.
    pub(crate) requests: Vec<Request>,
    /// Offset of the first ambiguous byte, and the reason.
    pub(crate) refused: Option<(usize, Ambiguity)>,
}

impl Observer for Record {
    fn head(&mut self) {
        self.requests.push(Request::default());
    }

    fn body(&mut self, bytes: &[u8]) {
        self.requests.last_mut().expect("a body follows a head").body.extend_from_slice(bytes);
    }

    fn end(&mut self) {
        self.requests.last_mut().expect("an end follows a head").is_whole = true;
    }
}

/// Reads a stream in pieces.
pub(crate) fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Record, Framing) {
    let (mut record, mut framing, mut at) = (Record::default(), Framing::default(), 0);
    for piece in pieces {
        if let Err(refusal) = framing.feed(piece, &mut record) {
            record.refused = Some((at + refusal.clear, refusal.reason));
            break;
        }
        at += piece.len();
    }
    (record, framing)
}
