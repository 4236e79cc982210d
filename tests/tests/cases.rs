//! The cases: what a client sends and what it sees, one file of data per operation, all against one mesh over
//! `cases/fixture.sql`. An operation of the contract without a file is named by a test.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use mesh_testbed::Answer;
use mesh_tests::{fixture, outside::Outside};
use proto_msgs::Contract;
use reqwest::Method;
use serde::Deserialize;
use serde_json::Value;

/// One file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// For the reader.
    #[serde(rename = "about")]
    _about: String,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    request: Request,
    expect: Expected,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    /// `GET` when absent.
    method: Option<String>,
    /// Path with its query.
    path: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// A JSON body.
    body: Option<Value>,
    /// A body that is sent as it stands.
    text: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    status: u16,
    /// Exact values; `null` = the header is not there.
    #[serde(default)]
    headers: BTreeMap<String, Option<String>>,
    /// The whole body.
    body: Option<Value>,
    /// What the body holds at least: fields that are not named may have any value.
    has: Option<Value>,
}

/// All files by the name of their operation in snake case.
fn files() -> BTreeMap<String, File> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/cases");
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("the folder of cases is there") {
        let path = entry.expect("the folder of cases can be read").path();
        let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default().to_owned();
        if path.extension().is_some_and(|extension| extension == "json") {
            let text = fs::read_to_string(&path).expect("a case file is text");
            let file = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}.json: {error}"));
            files.insert(name, file);
        }
    }
    files
}

/// What is wrong with an answer.
fn complaint(expected: &Expected, answer: &Answer) -> Option<String> {
    if answer.status != expected.status {
        return Some(format!("the status is {}", answer.status));
    }
    for (name, value) in &expected.headers {
        if answer.header(name) != value.as_deref() {
            return Some(format!("the header {name} is {:?}", answer.header(name)));
        }
    }
    if expected.body.is_none() && expected.has.is_none() {
        return None;
    }
    let body = answer.json();
    if expected.body.as_ref().is_some_and(|wanted| *wanted != body) {
        return Some("the body is another".to_owned());
    }
    expected
        .has
        .as_ref()
        .and_then(|wanted| lacks(&body, wanted))
        .map(|place| format!("the body differs at {place}"))
}

/// Where a value lacks what is wanted of it: objects may hold more, lists and all else must be equal.
fn lacks(value: &Value, wanted: &Value) -> Option<String> {
    match (value, wanted) {
        (Value::Object(value), Value::Object(wanted)) => wanted.iter().find_map(|(name, wanted)| {
            let Some(value) = value.get(name) else { return Some(name.clone()) };
            lacks(value, wanted).map(|place| format!("{name}.{place}"))
        }),
        (Value::Array(value), Value::Array(wanted)) if value.len() == wanted.len() => value
            .iter()
            .zip(wanted)
            .enumerate()
            .find_map(|(at, (value, wanted))| lacks(value, wanted).map(|place| format!("{at}.{place}"))),
        _ => (value != wanted).then(String::new),
    }
}

async fn run(mesh: &Outside, case: &Case) -> Answer {
    let method = case.request.method.as_deref().unwrap_or("GET");
    let method: Method = method.parse().expect("a case names a method");
    let mut request = mesh.request(method, &case.request.path);
    for (name, value) in &case.request.headers {
        request = request.header(name, value);
    }
    request = match (&case.request.body, &case.request.text) {
        (Some(body), _) => request.json(body),
        (None, Some(text)) => request.header("content-type", "application/json").body(text.clone()),
        (None, None) => request,
    };
    Answer::to(request).await
}

#[tokio::test]
async fn every_case_holds() {
    let mesh = Outside::fixture().await;
    let mut wrong = Vec::new();
    let mut count = 0;
    for (operation, file) in files() {
        for case in &file.cases {
            count += 1;
            let answer = run(&mesh, case).await;
            if let Some(complaint) = complaint(&case.expect, &answer) {
                wrong.push(format!("{operation}: {}: {complaint}\n  {answer:?}", case.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {count} cases do not hold:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_operation_of_the_contract_has_a_file_and_every_file_an_operation() {
    let operations: BTreeSet<String> =
        Contract::get().operations().iter().map(|row| snake_case(&row.name)).collect();
    let files: BTreeSet<String> = files().into_keys().collect();
    let without_file: Vec<_> = operations.difference(&files).collect();
    let without_operation: Vec<_> = files.difference(&operations).collect();
    assert!(without_file.is_empty(), "operations without tests/cases/<operation>.json: {without_file:?}");
    assert!(
        without_operation.is_empty(),
        "case files without an operation of that name: {without_operation:?}"
    );
}

#[test]
fn an_operation_that_is_answered_has_a_case_of_success() {
    let files = files();
    for (operation, _) in fixture::answered() {
        let cases = files.get(&snake_case(operation)).map(|file| file.cases.as_slice()).unwrap_or_default();
        assert!(
            cases.iter().any(|case| case.expect.status == 200),
            "{operation} has no case with status 200"
        );
    }
}

#[test]
fn no_two_cases_of_an_operation_have_one_name() {
    for (operation, file) in files() {
        let names: BTreeSet<&str> = file.cases.iter().map(|case| case.name.as_str()).collect();
        assert_eq!(names.len(), file.cases.len(), "{operation}");
    }
}

#[test]
fn a_body_may_hold_more_than_is_wanted_but_nothing_else() {
    let value: Value = serde_json::from_str(r#"{"a":[{"b":1,"c":2}],"d":null}"#).expect("JSON");
    let wanted = |text: &str| lacks(&value, &serde_json::from_str(text).expect("JSON"));
    assert_eq!(wanted(r#"{"a":[{"b":1}]}"#), None);
    for other in [r#"{"a":[{"b":2}]}"#, r#"{"a":[]}"#, r#"{"e":1}"#, r#"{"d":{}}"#, "[]"] {
        assert!(wanted(other).is_some(), "{other}");
    }
}

/// `GetWithdrawal` -> `get_withdrawal`.
fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for (at, letter) in name.char_indices() {
        if letter.is_ascii_uppercase() && at > 0 {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}
