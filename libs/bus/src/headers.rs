//! Names of the headers on the bus, and reading and writing of each.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_nats::HeaderMap;
use mesh_problem::{Code, Problem};

use crate::{Head, encoding::Encoding};

/// Encoding that the asker wants.
pub(crate) const ACCEPT: &str = "Mesh-Accept";
/// Milliseconds that the asker is ready to wait.
pub(crate) const TIMEOUT_MS: &str = "Mesh-Timeout-Ms";
/// When the request was sent, milliseconds since the Unix epoch.
pub(crate) const SENT_MS: &str = "Mesh-Sent-Ms";
/// Id of the outside request, for logs.
pub(crate) const REQUEST_ID: &str = "Mesh-Request-Id";
/// W3C trace context.
pub(crate) const TRACEPARENT: &str = "traceparent";
/// `gzip` when the reply is compressed.
pub(crate) const CONTENT_ENCODING: &str = "Mesh-Content-Encoding";
/// Height of the store when the reply was read.
pub(crate) const HEIGHT: &str = "Mesh-Block-Height";
/// Time of that block, nanoseconds since the Unix epoch.
pub(crate) const BLOCK_TIME: &str = "Mesh-Block-Timestamp";
/// Number of messages that make up the reply, in each of them; absent = 1.
pub(crate) const PARTS: &str = "Mesh-Parts";
/// Place of this message in the reply, from 0.
pub(crate) const PART: &str = "Mesh-Part";
/// Set when a replica had no room; another one may have.
pub(crate) const OVERLOADED: &str = "Mesh-Overloaded";
/// The service convention's error text.
pub(crate) const ERROR: &str = "Nats-Service-Error";
/// The service convention's error number.
pub(crate) const ERROR_CODE: &str = "Nats-Service-Error-Code";

/// A sent time further away than this means that the two clocks differ, not that the message was late.
const CLOCKS_DIFFER: Duration = Duration::from_secs(60);

pub(crate) fn number<T: std::str::FromStr>(headers: &HeaderMap, name: &str) -> Option<T> {
    headers.get(name)?.as_str().parse().ok()
}

pub(crate) fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name).map(|value| value.as_str().to_owned())
}

/// What a request says about itself.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestHeaders {
    pub(crate) encoding: Encoding,
    /// Time left, counted from the sending; `None` = expired on the way.
    pub(crate) left: Option<Duration>,
    pub(crate) request_id: String,
    pub(crate) traceparent: Option<String>,
}

impl RequestHeaders {
    pub(crate) fn read(headers: Option<&HeaderMap>, greatest: Duration) -> Self {
        let Some(headers) = headers else {
            return Self { left: Some(greatest), ..Self::default() };
        };
        let timeout = number(headers, TIMEOUT_MS).map_or(greatest, Duration::from_millis).min(greatest);
        let on_the_way = number(headers, SENT_MS)
            .and_then(|sent| now_ms().checked_sub(sent))
            .map(Duration::from_millis)
            .filter(|late| *late < CLOCKS_DIFFER)
            .unwrap_or_default();
        Self {
            encoding: headers.get(ACCEPT).and_then(|value| value.as_str().parse().ok()).unwrap_or_default(),
            left: timeout.checked_sub(on_the_way).filter(|left| !left.is_zero()),
            request_id: text(headers, REQUEST_ID).unwrap_or_default(),
            traceparent: text(headers, TRACEPARENT),
        }
    }
}

pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

pub(crate) fn write_head(headers: &mut HeaderMap, head: Head) {
    headers.insert(HEIGHT, head.height.to_string());
    headers.insert(BLOCK_TIME, head.time_ns.to_string());
}

pub(crate) fn read_head(headers: &HeaderMap) -> Option<Head> {
    Some(Head { height: number(headers, HEIGHT)?, time_ns: number(headers, BLOCK_TIME)? })
}

pub(crate) fn write_problem(headers: &mut HeaderMap, problem: &Problem) {
    headers.insert(ERROR, problem.code.name());
    headers.insert(ERROR_CODE, problem.code.number().to_string());
}

/// The problem of an error reply: its body, or what the headers say when the body is not ours.
pub(crate) fn read_problem(headers: &HeaderMap, body: &[u8]) -> Option<Problem> {
    headers.get(ERROR)?;
    Some(serde_json::from_slice(body).unwrap_or_else(|_| {
        let code = Code::from_number(number(headers, ERROR_CODE).unwrap_or(2));
        Problem::new(code, mesh_problem::NOT_MAPPED, "the service failed without saying why")
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(timeout_ms: u64, sent_ms: u64) -> Option<Duration> {
        let mut headers = HeaderMap::new();
        headers.insert(TIMEOUT_MS, timeout_ms.to_string());
        headers.insert(SENT_MS, sent_ms.to_string());
        RequestHeaders::read(Some(&headers), Duration::from_secs(10)).left
    }

    #[test]
    fn time_on_the_way_counts_unless_the_clocks_differ() {
        let now = now_ms();
        assert!(left(5_000, now - 3_000).is_some_and(|left| left <= Duration::from_secs(2)));
        assert_eq!(left(1_000, now - 3_000), None);
        assert_eq!(left(1_000, now - 3_600_000), Some(Duration::from_secs(1)));
        assert_eq!(left(1_000, now + 3_600_000), Some(Duration::from_secs(1)));
        assert_eq!(left(3_600_000, now + 60_000), Some(Duration::from_secs(10)));
    }
}
