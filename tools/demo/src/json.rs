//! JSON as PostgreSQL prints `jsonb`: keys by length, then by bytes; a blank after every colon and comma.

use std::fmt::Write;

use serde_json::Value;

/// Renders a value in the normal form of `jsonb`.
pub(crate) fn jsonb(value: &Value) -> String {
    let mut text = String::new();
    write_value(&mut text, value);
    text
}

fn write_value(text: &mut String, value: &Value) {
    match value {
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                text.push_str(if index > 0 { ", " } else { "" });
                write_value(text, item);
            }
            text.push(']');
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(name, _)| (name.len(), *name));
            text.push('{');
            for (index, (name, member)) in members.into_iter().enumerate() {
                text.push_str(if index > 0 { ", " } else { "" });
                let _ = write!(text, "{}: ", Value::from(name.as_str()));
                write_value(text, member);
            }
            text.push('}');
        }
        // Decimals have no exponents. Writing into a String cannot fail.
        Value::Number(number) if number.is_f64() => {
            let _ = write!(text, "{}", number.as_f64().unwrap_or_default());
        }
        scalar => {
            let _ = write!(text, "{scalar}");
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_are_sorted_by_length_then_bytes() {
        let value = json!({"erc20": {"b": 1, "a": "x\n\u{1}\u{8}\"é"}, "a": [1.5, null, true], "zz": {}});
        assert_eq!(
            jsonb(&value),
            r#"{"a": [1.5, null, true], "zz": {}, "erc20": {"a": "x\n\u0001\b\"é", "b": 1}}"#
        );
    }
}
