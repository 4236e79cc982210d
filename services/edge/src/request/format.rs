//! The form of a parameter (rule `format` and `max_chars` of the contract), and what it is handed on as.

use prost_reflect::Value;
use proto_msgs::{CANDLE_INTERVALS, Format, Rule};

/// The party that stands for the network itself.
const NETWORK: &str = "network";

/// The value as it is handed on, or what was expected instead.
pub(super) fn checked(value: Value, rule: &Rule) -> Result<Value, String> {
    let text = match value {
        Value::String(text) => text,
        Value::I64(number) if rule.format == Format::NotNegative && number < 0 => {
            return Err("a number that is not negative".to_owned());
        }
        other => return Ok(other),
    };
    if let Some(most) = rule.max_chars.filter(|most| text.chars().count() > *most) {
        return Err(format!("at most {most} characters"));
    }
    let text = match rule.format {
        Format::Any | Format::NotNegative => Ok(text),
        Format::Hex64 => hex64(&text).ok_or("64 hex digits"),
        Format::Party if text == NETWORK => Ok(text),
        Format::Party => hex64(&text).ok_or("64 hex digits or `network`"),
        Format::PartyOrZeros if text == NETWORK => Ok(text),
        Format::PartyOrZeros => hex64(&text).map(zeros_are_the_network).ok_or("64 hex digits or `network`"),
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
    let digits = text.strip_prefix('-').unwrap_or(&text);
    let plain = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    let short = text == "0" || !digits.starts_with('0');
    (plain && short).then_some(text)
}

fn zeros_are_the_network(party: String) -> String {
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

    const HEX: &str = "00AB00000000000000000000000000000000000000000000000000000000000F";

    fn text(format: Format, given: &str) -> Option<String> {
        let rule = Rule { format, missing: None, invalid: None, max_chars: None, called: None };
        match checked(Value::String(given.to_owned()), &rule) {
            Ok(Value::String(text)) => Some(text),
            _ => None,
        }
    }

    #[test]
    fn ids_are_taken_in_any_case_and_handed_on_in_lower_case() {
        let lower = HEX.to_lowercase();
        for format in [Format::Hex64, Format::Party, Format::PartyOrZeros, Format::Asset] {
            assert_eq!(text(format, HEX).as_deref(), Some(lower.as_str()), "{format:?}");
        }
        for wrong in ["", "ab", &HEX[1..], &format!("{HEX}0"), &HEX.replace('F', "g"), "networks"] {
            assert_eq!(text(Format::Hex64, wrong), None, "{wrong}");
            assert_eq!(text(Format::Party, wrong), None, "{wrong}");
        }
    }

    #[test]
    fn sixty_four_zeros_are_the_network_for_accounts_alone() {
        let zeros = "0".repeat(64);
        assert_eq!(text(Format::PartyOrZeros, &zeros).as_deref(), Some("network"));
        assert_eq!(text(Format::Party, &zeros).as_deref(), Some(zeros.as_str()));
        assert_eq!(text(Format::Party, "network").as_deref(), Some("network"));
        assert_eq!(text(Format::Hex64, "network"), None);
    }

    #[test]
    fn amounts_have_one_spelling_and_addresses_are_handed_on_in_lower_case() {
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
    fn a_short_asset_keeps_its_case() {
        assert_eq!(text(Format::Asset, "Vote_1-x").as_deref(), Some("Vote_1-x"));
        for wrong in ["", "a b", "ä", "a.b", &"a".repeat(65)] {
            assert_eq!(text(Format::Asset, wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_candle_id_names_one_of_the_seven_intervals() {
        for interval in CANDLE_INTERVALS {
            let id = format!("trades_candle_{interval}_{HEX}");
            let expected = format!("trades_candle_{interval}_{}", HEX.to_lowercase());
            assert_eq!(text(Format::CandleId, &id), Some(expected));
        }
        for wrong in
            ["", "trades_candle_", "trades_candle_2_minutes_", "TRADES_CANDLE_block_", "trades_candle__", "x"]
        {
            assert_eq!(text(Format::CandleId, &format!("{wrong}{HEX}")), None, "{wrong}");
        }
        assert_eq!(text(Format::CandleId, "trades_candle_block_"), None);
    }
}
