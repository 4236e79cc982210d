//! The OpenAPI document as a client reads it: its operations, and whether an answer conforms to it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use jsonschema::Validator;
use mesh_testbed::Answer;
use mesh_tests::MeshClient;
use serde_json::{Value, json};

/// The document of a running gateway.
pub(crate) struct Document {
    pub(crate) json: Value,
    /// The same with `additionalProperties: false` in every object: answers must have no undocumented
    /// members.
    closed: Value,
    validators: Mutex<HashMap<String, Arc<Validator>>>,
}

pub(crate) struct Operation<'a> {
    /// In upper case.
    pub(crate) method: String,
    pub(crate) path: &'a str,
    pub(crate) id: &'a str,
    pub(crate) json: &'a Value,
    pointer: String,
}

#[derive(Clone, Copy)]
pub(crate) struct Parameter<'a> {
    pub(crate) name: &'a str,
    /// `path`, `query` or `header`.
    pub(crate) place: &'a str,
    pub(crate) is_required: bool,
    pub(crate) json: &'a Value,
}

impl Operation<'_> {
    /// Whether it is answered by a stream of events, which does not end.
    pub(crate) fn is_stream(&self) -> bool {
        self.json.pointer("/responses/200/content/text~1event-stream").is_some()
    }
}

impl Document {
    pub(crate) async fn fetch(mesh_client: &MeshClient) -> Self {
        let answer = mesh_client.get("/openapi.json").await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let json = answer.json();
        let mut closed = json.clone();
        close(&mut closed);
        Self { json, closed, validators: Mutex::default() }
    }

    /// All operations, in the order of the document.
    pub(crate) fn operations(&self) -> Vec<Operation<'_>> {
        let mut operations = Vec::new();
        for (path, item) in self.json["paths"].as_object().unwrap() {
            for (method, json) in item.as_object().unwrap() {
                let pointer = format!("/paths/{}/{method}", escaped(path));
                let id = json["operationId"].as_str().unwrap();
                operations.push(Operation { method: method.to_uppercase(), path, id, json, pointer });
            }
        }
        operations
    }

    pub(crate) fn operation(&self, id: &str) -> Operation<'_> {
        let found = self.operations().into_iter().find(|operation| operation.id == id);
        found.unwrap_or_else(|| panic!("the document has no {id}"))
    }

    pub(crate) fn parameters<'a>(&'a self, operation: &Operation<'a>) -> Vec<Parameter<'a>> {
        let listed = operation.json["parameters"].as_array().into_iter().flatten();
        let read = |parameter: &'a Value| {
            let json = self.resolve(parameter).map_or(parameter, |(_, json)| json);
            let text = |name: &str| json[name].as_str().unwrap();
            let is_required = json["required"] == true;
            Parameter { name: text("name"), place: text("in"), is_required, json }
        };
        listed.map(read).collect()
    }

    /// Differences of an answer from the document.
    pub(crate) fn complaint(&self, operation: &Operation<'_>, answer: &Answer) -> Option<String> {
        let pointer = format!("{}/responses/{}", operation.pointer, answer.status);
        let Some(response) = self.json.pointer(&pointer) else {
            return Some(format!("the status {} is not listed", answer.status));
        };
        let (pointer, response) = self.resolve(response).unwrap_or((pointer, response));
        let shared = self.json["components"]["headers"].as_object().unwrap();
        if let Some(name) = shared
            .keys()
            .find(|name| answer.header(name).is_some() && response["headers"].get(name).is_none())
            .filter(|name| *name != "Content-Length")
        {
            return Some(format!("the header {name} is not listed for {}", answer.status));
        }
        let Some(content) = response["content"].as_object() else {
            return (!answer.body.is_empty()).then(|| "there is a body".to_owned());
        };
        let media_type = answer.header("content-type").unwrap_or_default().split(';').next().unwrap();
        // Chunks of a download are described in words, and as a schema.
        if media_type == "application/x-ndjson" && response["headers"].get("Content-Disposition").is_some() {
            let mut lines = answer.text().lines();
            return lines.find_map(|line| {
                self.mismatch("/components/schemas/Chunk", &serde_json::from_str(line).unwrap())
            });
        }
        if !content.contains_key(media_type) {
            return Some(format!("the media type {media_type} is not listed"));
        }
        if media_type != "application/json" {
            return None;
        }
        let schema = format!("{pointer}/content/{}/schema", escaped(media_type));
        self.mismatch(&schema, &answer.json()).or_else(|| unlisted_number(response, answer))
    }

    /// Why a value does not conform to the schema at this JSON pointer, if it does not.
    pub(crate) fn mismatch(&self, pointer: &str, value: &Value) -> Option<String> {
        let validator =
            Arc::clone(self.validators.lock().unwrap().entry(pointer.to_owned()).or_insert_with(|| {
                let mut schema = self.closed.clone();
                schema["$ref"] = json!(format!("#{}", pointer.replace('{', "%7B").replace('}', "%7D")));
                let validator = jsonschema::draft202012::new(&schema);
                Arc::new(validator.unwrap_or_else(|error| panic!("{pointer}: {error}")))
            }));
        let wrong: Vec<String> = validator
            .iter_errors(value)
            .map(|error| format!("{} at {:?}", error, error.instance_path().to_string()))
            .collect();
        (!wrong.is_empty()).then(|| wrong.join("; "))
    }

    /// The value that a reference points to, and its JSON pointer.
    pub(crate) fn resolve(&self, value: &Value) -> Option<(String, &Value)> {
        let pointer = value["$ref"].as_str()?.strip_prefix('#')?;
        Some((pointer.to_owned(), self.json.pointer(pointer)?))
    }
}

/// A code or an application number of a refusal that the response does not list.
fn unlisted_number(response: &Value, answer: &Answer) -> Option<String> {
    let lists = |listed: &str, number: &Value| response[listed].as_array().unwrap().contains(number);
    if answer.status < 400 {
        return None;
    }
    let problem = answer.json();
    if !lists("x-rpc-codes", &problem["code"]) {
        return Some(format!("the code {} is not listed", problem["code"]));
    }
    let details = problem["details"].as_array().unwrap();
    let unlisted = details.iter().find(|detail| !lists("x-application-numbers", &detail["code"]))?;
    Some(format!("the number {} is not listed", unlisted["code"]))
}

/// Escapes a member's name for a JSON pointer.
pub(crate) fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Forbids members that a schema does not declare, in all its objects.
fn close(schema: &mut Value) {
    match schema {
        Value::Array(list) => list.iter_mut().for_each(close),
        Value::Object(members) => {
            members.values_mut().for_each(close);
            if members.get("type").is_some_and(|kind| kind == "object") && members.contains_key("properties")
            {
                members.insert("additionalProperties".to_owned(), json!(false));
            }
        }
        _ => {}
    }
}
