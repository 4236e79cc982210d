//! A JSON body into the request message, by the contract's rules: both spellings of names, 64-bit integers as
//! text or number, enums by name or number, any base64; a key given twice and an unknown enum name are
//! refused, unknown keys collected (J2-J6, J11).

use std::{borrow::Cow, collections::HashSet, fmt, str};

use mesh_problem::{MALFORMED, Problem};
use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, ReflectMessage, Value};
use serde::{
    Deserialize,
    de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::decode::{
    field_path::{FieldPath, path_text, quote},
    unknown_names::UnknownNames,
    value,
};

/// Fills the message. Unknown keys are added to `unknown` by their paths, up to the first error.
///
/// # Errors
/// When the body is no JSON object of this message.
pub(super) fn fill(
    message: &mut DynamicMessage,
    body: &[u8],
    unknown: &mut UnknownNames,
) -> Result<(), Problem> {
    let malformed = |error: String| Problem::invalid(MALFORMED, "the body is malformed").with_inner(error);
    // Also what is ignored is UTF-8 (RFC 8259, 8.1).
    let body = str::from_utf8(body).map_err(|error| malformed(error.to_string()))?;
    // The error of the library quotes the text, whole.
    if body.trim_start().starts_with('"') {
        return Err(malformed("invalid type: string, expected an object".to_owned()));
    }
    let malformed = |error: serde_json::Error| malformed(error.to_string());
    let mut json = serde_json::Deserializer::from_str(body);
    let mut place = JsonPath { path: FieldPath::new(), unknown };
    let read = Message { descriptor: message.descriptor(), place: &mut place };
    *message = read.deserialize(&mut json).map_err(malformed)?;
    json.end().map_err(malformed)?;
    match key_given_twice(body) {
        None => Ok(()),
        Some(key) => Err(Problem::invalid(MALFORMED, "the body is malformed")
            .with_inner(format!("{} is given twice", quote(&key)))),
    }
}

/// A key that an object of this JSON has twice in one spelling, also an object that is ignored.
fn key_given_twice(json: &str) -> Option<Cow<'_, str>> {
    let mut objects: Vec<HashSet<Cow<'_, str>>> = Vec::new();
    let mut rest = json;
    while let Some(found) = rest.find(['{', '}', '"']) {
        let token = &rest[found..];
        rest = &token[1..];
        if token.starts_with('{') {
            objects.push(HashSet::new());
        } else if token.starts_with('}') {
            objects.pop();
        } else {
            let mut is_escaped = false;
            let ends = |letter: char| {
                let is_end = letter == '"' && !is_escaped;
                is_escaped = letter == '\\' && !is_escaped;
                is_end
            };
            let text = &token[..rest.find(ends)? + 2];
            rest = &token[text.len()..];
            // A text before a colon is a key.
            if rest.trim_start().starts_with(':')
                && let Some(keys) = objects.last_mut()
                && let Ok(Key(key)) = serde_json::from_str(text)
                && !keys.insert(key.clone())
            {
                return Some(key);
            }
        }
    }
    None
}

/// A key, copied only when it has escapes.
#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

/// The reader's position in the body, and the unknown names found so far.
struct JsonPath<'a> {
    path: FieldPath,
    unknown: &'a mut UnknownNames,
}

impl JsonPath<'_> {
    /// The path of the field that is read.
    fn text(&self) -> String {
        path_text(&self.path)
    }

    fn add_unknown(&mut self, key: &str) {
        match self.path.is_empty() {
            true => self.unknown.push(key),
            false => self.unknown.push(&format!("{}.{key}", self.text())),
        }
    }
}

/// Reads an object as a message.
struct Message<'a, 'b> {
    descriptor: MessageDescriptor,
    place: &'a mut JsonPath<'b>,
}

