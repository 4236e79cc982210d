//! The tables whose rows a block brings, as this build's migrations declare them.

use std::sync::LazyLock;

use crate::{blocks::BLOCKS, schema};

/// The tables, in the order in which they are written. `blocks`, `chain` and derived tables are not among them.
const NAMES: [&str; 21] = [
    "accounts", "assets", "balances", "checkpoints", "delegations", "deposits", "epochs", "ledger",
    "liquidity_provisions", "margin_levels", "market_data", "markets", "network_limits",
    "network_parameters", "oracle_specs", "orders", "positions", "protocol_upgrade_proposals", "rewards",
    "trades", "withdrawals",
];

static TABLES: LazyLock<Vec<Table>> = LazyLock::new(|| NAMES.map(Table::declared).into());

/// A table whose rows a block brings.
#[derive(Debug, PartialEq, Eq)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// Its columns, in order.
    pub columns: Vec<Column>,
}

/// A column of such a table.
#[derive(Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// What texts it takes.
    pub kind: ColumnKind,
    /// The text of its default, if it has one other than NULL.
    pub default: Option<String>,
}

/// What texts a column takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// PostgreSQL's text of a single value.
    Value,
    /// The same, of a number with at most so many digits behind the point. PostgreSQL would round others.
    Decimal(usize),
    /// A time. PostgreSQL also takes words for the time of storing.
    Time,
    /// The hash of a block. Every comparison is with one in lower case.
    Hash,
    /// JSON.
    Json,
    /// PostgreSQL's text of an array of texts.
    TextArray,
}

/// Longest text of a number, bytes; the numbers of the tables have at most 94 digits.
pub const MAX_NUMBER_BYTES: usize = 1024;

impl ColumnKind {
    /// Why a text must not be stored: PostgreSQL would store another value, it would never be found, or PostgreSQL refuses
    /// it without naming its column.
    pub fn fault(self, text: &str) -> Option<&'static str> {
        if text.contains('\0') {
            return Some("PostgreSQL stores no NUL in a text");
        }
        match self {
            Self::Decimal(0) if is_rounded(text, 0) => Some("an amount is a whole number"),
            Self::Decimal(places) if is_rounded(text, places) => Some("the number has too many decimals"),
            Self::Time if is_relative(text) => Some("the time would be that of storing"),
            Self::Hash if text.bytes().any(|byte| byte.is_ascii_uppercase()) => {
                Some("the hash is not in lower case")
            }
            _ => None,
        }
    }

    /// Whether a text that PostgreSQL takes is a time outside of 1678 to 2261, or NaN or infinity. The constraints of the
    /// tables refuse these rows without naming the column.
    pub(super) fn is_out_of_range(self, text: &str) -> bool {
        let word = text.trim().trim_start_matches(['+', '-']);
        let is_word = ["infinity", "inf", "nan"].iter().any(|one| word.eq_ignore_ascii_case(one));
        let year = word.split_once('-').map(|(year, _)| year).filter(|year| year.len() >= 4);
        let year = year.and_then(|year| year.parse::<u32>().ok()).filter(|_| self == Self::Time);
        is_word || year.is_some_and(|year| !(1678..=2261).contains(&year))
    }
}

