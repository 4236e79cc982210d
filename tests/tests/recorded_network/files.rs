//! The recording's CSV files, parsed without any library: an unquoted empty field is NULL, `""` the empty
//! text.

use std::{collections::BTreeMap, fmt::Debug, path::Path, str::FromStr};

use serde_json::Value;

/// One file.
pub(crate) struct Table {
    pub(crate) columns: Vec<String>,
    records: Vec<Record>,
}

/// The values of a line; `None` is NULL.
type Record = Vec<Option<String>>;

/// One line of a file.
#[derive(Clone, Copy)]
pub(crate) struct Row<'a> {
    table: &'a Table,
    record: &'a Record,
}

impl Table {
    /// Reads `<name>.csv`.
    pub(crate) fn read(folder: &Path, name: &str) -> Self {
        let path = folder.join(format!("{name}.csv"));
        let text =
            std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self::parse(&text)
    }

    fn parse(text: &str) -> Self {
        let mut records = parse(text).into_iter();
        let columns: Vec<String> = records.next().unwrap().into_iter().flatten().collect();
        let records: Vec<Record> = records.collect();
        assert!(
            records.iter().all(|record| record.len() == columns.len()),
            "a line has too few or many values"
        );
        Self { columns, records }
    }

    pub(crate) fn rows(&self) -> impl DoubleEndedIterator<Item = Row<'_>> {
        self.records.iter().map(|record| Row { table: self, record })
    }

    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    /// The row with the greatest `order` of each `key`.
    pub(crate) fn newest<'a, K: Ord, O: Ord>(
        &'a self,
        key: impl Fn(Row<'a>) -> K,
        order: impl Fn(Row<'a>) -> O,
    ) -> BTreeMap<K, Row<'a>> {
        let mut newest: BTreeMap<K, Row<'a>> = BTreeMap::new();
        for row in self.rows() {
            newest
                .entry(key(row))
                .and_modify(|newest_row| {
                    if order(row) >= order(*newest_row) {
                        *newest_row = row;
                    }
                })
                .or_insert(row);
        }
        newest
    }
}

impl<'a> Row<'a> {
    /// A value; `None` when it is NULL.
    pub(crate) fn maybe(self, column: &str) -> Option<&'a str> {
        let index = self.table.columns.iter().position(|name| name == column);
        let index = index.unwrap_or_else(|| panic!("there is no column {column}"));
        self.record[index].as_deref()
    }

    /// A value that is never NULL.
    pub(crate) fn text(self, column: &str) -> &'a str {
        self.maybe(column).unwrap_or_else(|| panic!("{column} is NULL"))
    }

    /// A number.
    pub(crate) fn number<T: FromStr<Err: Debug>>(self, column: &str) -> T {
        self.text(column).parse().unwrap()
    }

    /// A time, nanoseconds since the Unix epoch.
    pub(crate) fn ns(self, column: &str) -> i64 {
        ns(self.text(column))
    }

    /// A boolean.
    pub(crate) fn flag(self, column: &str) -> bool {
        match self.text(column) {
            "t" => true,
            "f" => false,
            other => panic!("{column} is {other}"),
        }
    }

    /// A JSON value; NULL is `null`.
    pub(crate) fn json(self, column: &str) -> Value {
        self.maybe(column).map_or(Value::Null, |text| serde_json::from_str(text).unwrap())
    }
}

fn parse(text: &str) -> Vec<Record> {
    assert!(text.ends_with('\n'), "the last line has no end");
    let (mut records, mut record, mut field) = (Vec::new(), Vec::new(), String::new());
    // Whether a quote is open, and whether the field was quoted.
    let (mut open, mut quoted) = (false, false);
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if open && letters.peek() == Some(&'"') => {
                letters.next();
                field.push('"');
            }
            '"' => (open, quoted) = (!open, true),
            ',' | '\n' if !open => {
                record.push((quoted || !field.is_empty()).then(|| std::mem::take(&mut field)));
                quoted = false;
                if letter == '\n' {
                    records.push(std::mem::take(&mut record));
                }
            }
            _ => field.push(letter),
        }
    }
    assert!(!open, "a quote is not closed");
    records
}

/// Nanoseconds since the Unix epoch of `2023-01-18 01:06:44.022698+00`.
fn ns(text: &str) -> i64 {
    let utc = text.strip_suffix("+00").unwrap_or_else(|| panic!("{text} is not in UTC"));
    let (seconds, fraction) = utc.split_once('.').unwrap_or((utc, ""));
    let parts: Vec<i64> = seconds.split(['-', ' ', ':']).map(|part| part.parse().unwrap()).collect();
    let &[year, month, day, hour, minute, second] = parts.as_slice() else { panic!("{text} is no time") };
    let seconds = ((days(year, month, day) * 24 + hour) * 60 + minute) * 60 + second;
    seconds * 1_000_000_000 + format!("{fraction:0<9}").parse::<i64>().unwrap()
}

/// Days since 1970-01-01 in the Gregorian calendar, for years from 1970.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let is_leap = |year: i64| (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let of_years: i64 = (1970..year).map(|year| 365 + i64::from(is_leap(year))).sum();
    let of_months: i64 = (1..month)
        .map(|month| match month {
            2 => 28 + i64::from(is_leap(year)),
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        })
        .sum();
    of_years + of_months + day - 1
}

#[test]
fn null_and_the_empty_text_are_kept_apart() {
    let table = Table::parse("a,b,c\n,\"\",x\n\"q \"\"1\"\", 2\",\"two\nlines\",\n");
    let rows: Vec<Row<'_>> = table.rows().collect();
    assert_eq!((rows[0].maybe("a"), rows[0].maybe("b"), rows[0].maybe("c")), (None, Some(""), Some("x")));
    assert_eq!(rows[1].text("a"), "q \"1\", 2");
    assert_eq!((rows[1].text("b"), rows[1].maybe("c")), ("two\nlines", None));
}

#[test]
fn times_are_read_to_the_microsecond() {
    assert_eq!(ns("1970-01-01 00:00:00+00"), 0);
    assert_eq!(ns("2000-02-29 12:00:00.5+00"), 951_825_600_500_000_000);
    assert_eq!(ns("2023-06-20 10:31:20.120456+00"), 1_687_257_080_120_456_000);
}
