//! The document keeps to what generators of clients understand. Each rule is something on which one of those
//! in `tests/clients` failed or warned; each is seen to find the fault in a document that is broken on
//! purpose.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::Document;

/// What is wrong, and where it is looked for.
#[derive(Clone, Copy)]
enum Rule {
    /// A schema at a JSON pointer.
    Schema(fn(&str, &Map<String, Value>) -> bool),
    /// An answer of status 2xx.
    Success(fn(&Value) -> bool),
    /// The whole document; the faults.
    Document(fn(&Value) -> Vec<String>),
}

/// All rules, by what they want.
const RULES: [(&str, Rule); 10] = [
    ("a schema has one type and no alternatives", Rule::Schema(has_alternatives)),
    ("a reference stands alone or with a description", Rule::Schema(has_siblings)),
    ("a pattern can stand in a struct tag of Go", Rule::Schema(has_odd_pattern)),
    ("objects and enums have names", Rule::Schema(is_unnamed)),
    ("constants of enums are unique over the whole document", Rule::Document(constants)),
    ("names of components are unique and no built-in types", Rule::Document(component_names)),
    ("operation ids are unique", Rule::Document(operation_ids)),
    ("names of an operation's parameters are unique", Rule::Document(parameter_names)),
    ("an answer that succeeds has one media type", Rule::Success(has_several_media_types)),
    ("a download is its file", Rule::Success(is_json_download)),
];

impl Rule {
    /// Where a document breaks it.
    fn faults(self, document: &Value) -> Vec<String> {
        match self {
            Self::Schema(is_wrong) => {
                let schemas = schemas(document).into_iter();
                schemas.filter(|(at, schema)| is_wrong(at, schema)).map(|(at, _)| at).collect()
            }
            Self::Success(is_wrong) => {
                let successes = successes(document).into_iter();
                successes.filter(|(_, response)| is_wrong(response)).map(|(at, _)| at).collect()
            }
            Self::Document(faults) => faults(document),
        }
    }
}

/// Names that languages have for types of their own.
const BUILT_IN: &str =
    "Array Blob Boolean Date Error Exception File Function Map Number Object Response Set String";

/// Member of an operation's path item that is an operation.
const METHODS: [&str; 3] = ["get", "head", "post"];

fn document() -> Value {
    serde_json::to_value(Document::of_contract()).unwrap()
}

/// Every schema of the document with its JSON pointer: that of components, and those of bodies and
/// parameters.
fn schemas(document: &Value) -> Vec<(String, &Map<String, Value>)> {
    let mut found = Vec::new();
    collect(document, "", false, &mut found);
    found
}

fn collect<'a>(
    value: &'a Value,
    at: &str,
    is_schema: bool,
    found: &mut Vec<(String, &'a Map<String, Value>)>,
) {
    let Value::Object(members) = value else {
        let list = value.as_array().into_iter().flatten().enumerate();
        return list.for_each(|(index, value)| collect(value, &format!("{at}/{index}"), is_schema, found));
    };
    if is_schema {
        found.push((at.to_owned(), members));
    }
    for (name, value) in members {
        let at = format!("{at}/{name}");
        match name.as_str() {
            "example" | "examples" => {}
            "properties" | "schemas" => {
                for (name, value) in value.as_object().into_iter().flatten() {
                    collect(value, &format!("{at}/{name}"), true, found);
                }
            }
            "schema" | "items" | "oneOf" | "anyOf" | "allOf" => collect(value, &at, true, found),
            _ => collect(value, &at, false, found),
        }
    }
}

/// The operations by id, with the path item's path.
fn operations(document: &Value) -> Vec<(&str, &Value)> {
    let items = document["paths"].as_object().unwrap().values();
    let operations = items.flat_map(|item| METHODS.iter().filter_map(|method| item.get(method)));
    operations.map(|operation| (operation["operationId"].as_str().unwrap(), operation)).collect()
}

/// Answers of status 2xx with the operation's id and the status.
fn successes(document: &Value) -> Vec<(String, &Value)> {
    let mut found = Vec::new();
    for (id, operation) in operations(document) {
        for (status, response) in operation["responses"].as_object().unwrap() {
            if status.starts_with('2') {
                found.push((format!("{id} {status}"), response));
            }
        }
    }
    found
}

/// A name as the strictest language has it: neither case nor separators tell two names apart.
fn folded(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase()).collect()
}

/// Names that fold to one that was there before, each with where it is.
fn repeated<'a>(names: impl IntoIterator<Item = (String, &'a str)>) -> Vec<String> {
    let mut seen = BTreeMap::new();
    let mut faults = Vec::new();
    for (at, name) in names {
        if let Some(earlier) = seen.insert(folded(name), at.clone()) {
            faults.push(format!("{name} of {at} is one of {earlier}, too"));
        }
    }
    faults
}

fn has_alternatives(_: &str, schema: &Map<String, Value>) -> bool {
    schema.get("type").is_some_and(Value::is_array)
        || ["oneOf", "anyOf", "allOf"].iter().any(|name| schema.contains_key(*name))
}

/// All of the generators take a description beside a reference, which OpenAPI 3.1 allows.
fn has_siblings(_: &str, schema: &Map<String, Value>) -> bool {
    schema.contains_key("$ref") && schema.keys().any(|name| name != "$ref" && name != "description")
}

fn has_odd_pattern(_: &str, schema: &Map<String, Value>) -> bool {
    let pattern = schema.get("pattern").and_then(Value::as_str);
    pattern.is_some_and(|pattern| pattern.contains([',', '"', '`', '\\']))
}

