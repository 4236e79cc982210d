//! JSON as PostgreSQL prints `jsonb`: keys by length, then by bytes; a blank after every colon and comma.

use serde_json::Value;
use std::fmt::Write;

/// Renders a value in the normal form of `jsonb`.
pub(crate) fn jsonb(value: &Value) -> String {
    let mut text = String::new();
    write_value(&mut text, value);
    text
}

fn write_value(text: &mut String, value: &Value) {
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(flag) => text.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => match number.as_f64() {
            // `jsonb` keeps decimals, never exponents.
            Some(float) if number.is_f64() => {
                let _ = write!(text, "{float}");
            }
            _ => {
                let _ = write!(text, "{number}");
            }
        },
        Value::String(string) => write_string(text, string),
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push_str(", ");
                }
                write_value(text, item);
            }
            text.push(']');
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by(|(a, _), (b, _)| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
            text.push('{');
            for (index, (key, member)) in members.into_iter().enumerate() {
                if index > 0 {
                    text.push_str(", ");
                }
                write_string(text, key);
                text.push_str(": ");
                write_value(text, member);
            }
            text.push('}');
        }
    }
}

fn write_string(text: &mut String, string: &str) {
    text.push('"');
    for character in string.chars() {
        match character {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\u{8}' => text.push_str("\\b"),
            '\u{c}' => text.push_str("\\f"),
            control if control < ' ' => {
                let _ = write!(text, "\\u{:04x}", u32::from(control));
            }
            other => text.push(other),
        }
    }
    text.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn keys_are_sorted_by_length_then_bytes() {
        let value = json!({"erc20": {"b": 1, "a": "x\n\"é"}, "a": [1.5, null, true], "zz": {}});
        assert_eq!(jsonb(&value), r#"{"a": [1.5, null, true], "zz": {}, "erc20": {"a": "x\n\"é", "b": 1}}"#);
    }
}
