//! The demo network writes values in the forms of a real one: column by column, the forms in a recorded
//! network (NULL, empty, number, time, the types of a JSON column's parts) are compared with those of the
//! default history. The recording is `../shared/data/smoketest-5000` next to the workspace; without it the
//! test prints that and passes.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use mesh_demo::Record;
use mesh_store::schema::columns;
use mesh_testbed::say;
use serde_json::Value as Json;

use crate::parsed::{Parsed, default_rows};

/// Columns with free text, anything but NULL. In the recording their texts have one form each.
const FREE_TEXT: &str =
    "orders.reference liquidity_provisions.reference withdrawals.ref network_parameters.value";

/// Columns whose forms the data model defines (3.1); the demo network has all of them.
const GIVEN_SHAPES: &str = "withdrawals.ext oracle_specs.signers oracle_specs.filters";

/// Columns that are empty in the recorded network: rewards of single markets, finalised withdrawals.
const MORE_THAN_EMPTY: &str = "rewards.market_id withdrawals.foreign_tx_hash";

/// The form of a value, as far as it matters to a parser.
fn form(value: Option<&str>) -> &'static str {
    let Some(text) = value else { return "NULL" };
    let is_hex = |digits: &str| text.len() == 64 && text.chars().all(|digit| digits.contains(digit));
    match text {
        "" => "empty",
        "t" | "f" => "flag",
        "null" => "JSON null",
        "1970-01-01 00:00:00+00" => "unset time",
        _ if is_hex("0123456789abcdef") => "hash",
        _ if is_hex("0123456789ABCDEF") => "HASH",
        _ if text.starts_with(['{', '[']) => "JSON",
        _ if is_number(text) => "number",
        _ if text.ends_with("+00") && text.as_bytes()[4] == b'-' && text < "1970" => "time before 1970",
        _ if text.ends_with("+00") && text.as_bytes()[4] == b'-' => "time",
        _ => "text",
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

/// The differences between the forms of a column in the demo network and in the recording.
fn differences(
    column: &str,
    recorded: &BTreeSet<Option<&str>>,
    demo: &BTreeSet<Option<&str>>,
) -> Vec<String> {
    let is_in = |list: &str| list.split(' ').any(|listed| listed == column);
    let [old, new] =
        [recorded, demo].map(|values| values.iter().map(|value| form(*value)).collect::<BTreeSet<_>>());
    if is_in(FREE_TEXT) {
        let agree = old.contains("NULL") == new.contains("NULL");
        return if agree { Vec::new() } else { vec!["NULL in one alone".to_owned()] };
    }
    let mut wrong: Vec<String> =
        old.difference(&new).map(|form| format!("never {form}, as recorded")).collect();
    // The recording does not have every value: a time that is always unset there may be set here, and so on.
    let is_fine = |form: &&&str| match **form {
        "NULL" => is_in(GIVEN_SHAPES),
        "time" => old.contains("unset time"),
        "JSON" => old.contains("JSON null") || is_in(GIVEN_SHAPES),
        "hash" => old.contains("text") || is_in(MORE_THAN_EMPTY),
        "number" => old == BTreeSet::from(["NULL"]),
        "text" => old.contains("hash") || is_in(MORE_THAN_EMPTY),
        _ => false,
    };
    let more = new.difference(&old).filter(|form| !is_fine(form));
    wrong.extend(more.map(|form| format!("{form}, recorded only {old:?}")));
    if !is_in(GIVEN_SHAPES) {
        wrong.extend(differences_inside(recorded, demo));
    }
    wrong.into_iter().map(|what| format!("{column}: {what}")).collect()
}

/// Parts of a JSON column that both have, but not of the same kinds.
fn differences_inside(recorded: &BTreeSet<Option<&str>>, demo: &BTreeSet<Option<&str>>) -> Vec<String> {
    let [old, new] = [recorded, demo].map(|values| {
        let mut found = BTreeMap::new();
        for text in values.iter().flatten().filter(|text| form(Some(text)) == "JSON") {
            kinds(&serde_json::from_str(text).unwrap(), "", &mut found);
        }
        found
    });
    let both = new.iter().filter_map(|(path, kinds)| Some((path, kinds, old.get(path)?)));
    let other = both.filter(|(_, kinds, old)| !kinds.is_subset(old));
    other.map(|(path, kinds, old)| format!("{path} is {kinds:?}, recorded {old:?}")).collect()
}

/// Parses PostgreSQL's CSV into records, with NULL (`None`) distinct from the empty text.
fn parse_csv(text: &str) -> Vec<Record> {
    let (mut records, mut record) = (Vec::new(), Vec::new());
    let (mut value, mut is_quoted, mut is_inside) = (String::new(), false, false);
    for character in text.chars() {
        match character {
            '"' => {
                // A doubled quote is one that ends the text and begins it again.
                value.push_str(if is_quoted && !is_inside { "\"" } else { "" });
                (is_inside, is_quoted) = (!is_inside, true);
            }
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
        return say("skipped: there is no ../shared/data/smoketest-5000 beside the workspace");
    }
    let rows = default_rows();
    let (mut wrong, mut compared) = (Vec::new(), 0);
    for table in rows.tables() {
        // A table that is younger than the recording has no file there.
        let Ok(text) = std::fs::read_to_string(folder.join(format!("{table}.csv"))) else { continue };
        let mut recorded = parse_csv(&text);
        let header = recorded.remove(0);
        if recorded.is_empty() {
            say(&format!("{table} has no recorded rows"));
            continue;
        }
        let demo = Parsed::new(rows, table);
        let places = header.iter().flatten().enumerate();
        for (place, name) in places.filter(|(_, name)| columns(table).contains(name)) {
            let recorded = recorded.iter().map(|row| row[place].as_deref()).collect();
            let demo = demo.census(name).into_keys().collect();
            wrong.extend(differences(&format!("{table}.{name}"), &recorded, &demo));
            compared += 1;
        }
    }
    assert!(compared > 200, "{compared} columns are too few");
    assert!(wrong.is_empty(), "the demo network writes otherwise than a real one:\n{}", wrong.join("\n"));
    say(&format!("{compared} columns have the forms of the recorded ones"));
}
