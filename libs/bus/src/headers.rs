//! The headers of messages on the bus: names, reading and writing.

use std::{
    fmt::Write,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use async_nats::{HeaderMap, HeaderName};
use mesh_problem::{Code, Problem};
use mesh_telemetry::TraceContext;

use crate::{answer::Head, encoding::Encoding};

/// A request's encoding, its time left in milliseconds, when it was sent in milliseconds since the Unix
/// epoch, the id of the client's request, the client in hex digits, and `wait` if no other replica has room,
/// separated by spaces. One header, because each one takes time to parse.
pub(crate) const ASK: HeaderName = HeaderName::from_static("Mesh-Ask");
/// W3C trace context.
pub(crate) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// W3C trace state of other vendors.
pub(crate) const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");
/// See [`ReplyHeader`].
pub(crate) const REPLY: HeaderName = HeaderName::from_static("Mesh-Reply");
/// Name of a replica that has reached its limit of requests; the client may ask another one.
pub(crate) const OVERLOADED: HeaderName = HeaderName::from_static("Mesh-Overloaded");
/// The service convention's error text.
pub(crate) const ERROR: HeaderName = HeaderName::from_static("Nats-Service-Error");
/// The service convention's error number.
pub(crate) const ERROR_CODE: HeaderName = HeaderName::from_static("Nats-Service-Error-Code");
/// Of a problem: seconds after which to try again.
const RETRY_AFTER: HeaderName = HeaderName::from_static("Retry-After");
/// Of a pull: see [`crate::stream::wire`].
pub(crate) const PULL: HeaderName = HeaderName::from_static("Mesh-Pull");
/// Of a chunk: see [`crate::stream::wire`].
pub(crate) const CHUNK: HeaderName = HeaderName::from_static("Mesh-Chunk");
/// Of the opening of a stream: the byte of the file that the first position should be at.
pub(crate) const FROM_BYTE: HeaderName = HeaderName::from_static("Mesh-From-Byte");

/// The headers of a request.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestHeaders {
    pub(crate) encoding: Encoding,
    /// Time left when it was sent.
    pub(crate) left: Duration,
    /// How long it was on its way by the clocks of both machines, milliseconds.
    pub(crate) took_ms: Option<i64>,
    pub(crate) request_id: String,
    /// Whose request it is, for fair waiting; 0 = unknown.
    pub(crate) client: u64,
    /// Whether it may wait for long, because no other replica has room.
    pub(crate) may_wait: bool,
    pub(crate) trace: Option<TraceContext>,
}

impl RequestHeaders {
    pub(crate) fn read(headers: Option<&HeaderMap>, max_timeout: Duration) -> Self {
        let Some(headers) = headers else {
            return Self { left: max_timeout, ..Self::default() };
        };
        let mut words = headers.get(ASK).map_or("", |value| value.as_str()).split(' ');
        let encoding = words.next().and_then(|encoding| encoding.parse().ok()).unwrap_or_default();
        let mut number = || words.next()?.parse::<u64>().ok();
        let left = number().map_or(max_timeout, Duration::from_millis).min(max_timeout);
        let took_ms = number().map(|sent| now_ms().cast_signed().saturating_sub_unsigned(sent));
        Self {
            encoding,
            left,
            took_ms,
            request_id: words.next().unwrap_or_default().to_owned(),
            client: words.next().and_then(|client| u64::from_str_radix(client, 16).ok()).unwrap_or_default(),
            may_wait: words.next() == Some("wait"),
            trace: trace(headers),
        }
    }
}

fn trace(headers: &HeaderMap) -> Option<TraceContext> {
    let state = headers.get(TRACESTATE).map(|value| value.as_str());
    TraceContext::read(headers.get(TRACEPARENT)?.as_str(), state)
}

/// Writes the trace that a request belongs to.
pub(crate) fn write_trace(headers: &mut HeaderMap, trace: Option<&TraceContext>) {
    let Some(trace) = trace else { return };
    headers.insert(TRACEPARENT, trace.traceparent());
    if let Some(state) = trace.tracestate() {
        headers.insert(TRACESTATE, state);
    }
}

/// What [`ASK`] says of a request besides when it was sent.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct AskHeader<'a> {
    pub(crate) encoding: Encoding,
    pub(crate) left: Duration,
    /// Has no spaces.
    pub(crate) request_id: &'a str,
    pub(crate) client: u64,
    pub(crate) may_wait: bool,
}

impl AskHeader<'_> {
    /// The header's value.
    pub(crate) fn write(&self) -> String {
        let Self { encoding, left, request_id, client, may_wait } = self;
        let waits = if *may_wait { " wait" } else { "" };
        format!("{} {} {} {request_id} {client:x}{waits}", encoding.as_str(), left.as_millis(), now_ms())
    }
}

/// The `Mesh-Reply` header of a reply, e.g.
/// `height=5 time=1700000000000000000 content=00ff… gzip part=0/2`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReplyHeader {
    /// The store when the reply was read: height and time of the block, nanoseconds since the Unix epoch.
    pub(crate) head: Option<Head>,
    /// A digest of the content, the same for all JSON forms.
    pub(crate) digest: Option<u128>,
    /// Whether the reply is compressed.
    pub(crate) gzipped: bool,
    /// Whether every later reply to the same request is the same.
    pub(crate) is_final: bool,
    /// Index of this message in the reply, from 0.
    pub(crate) part: usize,
    /// Number of messages that make up the reply.
    pub(crate) parts: usize,
}

