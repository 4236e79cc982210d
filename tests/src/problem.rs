//! The one error form (contract section 2), checked strictly.

use mesh_testbed::Answer;
use serde_json::Value;

/// The table of 2.1: code, name, HTTP statuses, whether `Retry-After` is present.
const CODES: [(i64, &str, &[u16], bool); 12] = [
    (3, "InvalidArgument", &[400, 414, 415, 416, 426, 431], false),
    (4, "DeadlineExceeded", &[504], true),
    (4, "DeadlineExceeded", &[408], false),
    (5, "NotFound", &[404], false),
    (7, "PermissionDenied", &[403], false),
    (8, "ResourceExhausted", &[429], true),
    (8, "ResourceExhausted", &[413], false),
    (9, "FailedPrecondition", &[400, 412], false),
    (12, "Unimplemented", &[405, 501], false),
    (13, "Internal", &[500], false),
    (14, "Unavailable", &[503], true),
    (16, "Unauthenticated", &[401], false),
];

/// An error as its client reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The gRPC code.
    pub code: i64,
    /// Application number of the first detail.
    pub number: i64,
    /// Message of the first detail.
    pub message: String,
    /// Offending value of the first detail.
    pub inner: String,
}

/// Reads an error answer.
///
/// # Errors
/// The first violation of the contract's form.
pub fn read(answer: &Answer) -> Result<Problem, String> {
    let (status, header) = (answer.status, |name| answer.header(name));
    if header("content-type") != Some("application/json") {
        return Err(format!("the content type is {:?}", header("content-type")));
    }
    if header("x-request-id").is_none_or(|id| id.is_empty()) {
        return Err("there is no X-Request-Id".to_owned());
    }
    if header("cache-control") != Some("no-store") {
        return Err(format!("Cache-Control is {:?}", header("cache-control")));
    }
    let body: Value =
        serde_json::from_slice(&answer.body).map_err(|error| format!("the body is not JSON: {error}"))?;
    let code = body["code"].as_i64().ok_or("code is not an integer")?;
    let row = CODES.iter().find(|row| row.0 == code && row.2.contains(&status));
    let Some((_, name, _, comes_back)) = row else {
        return Err(format!("code {code} does not go with status {status}"));
    };
    if body["message"] != format!("{name} error") {
        return Err(format!("the message of code {code} is {}", body["message"]));
    }
    let retry_after = header("retry-after");
    if *comes_back != retry_after.is_some_and(|seconds| seconds.parse::<u32>().is_ok()) {
        return Err(format!("Retry-After of status {status} is {retry_after:?}"));
    }
    read_body(&body)
}

/// Reads the body of an error.
///
/// # Errors
/// The first violation of the contract's form.
pub fn read_body(body: &Value) -> Result<Problem, String> {
    let keys: Vec<&str> = body.as_object().into_iter().flatten().map(|(key, _)| key.as_str()).collect();
    if keys != ["code", "details", "message"] {
        return Err(format!("the body has the keys {keys:?}"));
    }
    let code = body["code"].as_i64().ok_or("code is not an integer")?;
    let details =
        body["details"].as_array().filter(|details| !details.is_empty()).ok_or("there are no details")?;
    details.iter().map(detail).collect::<Result<Vec<_>, _>>()?;
    let text = |name: &str| details[0][name].as_str().unwrap_or_default().to_owned();
    let number = details[0]["code"].as_i64().unwrap_or_default();
    Ok(Problem { code, number, message: text("message"), inner: text("inner") })
}

fn detail(detail: &Value) -> Result<(), String> {
    let keys: Vec<&str> = detail.as_object().into_iter().flatten().map(|(key, _)| key.as_str()).collect();
    let typed = detail["@type"] == "type.googleapis.com/api.v2.ErrorDetail";
    let number = detail["code"].as_i64().is_some_and(|number| number >= 10_000);
    let reason = detail["message"].as_str().is_some_and(|text| !text.is_empty() && !text.ends_with('.'));
    if keys == ["@type", "code", "inner", "message"]
        && typed
        && number
        && reason
        && detail["inner"].is_string()
    {
        return Ok(());
    }
    Err(format!("a detail is {detail}"))
}

/// Asserts that an answer is an error of the contract's form with this status, gRPC code and application
/// number.
#[track_caller]
pub fn assert_problem(answer: &Answer, status: u16, code: i64, number: i64) -> Problem {
    assert_eq!(answer.status, status, "{answer:?}");
    let problem = read(answer).unwrap_or_else(|wrong| panic!("{wrong}: {answer:?}"));
    assert_eq!((problem.code, problem.number), (code, number), "{answer:?}");
    problem
}
