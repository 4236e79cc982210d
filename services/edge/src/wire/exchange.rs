//! What the server adds to every answer: the client's allowance, the end of the connection, `Cache-Control` of
//! errors, the line of the access log.

use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{CACHE_CONTROL, CONNECTION},
};
use http_body_util::Either as EitherBody;
use mesh_problem::Code;
use warp::reply::Response;

use crate::{
    access_log::record::Record,
    admission::rate_limiter::RateLimitStatus,
    ask::answer::without_shared_caching,
    connection::InFlightRequest,
    grpc::protocol::status_code,
    keys::KeyInUse,
    trace::{RequestId, X_REQUEST_ID},
    wire::tracked_body::TrackedBody,
};

/// `Cache-Control` of every error.
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

/// An answer by warp or by gRPC.
pub(super) type Answer =
    http::Response<TrackedBody<EitherBody<<Response as WithBody>::Body, tonic::body::Body>>>;

/// Names the body of warp's responses, which has no public path.
pub(super) trait WithBody {
    type Body;
}

impl<B> WithBody for http::Response<B> {
    type Body = B;
}

/// A request with what finishes its answer.
pub(super) struct Exchange {
    pub(super) request: InFlightRequest,
    pub(super) is_http1: bool,
    /// The client's allowance, where rates are limited.
    pub(super) rate: Option<RateLimitStatus>,
    /// The client's key.
    pub(super) key: Option<KeyInUse>,
    /// Whether clients without a key get data, so that a shared cache may keep it.
    pub(super) is_anonymous_allowed: bool,
    /// The line of the access log.
    pub(super) record: Option<Box<Record>>,
}

impl Exchange {
    /// Finishes a response. Over HTTP/1 it is the connection's last if the request's body is rejected, or at a
    /// shutdown.
    pub(super) fn finish(self, mut response: Response, is_stopping: bool) -> Answer {
        let is_broken = self.is_http1 && self.request.is_broken();
        if is_broken {
            let id = response.headers_mut().remove(X_REQUEST_ID);
            response = bad_request(id.map_or_else(|| RequestId::of(&HeaderMap::new()), RequestId::of_answer));
        }
        let verdict = Verdict::of_status(response.status());
        self.write_rate(&mut response, verdict);
        if is_broken || self.is_http1 && is_stopping && self.request.is_last() {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        self.track(response.map(EitherBody::Left), verdict)
    }

    /// Finishes a response of gRPC.
    pub(super) fn finish_grpc(self, mut response: http::Response<tonic::body::Body>) -> Answer {
        let verdict = match status_code(response.headers()) {
            Some(code) => Verdict { is_error: true, is_limited: code == Code::ResourceExhausted.number() },
            None => Verdict::of_status(response.status()),
        };
        self.write_rate(&mut response, verdict);
        self.track(response.map(EitherBody::Right), verdict)
    }

    /// Rejects an invalid `Host` with an empty 400, as strict HTTP/1 rejects other requests. Over HTTP/1 it is the
    /// connection's last response.
    pub(super) fn refuse_host(mut self, id: RequestId) -> Answer {
        if let Some(record) = &mut self.record {
            record.set_reason("an invalid host");
        }
        let mut response = bad_request(id);
        let verdict = Verdict::of_status(response.status());
        self.write_rate(&mut response, verdict);
        if self.is_http1 {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        self.track(response.map(EitherBody::Left), verdict)
    }

    /// Writes the client's allowance into the headers, where rates are limited.
    fn write_rate<B>(&self, response: &mut http::Response<B>, verdict: Verdict) {
        if let Some(rate) = self.rate {
            rate.write_headers(response.headers_mut(), verdict.is_limited);
        }
    }

    /// Counts the request as in flight until the response body is dropped, and records it in the access log. Every
    /// response passes here last: errors, including a gRPC status without messages, get `no-store`.
    fn track<B: hyper::body::Body>(
        mut self,
        mut response: http::Response<B>,
        verdict: Verdict,
    ) -> http::Response<TrackedBody<B>> {
        let headers = response.headers_mut();
        if verdict.is_error {
            headers.insert(CACHE_CONTROL, NO_STORE);
        }
        if self.key.is_some() {
            without_shared_caching(headers, self.is_anonymous_allowed);
        }
        if let Some(record) = &mut self.record {
            record.set_head(&response, &self.request);
        }
        let meter = self.key.map(|key| key.meter);
        if let Some(meter) = meter.as_ref().filter(|_| verdict.is_limited) {
            meter.refuse();
        }
        response.map(|body| TrackedBody::new(body, self.request, self.record, meter))
    }
}

/// An empty 400.
fn bad_request(id: RequestId) -> Response {
    let mut response = Response::default();
    *response.status_mut() = StatusCode::BAD_REQUEST;
    response.headers_mut().insert(X_REQUEST_ID, id.into_value());
    response
}

/// What a response says of its request.
#[derive(Debug, Clone, Copy)]
struct Verdict {
    is_error: bool,
    /// Whether a limit is exceeded.
    is_limited: bool,
}

impl Verdict {
    fn of_status(status: StatusCode) -> Self {
        Self {
            is_error: status.is_client_error() || status.is_server_error(),
            is_limited: status == StatusCode::TOO_MANY_REQUESTS,
        }
    }
}
