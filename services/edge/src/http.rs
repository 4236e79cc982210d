//! warp's part: takes a request apart and hands it to the gateway, whatever its path; one table decides there.

use std::{convert::Infallible, sync::Arc};

use actix::Addr;
use bytes::Buf;
use futures_util::{StreamExt, future::BoxFuture};
use http::HeaderMap;
use hyper::body::Incoming;
use mesh_problem::Problem;
use warp::{Filter, path::FullPath, reply::Response};

use crate::{
    answer::{self, RequestId},
    config::Config,
    gateway::{Call, Gateway},
    visit::Visit,
};

/// The service of a connection: what warp makes of a filter.
pub(crate) trait HttpService:
    tower_service::Service<
        http::Request<Incoming>,
        Response = Response,
        Error = Infallible,
        Future: Send + 'static,
    > + Clone
    + Send
    + Sync
    + 'static
{
}

impl<S> HttpService for S where
    S: tower_service::Service<
            http::Request<Incoming>,
            Response = Response,
            Error = Infallible,
            Future: Send + 'static,
        > + Clone
        + Send
        + Sync
        + 'static
{
}

/// Every request to the gateway.
pub(crate) fn service(gateway: Addr<Gateway>, config: Arc<Config>) -> impl HttpService {
    let query = warp::query::raw().or(warp::any().map(String::new)).unify();
    let filter = warp::any()
        .and(warp::method())
        .and(warp::path::full())
        .and(query)
        .and(warp::header::headers_cloned())
        .and(warp::body::stream())
        .and(warp::ext::get::<Visit>())
        .then(move |method, path: FullPath, query, headers: HeaderMap, body, visit| {
            let (gateway, config) = (gateway.clone(), Arc::clone(&config));
            let body = StreamExt::map(body, |piece: Result<_, warp::Error>| {
                piece.map(|mut piece| whole(&mut piece))
            });
            let id = RequestId::of(&headers);
            let call = Call { method, path, query, headers, body: Box::pin(body), id: id.clone(), visit };
            let answered: BoxFuture<'static, Response> = Box::pin(async move {
                match gateway.send(call).await {
                    Ok(response) => response,
                    Err(error) => {
                        let problem =
                            Problem::unavailable("the edge is stopping").caused_by(error.to_string());
                        answer::problem(&problem, &id, &config)
                    }
                }
            });
            answered
        });
    warp::service(filter)
}

/// Gives a request whose target is no path (`CONNECT x:80`, `GET x`) one that no operation has: warp takes for
/// granted that there is one, and panics.
pub(crate) fn with_path<B>(mut request: http::Request<B>) -> http::Request<B> {
    if request.uri().path_and_query().is_none() {
        *request.uri_mut() = http::Uri::from_static("*");
    }
    request
}

fn whole(piece: &mut impl Buf) -> bytes::Bytes {
    piece.copy_to_bytes(piece.remaining())
}
