//! The service of a connection: a fast path that answers repeated reads from the cache, then warp,
//! whose single filter hands every request to the gateway.

use std::{convert::Infallible, mem, sync::Arc};

use actix::Addr;
use bytes::{Buf, Bytes};
use futures_util::{StreamExt, future::BoxFuture};
use http::{
    Method, Request, Uri, Version,
    header::{IF_MATCH, UPGRADE},
};
use hyper::body::{Body, Incoming};
use mesh_chassis::accept;
use mesh_telemetry::span;
use tokio::time::Instant;
use warp::{Filter, reply::Response};

use crate::{
    admission::{ClientContext, head},
    ask::{
        answer::Answer,
        cache::{Cache, Cached, HttpQuestion},
    },
    config::Config,
    decode::preferences::PREFER,
    gateway::{Gateway, HttpRequest, RequestHead, unanswered},
    respond::{answer, handling},
    trace::{RequestId, TRACEPARENT},
    watch::http::wants_events,
};

/// What warp makes of a filter.
pub(crate) trait WarpService:
    tower_service::Service<Request<Incoming>, Response = Response, Error = Infallible, Future: Send + 'static>
    + Clone
    + Send
    + Sync
    + 'static
{
}

impl<S> WarpService for S where
    S: tower_service::Service<
            Request<Incoming>,
            Response = Response,
            Error = Infallible,
            Future: Send + 'static,
        > + Clone
        + Send
        + Sync
        + 'static
{
}

/// The fast path in front of warp.
pub(crate) struct HttpService<S> {
    warp: S,
    gateway: Addr<Gateway>,
    cache: Arc<Cache>,
    config: Arc<Config>,
}

/// The result of the fast path.
pub(crate) enum FastPath {
    /// The answer.
    Hit(Response),
    /// The question, when the target was decoded before.
    Miss(Option<HttpQuestion>),
}

impl HttpService<()> {
    /// The service in front of the gateway.
    pub(crate) fn new(
        gateway: Addr<Gateway>,
        cache: Arc<Cache>,
        config: Arc<Config>,
    ) -> HttpService<impl WarpService> {
        let warp = warp::service(filter(gateway.clone(), Arc::clone(&config)));
        HttpService { warp, gateway, cache, config }
    }
}

impl<S: WarpService> HttpService<S> {
    /// The gateway behind warp.
    pub(crate) fn gateway(&self) -> &Addr<Gateway> {
        &self.gateway
    }

    /// What the cache has of a read with this exact target and encoding. Needs neither route nor decoding.
    pub(crate) fn find_cached<B>(&self, request: &Request<B>, now: Instant) -> Option<Cached> {
        let headers = request.headers();
        // A preference may require that the target is decoded again, more strictly (J11).
        if !matches!(*request.method(), Method::GET | Method::HEAD) || headers.contains_key(PREFER) {
            return None;
        }
        let target = request.uri().path_and_query()?.as_str();
        self.cache.get_by_target(target, accept::accepts_gzip(headers), now)
    }

    /// Answers a GET that the cache has a fresh answer to.
    pub(crate) fn answer_cached(
        &self,
        cached: Option<Cached>,
        request: &Request<Incoming>,
        client: &ClientContext,
        started: Instant,
    ) -> FastPath {
        let Some(cached) = cached else { return FastPath::Miss(None) };
        let headers = request.headers();
        let has_body = !request.body().is_end_stream();
        // A request with a trace context is traced.
        let is_traced = span::is_enabled() && headers.contains_key(TRACEPARENT);
        let has_rare_header = is_traced || headers.contains_key(IF_MATCH) || wants_events(headers);
        let is_slow = has_body || has_rare_header || request.method() != Method::GET || client.is_refused();
        let target_bytes = || request.uri().path_and_query().map_or(0, |target| target.as_str().len());
        let is_valid = || head::check_size(target_bytes(), headers, &self.config.limits).is_ok();
        let is_accepted = |answer: &Answer| answer.is_gzipped() || !accept::accepts_gzip_alone(headers);
        let Some(answer) = cached.answer.filter(|answer| !is_slow && is_valid() && is_accepted(answer))
        else {
            return FastPath::Miss(Some(cached.question));
        };
        let Ok(mut response) = answer::respond(&answer, client, headers) else {
            return FastPath::Miss(Some(cached.question));
        };
        if let Some(height) = answer.newest_height() {
            client.connection.raise_min_height(height);
        }
        answer::finish(&mut response, RequestId::of(headers), &self.config, headers);
        if let Some(ignored) = cached.question.ignored {
            handling::write_ignored(response.headers_mut(), ignored);
        }
        if let Some(metrics) = &answer.metrics {
            let bytes = response.status().is_success().then(|| answer.bytes());
            metrics.observe_fast_path(bytes, started.elapsed());
        }
        FastPath::Hit(response)
    }

    /// Answers a request by warp's filter.
    pub(crate) fn call_warp(
        &self,
        mut request: Request<Incoming>,
        client: ClientContext,
        question: Option<HttpQuestion>,
    ) -> S::Future {
        // warp panics without a path (`CONNECT x:80`, `GET x`); nothing has this one.
        if request.uri().path_and_query().is_none() {
            *request.uri_mut() = Uri::from_static("/*");
        }
        let mut headers = mem::take(request.headers_mut());
        // RFC 9110, 7.8; HTTP/2 has no such header.
        if request.version() == Version::HTTP_10 {
            headers.remove(UPGRADE);
        }
        let head = RequestHead {
            method: request.method().clone(),
            uri: request.uri().clone(),
            id: RequestId::of(&headers),
            headers,
            client,
            question,
        };
        request.extensions_mut().insert(Arc::new(head));
        self.warp.clone().call(request)
    }
}

/// Hands every request to the gateway. Headers are moved to the gateway's head rather than cloned by warp.
fn filter(
    gateway: Addr<Gateway>,
    config: Arc<Config>,
) -> impl Filter<Extract = (Response,), Error = warp::Rejection> + Clone + Send + Sync + 'static {
    warp::ext::get::<Arc<RequestHead>>().and(warp::body::stream()).then(
        move |head: Arc<RequestHead>, body| {
            let (gateway, config) = (gateway.clone(), Arc::clone(&config));
            let body = StreamExt::map(body, |piece: Result<_, warp::Error>| piece.map(copy_to_bytes));
            let body = head.client.metered(body);
            let id = head.id.clone();
            let request = HttpRequest { head, body: Box::pin(body) };
            let answered: BoxFuture<'static, Response> = Box::pin(async move {
                let answered = gateway.send(request).await;
                answered.unwrap_or_else(|error| answer::problem(&unanswered(&error), &id, &config))
            });
            answered
        },
    )
}

fn copy_to_bytes(mut piece: impl Buf) -> Bytes {
    piece.copy_to_bytes(piece.remaining())
}