impl<'de> DeserializeSeed<'de> for Message<'_, '_> {
    type Value = DynamicMessage;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<DynamicMessage, D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Message<'_, '_> {
    type Value = DynamicMessage;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<DynamicMessage, A::Error> {
        let Self { descriptor, place } = self;
        let mut message = DynamicMessage::new(descriptor.clone());
        let mut seen = Vec::new();
        while let Some(Key(key)) = map.next_key()? {
            let field =
                descriptor.get_field_by_json_name(&key).or_else(|| descriptor.get_field_by_name(&key));
            let Some(field) = field else {
                place.add_unknown(&key);
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            place.path.push(field.clone());
            if seen.contains(&field.number()) {
                return Err(A::Error::custom(format!("{} is given twice", place.text())));
            }
            seen.push(field.number());
            let value = map.next_value_seed(Field { field: &field, place: &mut *place })?;
            place.path.pop();
            if let Some(value) = value {
                let path = |name: &str| match place.path.is_empty() {
                    true => name.to_owned(),
                    false => format!("{}.{name}", place.text()),
                };
                set(&mut message, &field, value, path).map_err(A::Error::custom)?;
            }
        }
        Ok(message)
    }
}

/// Sets a field; an empty member of a "one of" counts as absent, two of them exclude each other.
fn set(
    message: &mut DynamicMessage,
    field: &FieldDescriptor,
    value: Value,
    path: impl Fn(&str) -> String,
) -> Result<(), String> {
    if let Some(one_of) =
        field.containing_oneof().filter(|_| !field.field_descriptor_proto().proto3_optional())
    {
        if value == Value::String(String::new()) {
            return Ok(());
        }
        if let Some(other) = one_of.fields().find(|other| message.has_field(other)) {
            let (other, this) = (path(other.json_name()), path(field.json_name()));
            return Err(format!("{other} and {this} exclude each other"));
        }
    }
    message.set_field(field, value);
    Ok(())
}

/// Reads the value of a field; `null` counts as absent.
struct Field<'a, 'b> {
    field: &'a FieldDescriptor,
    place: &'a mut JsonPath<'b>,
}

impl<'de> DeserializeSeed<'de> for Field<'_, '_> {
    type Value = Option<Value>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Option<Value>, D::Error> {
        match self.field.kind() {
            // A number is read as it is written: a double would round it.
            Kind::Int32 | Kind::Int64 | Kind::Uint32 | Kind::Uint64 | Kind::Enum(_)
                if !self.field.is_list() =>
            {
                self.integer(<&RawValue>::deserialize(json)?.get())
            }
            _ => json.deserialize_any(self),
        }
    }
}

impl Field<'_, '_> {
    /// The value of an integer or enum, from its JSON.
    fn integer<E: Error>(&self, json: &str) -> Result<Option<Value>, E> {
        match json.as_bytes().first() {
            Some(b'n') => Ok(None),
            Some(b'"') => {
                let Key(text) = serde_json::from_str(json).map_err(E::custom)?;
                self.text(&text)
            }
            Some(b'-' | b'0'..=b'9') => match whole_number(json) {
                Some(digits) => self.text(&digits),
                None => Err(self.wrong("a fraction or a number of this size")),
            },
            Some(b'{') => Err(self.wrong("an object")),
            Some(b'[') => Err(self.wrong("a list")),
            _ => Err(self.wrong("a boolean")),
        }
    }

    fn text<E: Error>(&self, text: &str) -> Result<Option<Value>, E> {
        match value::parse(&self.field.kind(), text) {
            Ok(value) => Ok(Some(value)),
            Err(expected) => Err(E::custom(format!("{}: {expected} expected", self.place.text()))),
        }
    }

    fn wrong<E: Error>(&self, got: &str) -> E {
        E::custom(format!("{}: {got} is not a value of this field", self.place.text()))
    }
}

impl<'de> Visitor<'de> for Field<'_, '_> {
    type Value = Option<Value>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "a value of {}", self.place.text())
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Self::Value, E> {
        match self.field.kind() {
            Kind::Bool if !self.field.is_list() => Ok(Some(Value::Bool(value))),
            _ => Err(self.wrong("a boolean")),
        }
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        match self.field.kind() {
            Kind::Bool | Kind::Message(_) => Err(self.wrong("a text")),
            _ if self.field.is_list() => Err(self.wrong("a text")),
            _ => self.text(text),
        }
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Self::Value, E> {
        Err(self.wrong("a number"))
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Self::Value, E> {
        Err(self.wrong("a number"))
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Self::Value, E> {
        Err(self.wrong("a number"))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        match self.field.kind() {
            Kind::Message(descriptor) if !self.field.is_list() => {
                let message = Message { descriptor, place: self.place };
                Ok(Some(Value::Message(message.visit_map(map)?)))
            }
            _ => Err(self.wrong("an object")),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<Self::Value, A::Error> {
        Err(self.wrong("a list"))
    }
}

/// Most zeros that are written out behind the digits of a number: 64 bits hold none with more.
const MAX_ZEROS: i64 = 20;

/// The plain digits of a whole JSON number in any notation (`1e3`, `10.0`); `None` for a fraction, and for an
/// exponent that alone exceeds 64 bits.
fn whole_number(json: &str) -> Option<String> {
    let (sign, number) = json.strip_prefix('-').map_or(("", json), |number| ("-", number));
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (integer, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = [integer, fraction].concat();
    let digits = digits.trim_start_matches('0');
    let significant = digits.trim_end_matches('0');
    if significant.is_empty() {
        return Some("0".to_owned());
    }
    let moved = i64::try_from(digits.len() - significant.len()).ok()? - i64::try_from(fraction.len()).ok()?;
    let zeros =
        exponent.parse::<i64>().ok()?.checked_add(moved).filter(|zeros| (0..=MAX_ZEROS).contains(zeros));
    Some(format!("{sign}{significant}{}", "0".repeat(usize::try_from(zeros?).ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_number_is_one_in_every_form_and_never_rounded() {
        for (json, expected) in [
            ("0", "0"),
            ("-0.00e-7", "0"),
            ("7", "7"),
            ("-70", "-70"),
            ("1e3", "1000"),
            ("1E+19", "10000000000000000000"),
            ("10.0", "10"),
            ("1200e-2", "12"),
            ("0.012e5", "1200"),
            ("9007199254740993.0", "9007199254740993"),
            ("1.8446744073709551615e19", "18446744073709551615"),
            ("184467440737095516150e-1", "18446744073709551615"),
        ] {
            assert_eq!(whole_number(json).as_deref(), Some(expected), "{json}");
        }
        for json in
            ["0.5", "1e-1", "9007199254740993.5", "1e21", "1e99999999999999999999", "1e-9223372036854775808"]
        {
            assert_eq!(whole_number(json), None, "{json}");
        }
    }
}
