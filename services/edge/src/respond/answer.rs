//! HTTP answers: status, headers and body of a reply or a problem.

use std::{borrow::Cow, io, mem};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{
    HeaderMap, HeaderName, HeaderValue, StatusCode,
    header::{
        ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
        ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ALLOW, CONTENT_ENCODING, CONTENT_LENGTH,
        CONTENT_TYPE, ETAG, HOST, IF_MATCH, IF_NONE_MATCH, ORIGIN, RETRY_AFTER, VARY, WWW_AUTHENTICATE,
    },
};
use mesh_chassis::list_header::{lines, pieces};
use mesh_problem::{Code, NOT_MAPPED, Problem};
use warp::reply::{Reply as _, Response};

use crate::{
    admission::{ClientContext, head::HttpError},
    ask::answer::Answer,
    config::Config,
    respond::notes::ErrorNumbers,
    trace::{RequestId, X_REQUEST_ID},
};

/// `Retry-After` of a passing failure, seconds.
const RETRY_AFTER_S: HeaderValue = HeaderValue::from_static("1");

/// Headers that a page of another origin may read (J14).
const EXPOSED: HeaderValue = HeaderValue::from_static(
    "ETag, Content-Length, Content-Range, Content-Disposition, Accept-Ranges, Repr-Digest, RateLimit-Limit, \
     RateLimit-Remaining, RateLimit-Reset, Retry-After, X-Block-Height, X-Block-Timestamp, X-Request-Id, X-Total-Rows, \
     X-Ignored, Preference-Applied",
);
const ALLOWED_HEADERS: HeaderValue = HeaderValue::from_static(
    "Accept, Authorization, Cache-Control, Content-Type, If-Match, If-None-Match, If-Range, Last-Event-ID, Pragma, \
     Prefer, Range, X-Api-Key, X-Request-Id, X-Requested-With, traceparent, tracestate",
);

/// A page of a public site asks by these whether it may call a gateway in its visitor's own network.
const REQUEST_PRIVATE_NETWORK: HeaderName = HeaderName::from_static("access-control-request-private-network");
const ALLOW_PRIVATE_NETWORK: HeaderName = HeaderName::from_static("access-control-allow-private-network");

/// Checks `If-Match`, which comes before `If-None-Match` and `Range` (RFC 9110, 13.2.2). It names the tag by
/// the strong comparison (13.1.1): the weak tags of reads and pages match nothing, as they promise no bytes. Reads
/// of a sealed block have strong ones.
///
/// # Errors
/// 412, with the tag of what is there.
pub(crate) fn check_if_match(headers: &HeaderMap, etag: Option<&str>) -> Result<(), HttpError> {
    if !headers.contains_key(IF_MATCH) {
        return Ok(());
    }
    let strong = etag.filter(|etag| !etag.starts_with("W/"));
    let is_match = |tag: &[u8]| tag == b"*" || Some(tag) == strong.map(str::as_bytes);
    if tags(headers, &IF_MATCH).any(is_match) {
        return Ok(());
    }
    let reason = "`If-Match` does not match the current tag";
    let there = etag.map(|etag| format!("the tag is {etag}")).unwrap_or_default();
    let problem = Problem::new(Code::FailedPrecondition, NOT_MAPPED, reason).with_inner(there);
    Err(HttpError::new(StatusCode::PRECONDITION_FAILED, problem))
}

/// The entity tags of a condition, which may have commas.
fn tags<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a [u8]> + use<'a> {
    lines(headers, name).flat_map(|line| pieces(line, b',')).map(<[u8]>::trim_ascii)
}

/// Whether `If-None-Match` names the tag (weak comparison).
pub(crate) fn is_unchanged(headers: &HeaderMap, etag: &str) -> bool {
    tags(headers, &IF_NONE_MATCH).any(|tag| tag == b"*" || opaque(tag) == opaque(etag.as_bytes()))
}

/// An entity tag without its `W/`.
fn opaque(tag: &[u8]) -> &[u8] {
    tag.strip_prefix(b"W/").unwrap_or(tag)
}

/// Headers that [`finish`] sets, for every cached answer to begin with: the map of a response then has room
/// for them.
pub(crate) fn base_headers(config: &Config) -> HeaderMap {
    let mut response = Response::default();
    finish(&mut response, RequestId::of_answer(HeaderValue::from_static("")), config, &HeaderMap::new());
    let mut headers = mem::take(response.headers_mut());
    headers.remove(VARY);
    headers
}

/// The response to one client: 304 when it has the answer already.
///
/// # Errors
/// As [`Answer::parts_for`].
pub(crate) fn respond(
    answer: &Answer,
    client: &ClientContext,
    request: &HeaderMap,
) -> Result<Response, Problem> {
    let etag = answer.tag_for(request);
    let is_unchanged = etag.as_deref().is_some_and(|etag| is_unchanged(request, etag));
    let parts = if is_unchanged { Cow::default() } else { answer.parts_for(client)? };
    let mut response = match &*parts {
        [] => Response::default(),
        [whole] => Response::new(whole.clone().into()),
        parts => {
            warp::reply::stream(stream::iter(parts.to_vec()).map(Ok::<Bytes, io::Error>)).into_response()
        }
    };
    response.headers_mut().clone_from(&answer.headers);
    if let Some(Cow::Owned(etag)) = etag
        && let Ok(etag) = HeaderValue::try_from(etag)
    {
        response.headers_mut().insert(ETAG, etag);
    }
    if is_unchanged {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        for name in [CONTENT_TYPE, CONTENT_LENGTH, CONTENT_ENCODING] {
            response.headers_mut().remove(name);
        }
    }
    Ok(response)
}