fn is_unnamed(at: &str, schema: &Map<String, Value>) -> bool {
    let is_named = at.strip_prefix("/components/schemas/").is_some_and(|name| !name.contains('/'));
    let needs_name = schema.get("type").is_some_and(|kind| kind == "object") || schema.contains_key("enum");
    needs_name && !is_named && !schema.contains_key("title")
}

/// The constants that programs have for the values of an enum.
fn constants_of(schema: &Map<String, Value>) -> Vec<&str> {
    let names = schema.get("x-enum-varnames").or_else(|| schema.get("enum"));
    names.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

fn constants(document: &Value) -> Vec<String> {
    let mut named = Vec::new();
    let mut faults = Vec::new();
    for (at, schema) in schemas(document) {
        let constants = constants_of(schema);
        if schema.get("enum").and_then(Value::as_array).map_or(0, Vec::len) != constants.len() {
            faults.push(format!("{at} has not a name for each value"));
        }
        named.extend(constants.into_iter().map(|name| (at.clone(), name)));
    }
    faults.extend(repeated(named));
    faults
}

/// Schemas, responses and parameters become types of one package.
fn component_names(document: &Value) -> Vec<String> {
    let mut named = Vec::new();
    for kind in ["schemas", "responses", "parameters"] {
        let components = document["components"][kind].as_object().unwrap();
        named.extend(components.keys().map(|name| (format!("components/{kind}/{name}"), name.as_str())));
    }
    let built_in: BTreeSet<String> = BUILT_IN.split(' ').map(folded).collect();
    let mut faults: Vec<String> = named
        .iter()
        .filter(|(at, name)| at.contains("/schemas/") && built_in.contains(&folded(name)))
        .map(|(at, _)| format!("{at} is a built-in type"))
        .collect();
    faults.extend(repeated(named));
    faults
}

fn operation_ids(document: &Value) -> Vec<String> {
    repeated(operations(document).into_iter().map(|(id, _)| (id.to_owned(), id)))
}

fn parameter_names(document: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    for (id, operation) in operations(document) {
        let listed = operation["parameters"].as_array().into_iter().flatten();
        let resolved = listed.map(|parameter| match parameter["$ref"].as_str() {
            Some(reference) => document.pointer(&reference[1..]).unwrap(),
            None => parameter,
        });
        faults.extend(repeated(resolved.map(|one| (id.to_owned(), one["name"].as_str().unwrap()))));
    }
    faults
}

fn has_several_media_types(response: &Value) -> bool {
    response["content"].as_object().map_or(0, Map::len) > 1
}

fn is_json_download(response: &Value) -> bool {
    let mut types = response["content"].as_object().into_iter().flat_map(Map::keys);
    response["headers"].get("Content-Disposition").is_some() && types.any(|name| name.contains("json"))
}

#[test]
fn generators_understand_the_document() {
    let document = document();
    assert!(schemas(&document).len() > 300, "only {} schemas were looked at", schemas(&document).len());
    for (wanted, rule) in RULES {
        let faults = rule.faults(&document);
        assert!(faults.is_empty(), "{wanted}: {faults:#?}");
    }
}

/// Breaks the document at a JSON pointer; the rule finds fault with it, and with nothing before.
fn assert_found(wanted: &str, pointer: &str, broken: Value) {
    let rule = RULES.iter().find(|(name, _)| *name == wanted).unwrap().1;
    let mut document = document();
    let (inside, name) = pointer.rsplit_once('/').unwrap();
    let name = name.replace("~1", "/");
    match document.pointer_mut(inside) {
        Some(Value::Array(list)) => list[name.parse::<usize>().unwrap()] = broken,
        Some(object) => object[name] = broken,
        None => panic!("the document has no {inside}"),
    }
    assert!(!rule.faults(&document).is_empty(), "{wanted}: not found at {pointer}");
}

#[test]
fn every_rule_finds_what_it_is_for() {
    let nonce = "/components/schemas/ProofOfWork/properties/nonce";
    let status = "/components/schemas/WithdrawalStatus";
    let export = "/paths/~1api~1v2~1networkhistory~1export/get";
    let [one, reference, tag, named, unique, components, ids, parameters, single, file] =
        RULES.map(|(name, _)| name);
    assert_found(one, &format!("{nonce}/type"), json!(["string", "integer"]));
    assert_found(one, "/components/schemas/Signer/oneOf", json!([{ "type": "object" }]));
    let refined = json!({ "$ref": "#/components/schemas/Problem", "properties": {} });
    assert_found(reference, "/components/responses/Away/content/application~1json/schema", refined);
    assert_found(tag, &format!("{nonce}/pattern"), json!("^[0-9]{1,20}$"));
    assert_found(named, "/components/schemas/Chunk/properties/result", json!({ "type": "object" }));
    assert_found(named, &format!("{export}/parameters/2/schema"), json!({ "type": "string", "enum": ["A"] }));
    assert_found(unique, &format!("{status}/x-enum-varnames"), json!(["WITHDRAWAL_STATUS_OPEN"]));
    assert_found(unique, &format!("{status}/x-enum-varnames/1"), json!("ASSET_STATUS_PROPOSED"));
    assert_found(unique, &format!("{status}/x-enum-varnames/1"), json!("Side_Buy"));
    assert_found(components, "/components/schemas/Error", json!({ "type": "object" }));
    assert_found(components, "/components/schemas/toomany", json!({ "type": "object" }));
    assert_found(ids, &format!("{export}/operationId"), json!("export_ledger_entries"));
    assert_found(parameters, &format!("{export}/parameters/0/name"), json!("to_block"));
    assert_found(single, &format!("{export}/responses/200/content/application~1x-ndjson"), json!({}));
    assert_found(file, &format!("{export}/responses/200/content"), json!({ "application/json": {} }));
}
