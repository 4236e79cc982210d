//! The path to a field, and the refusals that name it.

use mesh_problem::{MALFORMED, Problem};
use prost_reflect::FieldDescriptor;
use proto_msgs::{Contract, Format, MAX_LIST_LENGTH};

/// The number of the refusal of a list with too many elements (contract section 7).
const LIST_TOO_LONG: u32 = 10_029;

/// Longest value that an error quotes, characters.
const MAX_QUOTED: usize = 128;

/// Path to a field through sub-messages, e.g. `pagination`, `first`.
pub(super) type FieldPath = Vec<FieldDescriptor>;

/// The refusal of a malformed value.
pub(super) fn malformed(path: &[FieldDescriptor], expected: &str, text: &str) -> Problem {
    let reason = format!("{} is malformed: {expected} expected", name(path));
    let is_height = path.last().is_some_and(|field| Contract::get().rule(field).format == Format::Height);
    let range = if is_height { format!(": 1 to {}", u64::MAX) } else { String::new() };
    Problem::invalid(number(path), reason).with_inner(quote(text) + &range)
}

/// The error for a time that is too small to be in nanoseconds.
pub(super) fn too_early(path: &[FieldDescriptor], text: &str) -> Problem {
    let name = name(path);
    let inner = format!("{name} {} is in the year 1970: nanoseconds are expected", quote(text));
    Problem::invalid(number(path), format!("{name} is too small for nanoseconds")).with_inner(inner)
}

/// The name of the field in an error text.
fn name(path: &[FieldDescriptor]) -> String {
    let called = path.last().and_then(|field| Contract::get().rule(field).called.clone());
    called.unwrap_or_else(|| path_text(path))
}

/// Refuses a list with too many elements.
///
/// # Errors
/// 10029 beyond the limit.
pub(super) fn check_length(path: &[FieldDescriptor], length: usize) -> Result<(), Problem> {
    if length <= MAX_LIST_LENGTH {
        return Ok(());
    }
    let reason = format!("a list takes at most {MAX_LIST_LENGTH} elements");
    Err(Problem::invalid(LIST_TOO_LONG, reason).with_inner(path_text(path)))
}

/// The application number of a malformed parameter: its own, or that of the field that holds its message.
fn number(path: &[FieldDescriptor]) -> u32 {
    path.iter().rev().find_map(|field| Contract::get().rule(field).invalid).unwrap_or(MALFORMED)
}

/// The path as text, e.g. `pagination.first`.
pub(super) fn path_text(path: &[FieldDescriptor]) -> String {
    path.iter().map(FieldDescriptor::json_name).collect::<Vec<_>>().join(".")
}

/// A value as errors quote it.
pub(crate) fn quote(text: &str) -> String {
    text.chars().take(MAX_QUOTED).collect()
}
