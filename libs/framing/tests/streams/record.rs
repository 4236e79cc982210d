//! What is seen of a stream.

use mesh_framing::{Ambiguity, Framing, Observer};

/// A request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Request {
    /// Its body, as far as it came.
    pub(crate) body: Vec<u8>,
    /// Whether it came to its end.
    pub(crate) is_whole: bool,
}

/// What framing says of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Record {
    /// The requests whose head came whole.
    pub(crate) requests: Vec<Request>,
    /// The first byte that is not clear, and why.
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
