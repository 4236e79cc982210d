//! From a reply or a problem to an HTTP answer: status, headers, body.

use std::{fmt::Write, sync::Arc};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{
    HeaderMap, HeaderName, HeaderValue, StatusCode,
    header::{
        ACCEPT_ENCODING, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
        ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ALLOW,
        CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, ETAG, IF_NONE_MATCH, ORIGIN,
        RETRY_AFTER, VARY,
    },
};
use mesh_bus::{Head, Reply};
use mesh_problem::Problem;
use sha2::{Digest, Sha256};
use tokio::time::Instant;
use warp::reply::{Reply as _, Response};

use crate::{
    access::Numbers,
    cache::{Answer, Question},
    config::Config,
    metrics::Counted,
};

pub(crate) const X_BLOCK_HEIGHT: HeaderName = HeaderName::from_static("x-block-height");
pub(crate) const X_BLOCK_TIMESTAMP: HeaderName = HeaderName::from_static("x-block-timestamp");
pub(crate) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// When a client may come back after a passing failure, seconds.
const RETRY_AFTER_S: HeaderValue = HeaderValue::from_static("1");

/// J14.
const EXPOSED: HeaderValue = HeaderValue::from_static(
    "ETag, Content-Length, Content-Range, Content-Disposition, Accept-Ranges, Repr-Digest, RateLimit-Limit, \
     RateLimit-Remaining, RateLimit-Reset, Retry-After, X-Block-Height, X-Block-Timestamp, X-Request-Id, X-Total-Rows",
);
const ALLOWED_HEADERS: HeaderValue = HeaderValue::from_static(
    "Accept, Content-Type, If-None-Match, If-Range, Range, X-Request-Id, traceparent, tracestate",
);

/// Id of a request: the client's when it is short and plain, else a new one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestId(HeaderValue);

impl RequestId {
    /// The id of a request with these headers.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let is_plain = |value: &&HeaderValue| {
            (1..=64).contains(&value.len())
                && value
                    .as_bytes()
                    .iter()
                    .all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, b'-' | b'_' | b'.'))
        };
        let given = headers.get(X_REQUEST_ID).filter(is_plain).cloned();
        Self(given.or_else(|| nuid::next().parse().ok()).unwrap_or(HeaderValue::from_static("")))
    }

    /// The id that an answer carries.
    pub(crate) fn sent(value: HeaderValue) -> Self {
        Self(value)
    }

    /// It as text.
    pub(crate) fn as_str(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }

    /// It as a header value.
    pub(crate) fn into_value(self) -> HeaderValue {
        self.0
    }
}

/// A weak entity tag of operation, request and height (J13), and of the content: what is written late changes an
/// answer and not the height. The same for every encoding of the answer.
fn etag(operation: &str, message: &[u8], head: Head, digest: u32) -> String {
    let request = Sha256::new().chain_update(operation).chain_update([0]).chain_update(message).finalize();
    let mut tag = format!("W/\"{}-", head.height);
    for byte in &request[..8] {
        let _ = write!(tag, "{byte:02x}");
    }
    let _ = write!(tag, "-{digest:08x}\"");
    tag
}

/// Whether `If-None-Match` names the tag (weak comparison).
pub(crate) fn is_unchanged(headers: &HeaderMap, etag: &str) -> bool {
    headers
        .get_all(IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|tag| tag.trim() == "*" || opaque(tag) == opaque(etag))
}

/// An entity tag without its mark of weakness.
fn opaque(tag: &str) -> &str {
    let tag = tag.trim();
    tag.strip_prefix("W/").unwrap_or(tag)
}

/// Whether the client takes gzip.
pub(crate) fn takes_gzip(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    let mut any = None;
    for coding in values.flat_map(|value| value.split(',')) {
        let mut parts = coding.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let refused = parts
            .filter_map(|parameter| parameter.strip_prefix("q="))
            .any(|quality| quality.parse::<f32>().is_ok_and(|quality| quality <= 0.0));
        if name.eq_ignore_ascii_case("gzip") {
            return !refused;
        }
        if name == "*" {
            any = Some(!refused);
        }
    }
    any.unwrap_or(false)
}

/// Headers that every kept answer begins with: those that [`finish`] puts into each response, so that it finds their
/// places and need not make room.
pub(crate) fn places(config: &Config) -> HeaderMap {
    let mut response = Response::default();
    finish(&mut response, RequestId(HeaderValue::from_static("")), config, &HeaderMap::new());
    let mut headers = std::mem::take(response.headers_mut());
    headers.remove(VARY);
    headers
}

/// Reads' replies of up to so many bytes are copied once: what comes over the bus is a piece of a buffer of 64 KiB,
/// all of which it would hold for as long as it is kept itself.
const COPIED_BYTES: usize = 32 << 10;

/// Makes an answer of a service's reply.
pub(crate) fn prepare(
    places: &HeaderMap,
    reply: Reply,
    question: &Question,
    is_read: bool,
    asked_at: Instant,
    counted: Arc<Counted>,
) -> Answer {
    let digest = reply.digest.unwrap_or_default();
    let etag = reply.head.map(|head| etag(question.operation, &question.message, head, digest));
    let mut headers = places.clone();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CONTENT_LENGTH, reply.len().into());
    if reply.gzipped {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    headers.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
    if is_read {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    }
    if let Some(head) = reply.head {
        headers.insert(X_BLOCK_HEIGHT, head.height.into());
        headers.insert(X_BLOCK_TIMESTAMP, head.time_ns.into());
    }
    if let Some(etag) = etag.as_deref().and_then(|etag| etag.parse().ok()) {
        headers.insert(ETAG, etag);
    }
    let parts = match is_read && reply.len() <= COPIED_BYTES {
        true => vec![reply.parts.concat().into()],
        false => reply.parts,
    };
    Answer { head: reply.head, etag, headers, parts, asked_at, counted }
}

