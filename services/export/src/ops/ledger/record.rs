//! A ledger entry as a record of CSV, byte for byte as PostgreSQL's COPY would print it (DATA_MODEL 6, L3-L5).

use jiff::{Timestamp, civil::DateTime, tz::TimeZone};
use mesh_store::{ReadError, Row, TimeUs};
use proto_msgs::v2::AccountType;

/// The header record.
pub(crate) const HEADER: &[u8] = b"block_time,quantity,effect,transfer_type,asset_id,\
account_from_market_id,account_from_party_id,account_from_account_type,account_from_balance,\
account_to_market_id,account_to_party_id,account_to_account_type,account_to_balance\n";

/// Writes the record of an entry.
///
/// # Errors
/// When the row does not hold what its statement promises.
pub(crate) fn write(out: &mut Vec<u8>, row: &Row, block_time: TimeUs) -> Result<(), ReadError> {
    write_time(out, block_time)?;
    for column in ["quantity", "effect", "transfer_type", "asset_id", "from_market", "from_party"] {
        write_text(out, row.try_get(column)?);
    }
    write_text(out, account_type(row.try_get("from_type")?));
    for column in ["from_balance", "to_market", "to_party"] {
        write_text(out, row.try_get(column)?);
    }
    write_text(out, account_type(row.try_get("to_type")?));
    write_text(out, row.try_get("to_balance")?);
    out.push(b'\n');
    Ok(())
}

/// A further field: nothing for NULL, quoted when it is empty or holds what means something to CSV.
fn write_text(out: &mut Vec<u8>, text: Option<&str>) {
    out.push(b',');
    let Some(text) = text else { return };
    let is_plain = |byte: u8| !matches!(byte, b',' | b'"' | b'\r' | b'\n');
    if !text.is_empty() && text.bytes().all(is_plain) {
        out.extend_from_slice(text.as_bytes());
        return;
    }
    out.push(b'"');
    for byte in text.bytes() {
        if byte == b'"' {
            out.push(b'"');
        }
        out.push(byte);
    }
    out.push(b'"');
}

fn write_time(out: &mut Vec<u8>, time: TimeUs) -> Result<(), ReadError> {
    let unreadable = |_| ReadError::Unreadable(format!("a time {} microseconds from 1970", time.0));
    let at = Timestamp::from_microsecond(time.0).map_err(unreadable)?;
    let at: DateTime = TimeZone::UTC.to_datetime(at);
    // Years of four digits: what is outside has another form, and no block.
    let text = format!(
        "{:04}-{:02}-{:02} {:02}:{:02}:{:02}",
        at.year(),
        at.month(),
        at.day(),
        at.hour(),
        at.minute(),
        at.second()
    );
    out.extend_from_slice(text.as_bytes());
    let micros = time.0.rem_euclid(1_000_000);
    if micros != 0 {
        out.extend_from_slice(format!(".{micros:06}").trim_end_matches('0').as_bytes());
    }
    out.extend_from_slice(b"+00");
    Ok(())
}

/// The name of a type without its prefix (L4).
fn account_type(number: Option<i32>) -> Option<&'static str> {
    let number = number?;
    let known = AccountType::try_from(number).unwrap_or_else(|_| {
        tracing::warn!(number, "an account has a type that nobody knows");
        AccountType::Unspecified
    });
    let name = known.as_str_name();
    Some(name.strip_prefix("ACCOUNT_TYPE_").unwrap_or(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(us: i64) -> String {
        let mut out = Vec::new();
        write_time(&mut out, TimeUs(us)).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_time_has_no_zeros_behind_its_fraction() {
        assert_eq!(time(1_687_257_080_120_456), "2023-06-20 10:31:20.120456+00");
        assert_eq!(time(1_687_257_080_120_000), "2023-06-20 10:31:20.12+00");
        assert_eq!(time(1_687_257_080_000_000), "2023-06-20 10:31:20+00");
        assert_eq!(time(-1), "1969-12-31 23:59:59.999999+00");
    }

    #[test]
    fn null_and_the_empty_text_are_kept_apart_and_text_is_quoted_where_it_must_be() {
        let mut out = Vec::new();
        for text in
            [None, Some(""), Some("plain x"), Some("a,b"), Some("say \"x\""), Some("a\r"), Some("a\nb")]
        {
            write_text(&mut out, text);
        }
        let said = String::from_utf8(out).unwrap();
        assert_eq!(said, ",,\"\",plain x,\"a,b\",\"say \"\"x\"\"\",\"a\r\",\"a\nb\"");
    }

    #[test]
    fn an_account_type_is_a_name_without_its_prefix() {
        assert_eq!(account_type(Some(3)), Some("MARGIN"));
        assert_eq!(account_type(Some(99)), Some("UNSPECIFIED"));
        assert_eq!(account_type(None), None);
    }
}
