//! The error type of the mesh and its forms: gRPC code, HTTP status, JSON body (contract section 2).
//!
//! The text of a [`Problem`] is for the client. SQL, host names and texts of drivers, which are for operators
//! only, belong in the log or in [`Problem::cause`], which is never sent to clients.

mod chain;

use std::fmt;

pub use chain::{error_chain, sources};
use http::StatusCode;
use serde::{Deserialize, Serialize};

/// `@type` of every detail object.
const DETAIL_TYPE: &str = "type.googleapis.com/api.v2.ErrorDetail";

/// The application number of errors without one of their own: unknown path, no responder, oversized body.
pub const NOT_MAPPED: u32 = 10000;
/// The application number of a malformed request without a specific number.
pub const MALFORMED: u32 = 10015;
/// The application number of a read as of a block that is not stored yet.
pub const ABOVE_HEAD: u32 = 10045;
/// The application number of a read as of a block before the first stored one.
pub const BELOW_FIRST: u32 = 10046;
/// The application number of a request whose key is unknown, expired or missing.
pub const UNAUTHENTICATED: u32 = 10047;
/// The application number of a read that names another chain.
pub const OTHER_CHAIN: u32 = 10048;
/// The application number of a request refused by the rate limit of its client's address.
pub const RATE_LIMITED: u32 = 400_001;

/// Canonical RPC status codes that the mesh uses, with their gRPC numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Code {
    /// The client disconnected; appears in logs only.
    Canceled = 1,
    /// Not sent deliberately.
    Unknown = 2,
    /// Missing or malformed parameter. The client must change its request.
    InvalidArgument = 3,
    /// No answer in time. The client may retry.
    DeadlineExceeded = 4,
    /// The requested object does not exist.
    NotFound = 5,
    /// The object exists already.
    AlreadyExists = 6,
    /// A server behind the gateway does not allow it.
    PermissionDenied = 7,
    /// A limit was reached. The client should slow down.
    ResourceExhausted = 8,
    /// The request does not fit the state, for example an unpaged listing over its cap.
    FailedPrecondition = 9,
    /// Disabled on this gateway, or no such method.
    Unimplemented = 12,
    /// A bug, or damaged data.
    Internal = 13,
    /// A dependency is unavailable. The client should retry soon.
    Unavailable = 14,
    /// The client has sent no key that is in force.
    Unauthenticated = 16,
}

impl Code {
    /// The gRPC number.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// The code of a gRPC number; numbers that the mesh does not use are [`Code::Unknown`].
    pub fn from_number(number: u8) -> Self {
        match number {
            1 => Self::Canceled,
            3 => Self::InvalidArgument,
            4 => Self::DeadlineExceeded,
            5 => Self::NotFound,
            6 => Self::AlreadyExists,
            7 => Self::PermissionDenied,
            8 => Self::ResourceExhausted,
            9 => Self::FailedPrecondition,
            12 => Self::Unimplemented,
            13 => Self::Internal,
            14 => Self::Unavailable,
            16 => Self::Unauthenticated,
            _ => Self::Unknown,
        }
    }

    /// The name, as in `"InvalidArgument error"`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Canceled => "Canceled",
            Self::Unknown => "Unknown",
            Self::InvalidArgument => "InvalidArgument",
            Self::DeadlineExceeded => "DeadlineExceeded",
            Self::NotFound => "NotFound",
            Self::AlreadyExists => "AlreadyExists",
            Self::PermissionDenied => "PermissionDenied",
            Self::ResourceExhausted => "ResourceExhausted",
            Self::FailedPrecondition => "FailedPrecondition",
            Self::Unimplemented => "Unimplemented",
            Self::Internal => "Internal",
            Self::Unavailable => "Unavailable",
            Self::Unauthenticated => "Unauthenticated",
        }
    }

    /// The HTTP status (contract 2.1). Errors of HTTP itself (405, 413, 414, 431) have no code; the edge sets
    /// their status.
    pub fn status(self) -> StatusCode {
        match self {
            Self::Canceled => StatusCode::from_u16(499).expect("499 is a status number"),
            Self::InvalidArgument | Self::FailedPrecondition => StatusCode::BAD_REQUEST,
            Self::DeadlineExceeded => StatusCode::GATEWAY_TIMEOUT,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::AlreadyExists => StatusCode::CONFLICT,
            Self::PermissionDenied => StatusCode::FORBIDDEN,
            Self::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
            Self::Unimplemented => StatusCode::NOT_IMPLEMENTED,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::Unauthenticated => StatusCode::UNAUTHORIZED,
            Self::Unknown | Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// Whether the service cannot answer now and may answer later. Such a response has a `Retry-After` header, as one with
    /// [`Code::ResourceExhausted`] has.
    pub fn is_passing(self) -> bool {
        matches!(self, Self::DeadlineExceeded | Self::Unavailable)
    }
}

/// An error for a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Body", into = "Body")]
pub struct Problem {
    /// The canonical code.
    pub code: Code,
    /// The reasons, at least one; several when several fields of a transaction are wrong.
    pub details: Vec<Detail>,
    /// The cause, for the log of the service; not sent to clients.
    pub cause: Option<Box<str>>,
    /// Seconds after which to try again, when a server behind the gateway named them; no part of the body.
    pub retry_after_s: Option<u32>,
    /// Whether the cause lies with this replica, so that another one may answer; no part of the body.
    pub is_local: bool,
}

/// One reason.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Detail {
    /// Stable application number (contract 2.2).
    #[serde(rename = "code")]
    pub number: u32,
    /// The reason, lower case, no full stop.
    pub message: String,
    /// The offending value or the neighbouring valid values.
    #[serde(default)]
    pub inner: String,
}

