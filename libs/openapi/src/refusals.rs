//! The errors of an operation: every HTTP status that it can have, with its application numbers.

use std::collections::BTreeMap;

use mesh_problem::{
    ABOVE_HEAD, BELOW_FIRST, Code, MALFORMED, NOT_MAPPED, OTHER_CHAIN, RATE_LIMITED, UNAUTHENTICATED,
};
use proto_msgs::{Method, OperationInfo, v2::OperationNote};

use crate::{
    example::Example,
    examples, headers,
    json::{Json, object},
    parameters, schema,
};

/// Status, code, number, condition, and the response's name in the document.
type Row = (u16, Code, u32, &'static str, &'static str);

/// Errors of every operation. A body is read even by operations that take none.
static EVERYWHERE: [Row; 11] = [
    (
        400,
        Code::InvalidArgument,
        MALFORMED,
        "the request is malformed, a parameter is given twice, or, with `Prefer: handling=strict`, a name is unknown",
        "Malformed",
    ),
    (
        401,
        Code::Unauthenticated,
        UNAUTHENTICATED,
        "the key is unknown or has expired, or none was sent and this gateway needs one",
        "NoKey",
    ),
    (
        408,
        Code::DeadlineExceeded,
        NOT_MAPPED,
        "the body of the request did not arrive in time",
        "BodyTooLate",
    ),
    (413, Code::ResourceExhausted, NOT_MAPPED, "the body is too large", "BodyTooLarge"),
    (414, Code::InvalidArgument, NOT_MAPPED, "path and query are too long", "UrlTooLong"),
    (429, Code::ResourceExhausted, RATE_LIMITED, "too many requests come from one client", "TooMany"),
    (
        429,
        Code::ResourceExhausted,
        NOT_MAPPED,
        "a limit is reached: downloads, watches or submissions at the same time",
        "TooMany",
    ),
    (431, Code::InvalidArgument, NOT_MAPPED, "the headers are too large", "HeadersTooLarge"),
    (
        500,
        Code::Internal,
        NOT_MAPPED,
        "a bug of the server; its log has the details under `X-Request-Id`",
        "Failed",
    ),
    (
        503,
        Code::Unavailable,
        NOT_MAPPED,
        "no replica answers, the database is unavailable, or all replicas are busy",
        "Away",
    ),
    (504, Code::DeadlineExceeded, NOT_MAPPED, "a service or the database did not answer in time", "Late"),
];

/// Errors of every operation that takes a body.
static OF_POSTS: [Row; 1] = [(
    415,
    Code::InvalidArgument,
    NOT_MAPPED,
    "the media type is gRPC-Web, or gRPC with another codec than protobuf or over HTTP/1.1; on every path",
    "NotSpoken",
)];

/// Errors of every read and page.
static OF_READS: [Row; 1] = [(
    412,
    Code::FailedPrecondition,
    NOT_MAPPED,
    "`If-Match` does not match the current tag; the weak tags of reads never match",
    "NotMatched",
)];

/// Errors of every read that can be had as of a block, besides those of the height's form.
static OF_THE_PAST: [Row; 3] = [
    (
        400,
        Code::InvalidArgument,
        BELOW_FIRST,
        "`atBlock` is below the first stored block, which `inner` names",
        "BelowFirst",
    ),
    (400, Code::InvalidArgument, OTHER_CHAIN, "`chainId` is not the id of this chain", "OtherChain"),
    (
        404,
        Code::NotFound,
        ABOVE_HEAD,
        "`atBlock` is above the newest block, which `inner` names; `Prefer: wait=S` waits for it up to 10 s",
        "AboveHead",
    ),
];

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Refusal {
    code: Code,
    number: u32,
    when: String,
}

/// Refusals by HTTP status.
#[derive(Debug, Default)]
pub(crate) struct Refusals(BTreeMap<u16, Vec<Refusal>>);

impl Refusals {
    /// The errors of an operation.
    pub(crate) fn of(operation: &OperationInfo, note: &OperationNote) -> Self {
        let mut refusals = Self::default();
        if operation.method == Method::Get {
            refusals.add_parameters(operation);
            refusals.add_everywhere(&OF_READS);
        } else {
            refusals.add_everywhere(&OF_POSTS);
        }
        if operation.has_past() {
            refusals.add_everywhere(&OF_THE_PAST);
        }
        for refusal in &note.refusals {
            let code = Code::from_number(u8::try_from(refusal.code).unwrap_or_default());
            refusals.add(code.status().as_u16(), code, refusal.number, &refusal.when);
        }
        refusals.add_everywhere(&EVERYWHERE);
        refusals
    }

    /// The errors of a page that the edge answers by itself. `is_limited`: whether it counts against the rate.
    pub(crate) fn of_page(is_limited: bool) -> Self {
        let mut refusals = Self::default();
        let is_of_page = |status| matches!(status, 401 | 408 | 414 | 431) || is_limited && status == 429;
        refusals.add_everywhere(EVERYWHERE.iter().filter(|row| is_of_page(row.0)));
        refusals.add_everywhere(&OF_READS);
        refusals
    }

    /// Adds the error of a range outside the file (X4a).
    pub(crate) fn add_range(&mut self) {
        self.add(416, Code::InvalidArgument, NOT_MAPPED, "the file has no such bytes");
    }

    /// Adds the error of a path that there is not, which a parameter names.
    pub(crate) fn add_not_found(&mut self) {
        self.add(404, Code::NotFound, NOT_MAPPED, "the path does not exist");
    }

