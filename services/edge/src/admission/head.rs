//! Checks of a request's head: its size and the host it names; the refusal of a request over HTTP.

use http::{
    HeaderMap, HeaderValue, Method, Request, StatusCode, Version,
    header::{ACCESS_CONTROL_REQUEST_METHOD, HOST, ORIGIN},
};
use mesh_framing::is_host;
use mesh_problem::{NOT_MAPPED, Problem};

use crate::config::Limits;

/// Why a request over HTTP is refused.
#[derive(Debug)]
pub(crate) struct HttpError {
    pub(crate) status: StatusCode,
    pub(crate) problem: Problem,
    /// The value of `Allow`.
    pub(crate) allow: Option<&'static str>,
}

impl HttpError {
    /// A problem with another status than that of its code.
    pub(crate) fn new(status: StatusCode, problem: Problem) -> Self {
        Self { status, problem, allow: None }
    }
}

impl From<Problem> for HttpError {
    fn from(problem: Problem) -> Self {
        Self::new(problem.code.status(), problem)
    }
}

/// Checks the sizes of the URL (path and query, bytes) and the header block.
///
/// # Errors
/// 414 for the URL, 431 for the headers.
pub(crate) fn check_size(url: usize, headers: &HeaderMap, limits: &Limits) -> Result<(), HttpError> {
    let too_large = |status, what: &str, max: usize| {
        let problem = Problem::invalid(NOT_MAPPED, what).with_inner(format!("at most {max} bytes"));
        Err(HttpError::new(status, problem))
    };
    if url > limits.url_bytes {
        return too_large(StatusCode::URI_TOO_LONG, "the URL is too long", limits.url_bytes);
    }
    // Name, colon, space, value, end of line: the size of the block on the wire.
    let head: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    if head > limits.head_bytes {
        let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        return too_large(status, "the headers are too large", limits.head_bytes);
    }
    Ok(())
}

/// Whether this is a CORS preflight: browsers send one before a request of a page, and cannot avoid it.
pub(crate) fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    method == Method::OPTIONS
        && headers.contains_key(ORIGIN)
        && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// Whether the authority of the target (absolute form, `CONNECT`, `:authority`) and the `Host` of HTTP/2 are
/// hosts with or without a port (RFC 9110, 4.2 and 7.2), and the same one (RFC 9113, 8.3.1). The `Host` of
/// HTTP/1 is checked with its framing, and ignored beside an authority (RFC 9112, 3.2.2).
pub(crate) fn has_valid_host<B>(request: &Request<B>) -> bool {
    let authority = request.uri().authority().map(|authority| authority.as_str());
    if authority.is_some_and(|authority| !is_host(authority.as_bytes())) {
        return false;
    }
    if request.version() < Version::HTTP_2 {
        return true;
    }
    let mut hosts = request.headers().get_all(HOST).iter();
    let port = if request.uri().scheme_str() == Some("https") { 443 } else { 80 };
    let is_valid = |host: &HeaderValue| {
        let host = host.to_str().unwrap_or(" ");
        let is_same = |authority: &str| is_same_host(host, authority, port);
        // An empty one names no other host.
        host.is_empty() || is_host(host.as_bytes()) && authority.is_none_or(is_same)
    };
    hosts.next().is_none_or(is_valid) && hosts.next().is_none()
}

/// Whether two hosts are the same, in letters of either case, without a port or with the scheme's own.
fn is_same_host(one: &str, other: &str, default_port: u16) -> bool {
    let split = |host| -> (&str, u16) {
        match str::rsplit_once(host, ':') {
            // The colon is none of an IPv6 address; a port without digits is the scheme's own.
            Some((name, port)) if !port.ends_with(']') => (name, port.parse().unwrap_or(default_port)),
            _ => (host, default_port),
        }
    };
    let ((one, one_port), (other, other_port)) = (split(one), split(other));
    one.eq_ignore_ascii_case(other) && one_port == other_port
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(version: Version, target: &str, hosts: &[&str]) -> Request<()> {
        let request = Request::builder().version(version).uri(target);
        hosts.iter().fold(request, |request, host| request.header(HOST, *host)).body(()).unwrap()
    }

    #[test]
    fn an_authority_is_a_host_without_user_information() {
        for version in [Version::HTTP_10, Version::HTTP_11, Version::HTTP_2] {
            for target in ["/", "*", "/a@b", "http://x/", "http://x:80/@", "http://[::1]:80", "x:80"] {
                let hosts: &[&str] = if target.contains("[::1]") { &["[::1]"] } else { &["x"] };
                assert!(has_valid_host(&request(version, target, hosts)), "{target}");
            }
            for target in
                ["http://u@x/", "http://u:p@x/", "http://x:99999/", "http://x:80x/", "http://:80/", "u@x:80"]
            {
                assert!(!has_valid_host(&request(version, target, &["x"])), "{target}");
            }
        }
    }

    #[test]
    fn over_http_2_there_is_one_host_at_most() {
        for hosts in [&[][..], &["x"], &["x:80"], &[""]] {
            assert!(has_valid_host(&request(Version::HTTP_2, "http://x/", hosts)), "{hosts:?}");
        }
        for hosts in [&["a b"][..], &["u@x"], &["x", "x"]] {
            assert!(!has_valid_host(&request(Version::HTTP_2, "http://x/", hosts)), "{hosts:?}");
        }
    }

    #[test]
    fn over_http_2_the_host_is_that_of_the_authority() {
        let is_valid = |version, pair: &str| {
            let (target, host) = pair.split_once(' ').unwrap();
            has_valid_host(&request(version, target, &[host]))
        };
        for same in [
            "http://x/ X", "http://x:80/ x", "http://x/ x:080", "http://x:/ x", "https://x/ x:443",
            "http://x:8080/ x:8080", "http://[::1]/ [::1]:80",
        ] {
            assert!(is_valid(Version::HTTP_2, same), "{same}");
        }
        for other in [
            "http://x/ y", "http://x/ x.y", "http://x/ x:8080", "http://x:8080/ x", "https://x/ x:80",
            "http://[::1]/ [::2]", "http://[::1]/ [::1]:81",
        ] {
            assert!(!is_valid(Version::HTTP_2, other), "{other}");
            assert!(is_valid(Version::HTTP_11, other), "the target counts: {other}");
        }
    }
}
