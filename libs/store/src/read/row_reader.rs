//! Reads the values of a row in the forms of an answer. A value without a form is shown by the nearest one and
//! noted as unreadable (contract 2.4).

use std::fmt::Display;

use serde_json::{Value, value::RawValue};
use tokio_postgres::{
    Row,
    types::{FromSql, Json},
};

use super::{ReadError, Unreadable};
use crate::{TimeUs, list::List};

/// What an infinite number is shown as: the greatest of the columns for amounts.
const GREATEST: &str = "999999999999999999999999999999999999999999999999999999999999999999999999999999";

/// A row of a table, and where to note what it holds without a form.
#[derive(Debug, Clone, Copy)]
pub struct RowReader<'a> {
    row: &'a Row,
    table: &'static str,
    key: Key,
    unreadable: &'a Unreadable,
}

/// The columns that identify a row in the log.
#[derive(Debug, Clone, Copy)]
enum Key {
    Column(&'static str),
    List(&'static List),
}

impl<'a> RowReader<'a> {
    /// A row of a table with a key of one text column.
    pub fn new(row: &'a Row, table: &'static str, key: &'static str, unreadable: &'a Unreadable) -> Self {
        Self { row, table, key: Key::Column(key), unreadable }
    }

    /// A row of a page.
    pub fn of_list(row: &'a Row, list: &'static List, unreadable: &'a Unreadable) -> Self {
        Self { row, table: list.table, key: Key::List(list), unreadable }
    }

    /// A value of a type that has no invalid values.
    ///
    /// # Errors
    /// When the column does not have this type.
    pub fn get<T: FromSql<'a>>(&self, column: &str) -> Result<T, ReadError> {
        Ok(self.row.try_get(column)?)
    }

    /// JSON; `None` for NULL. JSON that PostgreSQL takes and serde does not (`1e400`, deep nesting) is `null`.
    ///
    /// # Errors
    /// When the column is no JSON.
    pub fn json(&self, column: &'static str) -> Result<Option<Value>, ReadError> {
        let Some(Json(raw)) = self.get::<Option<Json<&RawValue>>>(column)? else { return Ok(None) };
        Ok(Some(serde_json::from_str(raw.get()).unwrap_or_else(|_| {
            self.note(column, raw);
            Value::Null
        })))
    }

    /// A time in nanoseconds.
    ///
    /// # Errors
    /// When the column is no time, or NULL.
    pub fn ns(&self, column: &str) -> Result<i64, ReadError> {
        Ok(self.get::<TimeUs>(column)?.ns())
    }

    /// The same of a column that may be NULL.
    ///
    /// # Errors
    /// When the column is no time.
    pub fn optional_ns(&self, column: &str) -> Result<Option<i64>, ReadError> {
        Ok(self.get::<Option<TimeUs>>(column)?.map(TimeUs::ns))
    }

    /// An enum by its name; unknown ones and NULL are the default.
    ///
    /// # Errors
    /// When the column is no text.
    pub fn named<E: Default>(
        &self,
        column: &'static str,
        named: impl Fn(&str) -> Option<E>,
    ) -> Result<E, ReadError> {
        let Some(name) = self.get::<Option<&str>>(column)? else { return Ok(E::default()) };
        Ok(self.known(column, name, named(name)))
    }

    /// An enum by its number; unknown ones and NULL are the default.
    ///
    /// # Errors
    /// When the column is no `int4`.
    pub fn numbered<E: Default + TryFrom<i32>>(&self, column: &'static str) -> Result<E, ReadError> {
        let Some(number) = self.get::<Option<i32>>(column)? else { return Ok(E::default()) };
        Ok(self.known(column, number, E::try_from(number).ok()))
    }

    /// A number that is never negative; negative ones are 0.
    ///
    /// # Errors
    /// When the column is no `int8`, or NULL.
    pub fn unsigned(&self, column: &'static str) -> Result<u64, ReadError> {
        let number: i64 = self.get(column)?;
        Ok(self.known(column, number, u64::try_from(number).ok()))
    }

    /// The same of the text of a `numeric`; those above 64 bits are the greatest.
    ///
    /// # Errors
    /// When the column is no text, or NULL.
    pub fn unsigned_text(&self, column: &'static str) -> Result<u64, ReadError> {
        let text: &str = self.get(column)?;
        if let Ok(number) = text.parse() {
            return Ok(number);
        }
        self.note(column, text);
        Ok(if text.starts_with('-') || text == "NaN" { 0 } else { u64::MAX })
    }

    /// The text of a `numeric` without a fraction; a fraction is rounded. `None` for NULL.
    ///
    /// # Errors
    /// When the column is no text.
    pub fn whole(&self, column: &'static str) -> Result<Option<String>, ReadError> {
        let decimal = self.decimal(column)?;
        Ok(decimal.map(|text| match text.split_once('.') {
            None => text,
            Some((whole, fraction)) => {
                self.note(column, &text);
                rounded(whole, fraction)
            }
        }))
    }

    /// The text of a `numeric`. `None` for NULL.
    ///
    /// # Errors
    /// When the column is no text.
    pub fn decimal(&self, column: &'static str) -> Result<Option<String>, ReadError> {
        let Some(text) = self.get::<Option<&str>>(column)? else { return Ok(None) };
        let shown = match text {
            "NaN" => "0".to_owned(),
            "Infinity" => GREATEST.to_owned(),
            "-Infinity" => format!("-{GREATEST}"),
            text => return Ok(Some(text.to_owned())),
        };
        self.note(column, text);
        Ok(Some(shown))
    }

    /// The elements of a `text[]` that are not NULL.
    ///
    /// # Errors
    /// When the column is no array of texts of one dimension, or NULL.
    pub fn texts(&self, column: &'static str) -> Result<Vec<String>, ReadError> {
        let stored: Vec<Option<String>> = self.get(column)?;
        if stored.contains(&None) {
            self.note(column, "NULL in an array");
        }
        Ok(stored.into_iter().flatten().collect())
    }

    /// Notes that what a column holds has no form.
    pub fn note(&self, column: &'static str, value: impl Display) {
        let key = match self.key {
            Key::Column(column) => self.row.try_get(column).ok().flatten().unwrap_or_default(),
            Key::List(list) => list.key_texts(self.row).unwrap_or_default().join(" "),
        };
        self.unreadable.note(self.table, &key, column, value);
    }

    fn known<E: Default>(&self, column: &'static str, stored: impl Display, known: Option<E>) -> E {
        known.unwrap_or_else(|| {
            self.note(column, stored);
            E::default()
        })
    }
}

/// A decimal number rounded to a whole one, half away from zero.
fn rounded(whole: &str, fraction: &str) -> String {
    if fraction.as_bytes().first().is_none_or(|digit| *digit < b'5') {
        return if whole == "-0" { "0".to_owned() } else { whole.to_owned() };
    }
    let (sign, digits) = whole.strip_prefix('-').map_or(("", whole), |digits| ("-", digits));
    let nines = digits.len() - digits.trim_end_matches('9').len();
    let (kept, carried) = digits.split_at(digits.len() - nines);
    let (kept, last) = kept.split_at(kept.len().saturating_sub(1));
    let last = last.bytes().next().map_or(b'1', |digit| digit + 1);
    format!("{sign}{kept}{}{}", char::from(last), "0".repeat(carried.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fraction_is_rounded_half_away_from_zero() {
        for (number, expected) in [
            ("1.4", "1"),
            ("1.5", "2"),
            ("-1.5", "-2"),
            ("-0.4", "0"),
            ("-0.5", "-1"),
            ("0.5", "1"),
            ("9.9", "10"),
            ("1999.5", "2000"),
            ("-99.500", "-100"),
        ] {
            let (whole, fraction) = number.split_once('.').unwrap();
            assert_eq!(rounded(whole, fraction), expected, "{number}");
        }
    }
}
