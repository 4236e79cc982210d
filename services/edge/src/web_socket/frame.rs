//! The text frames of both directions (F1, F2): JSON objects with the id that the client chose for a watch.

use bytes::Bytes;
use mesh_problem::{MALFORMED, Problem};
use serde::Deserialize;
use serde_json::Value;
use tokio_tungstenite::tungstenite::protocol::frame::{
    FrameHeader,
    coding::{Control, Data, OpCode},
};

use crate::{decode::quote, watch::event::Emission};

/// Longest id, characters.
const MAX_ID: usize = 64;

const FORM: &str = "a frame is {\"id\",\"watch\",\"after\"?} or {\"id\",\"unwatch\":true}";

/// The id of a watch as a JSON string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Id(Box<str>);

/// What a client wants.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// Begin a watch of this path and query, with states above this height.
    Watch { target: String, after: Option<u64> },
    /// End a watch.
    Unwatch,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Members {
    id: String,
    watch: Option<String>,
    after: Option<Value>,
    unwatch: Option<bool>,
}

#[derive(Deserialize)]
struct OnlyId {
    id: String,
}

impl Id {
    fn new(id: &str) -> Self {
        Self(serde_json::Value::from(id).to_string().into())
    }

    /// The id of a frame that has none.
    pub(super) fn none() -> Self {
        Self::new("")
    }
}

/// Reads a text frame.
///
/// # Errors
/// Why it is none of the two kinds, with its id or an empty one.
pub(super) fn read(text: &str) -> Result<(Id, Command), (Id, Problem)> {
    let malformed = |id: &Id, reason: &str| (id.clone(), Problem::invalid(MALFORMED, reason));
    // Derived structs are read from arrays, too.
    if text.trim_ascii_start().starts_with('[') {
        return Err(malformed(&Id::none(), FORM));
    }
    let is_id = |id: &str| (1..=MAX_ID).contains(&id.chars().count());
    let members: Members = serde_json::from_str(text).map_err(|error| {
        let id = serde_json::from_str(text).ok().filter(|OnlyId { id }| is_id(id));
        let id = id.map_or_else(Id::none, |OnlyId { id }| Id::new(&id));
        let (id, problem) = malformed(&id, FORM);
        (id, problem.with_inner(quote(&error.to_string())))
    })?;
    if !is_id(&members.id) {
        return Err(malformed(&Id::none(), "id must have 1 to 64 characters"));
    }
    let id = Id::new(&members.id);
    match members {
        Members { watch: Some(target), after, unwatch: None, .. } => {
            let height = |value: Value| match value {
                Value::String(text) if text.bytes().all(|digit| digit.is_ascii_digit()) => text.parse().ok(),
                Value::Number(number) => number.as_u64(),
                _ => None,
            };
            let after = after.map(|value| {
                height(value)
                    .ok_or_else(|| malformed(&id, "after must be a block height, as a string or a number"))
            });
            let after = after.transpose()?;
            Ok((id, Command::Watch { target, after }))
        }
        Members { watch: None, after: None, unwatch: Some(true), .. } => Ok((id, Command::Unwatch)),
        _ => Err(malformed(&id, "a frame has either watch, and after if needed, or unwatch with true")),
    }
}

/// A state of a watch.
pub(super) fn state(id: &Id, emission: &Emission) -> Vec<Bytes> {
    let head = match emission.event.is_problem() {
        true => format!("{{\"id\":{},\"problem\":", id.0),
        false => format!("{{\"id\":{},\"height\":\"{}\",\"answer\":", id.0, emission.height),
    };
    text(&head, emission.event.json())
}

/// The sign of life of a watch: its last state is that of this height.
pub(super) fn unchanged(id: &Id, height: u64) -> Vec<Bytes> {
    text(&format!("{{\"id\":{},\"height\":\"{height}\"", id.0), Bytes::new())
}

/// Why a frame is refused, or why a watch has ended.
pub(super) fn error(id: &Id, problem: &Problem) -> Vec<Bytes> {
    text(&format!("{{\"id\":{},\"error\":", id.0), problem.to_json().into())
}

/// A ping without data.
pub(super) fn ping() -> Vec<Bytes> {
    vec![header(OpCode::Control(Control::Ping), 0, "")]
}

/// The frame of a JSON object that begins with `head` and ends after `data`, which all watchers share.
fn text(head: &str, data: Bytes) -> Vec<Bytes> {
    const END: Bytes = Bytes::from_static(b"}");
    let length = head.len() + data.len() + END.len();
    vec![header(OpCode::Data(Data::Text), length, head), data, END]
}

/// The header of a frame with a payload of this length, and the payload's beginning.
pub(super) fn header(opcode: OpCode, length: usize, beginning: &str) -> Bytes {
    let header = FrameHeader { opcode, ..FrameHeader::default() };
    let mut bytes = Vec::with_capacity(header.len(length as u64) + beginning.len());
    // A vector takes every byte.
    let _ = header.format(length as u64, &mut bytes);
    bytes.extend_from_slice(beginning.as_bytes());
    bytes.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_has_the_length_of_all_its_pieces() {
        for length in [0, 100, 200, 70_000] {
            let pieces = text("{\"x\":", Bytes::from(vec![b' '; length]));
            let whole = pieces.concat();
            let mut read = std::io::Cursor::new(&whole);
            let (header, payload) = FrameHeader::parse(&mut read).unwrap().unwrap();
            assert_eq!(payload, (whole.len() as u64) - read.position());
            assert!(header.is_final && header.mask.is_none() && whole.ends_with(b"}"));
        }
        assert_eq!(ping().concat(), [0x89, 0]);
    }
}
