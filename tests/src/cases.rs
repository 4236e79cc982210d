//! The cases as data: one file per operation in `cases/`, named like the operation in snake case.

use std::{collections::BTreeMap, fs};

use heck::ToSnakeCase as _;
use proto_msgs::Contract;
use serde::Deserialize;
use serde_json::Value;

/// The cases of one operation.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// A remark for readers of the file; not checked.
    pub about: String,
    /// What the OpenAPI document shows instead of the first case with a whole answer of status 200.
    pub examples: Option<Value>,
    /// The cases; the first one with status 200 on the unsealed mesh shows a full answer.
    pub cases: Vec<Case>,
    /// Requests that are refused with 400 and `InvalidArgument`.
    #[serde(default)]
    pub refusals: Vec<Refusals>,
}

/// Requests with the same refusal: paths with their queries, or JSON bodies posted to the operation's own
/// path. In both, `{ab*3}` stands for `ababab`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refusals {
    /// Application number of the error.
    pub number: i64,
    /// The whole message of its detail, where it is fixed.
    pub reason: Option<String>,
    /// Whether the detail repeats the offending value, at most 256 bytes of it.
    #[serde(default)]
    pub names_value: bool,
    /// A field that the detail must name.
    pub names: Option<String>,
    /// Paths to get.
    #[serde(default)]
    paths: Vec<String>,
    /// Bodies to post.
    #[serde(default)]
    bodies: Vec<String>,
}

impl Refusals {
    /// The expanded paths to get.
    pub fn paths(&self) -> impl Iterator<Item = String> {
        self.paths.iter().map(|path| expand(path))
    }

    /// The expanded bodies to post.
    pub fn bodies(&self) -> impl Iterator<Item = String> {
        self.bodies.iter().map(|body| expand(body))
    }
}

/// Expands `{ab*3}` to `ababab`.
fn expand(text: &str) -> String {
    let repeated = |inner: &str| {
        let (unit, count) = inner.rsplit_once('*')?;
        Some(unit.repeat(count.parse().ok()?))
    };
    let mut parts = text.split('{');
    let mut expanded = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let found = part.split_once('}').and_then(|(inner, rest)| Some(repeated(inner)? + rest));
        expanded.push_str(&found.unwrap_or_else(|| format!("{{{part}")));
    }
    expanded
}

/// A request and its expected answer.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// A sentence that names the case.
    pub name: String,
    /// Whether it is sent to the mesh whose history is sealed, one segment per block, instead of the unsealed
    /// one.
    #[serde(default)]
    pub sealed: bool,
    /// The request.
    pub request: Request,
    /// The expected answer.
    pub expect: Expected,
}

/// A request.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// `GET` when absent.
    pub method: Option<String>,
    /// Path with its query.
    pub path: String,
    /// Headers.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// A JSON body.
    pub body: Option<Value>,
    /// A body that is sent unchanged.
    pub text: Option<String>,
}

/// The expected properties of an answer.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// The status.
    pub status: u16,
    /// Exact values; `null` means that the header must be absent.
    #[serde(default)]
    pub headers: BTreeMap<String, Option<String>>,
    /// The whole body.
    pub body: Option<Value>,
    /// A part of the body: members that are not named may have any value. That an error has the contract's form is
    /// checked in any case.
    pub has: Option<Value>,
}

impl Expected {
    /// The application number of the expected error.
    pub fn number(&self) -> Option<i64> {
        self.has.as_ref().or(self.body.as_ref())?.pointer("/details/0/code")?.as_i64()
    }
}

/// All files by their names without the extension.
pub fn files() -> BTreeMap<String, File> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/cases");
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("no folder of cases: {error}"));
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let files = paths.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
    let read = |path: std::path::PathBuf| {
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let file = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        (path.file_stem().unwrap_or_default().to_string_lossy().into_owned(), file)
    };
    files.map(read).collect()
}

/// The name of an operation's file: `GetWithdrawal` -> `get_withdrawal`.
pub fn file_name(operation: &str) -> String {
    operation.to_snake_case()
}

/// For each read operation that a service answers: its name and the path of a request with a full answer.
pub fn answered() -> Vec<(&'static str, String)> {
    let files = files();
    let full = |operation: &str| {
        let cases = &files.get(&file_name(operation))?.cases;
        let usual = cases.iter().filter(|case| case.request.method.is_none() && !case.sealed);
        let full = usual.into_iter().find(|case| case.expect.status == 200)?;
        Some(full.request.path.clone())
    };
    let operations = Contract::get().operations().iter();
    operations.filter_map(|row| Some((row.name.as_str(), full(&row.name)?))).collect()
}
