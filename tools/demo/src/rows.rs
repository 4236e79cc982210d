//! Rows as text: PostgreSQL's CSV, byte for byte as `COPY ... TO STDOUT (FORMAT csv)` prints them, so that
//! input can be compared with output. NULL is an empty field, the empty text is `""`.

use std::{
    collections::BTreeMap,
    fmt::{Display, Write},
};

use crate::moment::Moment;

/// The rows of one or more blocks, per table, without header lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows(BTreeMap<&'static str, TableRows>);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct TableRows {
    text: String,
    count: u64,
}

impl Rows {
    /// Names of the tables that have rows.
    pub fn tables(&self) -> impl Iterator<Item = &'static str> {
        self.0.keys().copied()
    }

    /// The CSV text of a table's rows.
    #[must_use]
    pub fn text(&self, table: &str) -> &str {
        self.0.get(table).map_or("", |rows| &rows.text)
    }

    /// Number of rows of a table.
    #[must_use]
    pub fn count(&self, table: &str) -> u64 {
        self.0.get(table).map_or(0, |rows| rows.count)
    }

    /// Number of rows of all tables.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.values().map(|rows| rows.count).sum()
    }

    /// Appends the rows of a later block.
    pub fn append(&mut self, later: &Rows) {
        for (table, rows) in &later.0 {
            let own = self.0.entry(table).or_default();
            own.text.push_str(&rows.text);
            own.count += rows.count;
        }
    }

    /// The rows of a table as values in the order of its columns; NULL is `None`.
    #[must_use]
    pub fn records(&self, table: &str) -> Vec<Vec<Option<String>>> {
        parse_csv(self.text(table))
    }

    /// Begins a row; the values follow in the order of the table's columns.
    pub(crate) fn row(&mut self, table: &'static str) -> Row<'_> {
        let rows = self.0.entry(table).or_default();
        rows.count += 1;
        Row { text: &mut rows.text, begun: false }
    }
}

/// Parses PostgreSQL's CSV into records, with NULL (`None`) distinct from the empty text.
#[must_use]
pub fn parse_csv(text: &str) -> Vec<Vec<Option<String>>> {
    let (mut records, mut record) = (Vec::new(), Vec::new());
    let (mut value, mut is_quoted, mut is_inside) = (String::new(), false, false);
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' if is_inside && characters.peek() == Some(&'"') => {
                characters.next();
                value.push('"');
            }
            '"' => (is_inside, is_quoted) = (!is_inside, true),
            ',' | '\n' if !is_inside => {
                let text = std::mem::take(&mut value);
                record.push((!text.is_empty() || is_quoted).then_some(text));
                is_quoted = false;
                if character == '\n' {
                    records.push(std::mem::take(&mut record));
                }
            }
            other => value.push(other),
        }
    }
    records
}

/// A row that is being written.
#[must_use = "a row counts when it is ended"]
pub(crate) struct Row<'a> {
    text: &'a mut String,
    begun: bool,
}

impl Row<'_> {
    fn separate(&mut self) {
        if std::mem::replace(&mut self.begun, true) {
            self.text.push(',');
        }
    }

    pub(crate) fn null(mut self) -> Self {
        self.separate();
        self
    }

    /// A text, quoted where the dialect asks for it.
    pub(crate) fn text(mut self, value: &str) -> Self {
        self.separate();
        if !value.is_empty() && !value.contains([',', '"', '\n', '\r']) {
            self.text.push_str(value);
            return self;
        }
        // Writing into a String cannot fail.
        let _ = write!(self.text, "\"{}\"", value.replace('"', "\"\""));
        self
    }

    pub(crate) fn optional_text(self, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.text(value),
            None => self.null(),
        }
    }

    /// A number, as the shortest text that parses to the same value.
    pub(crate) fn number(mut self, value: impl Display) -> Self {
        self.separate();
        let _ = write!(self.text, "{value}");
        self
    }

    pub(crate) fn flag(mut self, value: bool) -> Self {
        self.separate();
        self.text.push(if value { 't' } else { 'f' });
        self
    }

    pub(crate) fn time(self, value: Moment) -> Self {
        self.number(value)
    }

    /// Ends the row.
    pub(crate) fn end(self) {
        self.text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_quoted_as_postgres_quotes_them() {
        let mut rows = Rows::default();
        let row = rows.row("network_parameters");
        row.text("a,\"b\"\r\n").text("").null().text("\\N").end();
        rows.row("network_parameters").text(" NULL ").text("é").text("x'y").flag(true).end();
        assert_eq!(rows.text("network_parameters"), "\"a,\"\"b\"\"\r\n\",\"\",,\\N\n NULL ,é,x'y,t\n");
        assert_eq!(rows.count("network_parameters"), 2);
    }
}
