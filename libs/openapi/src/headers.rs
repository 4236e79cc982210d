//! The headers of responses.

use crate::json::{Json, object};

/// Name, type and description of each header in `components.headers`.
const ALL: [(&str, &str, &str); 19] = [
    ("Accept-Ranges", "string", "`bytes` when parts can be had, else `none`."),
    ("Allow", "string", "The methods that the path has."),
    (
        "Cache-Control",
        "string",
        "How long the answer may be cached. `no-cache`: revalidate it by its tag before each use. A final answer as of a block: `public, max-age=3600`, or a year and `immutable` if the request names the chain. Errors: `no-store`.",
    ),
    ("Content-Disposition", "string", "The name under which to save the file."),
    ("Content-Length", "string", "Length of the body, bytes."),
    (
        "Content-Range",
        "string",
        "The range of bytes and the length of the file: `bytes 0-99/1234`, or `bytes */1234` without a range.",
    ),
    (
        "ETag",
        "string",
        "Tag of the content, for `If-None-Match`. A strong one (without `W/`) names the very bytes, for `If-Range` and `If-Match`.",
    ),
    (
        "Preference-Applied",
        "string",
        "`handling=strict` when the request asked for that by `Prefer`; `wait=S` when it waited for its block.",
    ),
    ("RateLimit-Limit", "string", "Requests that may come at once."),
    ("RateLimit-Remaining", "string", "Requests that are still allowed now."),
    ("RateLimit-Reset", "string", "Seconds until the full burst is allowed again."),
    (
        "Repr-Digest",
        "string",
        "CRC-32C of the whole file (RFC 9530), its four bytes in base64: `crc32c=:AQIDBA==:`. Detects a broken transfer, not an attack.",
    ),
    ("Retry-After", "integer", "Seconds to wait before a retry."),
    ("WWW-Authenticate", "string", "`Bearer`: send a key as `Authorization: Bearer <key>`."),
    (
        "X-Block-Height",
        "string",
        "Height of the newest block in the store when this was read, or of `atBlock`. Absent while the store has none.",
    ),
    ("X-Block-Timestamp", "string", "Time of that block, nanoseconds since the Unix epoch."),
    (
        "X-Ignored",
        "string",
        "Names of parameters, or paths of body fields, that the operation does not know and that were ignored: at most 10, separated by commas, each percent-encoded and cut after 64 characters.",
    ),
    (
        "X-Request-Id",
        "string",
        "Id of the request, to look for in logs: the client's own, when it sent a short plain one.",
    ),
    ("X-Total-Rows", "string", "Rows in the whole file, header lines not counted."),
];

/// `components.headers`.
pub(crate) fn shared() -> Json {
    let header = |(name, kind, meaning): &(&str, &str, &str)| {
        let schema = object! { "type" => *kind };
        ((*name).to_owned(), object! { "description" => *meaning, "schema" => schema })
    };
    Json::Object(ALL.iter().map(header).collect())
}

/// The headers of a response of an operation: these, and those of every response.
pub(crate) fn of(names: &[&str]) -> Json {
    references(names.iter().chain(&["X-Request-Id", "X-Ignored", "Preference-Applied"]))
}

/// The headers of an error: these, and those of every error.
pub(crate) fn of_error(names: &[&str]) -> Json {
    of(&[names, &["Cache-Control"]].concat())
}

/// The headers of a page that the edge answers by itself: these, and those of every page.
pub(crate) fn of_page(names: &[&str]) -> Json {
    references(names.iter().chain(&["X-Request-Id"]))
}

fn references<'a>(names: impl Iterator<Item = &'a &'a str>) -> Json {
    let reference = |name: &'a &'a str| {
        ((*name).to_owned(), object! { "$ref" => format!("#/components/headers/{name}") })
    };
    Json::Object(names.map(reference).collect())
}
