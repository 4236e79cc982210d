//! The parameters of path and query in the form that the edge accepts: dotted names, lists by repetition.

use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};
use proto_msgs::{Contract, OperationInfo, Segment};

use crate::{
    json::{Json, object},
    notes,
    schema::{Schemas, Usage},
};

/// A parameter of an operation.
#[derive(Debug)]
pub(crate) struct Parameter {
    /// Its name as it is sent, e.g. `pagination.first`.
    pub(crate) name: String,
    pub(crate) field: FieldDescriptor,
    /// Whether it is a part of the path.
    is_in_path: bool,
    /// Application number when it is absent, if it may not be.
    pub(crate) missing: Option<u32>,
    /// Application number when it is malformed, if it has one.
    pub(crate) invalid: Option<u32>,
}

/// The parameters of a GET operation.
pub(crate) fn of(operation: &OperationInfo) -> Vec<Parameter> {
    let mut found = Vec::new();
    leaves(&operation.request, "", None, &mut found);
    for parameter in &mut found {
        parameter.is_in_path = operation.path.contains(&Segment::Field(parameter.field.name().to_owned()));
    }
    found
}

/// Collects the leaf fields of a message; those without an application number inherit that of the field
/// around them.
fn leaves(message: &MessageDescriptor, prefix: &str, inherited: Option<u32>, found: &mut Vec<Parameter>) {
    for field in message.fields() {
        let rule = Contract::get().rule(&field);
        let name = format!("{prefix}{}", field.json_name());
        let invalid = rule.invalid.or(inherited);
        match field.kind() {
            Kind::Message(inner) => leaves(&inner, &format!("{name}."), invalid, found),
            _ => found.push(Parameter { name, field, is_in_path: false, missing: rule.missing, invalid }),
        }
    }
}

impl Parameter {
    /// Its name in errors.
    pub(crate) fn called(&self) -> String {
        Contract::get().rule(&self.field).called.clone().unwrap_or_else(|| format!("`{}`", self.name))
    }

    /// The parameter as JSON of the document.
    pub(crate) fn described(&self, schemas: &mut Schemas) -> Json {
        let schema = schemas.field(&self.field, Usage::Parameter);
        let example = notes::of_field(&self.field).example;
        object! {
            "name" => self.name.as_str(),
            "in" => if self.is_in_path { "path" } else { "query" },
            "description" => schemas.comments.of(&self.field),
        }
        .with_some("required", (self.is_in_path || self.missing.is_some()).then_some(true))
        .with("schema", schema)
        .with_some("example", (!example.is_empty()).then_some(example))
    }
}

/// The parameters that several operations share, as `components.parameters`.
pub(crate) fn shared() -> Json {
    // Without examples, because pages for trying the API would send them.
    let header = |name: &str, description: &str| {
        object! {
            "name" => name, "in" => "header", "description" => description,
            "schema" => object! { "type" => "string" },
        }
    };
    object! {
        "pretty" => object! {
            "name" => "pretty", "in" => "query",
            "description" => "Indents the answer. `?pretty` alone is enough.",
            "schema" => object! { "type" => "boolean" },
        },
        "If-Match" => header(
            "If-Match",
            "The expected `ETag` of the file, or `*`: if the file has another one, the answer is 412.",
        ),
        "Prefer" => header(
            "Prefer",
            "`handling=strict` (RFC 7240): unknown parameters and body fields are rejected, and \
             `inner` suggests similar names; so is a time in seconds, milliseconds or microseconds. \
             Otherwise unknown names are ignored and listed in `X-Ignored`. `wait=S`: if `atBlock` is above the \
             newest block, the answer waits for that block up to S seconds, at most 10.",
        ),
        "If-None-Match" => header(
            "If-None-Match",
            "The `ETag` of an earlier answer: if the answer is still the same, even after new blocks, the response is 304 \
             without a body.",
        ),
        "If-Range" => header(
            "If-Range",
            "The `ETag` of the part that a client has: `Range` applies only if the file is still the same.",
        ),
        "Range" => header(
            "Range",
            "One range of bytes, `bytes=a-b`, `bytes=a-` or `bytes=-n`. For several ranges the whole file is sent.",
        ),
    }
}

/// A reference to a shared parameter.
pub(crate) fn reference(name: &str) -> Json {
    object! { "$ref" => format!("#/components/parameters/{name}") }
}
