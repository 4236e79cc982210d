//! The first difference of two JSON values, so that a failure names one field and not two whole pages.

use serde_json::Value;

/// The first difference, as `<path>: <value found> instead of <value expected>`.
pub fn difference(found: &Value, expected: &Value) -> Option<String> {
    // Nearly all values are equal; the path of each part takes longer than comparing all.
    if found == expected { None } else { below("", found, expected, false) }
}

/// Like [`difference`], but objects may have more members than expected.
pub fn lack(found: &Value, expected: &Value) -> Option<String> {
    below("", found, expected, true)
}

/// Asserts that the value found at `what` is the expected one.
#[track_caller]
pub fn assert_same(what: &str, found: &Value, expected: &Value) {
    if let Some(difference) = difference(found, expected) {
        panic!("{what}: {difference}");
    }
}

fn below(path: &str, found: &Value, expected: &Value, more: bool) -> Option<String> {
    match (found, expected) {
        (Value::Object(one), Value::Object(other)) => {
            let unexpected = one.keys().filter(|name| !more && !other.contains_key(*name));
            let names = unexpected.chain(other.keys());
            names.into_iter().find_map(|name| {
                let path = format!("{path}/{name}");
                match (one.get(name), other.get(name)) {
                    (Some(found), Some(expected)) => below(&path, found, expected, more),
                    (found, _) if found.is_some() => Some(format!("{path} should not be there")),
                    _ => Some(format!("{path} is missing")),
                }
            })
        }
        (Value::Array(one), Value::Array(other)) => {
            let pairs = one.iter().zip(other).enumerate();
            let inside = pairs
                .map(|(index, (found, expected))| below(&format!("{path}/{index}"), found, expected, more));
            inside.flatten().next().or_else(|| {
                let lengths = (one.len(), other.len());
                (lengths.0 != lengths.1)
                    .then(|| format!("{path}: {} items instead of {}", lengths.0, lengths.1))
            })
        }
        _ => (found != expected).then(|| format!("{path}: {found} instead of {expected}")),
    }
}
