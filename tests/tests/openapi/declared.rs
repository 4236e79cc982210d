//! The document declares exactly what the contract has.

use std::collections::{BTreeMap, BTreeSet};

use mesh_oracles::{Leaf, leaves};
use mesh_tests::MeshClient;
use prost_reflect::MessageDescriptor;
use proto_msgs::{Contract, Method, OperationInfo, Segment};
use serde_json::{Value, json};

use crate::openapi::document::{Document, escaped};

/// Operations that the edge answers itself.
const EDGE_OPERATIONS: [(&str, &str); 5] = [
    ("/health", "Health"),
    ("/limits", "Limits"),
    ("/openapi.json", "OpenApi"),
    ("/docs", "Docs"),
    ("/watch", "Watch"),
];

fn path(operation: &OperationInfo) -> String {
    let segments = operation.path.iter().map(|segment| match segment {
        Segment::Fixed(text) => text.clone(),
        Segment::Field(name) => {
            format!("{{{}}}", operation.request.get_field_by_name(name).unwrap().json_name())
        }
    });
    segments.fold(String::new(), |path, segment| format!("{path}/{segment}"))
}

#[tokio::test]
async fn the_document_has_every_operation_of_the_contract_and_nothing_else() {
    let document = Document::fetch(&MeshClient::fixture().await).await;
    let mut expected = BTreeSet::new();
    for row in Contract::get().operations() {
        let method = if row.method == Method::Get { "GET" } else { "POST" };
        expected.insert((method.to_owned(), path(row), row.name.clone()));
        if row.streaming {
            expected.insert(("HEAD".to_owned(), path(row), format!("Head{}", row.name)));
        }
    }
    for (path, id) in EDGE_OPERATIONS {
        expected.insert(("GET".to_owned(), path.to_owned(), id.to_owned()));
    }
    let operations = document.operations();
    let declared: BTreeSet<_> = operations
        .iter()
        .map(|operation| (operation.method.clone(), operation.path.to_owned(), operation.id.to_owned()))
        .collect();
    assert_eq!(declared, expected);
    let watchable = operations.iter().filter(|operation| operation.json["x-watchable"] == true);
    let watchable: BTreeSet<&str> = watchable.map(|operation| operation.id).collect();
    let rows = Contract::get().operations().iter().filter(|row| row.is_watchable());
    assert_eq!(watchable, rows.map(|row| row.name.as_str()).collect(), "the page offers to watch these");
    let ids: BTreeSet<&str> = operations.iter().map(|operation| operation.id).collect();
    assert_eq!(ids.len(), operations.len(), "an id is there twice");
    for operation in &operations {
        for (text, has_stop) in [("summary", false), ("description", true)] {
            let holds = operation.json[text].as_str().is_some_and(|text| text.ends_with('.') == has_stop);
            assert!(holds, "{}: {text}", operation.id);
        }
    }
    // A key is sent in one of two headers, or none.
    assert_eq!(document.json["security"], json!([{}, {"bearer": []}, {"apiKey": []}]));
}

#[tokio::test]
async fn every_parameter_is_a_field_of_the_request_and_every_field_a_parameter() {
    let document = Document::fetch(&MeshClient::fixture().await).await;
    for row in Contract::get().operations().iter().filter(|row| row.method == Method::Get) {
        let is_required = |leaf: Leaf| (leaf.name, Contract::get().rule(&leaf.field).missing.is_some());
        let mut expected: BTreeMap<_, _> = leaves(&row.request).into_iter().map(is_required).collect();
        let operation = document.operation(&row.name);
        let declared =
            document.parameters(&operation).into_iter().filter(|parameter| parameter.place != "header");
        let declared: BTreeMap<String, bool> =
            declared.map(|parameter| (parameter.name.to_owned(), parameter.is_required)).collect();
        if !row.streaming {
            expected.insert("pretty".to_owned(), false);
        }
        assert_eq!(declared, expected, "{}", row.name);
    }
}

#[tokio::test]
async fn every_message_enum_and_number_of_the_contract_that_a_client_meets_is_described() {
    let document = Document::fetch(&MeshClient::fixture().await).await;
    let schemas = document.json["components"]["schemas"].as_object().unwrap();
    for row in Contract::get().operations() {
        let named = |message: &MessageDescriptor| schemas.contains_key(message.name());
        assert!(row.streaming || named(&row.reply), "{}", row.reply.name());
        assert!(row.method == Method::Get || named(&row.request), "{}", row.request.name());
        let body = &document.operation(&row.name).json["responses"]["400"];
        let body = document.resolve(body).map_or(body, |(_, body)| body);
        let numbers = body["x-application-numbers"].as_array().unwrap();
        let numbers: BTreeSet<u64> = numbers.iter().filter_map(Value::as_u64).collect();
        for number in row.request.fields().flat_map(|field| {
            let rule = Contract::get().rule(&field);
            [rule.missing, rule.invalid]
        }) {
            let is_told = number.is_none_or(|number| numbers.contains(&u64::from(number)));
            assert!(is_told, "{}: {number:?} is not among {numbers:?}", row.name);
        }
    }
    let mut bare = Vec::new();
    for (name, schema) in schemas {
        if schema["description"].as_str().is_none_or(str::is_empty) {
            bare.push(name.clone());
        }
        for (field, property) in schema["properties"].as_object().into_iter().flatten() {
            let is_told = property["description"].as_str().is_some_and(|text| !text.is_empty());
            if !is_told {
                bare.push(format!("{name}.{field}"));
            }
        }
    }
    assert!(bare.is_empty(), "without a description: {bare:?}");
}

#[tokio::test]
async fn every_example_is_one() {
    let document = Document::fetch(&MeshClient::fixture().await).await;
    let mut count = 0;
    let mut wrong = Vec::new();
    each_object(&document.json, "", &mut |pointer, object| {
        let examples = object.get("examples").and_then(Value::as_object);
        for (name, example) in examples.into_iter().flatten() {
            count += 1;
            let mismatch = document.mismatch(&format!("{pointer}/schema"), &example["value"]);
            wrong.extend(mismatch.map(|mismatch| format!("{pointer} {name}: {mismatch}")));
        }
        let of_schema = object.get("examples").and_then(Value::as_array);
        for example in of_schema.into_iter().flatten() {
            count += 1;
            let mismatch = document.mismatch(pointer, example);
            wrong.extend(mismatch.map(|mismatch| format!("{pointer}: {mismatch}")));
        }
        // Examples of headers and parameters are text, independently of their type.
        if let (Some(Value::String(example)), true) = (object.get("example"), object.contains_key("in")) {
            count += 1;
            let mismatch = document.mismatch(&format!("{pointer}/schema"), &Value::from(example.as_str()));
            wrong.extend(mismatch.map(|mismatch| format!("{pointer}: {mismatch}")));
        }
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 30, "only {count} examples were looked at");
}

/// Every object of the document with its JSON pointer.
fn each_object(value: &Value, pointer: &str, visit: &mut impl FnMut(&str, &serde_json::Map<String, Value>)) {
    match value {
        Value::Array(list) => {
            for (at, value) in list.iter().enumerate() {
                each_object(value, &format!("{pointer}/{at}"), visit);
            }
        }
        Value::Object(members) => {
            visit(pointer, members);
            for (name, value) in members {
                each_object(value, &format!("{pointer}/{}", escaped(name)), visit);
            }
        }
        _ => {}
    }
}
