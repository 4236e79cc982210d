//! The OpenAPI 3.1 document of the API, made from the contract: operations, parameters, schemas, errors and
//! examples from the descriptors, descriptions from the comments. The pages of the edge are described here.

mod comments;
mod edge;
#[cfg(test)]
mod error_table;
mod example;
mod examples;
#[cfg(test)]
mod generators;
mod headers;
mod json;
mod notes;
mod operation;
mod parameters;
mod refusals;
mod schema;
mod subject;
mod watch;

use proto_msgs::Contract;
use serde::Serialize;

use crate::{
    comments::Comments,
    json::{Json, object},
    schema::{Schemas, Usage},
};

/// The document. Serializes as its JSON, members in an order that suits readers.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct Document(Json);

impl Document {
    /// The document of the contract of this build.
    pub fn of_contract() -> Self {
        let contract = Contract::get();
        let mut schemas = Schemas::new(Comments::read(contract.pool()));
        let mut paths = object! {};
        let mut operations: Vec<_> = contract.operations().iter().collect();
        operations.sort_by_key(|operation| subject::place(&operation.name));
        for operation in operations {
            paths.put(&operation::path(operation), operation::path_item(operation, &mut schemas));
        }
        for (path, item) in edge::path_items(&mut schemas) {
            paths.put(path, item);
        }
        paths.put(watch::PATH, watch::path_item());
        name_others(&mut schemas);
        Self(object! {
            "openapi" => "3.1.0",
            "info" => object! {
                "title" => "Tradewind",
                "summary" => "The public gateway of a trading network",
                "description" => include_str!("introduction.md"),
                "version" => env!("CARGO_PKG_VERSION"),
                "license" => object! { "name" => "MIT OR Apache-2.0", "identifier" => env!("CARGO_PKG_LICENSE") },
            },
            // Relative to the server, as OpenAPI 3.1 resolves it.
            "externalDocs" => object! { "url" => "guide/", "description" => "The guide: tasks, errors, columns, operation" },
            "servers" => vec![object! { "url" => "/", "description" => "This gateway" }],
            // A key, in one of two headers, or none where this gateway needs none.
            "security" => vec![
                object! {},
                object! { "bearer" => Vec::<Json>::new() },
                object! { "apiKey" => Vec::<Json>::new() },
            ],
            "tags" => subject::tags(),
            "paths" => paths,
            "components" => object! {
                "schemas" => schemas.into_named(),
                "responses" => refusals::shared(),
                "parameters" => parameters::shared(),
                "headers" => headers::shared(),
                "securitySchemes" => object! {
                    "bearer" => object! {
                        "type" => "http", "scheme" => "bearer",
                        "description" => "A key from the operator of this gateway: `Authorization: Bearer <key>`.",
                    },
                    "apiKey" => object! {
                        "type" => "apiKey", "in" => "header", "name" => "X-Api-Key",
                        "description" => "The same key in a header of its own; not together with `Authorization: Bearer`.",
                    },
                },
            },
        })
    }
}

/// Names the schemas that are not messages of operations: errors, and the chunks of a download.
fn name_others(schemas: &mut Schemas) {
    for name in ["ErrorDetail", "ExportInfo"] {
        let kind = format!("type.googleapis.com/api.v2.{name}");
        let kind = object! { "type" => "string", "const" => kind, "description" => "Which object this is." };
        let Some(message) = schema::described(name) else { continue };
        let mut described = schemas.message_itself(&message, Usage::Response);
        described.prepend("properties", "@type", kind);
        described.require("@type");
        schemas.name(name, described);
    }
    schemas.name("Problem", object! {
        "description" => "What is wrong. Every refusal has this shape.",
        "type" => "object",
        "properties" => object! {
            "code" => object! {
                "type" => "integer", "format" => "int32",
                "description" => "Canonical RPC status code: 3 invalid argument, 4 deadline exceeded, 5 not found, 6 already \
                                  exists, 8 resource exhausted, 9 failed precondition, 12 unimplemented, 13 internal, 14 \
                                  unavailable, 16 unauthenticated.",
            },
            "message" => text("The name of the code and the word `error`; `details` has the reason."),
            "details" => object! {
                "type" => "array", "minItems" => 1_u32, "items" => schema::reference("ErrorDetail"),
                "description" => "The reasons. Several when several fields of one transaction are wrong.",
            },
        },
        "required" => vec!["code", "message", "details"],
    });
    name_chunk(schemas);
}

/// Names the lines of a download as JSON lines. No answer refers to them, because an answer in two media types makes
/// generated clients ask for the wrong one; the description of downloads does.
fn name_chunk(schemas: &mut Schemas) {
    schemas.name(
        "ChunkResult",
        object! {
            "description" => "Some bytes of a file.",
            "type" => "object",
            "properties" => object! {
                "contentType" => text("Media type of the file."),
                "data" => text("Bytes of the file.").with("contentEncoding", "base64"),
                "extensions" => object! {
                    "type" => "array", "items" => schema::reference("ExportInfo"),
                    "description" => "What the file is, in the first chunk; empty in every later one.",
                },
            },
            "required" => vec!["contentType", "data", "extensions"],
        },
    );
    let described = |name: &str, description: &str| schema::reference(name).with("description", description);
    schemas.name("Chunk", object! {
        "description" => "One line of a download as JSON lines (`Accept: application/x-ndjson`).",
        "type" => "object",
        "properties" => object! {
            "result" => described("ChunkResult", "The next bytes of the file."),
            "error" => described("Problem", "Why the download broke off, in its last line."),
        },
        "minProperties" => 1_u32,
        "maxProperties" => 1_u32,
        "examples" => examples::of("ExportNetworkHistory").answers.iter().filter(|line| line.status == 200)
            .map(|line| Json::Raw(line.body.clone())).collect::<Vec<_>>(),
    });
}

fn text(description: &str) -> Json {
    object! { "type" => "string", "description" => description }
}
