//! An operation of the contract: its requests and responses.

use proto_msgs::{Method, OperationInfo, Segment, v2::OperationNote};

use crate::{
    examples, headers,
    json::{Json, object},
    notes, parameters,
    refusals::{self, Refusals},
    schema::{Schemas, Usage},
    subject,
};

/// Headers of the response to a read that has a block height (J13).
const AT_HEIGHT: [&str; 4] = ["X-Block-Height", "X-Block-Timestamp", "ETag", "Cache-Control"];
/// Headers of a file whose length is known in advance (X4).
const FILE: [&str; 7] = [
    "Content-Length", "Content-Disposition", "Accept-Ranges", "ETag", "Repr-Digest", "X-Total-Rows",
    "Cache-Control",
];
/// Headers of a file that is generated while it is sent (L7).
const STREAM: [&str; 5] =
    ["Content-Disposition", "Accept-Ranges", "Cache-Control", "X-Block-Height", "X-Block-Timestamp"];

/// The path of an operation in the document, e.g. `/api/v2/oracle/spec/{oracleSpecId}`.
pub(crate) fn path(operation: &OperationInfo) -> String {
    let segments = operation.path.iter().map(|segment| match segment {
        Segment::Fixed(text) => format!("/{text}"),
        Segment::Field(name) => {
            let field = operation.request.get_field_by_name(name);
            format!("/{{{}}}", field.map_or_else(|| name.clone(), |field| field.json_name().to_owned()))
        }
    });
    segments.collect()
}

/// What is said of an operation that can be watched. In words alone: generators of clients take an answer with two media
/// types for the wrong one.
const WATCHABLE: &str =
    "\n\nCan be watched: with `Accept: text/event-stream` each event's `data` is this answer.";

/// The path item of an operation: its methods.
pub(crate) fn path_item(operation: &OperationInfo, schemas: &mut Schemas) -> Json {
    let note = notes::of_operation(&operation.rpc);
    let described = |schemas: &mut Schemas, is_head: bool| {
        let (summary, description) = schemas.comments.titled(&operation.rpc);
        let watchable = if operation.is_watchable() { WATCHABLE } else { "" };
        let (head, of_head) = if is_head { ("Head", ", the headers alone") } else { ("", "") };
        let named = object! {
            "tags" => vec![subject::of(&operation.name)],
            "operationId" => format!("{head}{}", operation.name),
            "summary" => format!("{summary}{of_head}"),
            "description" => format!("{description}{watchable}").trim(),
        };
        named
            // For the page that shows the document.
            .with_some("x-watchable", operation.is_watchable().then_some(true))
            .with_some("parameters", parameters_of(operation, &note, is_head, schemas))
            .with_some("requestBody", request_body(operation, schemas))
            .with("responses", responses(operation, &note, is_head, schemas))
    };
    match (operation.method, &note.file) {
        (Method::Post, _) => object! { "post" => described(schemas, false) },
        (Method::Get, None) => object! { "get" => described(schemas, false) },
        // HEAD is listed for downloads only, where clients use it to learn the length before.
        (Method::Get, Some(_)) => {
            object! { "get" => described(schemas, false), "head" => described(schemas, true) }
        }
    }
}

fn parameters_of(
    operation: &OperationInfo,
    note: &OperationNote,
    is_head: bool,
    schemas: &mut Schemas,
) -> Option<Vec<Json>> {
    let mut listed = match operation.method {
        Method::Get => {
            parameters::of(operation).iter().map(|parameter| parameter.described(schemas)).collect()
        }
        Method::Post => Vec::new(),
    };
    let has_length = note.file.as_ref().is_some_and(|file| file.has_length);
    let shared = [
        ("pretty", note.file.is_none()),
        ("Prefer", true),
        ("If-None-Match", note.at_height || has_length),
        ("If-Match", has_length),
        ("Range", has_length && !is_head),
        ("If-Range", has_length && !is_head),
    ];
    listed.extend(
        shared.into_iter().filter(|(_, is_taken)| *is_taken).map(|(name, _)| parameters::reference(name)),
    );
    (!listed.is_empty()).then_some(listed)
}

fn request_body(operation: &OperationInfo, schemas: &mut Schemas) -> Option<Json> {
    let schema = match operation.method {
        Method::Get => return None,
        Method::Post => schemas.message(&operation.request, Usage::RequestBody),
    };
    let body = object! { "schema" => schema }
        .with_some("examples", examples::named(200, &examples::of(&operation.name).requests));
    Some(object! { "required" => true, "content" => object! { "application/json" => body } })
}

fn responses(operation: &OperationInfo, note: &OperationNote, is_head: bool, schemas: &mut Schemas) -> Json {
    let mut refusals = Refusals::of(operation, note);
    let mut all = match &note.file {
        None => vec![(200, reply(operation, note, schemas))],
        Some(file) => {
            let headers = if file.has_length { &FILE[..] } else { &STREAM[..] };
            let content = object! { file.content_type.as_str() => object! { "schema" => bytes_of(&file.content_type) } };
            let whole = object! {
                "description" => "The whole file. With `Accept: application/x-ndjson` its chunks instead, one JSON object \
                                  on each line, as the schema `Chunk` says.",
                "headers" => headers::of(headers),
                "content" => content.clone(),
            };
            let part = object! {
                "description" => "The part that `Range` asks for.",
                "headers" => headers::of(&[headers, &["Content-Range"]].concat()),
                "content" => content,
            };
            if file.has_length && !is_head {
                refusals.add_range();
                vec![(200, whole), (206, part)]
            } else {
                vec![(200, whole)]
            }
        }
    };
    if note.at_height {
        all.push((304, unchanged(headers::of(&AT_HEIGHT))));
    }
    if note.file.as_ref().is_some_and(|file| file.has_length) {
        all.push((304, unchanged(headers::of(&FILE))));
    }
    all.extend(refusals.responses(&examples::of(&operation.name).answers));
    all.sort_by_key(|(status, _)| *status);
    let mut named = object! {};
    for (status, response) in all {
        let response = if is_head { without_body(status, response) } else { response };
        named.put(&status.to_string(), response);
    }
    named
}

/// The schema of a file. A file of text is text: some generated clients take it for bytes nowhere else.
fn bytes_of(content_type: &str) -> Json {
    let is_text = content_type.starts_with("text/");
    object! { "type" => "string" }.with_some("format", (!is_text).then_some("binary"))
}

/// The response of an operation that succeeds.
fn reply(operation: &OperationInfo, note: &OperationNote, schemas: &mut Schemas) -> Json {
    let headers = match (operation.method, note.at_height) {
        (Method::Get, true) => &AT_HEIGHT[..],
        (Method::Get, false) => &["Cache-Control"],
        (Method::Post, _) => &[],
    };
    let schema = schemas.message(&operation.reply, Usage::Response);
    let body = object! { "schema" => schema }
        .with_some("examples", examples::named(200, &examples::of(&operation.name).answers));
    object! {
        "description" => schemas.comments.of(&operation.reply),
        "headers" => headers::of(headers),
        "content" => object! { "application/json" => body },
    }
}

/// The response 304 to a client that has the current content.
pub(crate) fn unchanged(headers: Json) -> Json {
    object! {
        "description" => "Nothing has changed since the answer with this tag.",
        "headers" => headers,
    }
}

/// The same response to HEAD.
fn without_body(status: u16, response: Json) -> Json {
    match response {
        Json::Object(members) if status < 400 => Json::Object(members).without("content"),
        _ => {
            object! { "description" => "As for GET, without a body.", "headers" => refusals::headers_of(status) }
        }
    }
}
