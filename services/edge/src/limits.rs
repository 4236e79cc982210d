//! What a request may be at most, and the refusal of one that is more.

use http::{HeaderMap, StatusCode};
use mesh_problem::{NOT_MAPPED, Problem};

use crate::config::Limits;

/// Most headers of a request. hyper refuses one more by itself.
pub(crate) const HEADERS: u32 = 100;

/// Why a request gets no reply of a service.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) problem: Problem,
    /// The methods that its path has.
    pub(crate) allow: Option<&'static str>,
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Self { status: problem.code.status(), problem, allow: None }
    }
}

/// Checks the sizes of URL (path and query, bytes) and header block.
pub(crate) fn check_head(url: usize, headers: &HeaderMap, limits: &Limits) -> Result<(), Refusal> {
    let too_large = |status, what: &str, at_most: usize| {
        let problem = Problem::invalid(NOT_MAPPED, what).with_inner(format!("at most {at_most} bytes"));
        Err(Refusal { status, problem, allow: None })
    };
    if url > limits.url_bytes {
        return too_large(StatusCode::URI_TOO_LONG, "the URL is too long", limits.url_bytes);
    }
    // Name, colon, space, value, end of line: what the block takes on the wire.
    let head: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    if head > limits.head_bytes {
        let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        return too_large(status, "the headers are too large", limits.head_bytes);
    }
    Ok(())
}
