//! A row that cannot be stored, with its place.

use std::fmt;

use tokio_postgres::{Error, error::DbError};

use super::{ColumnKind, CopyText, kinds};

/// Longest part of a value that is shown, characters.
const MAX_VALUE: usize = 64;

/// The rule of times.
const TIME_RULE: &str = "a time is outside of 1678 to 2261";

/// A row that cannot be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowFault {
    /// Its table.
    pub table: String,
    /// The column, when one value is the reason.
    pub column: Option<String>,
    /// The beginning of that value.
    pub value: Option<String>,
    /// The reason: PostgreSQL's message, where it refused the row.
    pub message: String,
}

impl RowFault {
    /// A fault of a table, of a column where one value is the reason.
    pub fn new(
        table: impl Into<String>,
        column: Option<&str>,
        value: Option<&str>,
        message: impl Into<String>,
    ) -> Self {
        let (column, value) = (column.map(str::to_owned), value.map(cut));
        Self { table: table.into(), column, value, message: message.into() }
    }

    /// Reads an error of the COPY of these texts; `None` when the rows are not the reason.
    pub(super) fn read(table: &str, columns: &str, texts: &[&CopyText], error: &Error) -> Option<Self> {
        let cause = error.as_db_error()?;
        if !is_of_row(cause) {
            return None;
        }
        let (line, column) = place(cause);
        let names: Vec<String> =
            columns.split(", ").map(|column| column.trim_matches('"').to_owned()).collect();
        let value = |column: usize| {
            let mut row = line?.checked_sub(1)?;
            for text in texts {
                let rows = usize::try_from(text.rows()).ok()?;
                if row < rows {
                    return text.value(row, column);
                }
                row -= rows;
            }
            None
        };
        let rule = value_rule(cause);
        let index = match (&column, rule) {
            (Some(column), _) => names.iter().position(|name| name == column),
            // A constraint names no column: it is the first one whose value breaks the rule.
            (None, Some(rule)) => kinds(table, &names).into_iter().enumerate().position(|(index, kind)| {
                (kind == ColumnKind::Time) == (rule == TIME_RULE)
                    && value(index).is_some_and(|value| kind.is_out_of_range(&value))
            }),
            (None, None) => None,
        };
        let column = column.or_else(|| names.get(index?).cloned());
        let value = index.and_then(value);
        // "Key (height)=(5) already exists." Other details repeat the whole row.
        let detail = cause.detail().filter(|detail| detail.starts_with("Key ("));
        let message = match (detail, rule) {
            (Some(detail), _) => format!("{}, {}", cause.message(), detail.trim_end_matches('.')),
            (None, Some(rule)) => format!("{}: {rule}", cause.message()),
            (None, None) => cause.message().to_owned(),
        };
        Some(Self::new(table, column.as_deref(), value.as_deref(), message))
    }
}

/// Whether a row is the reason of an error, by the class of its SQLSTATE: data exceptions, constraint violations, program
/// limits such as the length of an index entry, and exceptions that triggers raise.
pub fn is_of_row(cause: &DbError) -> bool {
    matches!(cause.code().code().get(..2), Some("22" | "23" | "54" | "P0"))
}

/// The rule of values (W1) whose constraint was violated.
pub fn value_rule(cause: &DbError) -> Option<&'static str> {
    match cause.constraint()? {
        name if name.ends_with("_times_check") => Some(TIME_RULE),
        name if name.ends_with("_numbers_check") => Some("a number is NaN or infinite"),
        _ => None,
    }
}

/// The line and the column that an error names. Its words depend on the server's language, their order does
/// not: `COPY trades, line 3, column price: "abc"`.
fn place(cause: &DbError) -> (Option<usize>, Option<String>) {
    let copy = cause.where_().and_then(|context| context.lines().find(|line| line.starts_with("COPY ")));
    let Some((_, place)) = copy.and_then(|copy| copy.split_once(", ")) else {
        return (None, cause.column().map(str::to_owned));
    };
    let place = place.split_once(':').map_or(place, |(place, _)| place);
    let mut parts = place.split(", ");
    let last_word = |part: &str| part.split_whitespace().next_back().map(str::to_owned);
    let line = parts.next().and_then(last_word).and_then(|line| line.parse().ok());
    let column = parts.next().and_then(last_word).or_else(|| cause.column().map(str::to_owned));
    (line, column)
}

/// The beginning of a value.
fn cut(value: &str) -> String {
    match value.char_indices().nth(MAX_VALUE) {
        Some((end, _)) => format!("{}…", &value[..end]),
        None => value.to_owned(),
    }
}

impl fmt::Display for RowFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "table {}", self.table)?;
        if let Some(column) = &self.column {
            write!(f, ", column {column}")?;
        }
        if let Some(value) = &self.value {
            write!(f, ", value {value:?}")?;
        }
        write!(f, ": {}", self.message)
    }
}

impl std::error::Error for RowFault {}