impl Problem {
    /// A problem with one reason.
    pub fn new(code: Code, number: u32, message: impl Into<String>) -> Self {
        Self {
            code,
            details: vec![Detail { number, message: message.into(), inner: String::new() }],
            cause: None,
            retry_after_s: None,
            is_local: false,
        }
    }

    /// The request is wrong; the client must change it.
    pub fn invalid(number: u32, message: impl Into<String>) -> Self {
        Self::new(Code::InvalidArgument, number, message)
    }

    /// The requested object does not exist.
    pub fn not_found(number: u32, message: impl Into<String>) -> Self {
        Self::new(Code::NotFound, number, message)
    }

    /// A bug, or damaged data. The message must not contain the cause.
    pub fn internal(number: u32, message: impl Into<String>) -> Self {
        Self::new(Code::Internal, number, message)
    }

    /// A dependency is unavailable.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(Code::Unavailable, NOT_MAPPED, message)
    }

    /// No answer in time.
    pub fn deadline_exceeded(message: impl Into<String>) -> Self {
        Self::new(Code::DeadlineExceeded, NOT_MAPPED, message)
    }

    /// Adds the offending value or the valid values next to it.
    #[must_use]
    pub fn with_inner(mut self, inner: impl Into<String>) -> Self {
        if let Some(detail) = self.details.first_mut() {
            detail.inner = inner.into();
        }
        self
    }

    /// Adds the cause, for the log only.
    #[must_use]
    pub fn caused_by(mut self, cause: impl Into<Box<str>>) -> Self {
        self.cause = Some(cause.into());
        self
    }

    /// Adds the seconds after which to try again.
    #[must_use]
    pub fn retry_after(mut self, seconds: Option<u32>) -> Self {
        self.retry_after_s = seconds;
        self
    }

    /// Lets the request be sent to another replica.
    #[must_use]
    pub fn local(mut self) -> Self {
        self.is_local = true;
        self
    }

    /// The application number of the first reason.
    pub fn number(&self) -> u32 {
        self.details.first().map_or(NOT_MAPPED, |detail| detail.number)
    }

    /// The JSON body of contract section 2.
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a problem is plain text and numbers")
    }

    /// The same, indented.
    ///
    /// # Panics
    /// As [`Self::to_json`].
    pub fn to_indented_json(&self) -> Vec<u8> {
        serde_json::to_vec_pretty(self).expect("a problem is plain text and numbers")
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} error", self.code.name())?;
        for detail in &self.details {
            write!(out, ": {} (error {})", detail.message, detail.number)?;
            if !detail.inner.is_empty() {
                write!(out, ": {}", detail.inner)?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for Problem {}

/// The JSON form.
#[derive(Serialize, Deserialize)]
struct Body {
    code: u8,
    #[serde(default)]
    message: String,
    #[serde(default)]
    details: Vec<TypedDetail>,
}

#[derive(Serialize, Deserialize)]
struct TypedDetail {
    #[serde(rename = "@type", default)]
    kind: String,
    #[serde(flatten)]
    detail: Detail,
}

impl From<Problem> for Body {
    fn from(problem: Problem) -> Self {
        let typed = |detail| TypedDetail { kind: DETAIL_TYPE.to_owned(), detail };
        Self {
            code: problem.code.number(),
            message: format!("{} error", problem.code.name()),
            details: problem.details.into_iter().map(typed).collect(),
        }
    }
}

impl From<Body> for Problem {
    fn from(body: Body) -> Self {
        Self {
            code: Code::from_number(body.code),
            details: body.details.into_iter().map(|typed| typed.detail).collect(),
            cause: None,
            retry_after_s: None,
            is_local: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_that_integration_tests_do_not_meet_have_the_status_of_the_contract() {
        for (number, status) in [(1, 499), (2, 500), (6, 409), (12, 501)] {
            let code = Code::from_number(number);
            assert_eq!(code.number(), number);
            assert_eq!(code.status().as_u16(), status, "{}", code.name());
        }
    }

    #[test]
    fn a_log_names_the_number_of_an_error_as_such() {
        let problem = Problem::deadline_exceeded("too late");
        assert!(problem.to_string().ends_with(" error: too late (error 10000)"), "{problem}");
    }
}
