//! Requests with the examples of the document.

use mesh_tests::UNKNOWN_ID;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use crate::openapi::document::{Document, Operation, Parameter};

/// Path and query of an operation with its required parameters; `given` are values instead of the document's.
pub(crate) fn example(document: &Document, operation: &Operation<'_>, given: &[(&str, &str)]) -> String {
    let (mut path, mut query) = (operation.path.to_owned(), String::new());
    for parameter in document.parameters(operation).into_iter().filter(|parameter| parameter.is_required) {
        let texts = match given.iter().find(|(name, _)| *name == parameter.name) {
            Some((_, text)) => vec![(*text).to_owned()],
            None => texts(document, parameter),
        };
        for text in texts {
            let text = utf8_percent_encode(&text, NON_ALPHANUMERIC).to_string();
            match parameter.place {
                "path" => path = path.replace(&format!("{{{}}}", parameter.name), &text),
                _ => {
                    query +=
                        &format!("{}{}={text}", if query.is_empty() { '?' } else { '&' }, parameter.name);
                }
            }
        }
    }
    path + &query
}

/// The example of a parameter, the first value of its enum, or an id.
fn texts(document: &Document, parameter: Parameter<'_>) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    match &parameter.json["example"] {
        Value::Array(examples) => return examples.iter().map(text).collect(),
        Value::String(example) => return vec![example.clone()],
        _ => {}
    }
    let schema = &parameter.json["schema"];
    let schema = document.resolve(schema).map_or(schema, |(_, schema)| schema);
    vec![schema.pointer("/enum/0").map_or(UNKNOWN_ID.to_owned(), text)]
}