/// The answer to a problem, with the status of its code.
pub(crate) fn problem(problem: &Problem, id: &RequestId, config: &Config) -> Response {
    let mut response = refusal(problem.code.status(), problem);
    finish(&mut response, id.clone(), config, &HeaderMap::new());
    response
}

/// The answer to a refused request.
pub(crate) fn error(error: &HttpError, is_indented: bool) -> Response {
    let mut response = refusal(error.status, &error.problem);
    if is_indented {
        *response.body_mut() = error.problem.to_indented_json().into();
    }
    if let Some(methods) = error.allow {
        response.headers_mut().insert(ALLOW, HeaderValue::from_static(methods));
    }
    response
}

/// The answer to a problem, with another status.
pub(crate) fn refusal(status: StatusCode, problem: &Problem) -> Response {
    let mut response = Response::new(problem.to_json().into());
    *response.status_mut() = status;
    response.extensions_mut().insert(ErrorNumbers::of(problem));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
    let is_limited = status == StatusCode::TOO_MANY_REQUESTS;
    if status == StatusCode::UNAUTHORIZED {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    if is_limited || problem.code.is_passing() && status.is_server_error() {
        headers.insert(RETRY_AFTER, problem.retry_after_s.map_or(RETRY_AFTER_S, HeaderValue::from));
    }
    response
}

/// The answer to `OPTIONS` (J14).
pub(crate) fn preflight(methods: &'static str, request: &HeaderMap, config: &Config) -> Response {
    let mut response = Response::default();
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(ALLOW, HeaderValue::from_static(methods));
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(methods));
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, ALLOWED_HEADERS);
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("7200"));
    let is_private = request.get(REQUEST_PRIVATE_NETWORK).is_some_and(|asked| asked == "true");
    if is_private && allowed_origin(config, request).is_some() {
        headers.insert(ALLOW_PRIVATE_NETWORK, HeaderValue::from_static("true"));
    }
    response
}

/// Sets the headers of every answer: the request id and those of CORS.
pub(crate) fn finish(response: &mut Response, id: RequestId, config: &Config, request: &HeaderMap) {
    let headers = response.headers_mut();
    headers.insert(X_REQUEST_ID, id.into_value());
    let is_open = is_open(config);
    // A cached answer has these already: see `base_headers`.
    if !headers.contains_key(ACCESS_CONTROL_EXPOSE_HEADERS) {
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
        if is_open {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
        }
    }
    if is_open {
        return;
    }
    vary(headers, "Origin");
    if let Some(origin) = allowed_origin(config, request) {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    }
}

/// Adds the name of a header to `Vary`. It stays one line: of several, nginx before 1.23 sees only the last.
pub(crate) fn vary(headers: &mut HeaderMap, name: &'static str) {
    let before = headers.get(VARY).map(HeaderValue::as_bytes);
    let all = before.map(|before| [before, b", ", name.as_bytes()].concat());
    let all = all.and_then(|all| HeaderValue::from_maybe_shared(Bytes::from(all)).ok());
    headers.insert(VARY, all.unwrap_or(HeaderValue::from_static(name)));
}

/// Whether the page that asks may read answers: one of the gateway's own host, or of an allowed origin. A client that
/// names no origin is no page.
pub(crate) fn allows_origin(config: &Config, request: &HeaderMap) -> bool {
    let Some(origin) = request.get(ORIGIN) else { return true };
    let host = request.get(HOST).map(HeaderValue::as_bytes);
    let authority =
        origin.to_str().ok().and_then(|origin| origin.split_once("://")).map(|(_, authority)| authority);
    let is_own = host.is_some_and(|host| {
        authority.is_some_and(|authority| authority.as_bytes().eq_ignore_ascii_case(host))
    });
    is_own || allowed_origin(config, request).is_some()
}

/// Whether pages of every origin may read answers.
fn is_open(config: &Config) -> bool {
    config.cors_origins.iter().any(|origin| origin == "*")
}

/// The value of `Access-Control-Allow-Origin`, when the page that asks may read the answer.
fn allowed_origin(config: &Config, request: &HeaderMap) -> Option<HeaderValue> {
    if is_open(config) {
        return Some(HeaderValue::from_static("*"));
    }
    let origin = request.get(ORIGIN)?;
    config.cors_origins.iter().any(|allowed| *origin == allowed).then(|| origin.clone())
}

/// Drops the body of an answer and keeps its length; 304 has that of the answer that the client has.
pub(crate) fn without_body(response: Response) -> Response {
    let (mut head, body) = response.into_parts();
    if !head.headers.contains_key(CONTENT_LENGTH)
        && head.status != StatusCode::NOT_MODIFIED
        && let Some(length) = hyper::body::Body::size_hint(&body).exact()
    {
        head.headers.insert(CONTENT_LENGTH, length.into());
    }
    Response::from_parts(head, Bytes::new().into())
}
