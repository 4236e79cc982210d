//! The demo network writes values in the forms of a real one: column by column, the forms in a recorded
//! network (NULL, empty, number, time, the types of a JSON column's parts) are compared with those of the
//! default history. The recording is `../shared/data/smoketest-5000` next to the workspace; without it the
//! test prints that and passes.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write as _,
    path::Path,
};

use mesh_demo::{Plan, Record};
use mesh_store::migrate::columns;
use serde_json::Value as Json;

use crate::parsed::{Parsed, history, rows_of};

/// Columns with free text, anything but NULL. In the recording their texts have one form each.
const FREE_TEXT: [(&str, &str); 4] = [
    ("orders", "reference"),
    ("liquidity_provisions", "reference"),
    ("withdrawals", "ref"),
    ("network_parameters", "value"),
];

/// Columns whose forms the data model defines (3.1); the demo network has all forms, the recorded network has
/// external oracles only.
const GIVEN_SHAPES: [(&str, &str); 3] =
    [("withdrawals", "ext"), ("oracle_specs", "signers"), ("oracle_specs", "filters")];

/// Columns that are empty in the recorded network: rewards of single markets, finalised withdrawals.
const MORE_THAN_EMPTY: [(&str, &str); 2] = [("rewards", "market_id"), ("withdrawals", "foreign_tx_hash")];

/// The form of a value, as far as it matters to a parser.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Form {
    Null,
    Empty,
    /// Digits, perhaps with a sign, a point and an exponent.
    Number,
    /// The first moment of 1970.
    UnsetTime,
    /// A moment before 1970.
    TimeBefore1970,
    Time,
    /// 64 hexadecimal digits.
    LowerHash,
    UpperHash,
    Flag,
    /// The JSON value `null`.
    JsonNull,
    Json,
    Text,
}

impl Form {
    fn from_value(value: Option<&str>) -> Form {
        let Some(text) = value else { return Form::Null };
        let is_hex = |digits: &str| text.len() == 64 && text.chars().all(|digit| digits.contains(digit));
        match text {
            "" => Form::Empty,
            "t" | "f" => Form::Flag,
            "null" => Form::JsonNull,
            "1970-01-01 00:00:00+00" => Form::UnsetTime,
            _ if is_hex("0123456789abcdef") => Form::LowerHash,
            _ if is_hex("0123456789ABCDEF") => Form::UpperHash,
            _ if text.starts_with(['{', '[']) => Form::Json,
            _ if is_number(text) => Form::Number,
            _ if text.ends_with("+00") && text.as_bytes().get(4) == Some(&b'-') => {
                if text < "1970" {
                    Form::TimeBefore1970
                } else {
                    Form::Time
                }
            }
            _ => Form::Text,
        }
    }
}

fn is_number(text: &str) -> bool {
    text.parse::<f64>().is_ok() && text.bytes().all(|byte| b"0123456789+-.eE".contains(&byte))
}

/// The types of each part of a JSON value (`number`, `text of a number` and so on), by its path of names.
fn kinds(value: &Json, path: &str, found: &mut BTreeMap<String, BTreeSet<&'static str>>) {
    let kind = match value {
        Json::Null => "null",
        Json::Bool(_) => "flag",
        Json::Number(_) => "number",
        Json::String(text) if is_number(text) => "text of a number",
        Json::String(_) => "text",
        Json::Array(items) => {
            items.iter().for_each(|item| kinds(item, &format!("{path}[]"), found));
            "list"
        }
        Json::Object(members) => {
            members.iter().for_each(|(name, member)| kinds(member, &format!("{path}.{name}"), found));
            "object"
        }
    };
    found.entry(path.to_owned()).or_default().insert(kind);
}

/// One column: its values in the recording and in the demo network.
struct Column<'a> {
    name: (&'a str, &'a str),
    recorded: Vec<Option<&'a str>>,
    demo: Vec<Option<&'a str>>,
}

