//! In front of warp: a question that was asked before, in the same spelling, and whose answer is still true needs
//! neither routes nor reading. Everything else goes on to the filter.

use std::sync::Arc;

use http::{
    Method, Request,
    header::{CONTENT_LENGTH, TRANSFER_ENCODING},
};
use hyper::body::Incoming;
use mesh_telemetry::span;
use tokio::time::Instant;
use warp::reply::Response;

use crate::{
    answer::{self, RequestId},
    cache::Cache,
    config::Config,
    connection::ConnectionState,
    http::{HttpService, with_path},
    limits,
    trace::TRACEPARENT,
    visit::Visit,
};

/// The filter with the cache in front.
pub(crate) struct Hot<S> {
    filter: S,
    cache: Arc<Cache>,
    config: Arc<Config>,
}

impl<S: HttpService> Hot<S> {
    /// Puts the cache in front of the filter.
    pub(crate) fn new(filter: S, cache: Arc<Cache>, config: Arc<Config>) -> Self {
        Self { filter, cache, config }
    }

    /// Answers a request by the filter.
    pub(crate) fn by_filter(&self, mut request: Request<Incoming>, visit: Visit) -> S::Future {
        request.extensions_mut().insert(visit);
        self.filter.clone().call(with_path(request))
    }

    /// Answers a request at once, if that can be.
    pub(crate) fn at_once(
        &self,
        request: &Request<Incoming>,
        connection: &ConnectionState,
    ) -> Option<Response> {
        let headers = request.headers();
        let has_body = headers.contains_key(CONTENT_LENGTH) || headers.contains_key(TRANSFER_ENCODING);
        // Who brings a trace wants to see it.
        let is_traced = span::is_enabled() && headers.contains_key(TRACEPARENT);
        if has_body || is_traced || request.method() != Method::GET {
            return None;
        }
        let target = request.uri().path_and_query()?.as_str();
        let begun = Instant::now();
        let kept = self.cache.fresh_as_spelled(target, answer::takes_gzip(headers), begun)?;
        limits::check_head(target.len(), headers, &self.config.limits).ok()?;
        let mut response = answer::respond(&kept, headers);
        if let Some(height) = kept.height() {
            connection.has_seen(height);
        }
        answer::finish(&mut response, RequestId::of(headers), &self.config, headers);
        let bytes = response.status().is_success().then(|| kept.bytes());
        kept.counted.at_the_door(bytes, begun.elapsed());
        Some(response)
    }
}