    /// Adds those of another operation.
    pub(crate) fn merge(&mut self, other: Self) {
        for (status, refusals) in other.0 {
            for Refusal { code, number, when } in refusals {
                self.add(status, code, number, &when);
            }
        }
    }

    /// Adds the error of a malformed parameter that every operation has.
    pub(crate) fn add_malformed(&mut self) {
        self.add_everywhere(&EVERYWHERE[..1]);
    }

    fn add_parameters(&mut self, operation: &OperationInfo) {
        let parameters = parameters::of(operation);
        for parameter in &parameters {
            if let Some(number) = parameter.missing {
                self.add(400, Code::InvalidArgument, number, &format!("{} is missing", parameter.called()));
            }
        }
        // Several parameters may share a number: one line names them all.
        let mut malformed: BTreeMap<u32, Vec<String>> = BTreeMap::new();
        for parameter in &parameters {
            if let Some(number) = parameter.invalid {
                malformed.entry(number).or_default().push(parameter.called());
            }
        }
        for (number, called) in malformed {
            self.add(400, Code::InvalidArgument, number, &format!("{} cannot be used", called.join(" or ")));
        }
    }

    fn add_everywhere(&mut self, rows: impl IntoIterator<Item = &'static Row>) {
        for (status, code, number, when, _) in rows {
            self.add(*status, *code, *number, when);
        }
    }

    fn add(&mut self, status: u16, code: Code, number: u32, when: &str) {
        let refusals = self.0.entry(status).or_default();
        let refusal = Refusal { code, number, when: when.to_owned() };
        if !refusals.contains(&refusal) {
            refusals.push(refusal);
        }
    }

    /// Status, code, number and condition of all errors.
    #[cfg(test)]
    pub(crate) fn all(&self) -> impl Iterator<Item = (u16, Code, u32, &str)> {
        self.0.iter().flat_map(|(&status, refusals)| {
            refusals.iter().map(move |refusal| (status, refusal.code, refusal.number, refusal.when.as_str()))
        })
    }

    /// The responses of an operation that are refusals, by status.
    pub(crate) fn responses(&self, examples: &[Example]) -> Vec<(u16, Json)> {
        let response = |(status, refusals): (&u16, &Vec<Refusal>)| {
            let response = match shared_name(*status, refusals) {
                Some(name) => object! { "$ref" => format!("#/components/responses/{name}") },
                None => described(*status, refusals, examples),
            };
            (*status, response)
        };
        self.0.iter().map(response).collect()
    }
}

/// The responses that operations share, as `components.responses`.
pub(crate) fn shared() -> Json {
    let mut named = object! {};
    let mut refusals = Refusals::default();
    refusals.add_everywhere(EVERYWHERE.iter().chain(&OF_READS).chain(&OF_POSTS));
    for (status, refusals) in &refusals.0 {
        if let Some(name) = shared_name(*status, refusals) {
            named.put(name, described(*status, refusals, &[]));
        }
    }
    named
}

/// The name of a response that is the same for all operations.
fn shared_name(status: u16, refusals: &[Refusal]) -> Option<&'static str> {
    let rows = EVERYWHERE.iter().chain(&OF_READS).chain(&OF_POSTS);
    let rows: Vec<_> = rows.filter(|row| row.0 == status).collect();
    let is_same = rows.len() == refusals.len()
        && rows.iter().all(|row| refusals.iter().any(|own| (own.code, own.number) == (row.1, row.2)));
    if is_same { rows.first().map(|row| row.4) } else { None }
}

/// A response that is a refusal.
fn described(status: u16, refusals: &[Refusal], examples: &[Example]) -> Json {
    let heading = match status {
        400 => "The request must be changed.",
        401 => "Send a key that is in force.",
        404 => "Not found.",
        408 => "The request arrived too slowly.",
        409 => "It already exists.",
        412 => "A precondition failed.",
        413 | 414 | 431 => "The request is too large.",
        415 => "The media type is not supported.",
        416 => "The range is outside of the file.",
        429 => "Too many requests: wait and try again.",
        501 => "Switched off at this gateway.",
        503 => "Temporarily unavailable: try again soon.",
        504 => "No answer in time: try again.",
        _ => "A bug of the server.",
    };
    let (mut codes, mut numbers) = (Vec::new(), Vec::new());
    let mut description = heading.to_owned();
    description.push('\n');
    for Refusal { code, number, when } in refusals {
        description.push_str(&format!("\n- `{number}`: {when}"));
        push_new(&mut codes, u32::from(code.number()));
        push_new(&mut numbers, *number);
    }
    let schema = schema::reference("Problem");
    let body = object! { "schema" => schema }.with_some("examples", examples::named(status, examples));
    object! {
        "description" => description,
        // Beside the schema and not within it, because a reference with more members is one that generators refuse.
        "x-rpc-codes" => codes,
        "x-application-numbers" => numbers,
        "headers" => headers_of(status),
        "content" => object! { "application/json" => body },
    }
}

/// The headers of a response that is a refusal.
pub(crate) fn headers_of(status: u16) -> Json {
    headers::of_error(match status {
        401 => &["WWW-Authenticate"],
        416 => &["Content-Range"],
        429 => &["RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset", "Retry-After"],
        503 | 504 => &["Retry-After"],
        _ => &[],
    })
}

fn push_new(numbers: &mut Vec<u32>, number: u32) {
    if !numbers.contains(&number) {
        numbers.push(number);
    }
}
