//! The identity of a request: its id, the trace it belongs to, and whether its spans are recorded.

use http::{HeaderMap, HeaderName, HeaderValue, Method};
use mesh_chassis::Sampler;
use mesh_telemetry::{TraceContext, span};
use tracing::Span;

pub(crate) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
pub(crate) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

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

    /// The id in the headers of an answer.
    pub(crate) fn of_answer(value: HeaderValue) -> Self {
        Self(value)
    }

    /// The id as text.
    pub(crate) fn as_str(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }

    /// The id as a header value.
    pub(crate) fn into_value(self) -> HeaderValue {
        self.0
    }
}

/// The trace of a request.
#[derive(Debug)]
pub(crate) struct Trace {
    parent: Option<TraceContext>,
    is_recorded: bool,
}

impl Trace {
    /// Reads the client's trace context and decides whether to record.
    pub(crate) fn of(headers: &HeaderMap, sampling: &Sampler) -> Self {
        let parent = client_context(headers);
        let is_recorded =
            span::is_enabled() && sampling.should_sample(parent.as_ref().map(TraceContext::is_sampled));
        Self { parent, is_recorded }
    }

    /// The span of an HTTP request; `route` is called only when it is recorded.
    pub(crate) fn http_span(
        &self,
        method: &Method,
        (scheme, path): (&str, &str),
        id: &RequestId,
        route: impl FnOnce() -> Option<String>,
    ) -> Span {
        if !self.is_recorded {
            return Span::none();
        }
        let route = route();
        span::http_server(
            self.parent.as_ref(),
            method.as_str(),
            route.as_deref(),
            (scheme, path),
            id.as_str(),
        )
    }

    /// The span of a gRPC call.
    pub(crate) fn grpc_span(&self, path: &str, id: &RequestId) -> Span {
        if !self.is_recorded {
            return Span::none();
        }
        span::grpc_server(self.parent.as_ref(), path.trim_start_matches('/'), id.as_str())
    }

    /// The context for services where no span is recorded: the trace's id, for their logs.
    pub(crate) fn unrecorded(self) -> Option<TraceContext> {
        self.parent.map(|context| context.sampled(false))
    }
}

/// The trace context that the client sent.
pub(crate) fn client_context(headers: &HeaderMap) -> Option<TraceContext> {
    let mut parents = headers.get_all(TRACEPARENT).iter();
    // A second `traceparent` makes both invalid.
    let parent = parents.next().filter(|_| parents.next().is_none())?.to_str().ok()?;
    let states = headers.get_all(TRACESTATE).iter().filter_map(|value| value.to_str().ok());
    let state = states.collect::<Vec<_>>().join(",");
    TraceContext::read(parent, Some(&state))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_client_sends_its_trace_once() {
        let mut headers = HeaderMap::new();
        assert_eq!(client_context(&headers), None);
        headers.append(TRACEPARENT, HeaderValue::from_static(PARENT));
        headers.append(TRACESTATE, HeaderValue::from_static("a=1"));
        headers.append(TRACESTATE, HeaderValue::from_static("b=2"));
        let read = client_context(&headers).unwrap();
        assert_eq!((read.traceparent().as_str(), read.tracestate().as_deref()), (PARENT, Some("a=1,b=2")));
        headers.append(TRACEPARENT, HeaderValue::from_static(PARENT));
        assert_eq!(client_context(&headers), None);
    }
}
