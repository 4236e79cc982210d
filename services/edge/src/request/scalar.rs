//! Scalars from text: how a query parameter or a quoted JSON value becomes a value of its field's type.

use base64::{
    Engine,
    alphabet::URL_SAFE,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use prost_reflect::{EnumDescriptor, Kind, Value};

const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The value of a text, or what was expected instead.
pub(super) fn from_text(kind: &Kind, text: &str) -> Result<Value, &'static str> {
    match kind {
        Kind::String => Ok(Value::String(text.to_owned())),
        Kind::Bool => match text {
            "true" | "1" => Ok(Value::Bool(true)),
            "false" | "0" => Ok(Value::Bool(false)),
            _ => Err("true, false, 1 or 0"),
        },
        Kind::Int32 => decimal(text).map(Value::I32).ok_or("a 32-bit integer"),
        Kind::Uint32 => decimal(text).map(Value::U32).ok_or("a 32-bit integer that is not negative"),
        Kind::Int64 => decimal(text).map(Value::I64).ok_or("a 64-bit integer"),
        Kind::Uint64 => decimal(text).map(Value::U64).ok_or("a 64-bit integer that is not negative"),
        Kind::Bytes => base64(text).map(|bytes| Value::Bytes(bytes.into())).ok_or("base64"),
        Kind::Enum(names) => enumeration(names, text).map(Value::EnumNumber).ok_or("a known name or number"),
        _ => Err("a value of another type"),
    }
}

/// Plain decimal digits, `-` in front of a negative number.
fn decimal<T: std::str::FromStr>(text: &str) -> Option<T> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let plain = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    plain.then(|| text.parse().ok())?
}

/// Any of the two alphabets, padded or not (J6).
fn base64(text: &str) -> Option<Vec<u8>> {
    LENIENT.decode(text.replace('+', "-").replace('/', "_")).ok()
}

fn enumeration(names: &EnumDescriptor, text: &str) -> Option<i32> {
    if let Some(value) = names.get_value_by_name(text) {
        return Some(value.number());
    }
    names.get_value(decimal(text)?).map(|value| value.number())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_plain_decimals() {
        assert_eq!(from_text(&Kind::Int32, "-2147483648"), Ok(Value::I32(i32::MIN)));
        assert_eq!(from_text(&Kind::Uint64, "18446744073709551615"), Ok(Value::U64(u64::MAX)));
        for wrong in ["", "-", "+1", " 1", "1.0", "1e3", "0x1", "2147483648", "--1", "١"] {
            assert!(from_text(&Kind::Int32, wrong).is_err(), "{wrong}");
        }
        assert!(from_text(&Kind::Uint64, "-1").is_err());
    }

    #[test]
    fn both_base64_alphabets_are_taken_padded_or_not() {
        for text in ["-_8=", "+/8=", "-_8", "+/8"] {
            assert_eq!(from_text(&Kind::Bytes, text), Ok(Value::Bytes(vec![0xfb, 0xff].into())), "{text}");
        }
        assert!(from_text(&Kind::Bytes, "a").is_err());
        assert!(from_text(&Kind::Bytes, "a b=").is_err());
    }
}
