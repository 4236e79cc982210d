//! Whose trace a request belongs to, and whether it is recorded from here on.

use http::{HeaderMap, HeaderName, Method};
use mesh_chassis::Sampler;
use mesh_telemetry::{TraceContext, span};
use proto_msgs::OperationInfo;
use tracing::Span;

use crate::routes::Matched;

pub(crate) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// What is known of a request's trace.
#[derive(Debug)]
pub(crate) struct Trace {
    client: Option<TraceContext>,
    is_recorded: bool,
}

impl Trace {
    /// Reads what the client says of it, and decides.
    pub(crate) fn of(headers: &HeaderMap, sampling: &Sampler) -> Self {
        let client = client(headers);
        let is_recorded =
            span::is_enabled() && sampling.should_sample(client.as_ref().map(TraceContext::is_sampled));
        Self { client, is_recorded }
    }

    /// The span of an HTTP request.
    pub(crate) fn of_http(&self, method: &Method, path: &str, matched: Option<&Matched>, id: &str) -> Span {
        if !self.is_recorded {
            return Span::none();
        }
        let route = matched.map(|matched| matched.route(path));
        span::http_server(self.client.as_ref(), method.as_str(), route.as_deref(), path, id)
    }

    /// The span of a gRPC call.
    pub(crate) fn of_grpc(&self, operation: &OperationInfo, id: &str) -> Span {
        if !self.is_recorded {
            return Span::none();
        }
        span::grpc_server(self.client.as_ref(), operation.rpc().trim_start_matches('/'), id)
    }

    /// What services are told where nothing is recorded: the trace's id, for their logs.
    pub(crate) fn unrecorded(self) -> Option<TraceContext> {
        self.client.map(|context| context.sampled(false))
    }
}

/// What the client says of its trace.
pub(crate) fn client(headers: &HeaderMap) -> Option<TraceContext> {
    let mut parents = headers.get_all(TRACEPARENT).iter();
    // Two parents are none.
    let parent = parents.next().filter(|_| parents.next().is_none())?.to_str().ok()?;
    let states = headers.get_all(TRACESTATE).iter().filter_map(|value| value.to_str().ok());
    let state = states.collect::<Vec<_>>().join(",");
    TraceContext::read(parent, Some(&state))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_client_says_its_trace_once() {
        let mut headers = HeaderMap::new();
        assert_eq!(client(&headers), None);
        headers.append(TRACEPARENT, HeaderValue::from_static(PARENT));
        headers.append(TRACESTATE, HeaderValue::from_static("a=1"));
        headers.append(TRACESTATE, HeaderValue::from_static("b=2"));
        let read = client(&headers).unwrap();
        assert_eq!((read.traceparent().as_str(), read.tracestate().as_deref()), (PARENT, Some("a=1,b=2")));
        headers.append(TRACEPARENT, HeaderValue::from_static(PARENT));
        assert_eq!(client(&headers), None);
    }
}