impl Column<'_> {
    fn is_in(&self, list: &[(&str, &str)]) -> bool {
        list.contains(&self.name)
    }

    /// The differences between the demo network's forms and the recorded ones.
    fn differences(&self) -> Vec<String> {
        let forms = |values: &[Option<&str>]| values.iter().map(|value| Form::from_value(*value)).collect();
        let (recorded, demo): (BTreeSet<Form>, BTreeSet<Form>) = (forms(&self.recorded), forms(&self.demo));
        if self.is_in(&FREE_TEXT) {
            let has_null = [&recorded, &demo].map(|forms| forms.contains(&Form::Null));
            return if has_null[0] == has_null[1] {
                Vec::new()
            } else {
                vec!["NULL in one alone".to_owned()]
            };
        }
        let mut wrong: Vec<String> =
            recorded.difference(&demo).map(|form| format!("never {form:?}, as recorded")).collect();
        for form in demo.difference(&recorded) {
            let is_fine = match form {
                Form::Null => self.is_in(&GIVEN_SHAPES),
                Form::Empty | Form::UnsetTime | Form::TimeBefore1970 => false,
                // The recording does not have every value: a time that is always unset there may be set here,
                // and so on.
                Form::Time => recorded.contains(&Form::UnsetTime),
                Form::Json => recorded.contains(&Form::JsonNull) || self.is_in(&GIVEN_SHAPES),
                Form::LowerHash => recorded.contains(&Form::Text) || self.is_in(&MORE_THAN_EMPTY),
                Form::Number => recorded == [Form::Null].into(),
                Form::Text => recorded.contains(&Form::LowerHash) || self.is_in(&MORE_THAN_EMPTY),
                Form::UpperHash | Form::JsonNull | Form::Flag => false,
            };
            if !is_fine {
                wrong.push(format!("{form:?}, recorded only {recorded:?}"));
            }
        }
        wrong.extend(self.differences_inside());
        wrong
    }

    /// Parts of a JSON column that both have, but not of the same kinds.
    fn differences_inside(&self) -> Vec<String> {
        let inside = |values: &[Option<&str>]| {
            let mut found = BTreeMap::new();
            let values: BTreeSet<&str> = values.iter().flatten().copied().collect();
            for text in values.into_iter().filter(|text| Form::from_value(Some(text)) == Form::Json) {
                kinds(&serde_json::from_str(text).unwrap(), "", &mut found);
            }
            found
        };
        if self.is_in(&GIVEN_SHAPES) {
            return Vec::new();
        }
        let (recorded, demo) = (inside(&self.recorded), inside(&self.demo));
        let both = demo.iter().filter_map(|(path, kinds)| Some((path, kinds, recorded.get(path)?)));
        let other = both.filter(|(_, kinds, recorded)| !kinds.is_subset(recorded));
        other.map(|(path, kinds, recorded)| format!("{path} is {kinds:?}, recorded {recorded:?}")).collect()
    }
}

/// Parses PostgreSQL's CSV into records, with NULL (`None`) distinct from the empty text.
fn parse_csv(text: &str) -> Vec<Record> {
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

#[test]
fn every_column_has_the_forms_that_a_recorded_network_writes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/smoketest-5000");
    if !folder.is_dir() {
        return print_uncaptured("skipped: there is no ../shared/data/smoketest-5000 beside the workspace");
    }
    let rows = rows_of(history(Plan::default()));
    let (mut wrong, mut compared) = (Vec::new(), 0);
    for table in rows.tables() {
        // A table that is younger than the recording has no file there.
        let Ok(text) = std::fs::read_to_string(folder.join(format!("{table}.csv"))) else { continue };
        let mut recorded = parse_csv(&text);
        let header = recorded.remove(0);
        if recorded.is_empty() {
            print_uncaptured(&format!("{table} has no recorded rows"));
            continue;
        }
        let demo = Parsed::new(&rows, table);
        for (place, name) in header.iter().flatten().enumerate() {
            if !columns(table).contains(name) {
                continue;
            }
            let column = Column {
                name: (table, name),
                recorded: recorded.iter().map(|row| row[place].as_deref()).collect(),
                demo: demo.rows.iter().map(|row| demo.value(row, name)).collect(),
            };
            compared += 1;
            wrong.extend(column.differences().into_iter().map(|what| format!("{table}.{name}: {what}")));
        }
    }
    assert!(compared > 200, "{compared} columns are too few");
    assert!(wrong.is_empty(), "the demo network writes otherwise than a real one:\n{}", wrong.join("\n"));
    print_uncaptured(&format!("{compared} columns have the forms of the recorded ones"));
}

/// Prints past the output capture of the test harness.
fn print_uncaptured(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