impl Default for ReplyHeader {
    fn default() -> Self {
        Self { head: None, digest: None, gzipped: false, is_final: false, part: 0, parts: 1 }
    }
}

impl ReplyHeader {
    /// The header's value; `None` when it would be empty.
    pub(crate) fn write(&self) -> Option<String> {
        let mut text = String::with_capacity(112);
        if let Some(Head { height, time_ns }) = self.head {
            let _ = write!(text, "height={height} time={time_ns} ");
        }
        if let Some(digest) = self.digest {
            let _ = write!(text, "content={digest:032x} ");
        }
        if self.gzipped {
            text.push_str("gzip ");
        }
        if self.is_final {
            text.push_str("final ");
        }
        if self.parts > 1 {
            let _ = write!(text, "part={}/{} ", self.part, self.parts);
        }
        text.truncate(text.trim_end().len());
        (!text.is_empty()).then_some(text)
    }

    /// Reads the header; unknown and malformed words are left out.
    pub(crate) fn read(headers: &HeaderMap) -> Self {
        let mut read = Self::default();
        let (mut height, mut time_ns) = (None, None);
        for word in headers.get(REPLY).map_or("", |value| value.as_str()).split(' ') {
            match word.split_once('=') {
                Some(("height", value)) => height = value.parse().ok(),
                Some(("time", value)) => time_ns = value.parse().ok(),
                Some(("content", value)) => read.digest = u128::from_str_radix(value, 16).ok(),
                Some(("part", value)) => {
                    let part_of = value.split_once('/');
                    let part_of = part_of.and_then(|(part, parts)| part.parse().ok().zip(parts.parse().ok()));
                    (read.part, read.parts) = part_of.unwrap_or((0, 1));
                }
                None if word == "gzip" => read.gzipped = true,
                None if word == "final" => read.is_final = true,
                _ => {}
            }
        }
        read.head = height.zip(time_ns).map(|(height, time_ns)| Head { height, time_ns });
        read
    }
}

pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

pub(crate) fn write_problem(headers: &mut HeaderMap, problem: &Problem) {
    headers.insert(ERROR, problem.code.name());
    headers.insert(ERROR_CODE, problem.code.number().to_string());
    if let Some(seconds) = problem.retry_after_s {
        headers.insert(RETRY_AFTER, seconds.to_string());
    }
}

/// The problem of an error reply: its body, or one made of the headers when the body is no problem.
pub(crate) fn read_problem(headers: &HeaderMap, body: &[u8]) -> Option<Problem> {
    headers.get(ERROR)?;
    let number = headers.get(ERROR_CODE).and_then(|value| value.as_str().parse().ok());
    let problem: Problem = serde_json::from_slice(body).unwrap_or_else(|_| {
        let code = Code::from_number(number.unwrap_or(2));
        Problem::new(code, mesh_problem::NOT_MAPPED, "the service failed without saying why")
    });
    let retry_after = headers.get(RETRY_AFTER).and_then(|value| value.as_str().parse().ok());
    Some(problem.retry_after(retry_after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding::Format;

    #[test]
    fn a_request_header_is_read_as_it_was_written() {
        let mut headers = HeaderMap::new();
        let encoding = Encoding { format: Format::PrettyJson, gzip: true };
        let ask = AskHeader {
            encoding,
            left: Duration::from_secs(3),
            request_id: "abc",
            client: u64::MAX - 1,
            may_wait: true,
        };
        headers.insert(ASK, ask.write());
        let read = RequestHeaders::read(Some(&headers), Duration::from_secs(10));
        assert_eq!((read.encoding, read.request_id.as_str()), (encoding, "abc"));
        assert_eq!((read.client, read.may_wait), (u64::MAX - 1, true));
        assert_eq!(read.left, Duration::from_secs(3));
        assert!(read.took_ms.is_some_and(|took_ms| (0..2_000).contains(&took_ms)), "{:?}", read.took_ms);
        assert_eq!(RequestHeaders::read(Some(&headers), Duration::from_secs(2)).left, Duration::from_secs(2));
        for nothing in [None, Some(&HeaderMap::new())] {
            let read = RequestHeaders::read(nothing, Duration::from_secs(7));
            assert_eq!((read.left, read.took_ms), (Duration::from_secs(7), None));
        }
    }

    #[test]
    fn a_reply_header_is_read_as_it_was_written() {
        let head = Some(Head { height: 5, time_ns: -3 });
        for header in [
            ReplyHeader::default(),
            ReplyHeader { head, ..ReplyHeader::default() },
            ReplyHeader {
                head,
                digest: Some(u128::MAX - 1),
                gzipped: true,
                is_final: true,
                part: 1,
                parts: 3,
            },
        ] {
            let mut headers = HeaderMap::new();
            if let Some(text) = header.write() {
                headers.insert(REPLY, text);
            }
            assert_eq!(ReplyHeader::read(&headers), header);
        }
        let mut headers = HeaderMap::new();
        headers.insert(REPLY, "height=x part=1 what=ever digest=77 content=x  gzip");
        assert_eq!(ReplyHeader::read(&headers), ReplyHeader { gzipped: true, ..ReplyHeader::default() });
    }
}
