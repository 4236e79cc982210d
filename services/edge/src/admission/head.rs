//! Checks of a request's head: its size and the host it names; the refusal of a request over HTTP.

use http::{HeaderMap, Request, StatusCode, Version, header::HOST};
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

impl From<Problem> for HttpError {
    fn from(problem: Problem) -> Self {
        Self { status: problem.code.status(), problem, allow: None }
    }
}

/// Checks the sizes of the URL (path and query, bytes) and the header block.
///
/// # Errors
/// 414 for the URL, 431 for the headers.
pub(crate) fn check_size(url: usize, headers: &HeaderMap, limits: &Limits) -> Result<(), HttpError> {
    let too_large = |status, what: &str, max: usize| {
        let problem = Problem::invalid(NOT_MAPPED, what).with_inner(format!("at most {max} bytes"));
        Err(HttpError { status, problem, allow: None })
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

/// Whether the authority of the target (absolute form, `CONNECT`, `:authority`) and the `Host` of HTTP/2 are
/// hosts with or without a port (RFC 9110, 4.2 and 7.2; RFC 9113, 8.3.1). The `Host` of HTTP/1 is checked
/// with its framing.
pub(crate) fn has_valid_host<B>(request: &Request<B>) -> bool {
    if request.uri().authority().is_some_and(|authority| !is_host(authority.as_str().as_bytes())) {
        return false;
    }
    if request.version() < Version::HTTP_2 {
        return true;
    }
    let mut hosts = request.headers().get_all(HOST).iter();
    let is_valid = hosts.next().is_none_or(|host| host.is_empty() || is_host(host.as_bytes()));
    is_valid && hosts.next().is_none()
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
                assert!(has_valid_host(&request(version, target, &["x"])), "{target}");
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
}
