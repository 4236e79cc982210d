//! Times in parameters: nanoseconds since the Unix epoch, or RFC 3339 (J8).

use jiff::Timestamp;

use super::value::is_integer;

const FORM: &str = "nanoseconds since 1970 or an RFC 3339 time such as 2026-11-23T00:00:00Z";
const OFFSET: &str = "an offset from UTC after the time, Z or +02:00,";
const FRACTION: &str = "a fraction of at most nine digits";
const EXISTING: &str = "an existing time between 1970 and 2262-04-11";

/// Year and date of RFC 3339 up to the second; `0` stands for a digit.
const MOMENT: &[u8; 19] = b"0000-00-00T00:00:00";

/// An integer below this, the beginning of 1971, is too small to be in nanoseconds: seconds, milliseconds and
/// microseconds of today's times are all smaller.
const FIRST_PLAUSIBLE: i64 = 365 * 24 * 3600 * 1_000_000_000;

/// Parses a time as nanoseconds since the Unix epoch; on failure returns what was expected.
///
/// # Errors
/// When the text is neither form, or names a time that does not exist or does not fit.
pub(super) fn parse(text: &str) -> Result<i64, &'static str> {
    if is_integer(text) {
        return text.parse().map_err(|_| EXISTING);
    }
    let (moment, rest) = text.split_at_checked(MOMENT.len()).ok_or(FORM)?;
    if !has_form(moment) {
        return Err(FORM);
    }
    let (fraction, offset) = match rest.strip_prefix('.') {
        Some(rest) => split_digits(rest).ok_or(FORM)?,
        None => ("0", rest),
    };
    // Zeros beyond the nanoseconds change nothing.
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > 9 {
        return Err(FRACTION);
    }
    let (sign, offset) = split_offset(offset)?;
    // Unix time has no leap seconds: no nanosecond belongs to them.
    if moment.ends_with(":60") {
        return Err(EXISTING);
    }
    let (date, time) = (&moment[..10], &moment[11..]);
    let timestamp: Timestamp =
        format!("{date}T{time}.{fraction:0<9}{sign}{offset}").parse().map_err(|_| EXISTING)?;
    timestamp.as_nanosecond().try_into().map_err(|_| EXISTING)
}

/// Whether a time given as an integer is too small to be in nanoseconds: as nanoseconds it would be in
/// the year 1970.
pub(super) fn is_too_early(text: &str) -> bool {
    is_integer(text) && text.parse().is_ok_and(|ns: i64| ns > 0 && ns < FIRST_PLAUSIBLE)
}

/// Whether a text is date and time of RFC 3339. Between the two may be a space instead of the `T`, as
/// `date --rfc-3339` writes it.
fn has_form(moment: &str) -> bool {
    moment.bytes().zip(MOMENT).all(|(byte, form)| match form {
        b'0' => byte.is_ascii_digit(),
        b'T' => matches!(byte, b'T' | b't' | b' '),
        form => byte == *form,
    })
}

/// The digits at the beginning, of which there is at least one, and the rest.
fn split_digits(text: &str) -> Option<(&str, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    (digits > 0).then(|| text.split_at(digits))
}

/// The offset from UTC as its sign and `hh:mm`. An unescaped `+` in a query string is decoded as a space.
fn split_offset(offset: &str) -> Result<(char, &str), &'static str> {
    if matches!(offset, "Z" | "z") {
        return Ok(('+', "00:00"));
    }
    let (sign, time) = match offset.split_at_checked(1).ok_or(OFFSET)? {
        ("+" | " ", time) => ('+', time),
        ("-", time) => ('-', time),
        _ => return Err(OFFSET),
    };
    let [h1 @ b'0'..=b'2', h0 @ b'0'..=b'9', b':', b'0'..=b'5', b'0'..=b'9'] = time.as_bytes() else {
        return Err(OFFSET);
    };
    if (*h1, *h0) > (b'2', b'3') { Err(OFFSET) } else { Ok((sign, time)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2023-06-20T10:00:00Z
    const TEN: i64 = 1_687_255_200_000_000_000;

    #[test]
    fn a_time_is_nanoseconds_or_rfc_3339_with_any_offset() {
        for text in [
            "1687255200000000000", "2023-06-20T10:00:00Z", "2023-06-20t10:00:00z", "2023-06-20 10:00:00Z",
            "2023-06-20T12:00:00+02:00", "2023-06-20T12:00:00 02:00", "2023-06-20 12:00:00 02:00",
            "2023-06-20T00:30:00-09:30", "2023-06-21T09:59:00+23:59", "2023-06-20T10:00:00-00:00",
            "2023-06-20T10:00:00.000Z",
        ] {
            assert_eq!(parse(text), Ok(TEN), "{text}");
        }
        for (text, ns) in [
            ("0", 0),
            ("-5", -5),
            ("9223372036854775807", i64::MAX),
            ("2023-06-20T10:00:00.5Z", TEN + 500_000_000),
            ("2023-06-20T10:00:00.123456789+00:00", TEN + 123_456_789),
            ("2023-06-20T10:00:00.123456789000Z", TEN + 123_456_789),
            ("2024-02-29T00:00:00Z", 1_709_164_800_000_000_000),
            ("1970-01-01T00:00:00Z", 0),
            ("1969-12-31T23:59:59.999999999Z", -1),
            ("1677-09-21T00:12:43.145224192Z", i64::MIN),
            ("2262-04-11T23:47:16.854775807Z", i64::MAX),
        ] {
            assert_eq!(parse(text), Ok(ns), "{text}");
        }
    }

    #[test]
    fn integers_in_other_units_are_too_early_and_what_is_spelled_out_is_not() {
        for early in ["1", "1687255200", "1687255200000", "1687255200000000", "31535999999999999"] {
            assert!(is_too_early(early), "{early}");
        }
        for plausible in
            ["0", "-1", "31536000000000000", "1687255200000000000", "1970-01-02T00:00:00Z", "+5", ""]
        {
            assert!(!is_too_early(plausible), "{plausible}");
        }
    }
}
