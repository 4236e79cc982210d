//! The way to a field, and the refusals that name it.

use mesh_problem::{MALFORMED, Problem};
use prost_reflect::FieldDescriptor;
use proto_msgs::{Contract, MAX_LIST_LENGTH};

/// The number of the refusal of a list with too many elements (contract section 7).
const LIST_TOO_LONG: u32 = 10_029;

/// Longest value that an error repeats.
const SHOWN_AT_MOST: usize = 128;

/// Way to a field through sub-messages, e.g. `pagination`, `first`.
pub(super) type Way = Vec<FieldDescriptor>;

/// A value that has not the form that was expected.
pub(super) fn malformed(way: &[FieldDescriptor], expected: &str, text: &str) -> Problem {
    let called = way.last().and_then(|field| Contract::get().rule(field).called);
    let called = called.unwrap_or_else(|| shown_way(way));
    let reason = format!("{called} is malformed: {expected} expected");
    Problem::invalid(number(way), reason).with_inner(shown(text))
}

/// Refuses a list that has too many elements.
pub(super) fn check_length(way: &[FieldDescriptor], length: usize) -> Result<(), Problem> {
    if length <= MAX_LIST_LENGTH {
        return Ok(());
    }
    let reason = format!("a list takes at most {MAX_LIST_LENGTH} elements");
    Err(Problem::invalid(LIST_TOO_LONG, reason).with_inner(shown_way(way)))
}

/// The application number of a malformed parameter: its own, or that of the field that holds its message.
fn number(way: &[FieldDescriptor]) -> u32 {
    way.iter().rev().find_map(|field| Contract::get().rule(field).invalid).unwrap_or(MALFORMED)
}

pub(super) fn shown_way(way: &[FieldDescriptor]) -> String {
    way.iter().map(FieldDescriptor::json_name).collect::<Vec<_>>().join(".")
}

pub(super) fn shown(text: &str) -> String {
    text.chars().take(SHOWN_AT_MOST).collect()
}
