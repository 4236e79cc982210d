//! How long a gRPC client waits: `grpc-timeout`.

use std::time::Duration;

use http::HeaderMap;
use mesh_problem::{MALFORMED, Problem};

const GRPC_TIMEOUT: &str = "grpc-timeout";

/// Most digits that the protocol allows.
const DIGITS_AT_MOST: usize = 8;

/// The time that a client gives, if it says so.
pub(super) fn given(headers: &HeaderMap) -> Result<Option<Duration>, Problem> {
    let Some(value) = headers.get(GRPC_TIMEOUT) else { return Ok(None) };
    let text = value.to_str().unwrap_or_default();
    let malformed = || Problem::invalid(MALFORMED, "grpc-timeout is malformed").with_inner(text);
    read(text).map(Some).ok_or_else(malformed)
}

fn read(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let is_plain =
        (1..=DIGITS_AT_MOST).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_digit());
    let number: u64 = digits.parse().ok().filter(|_| is_plain)?;
    Some(match unit {
        "H" => Duration::from_secs(number * 3600),
        "M" => Duration::from_secs(number * 60),
        "S" => Duration::from_secs(number),
        "m" => Duration::from_millis(number),
        "u" => Duration::from_micros(number),
        "n" => Duration::from_nanos(number),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_read_and_nothing_else() {
        for (text, expected) in [
            ("1H", Duration::from_secs(3600)),
            ("2M", Duration::from_secs(120)),
            ("99999999S", Duration::from_secs(99_999_999)),
            ("250m", Duration::from_millis(250)),
            ("7u", Duration::from_micros(7)),
            ("0n", Duration::ZERO),
        ] {
            assert_eq!(read(text), Some(expected), "{text}");
        }
        for wrong in ["", "S", "1", "-1S", "+1S", "1.5S", "1s", "123456789m", "1 S", "1é"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
