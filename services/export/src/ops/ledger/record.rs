//! A ledger entry as a record of CSV, byte for byte as PostgreSQL's COPY would print it (DATA_MODEL 6,
//! L3-L5).

use jiff::{Timestamp, civil::DateTime, tz::TimeZone};
use mesh_store::{ReadError, Row, TimeUs};

use super::{accounts::Account, field::write_text};

/// Columns of `ledger_entries.sql`. Thousands of rows a second are not searched for names.
pub(crate) mod column {
    pub(crate) const WALK: usize = 2;
    pub(crate) const BLOCK_TIME: usize = 3;
    pub(crate) const ENTRY_TIME: usize = 4;
    pub(crate) const FROM: usize = 5;
    pub(crate) const TO: usize = 6;
    pub(crate) const QUANTITY: usize = 7;
    pub(crate) const TYPE: usize = 8;
    pub(crate) const FROM_BALANCE: usize = 9;
    pub(crate) const TO_BALANCE: usize = 10;
}

/// The header record.
pub(crate) const HEADER: &[u8] = b"block_time,quantity,effect,transfer_type,asset_id,\
account_from_market_id,account_from_party_id,account_from_account_type,account_from_balance,\
account_to_market_id,account_to_party_id,account_to_account_type,account_to_balance\n";

/// Writes records; keeps the text of the last block time, which many entries have in common.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    written: Option<TimeUs>,
    time: Vec<u8>,
}

impl Writer {
    /// Writes the record of an entry as a party sees it.
    ///
    /// # Errors
    /// When the row does not hold what its statement promises.
    pub(crate) fn write(
        &mut self,
        out: &mut Vec<u8>,
        row: &Row,
        party: &str,
        (block_time, from, to): (TimeUs, &Account, &Account),
    ) -> Result<(), ReadError> {
        if self.written != Some(block_time) {
            self.time.clear();
            write_time(&mut self.time, block_time);
            self.written = Some(block_time);
        }
        out.extend_from_slice(&self.time);
        let quantity: &str = row.try_get(column::QUANTITY)?;
        write_text(out, Some(quantity));
        out.push(b',');
        match (is_of(from, party), is_of(to, party)) {
            (true, true) => out.push(b'0'),
            (true, false) => write_negated(out, quantity),
            (false, _) => out.extend_from_slice(quantity.as_bytes()),
        }
        write_text(out, row.try_get(column::TYPE)?);
        write_text(out, from.asset.as_deref());
        out.extend_from_slice(&from.fields);
        write_text(out, row.try_get(column::FROM_BALANCE)?);
        out.extend_from_slice(&to.fields);
        write_text(out, row.try_get(column::TO_BALANCE)?);
        out.push(b'\n');
        Ok(())
    }
}

fn is_of(account: &Account, party: &str) -> bool {
    account.party.as_deref() == Some(party)
}

/// A whole number with the other sign; zero and NaN have none.
fn write_negated(out: &mut Vec<u8>, number: &str) {
    match number.strip_prefix('-') {
        Some(positive) => out.extend_from_slice(positive.as_bytes()),
        None if matches!(number, "0" | "NaN") => out.extend_from_slice(number.as_bytes()),
        None => {
            out.push(b'-');
            out.extend_from_slice(number.as_bytes());
        }
    }
}

/// Writes a time; one that is out of reach (years below -9999 and above 9999) as the nearest.
fn write_time(out: &mut Vec<u8>, time: TimeUs) {
    let nearest = if time.0 < 0 { Timestamp::MIN } else { Timestamp::MAX };
    let at = Timestamp::from_microsecond(time.0).unwrap_or(nearest);
    let at: DateTime = TimeZone::UTC.to_datetime(at);
    // Four digits of the year are enough: no block is older than year 0 or newer than 9999.
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
    let micros = at.subsec_nanosecond() / 1000;
    if micros != 0 {
        out.extend_from_slice(format!(".{micros:06}").trim_end_matches('0').as_bytes());
    }
    out.extend_from_slice(b"+00");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(us: i64) -> String {
        let mut out = Vec::new();
        write_time(&mut out, TimeUs(us));
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_time_has_no_zeros_behind_its_fraction() {
        assert_eq!(time(1_687_257_080_120_456), "2023-06-20 10:31:20.120456+00");
        assert_eq!(time(1_687_257_080_120_000), "2023-06-20 10:31:20.12+00");
        assert_eq!(time(1_687_257_080_000_000), "2023-06-20 10:31:20+00");
        assert_eq!(time(i64::MAX), "9999-12-30 22:00:00.999999+00", "as `infinity` is read");
        assert_eq!(time(-1), "1969-12-31 23:59:59.999999+00");
    }
}
