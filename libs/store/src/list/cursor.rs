//! Cursors (P8): a list's name and the key of a row, as base64 of JSON.

use base64::{
    Engine,
    alphabet::URL_SAFE,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig, general_purpose::URL_SAFE_NO_PAD},
};
use mesh_problem::Problem;
use serde::{Deserialize, Serialize};

use super::{KeyKind, List, Value};
use crate::TimeUs;

/// Application number of an invalid pagination (P6).
const INVALID_PAGINATION: u32 = 10028;

/// Longest cursor, characters (P8).
const MAX_CURSOR_CHARS: usize = 1024;

const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cursor<T> {
    o: T,
    k: Vec<String>,
}

/// The cursor of a key: its values as text, times in nanoseconds.
pub(super) fn encode(list: &List, key: Vec<String>) -> String {
    let cursor = Cursor { o: list.name, k: key };
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(&cursor).expect("a cursor is plain text"))
}

/// The key of a cursor. A time between two stored times becomes its stored neighbour on the side that a walk
/// towards lower (`descending`) or higher keys leaves, and ends the key: no row has this time.
pub(super) fn decode(list: &List, text: &str, descending: bool) -> Result<Vec<Value>, Problem> {
    let unreadable = || invalid("the cursor does not decode");
    if text.len() > MAX_CURSOR_CHARS {
        return Err(unreadable());
    }
    // The standard base64 alphabet is accepted, too; its `+` arrives as a space when the client did not
    // escape it.
    let text = text.replace(['+', ' '], "-").replace('/', "_");
    let bytes = LENIENT.decode(text).map_err(|_| unreadable())?;
    // serde reads a structure from a JSON array as well, which is no cursor.
    if bytes.first() != Some(&b'{') {
        return Err(unreadable());
    }
    let cursor: Cursor<String> = serde_json::from_slice(&bytes).map_err(|_| unreadable())?;
    if cursor.o != list.name {
        return Err(invalid("the cursor belongs to another list"));
    }
    // PostgreSQL accepts no NUL in a text.
    if cursor.k.len() != list.key.len() || cursor.k.iter().any(|value| value.contains('\0')) {
        return Err(unreadable());
    }
    let (mut key, mut is_whole) = (Vec::new(), true);
    for (value, column) in cursor.k.into_iter().zip(list.key) {
        let (value, is_stored) = match column.kind {
            KeyKind::Text => (Value::Text(value), true),
            KeyKind::Party => (Value::party(&value), true),
            KeyKind::Integer => (Value::Integer(value.parse().map_err(|_| unreadable())?), true),
            KeyKind::Time => {
                let ns = value.parse().map_err(|_| unreadable())?;
                let stored =
                    if descending { TimeUs::at_or_after_ns(ns) } else { TimeUs::at_or_before_ns(ns) };
                (Value::Time(stored), stored.ns() == ns)
            }
        };
        key.extend(is_whole.then_some(value));
        is_whole &= is_stored;
    }
    Ok(key)
}

/// The problem of an invalid pagination.
pub(super) fn invalid(reason: &str) -> Problem {
    Problem::invalid(INVALID_PAGINATION, reason)
}
