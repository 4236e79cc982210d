//! Values of fields: parsed from text by the field's type, and checked by the contract's rules (`format` and
//! `max_chars`).

use base64::{
    Engine,
    alphabet::URL_SAFE,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use prost_reflect::{EnumDescriptor, Kind, Value};
use proto_msgs::{CANDLE_INTERVALS, Format, Rule};

/// Base64 with or without padding.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Parses a text as a value; on failure returns what was expected.
///
/// # Errors
/// When the text is not a value of this type.
pub(super) fn parse(kind: &Kind, text: &str) -> Result<Value, &'static str> {
    match kind {
        Kind::String => Ok(Value::String(text.to_owned())),
        Kind::Bool => match text {
            "true" | "1" => Ok(Value::Bool(true)),
            "false" | "0" => Ok(Value::Bool(false)),
            _ => Err("true, false, 1 or 0"),
        },
        Kind::Int32 => parse_integer(text).map(Value::I32).ok_or("a 32-bit integer"),
        Kind::Uint32 => parse_integer(text).map(Value::U32).ok_or("a 32-bit integer that is not negative"),
        Kind::Int64 => parse_integer(text).map(Value::I64).ok_or("a 64-bit integer"),
        Kind::Uint64 => parse_integer(text).map(Value::U64).ok_or("a 64-bit integer that is not negative"),
        Kind::Bytes => parse_base64(text).map(|bytes| Value::Bytes(bytes.into())).ok_or("base64"),
        Kind::Enum(names) => parse_enum(names, text).map(Value::EnumNumber).ok_or("a known name or number"),
        _ => Err("a value of another type"),
    }
}

/// Whether a text is plain decimal digits, with `-` in front of a negative number.
pub(super) fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit())
}

fn parse_integer<T: std::str::FromStr>(text: &str) -> Option<T> {
    is_integer(text).then(|| text.parse().ok())?
}

/// Any of the two alphabets, padded or not (J6).
fn parse_base64(text: &str) -> Option<Vec<u8>> {
    match text.contains(['+', '/']) {
        true => LENIENT.decode(text.replace('+', "-").replace('/', "_")).ok(),
        false => LENIENT.decode(text).ok(),
    }
}

fn parse_enum(names: &EnumDescriptor, text: &str) -> Option<i32> {
    if let Some(value) = names.get_value_by_name(text) {
        return Some(value.number());
    }
    names.get_value(parse_integer(text)?).map(|value| value.number())
}

/// The party id of the network itself.
const NETWORK: &str = "network";

/// Checks a value and normalises its text; on failure returns what was expected.
///
/// # Errors
/// When the value breaks the rule.
pub(super) fn check(value: Value, rule: &Rule) -> Result<Value, String> {
    let text = match value {
        Value::String(text) => text,
        Value::I64(number) if rule.format == Format::NotNegative && number < 0 => {
            return Err("a number that is not negative".to_owned());
        }
        Value::U64(0) if rule.format == Format::Height => return Err("a height of at least 1".to_owned()),
        other => return Ok(other),
    };
    if let Some(max) = rule.max_chars.filter(|max| text.chars().count() > *max) {
        return Err(format!("at most {max} characters"));
    }
    let text = match rule.format {
        Format::Any | Format::NotNegative | Format::Time | Format::Height => Ok(text),
        Format::Hex64 => hex64(&text).ok_or("64 hex digits"),
        Format::Party if text == NETWORK => Ok(text),
        Format::Party => hex64(&text).ok_or("64 hex digits or `network`"),
        Format::PartyOrZeros if text == NETWORK => Ok(text),
        Format::PartyOrZeros => hex64(&text).map(zeros_to_network).ok_or("64 hex digits or `network`"),
        Format::Asset => asset(text).ok_or("64 hex digits or a short word of letters, digits, `_` and `-`"),
        Format::CandleId => candle_id(&text).ok_or("trades_candle_<interval>_<64 hex digits>"),
        Format::Hex128 => hex(&text, 128).ok_or("128 hex digits"),
        Format::Decimal => decimal(text).ok_or("a decimal integer without leading zeros"),
        Format::Address => address(&text).ok_or("0x and 40 hex digits"),
    };
    text.map(Value::String).map_err(str::to_owned)
}