/// The response to one client: 304 when it has the answer already.
pub(crate) fn respond(answer: &Answer, request: &HeaderMap) -> Response {
    let is_unchanged = answer.etag.as_deref().is_some_and(|etag| is_unchanged(request, etag));
    let mut response = match answer.parts.as_slice() {
        _ if is_unchanged => Response::default(),
        [] => Response::default(),
        [whole] => Response::new(whole.clone().into()),
        parts => {
            warp::reply::stream(stream::iter(parts.to_vec()).map(Ok::<Bytes, std::io::Error>)).into_response()
        }
    };
    response.headers_mut().clone_from(&answer.headers);
    if is_unchanged {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        for of_the_body in [CONTENT_TYPE, CONTENT_LENGTH, CONTENT_ENCODING] {
            response.headers_mut().remove(of_the_body);
        }
    }
    response
}

/// An error answer with the status of its code.
pub(crate) fn problem(problem: &Problem, id: &RequestId, config: &Config) -> Response {
    let mut response = refused(problem.code.status(), problem);
    finish(&mut response, id.clone(), config, &HeaderMap::new());
    response
}

/// An error answer with a status of its own.
pub(crate) fn refused(status: StatusCode, problem: &Problem) -> Response {
    let mut response = Response::new(problem.to_json().into());
    *response.status_mut() = status;
    response.extensions_mut().insert(Numbers::of(problem));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
    let is_too_much = status == StatusCode::TOO_MANY_REQUESTS;
    if is_too_much || problem.code.is_passing() && status.is_server_error() {
        headers.insert(RETRY_AFTER, RETRY_AFTER_S);
    }
    response
}

/// Says which methods a path has.
pub(crate) fn allow(response: &mut Response, methods: &'static str) {
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(methods));
}

/// The answer to `OPTIONS` (J14).
pub(crate) fn preflight(methods: &'static str) -> Response {
    let mut response = Response::default();
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(ALLOW, HeaderValue::from_static(methods));
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(methods));
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, ALLOWED_HEADERS);
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("7200"));
    response
}

/// What every answer carries: its id, and what a browser needs to show it to a page of another origin.
pub(crate) fn finish(response: &mut Response, id: RequestId, config: &Config, request: &HeaderMap) {
    let headers = response.headers_mut();
    headers.insert(X_REQUEST_ID, id.0);
    let is_open = config.cors_origins.iter().any(|origin| origin == "*");
    // A kept answer has these already: see `places`.
    if !headers.contains_key(ACCESS_CONTROL_EXPOSE_HEADERS) {
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
        if is_open {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
        }
    }
    if is_open {
        return;
    }
    headers.append(VARY, HeaderValue::from_static("Origin"));
    let origin =
        request.get(ORIGIN).filter(|origin| config.cors_origins.iter().any(|allowed| *origin == allowed));
    if let Some(origin) = origin {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    }
}

/// Leaves the head of an answer, its length included.
pub(crate) fn without_body(response: Response) -> Response {
    let (mut head, body) = response.into_parts();
    if !head.headers.contains_key(CONTENT_LENGTH)
        && let Some(length) = hyper::body::Body::size_hint(&body).exact()
    {
        head.headers.insert(CONTENT_LENGTH, length.into());
    }
    Response::from_parts(head, Bytes::new().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: HeaderName, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_static(value))])
    }

    #[test]
    fn gzip_is_taken_when_the_client_says_so() {
        for (value, takes) in [
            ("gzip", true),
            ("br, GZIP;q=0.5", true),
            ("*", true),
            ("gzip;q=0", false),
            ("*, gzip;q=0.0", false),
            ("*;q=0", false),
            ("br", false),
            ("", false),
        ] {
            assert_eq!(takes_gzip(&headers(ACCEPT_ENCODING, value)), takes, "{value}");
        }
    }

    #[test]
    fn a_tag_depends_on_operation_request_height_and_content() {
        let head = |height| Head { height, time_ns: 0 };
        let tag = etag("A", b"x", head(1), 7);
        assert_eq!(tag, etag("A", b"x", head(1), 7));
        for other in [
            etag("B", b"x", head(1), 7),
            etag("A", b"y", head(1), 7),
            etag("A", b"x", head(2), 7),
            etag("Ax", b"", head(1), 7),
            etag("A", b"x", head(1), 8),
        ] {
            assert_ne!(tag, other);
        }
        assert!(is_unchanged(&headers(IF_NONE_MATCH, "\"a\", W/\"1-x\""), "W/\"1-x\""));
        assert!(is_unchanged(&headers(IF_NONE_MATCH, "\"1-x\""), "W/\"1-x\""));
        assert!(is_unchanged(&headers(IF_NONE_MATCH, "*"), &tag));
        assert!(!is_unchanged(&headers(IF_NONE_MATCH, "W/\"2-x\""), "W/\"1-x\""));
    }

    #[test]
    fn a_request_id_of_the_client_is_kept_when_it_is_plain() {
        assert_eq!(RequestId::of(&headers(X_REQUEST_ID, "abc-1_2.3")).as_str(), "abc-1_2.3");
        for odd in ["a b", "", "<script>", "a\u{e9}"] {
            let id = RequestId::of(&HeaderMap::from_iter([(
                X_REQUEST_ID,
                HeaderValue::from_bytes(odd.as_bytes()).unwrap(),
            )]));
            assert_ne!(id.as_str(), odd);
            assert!(!id.as_str().is_empty());
        }
    }
}