/// Whether the text of a number has digits other than 0 beyond so many places behind the point. PostgreSQL refuses
/// what is no number.
fn is_rounded(text: &str, places: usize) -> bool {
    let (digits, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_of_number =
        |byte: u8| byte.is_ascii_digit() || byte.is_ascii_whitespace() || b"+-._eE".contains(&byte);
    if !text.bytes().all(is_of_number) {
        return false;
    }
    let Ok(exponent) = exponent.trim().parse::<isize>() else { return true };
    let beyond = fraction.len().cast_signed().saturating_sub(exponent).saturating_sub(places.cast_signed());
    let mut last = whole.bytes().chain(fraction.trim_end().bytes()).rev();
    text.len() > MAX_NUMBER_BYTES
        || (0..beyond).map_while(|_| last.next()).any(|digit| matches!(digit, b'1'..=b'9'))
}

/// Whether the text of a time has one of the words that stand for another time at each storing.
fn is_relative(text: &str) -> bool {
    let is_word = |word: &str| {
        ["now", "today", "tomorrow", "yesterday"].iter().any(|one| word.eq_ignore_ascii_case(one))
    };
    text.split(|letter: char| !letter.is_ascii_alphabetic()).any(is_word)
}

/// The columns of any table of the schema, as the migrations declare them.
fn declared(table: &str) -> impl Iterator<Item = Column> {
    schema::declarations(table).map(move |declaration| {
        let mut words = declaration.split_whitespace();
        let name = words.next().unwrap_or_default().trim_matches('"').to_owned();
        let kind = match words.next().unwrap_or_default().trim_end_matches(',') {
            "bigamount" => ColumnKind::Decimal(0),
            "timestamptz" => ColumnKind::Time,
            "numeric(94,16)" => ColumnKind::Decimal(16),
            "jsonb" => ColumnKind::Json,
            "text[]" => ColumnKind::TextArray,
            _ if table == BLOCKS && name == "hash" => ColumnKind::Hash,
            _ => ColumnKind::Value,
        };
        let default = words.skip_while(|word| *word != "DEFAULT").nth(1);
        let default = default.map(|word| word.trim_end_matches(',').trim_matches('\'').to_owned());
        Column { name, kind, default }
    })
}

/// What texts these columns of any table take; [`ColumnKind::Value`] for columns that it does not have.
pub fn kinds(table: &str, names: &[String]) -> Vec<ColumnKind> {
    let columns: Vec<Column> = declared(table).collect();
    let kind = |name: &String| columns.iter().find(|column| column.name == *name).map(|column| column.kind);
    names.iter().map(|name| kind(name).unwrap_or(ColumnKind::Value)).collect()
}

impl Table {
    fn declared(name: &'static str) -> Self {
        Self { name, columns: declared(name).collect() }
    }

    /// The index of a column.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// The names of its columns as SQL.
    pub(super) fn column_names(&self) -> String {
        let names: Vec<String> = self.columns.iter().map(|column| format!("\"{}\"", column.name)).collect();
        names.join(", ")
    }
}

/// All tables, in the order in which they are written.
pub fn tables() -> &'static [Table] {
    &TABLES
}

/// The table of a name.
pub fn table(name: &str) -> Option<&'static Table> {
    TABLES.iter().find(|table| table.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_postgresql_would_round_are_refused() {
        for whole in [
            "0", "-12", "12.", "1.00", "1.5e1", "120e-1", "0.0e-9", " 7 ", "NaN", "1e400", "", "7.5x", "none",
        ] {
            assert_eq!(ColumnKind::Decimal(0).fault(whole), None, "{whole}");
        }
        for fraction in ["0.4", "-1999.5", ".5", "1.05", "1.25e1", "15e-1", "1e-3", "1.50 ", "15e-1_0"] {
            assert!(ColumnKind::Decimal(0).fault(fraction).is_some(), "{fraction}");
        }
        assert!(ColumnKind::Decimal(0).fault(&format!("0.{}4", "0".repeat(1100))).is_some());
        assert_eq!(ColumnKind::Decimal(16).fault("0.12345678901234560"), None);
        assert!(ColumnKind::Decimal(16).fault("0.12345678901234567").is_some());
    }

    #[test]
    fn a_nul_is_refused_in_every_column() {
        for kind in [ColumnKind::Value, ColumnKind::Decimal(0), ColumnKind::Time, ColumnKind::Json] {
            assert!(kind.fault("1\0").is_some(), "{kind:?}");
        }
    }

    #[test]
    fn values_outside_of_the_constraints_are_found() {
        for time in ["0001-01-01 00:00:00+00", "9999-12-31T23:59:59Z", " infinity", "-Infinity"] {
            assert!(ColumnKind::Time.is_out_of_range(time), "{time}");
        }
        for time in ["1678-01-01 00:00:00+00", "2261-12-31T23:59:59Z", "99-01-08", "20260101T000000Z", ""] {
            assert!(!ColumnKind::Time.is_out_of_range(time), "{time}");
        }
        for (number, expected) in [("NaN", true), ("-inf", true), ("-1", false), ("0001-1", false)] {
            assert_eq!(ColumnKind::Value.is_out_of_range(number), expected, "{number}");
        }
    }

    #[test]
    fn columns_are_known_by_their_names() {
        let names = ["balance", "tx_hash", "block_time", "other"].map(str::to_owned);
        let expected = [ColumnKind::Decimal(0), ColumnKind::Value, ColumnKind::Time, ColumnKind::Value];
        assert_eq!(kinds("balances", &names), expected);
    }
}