fn hex64(text: &str) -> Option<String> {
    hex(text, 64)
}

fn hex(text: &str, digits: usize) -> Option<String> {
    let hex = text.len() == digits && text.bytes().all(|digit| digit.is_ascii_hexdigit());
    hex.then(|| text.to_ascii_lowercase())
}

fn address(text: &str) -> Option<String> {
    Some(format!("0x{}", hex(text.strip_prefix("0x")?, 40)?))
}

fn decimal(text: String) -> Option<String> {
    let is_short = text == "0" || !text.strip_prefix('-').unwrap_or(&text).starts_with('0');
    (is_integer(&text) && is_short).then_some(text)
}

fn zeros_to_network(party: String) -> String {
    if party.bytes().all(|digit| digit == b'0') { NETWORK.to_owned() } else { party }
}

fn asset(text: String) -> Option<String> {
    if let Some(hex) = hex64(&text) {
        return Some(hex);
    }
    let short = (1..=64).contains(&text.len())
        && text.bytes().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, b'_' | b'-'));
    short.then_some(text)
}

fn candle_id(text: &str) -> Option<String> {
    let (interval, market) = text.strip_prefix("trades_candle_")?.rsplit_once('_')?;
    let market = hex64(market).filter(|_| CANDLE_INTERVALS.contains(&interval))?;
    Some(format!("trades_candle_{interval}_{market}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_base64_alphabets_are_accepted_padded_or_not() {
        for text in ["-_8=", "+/8=", "-_8", "+/8"] {
            assert_eq!(parse(&Kind::Bytes, text), Ok(Value::Bytes(vec![0xfb, 0xff].into())), "{text}");
        }
        assert!(parse(&Kind::Bytes, "a").is_err());
        assert!(parse(&Kind::Bytes, "a b=").is_err());
    }

    const HEX: &str = "00AB00000000000000000000000000000000000000000000000000000000000F";

    fn text(format: Format, given: &str) -> Option<String> {
        let rule = Rule { format, missing: None, invalid: None, max_chars: None, called: None };
        match check(Value::String(given.to_owned()), &rule) {
            Ok(Value::String(text)) => Some(text),
            _ => None,
        }
    }

    #[test]
    fn ids_are_accepted_in_any_case_and_normalised_to_lower_case() {
        let lower = HEX.to_lowercase();
        for format in [Format::Hex64, Format::Party, Format::PartyOrZeros, Format::Asset] {
            assert_eq!(text(format, HEX).as_deref(), Some(lower.as_str()), "{format:?}");
        }
        let zeros = "0".repeat(64);
        assert_eq!(text(Format::Party, &zeros), Some(zeros), "they are the network for accounts alone");
    }

    #[test]
    fn amounts_have_one_spelling_and_addresses_are_normalised_to_lower_case() {
        for right in ["0", "7", "-10", "123456789012345678901234567890"] {
            assert_eq!(text(Format::Decimal, right).as_deref(), Some(right));
        }
        for wrong in ["", "-", "-0", "00", "01", "+1", "1.0", "1e3"] {
            assert_eq!(text(Format::Decimal, wrong), None, "{wrong}");
        }
        let address = format!("0x{}", &HEX[..40]);
        assert_eq!(text(Format::Address, &address), Some(address.to_lowercase()));
        for wrong in [&HEX[..40], &address[..41], &format!("{address}0"), "0x"] {
            assert_eq!(text(Format::Address, wrong), None, "{wrong}");
        }
        assert_eq!(text(Format::Hex128, &HEX.repeat(2)), Some(HEX.repeat(2).to_lowercase()));
        assert_eq!(text(Format::Hex128, HEX), None);
    }

    #[test]
    fn a_candle_id_names_one_of_the_seven_intervals() {
        for interval in CANDLE_INTERVALS {
            let id = format!("trades_candle_{interval}_{HEX}");
            let expected = format!("trades_candle_{interval}_{}", HEX.to_lowercase());
            assert_eq!(text(Format::CandleId, &id), Some(expected));
        }
    }
}
