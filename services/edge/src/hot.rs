//! In front of warp: a question that was asked before, in the same spelling, and whose answer is still true needs
//! neither routes nor reading. Everything else goes on to the filter.

use std::{pin::Pin, sync::Arc};

use futures_util::future::Either;
use http::{
    Method, Request,
    header::{CONTENT_LENGTH, TRANSFER_ENCODING},
};
use hyper::body::Incoming;
use tokio::time::Instant;
use warp::reply::Response;

use crate::{
    answer::{self, RequestId},
    cache::Cache,
    config::Config,
    connection::ConnectionState,
    http::HttpService,
    limits,
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

    /// Answers a request: at once, or by the filter. The filter's future is large and would be moved about with every
    /// answer that needs none, so it has a box.
    pub(crate) fn call(&self, request: Request<Incoming>) -> Either<Response, Pin<Box<S::Future>>> {
        match self.answer(&request) {
            Some(response) => Either::Left(response),
            None => Either::Right(Box::pin(self.filter.clone().call(request))),
        }
    }

    fn answer(&self, request: &Request<Incoming>) -> Option<Response> {
        let headers = request.headers();
        let is_head = request.method() == Method::HEAD;
        let has_body = headers.contains_key(CONTENT_LENGTH) || headers.contains_key(TRANSFER_ENCODING);
        if has_body || !(is_head || request.method() == Method::GET) {
            return None;
        }
        let target = request.uri().path_and_query()?.as_str();
        let begun = Instant::now();
        let kept = self.cache.fresh_as_spelled(target, answer::takes_gzip(headers), begun)?;
        limits::check_head(target.len(), headers, &self.config.limits).ok()?;
        let mut response = answer::respond(&kept, headers);
        if is_head {
            response = answer::without_body(response);
        }
        if let (Some(height), Some(connection)) =
            (kept.height(), request.extensions().get::<Arc<ConnectionState>>())
        {
            connection.has_seen(height);
        }
        answer::finish(&mut response, &RequestId::of(headers), &self.config, headers);
        if response.status().is_success() {
            kept.counted.observe(begun.elapsed().as_secs_f64());
        }
        Some(response)
    }
}
