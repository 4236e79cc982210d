//! The admin port of a service: `/livez` (the process is alive), `/readyz` (its dependencies are available),
//! `/metrics`.

use std::{
    cell::RefCell, convert::Infallible, io, net::SocketAddr, path::Path, rc::Rc, sync::Arc, time::Duration,
};

use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use http::{Method, Request, Response, StatusCode, header::CONTENT_TYPE};
use http_body_util::Full;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use mesh_telemetry::{Registry, prometheus_text};
use tokio::{net::TcpListener, sync::Semaphore, time::timeout};

use crate::{accept::accepts_type, run::cannot_listen};

/// Most connections at a time; probes and scrapers need a handful.
const MAX_CONNECTIONS: usize = 64;

/// Longest time for receiving a request's head, and for a readiness check.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The media type of OpenMetrics.
const OPENMETRICS: &str = "application/openmetrics-text";

/// The readiness check of a service; an error says what is missing.
pub(crate) type Ready = Rc<dyn Fn() -> LocalBoxFuture<'static, Result<(), String>>>;

/// Binds the admin port.
pub(crate) async fn bind(address: SocketAddr, address_file: Option<&Path>) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address).await;
    let listener = listener.map_err(|error| cannot_listen("MESH_ADMIN_LISTEN", address, &error))?;
    if let Some(path) = address_file {
        let draft = path.with_extension("draft");
        std::fs::write(&draft, format!("{}\n", listener.local_addr()?))
            .and_then(|()| std::fs::rename(&draft, path))
            .map_err(|error| {
                io::Error::other(format!("MESH_ADMIN_ADDRESS_FILE cannot be written: {error}"))
            })?;
    }
    Ok(listener)
}

/// Answers on the admin port until the process ends.
pub(crate) async fn serve(listener: TcpListener, ready: Ready, registry: Rc<RefCell<Registry>>) {
    let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "the admin port cannot accept");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let (ready, registry) = (Rc::clone(&ready), Rc::clone(&registry));
        actix::spawn(async move {
            let service = service_fn(move |request| answer(request, Rc::clone(&ready), Rc::clone(&registry)));
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(TIMEOUT)
                .serve_connection(TokioIo::new(stream), service);
            let _ = connection.await;
            drop(permit);
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    ready: Ready,
    registry: Rc<RefCell<Registry>>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return Ok(text(StatusCode::METHOD_NOT_ALLOWED, "GET only\n"));
    }
    Ok(match request.uri().path() {
        "/livez" => text(StatusCode::OK, "ok\n"),
        "/readyz" => match timeout(TIMEOUT, ready()).await {
            Ok(Ok(())) => text(StatusCode::OK, "ready\n"),
            Ok(Err(missing)) => text(StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {missing}\n")),
            Err(_) => text(StatusCode::SERVICE_UNAVAILABLE, "not ready: the check takes too long\n"),
        },
        // Other clients get Prometheus' text format, since some of them cannot parse OpenMetrics.
        "/metrics" => metrics(&registry.borrow(), accepts_type(request.headers(), OPENMETRICS)),
        _ => text(StatusCode::NOT_FOUND, "/livez /readyz /metrics\n"),
    })
}

fn metrics(registry: &Registry, openmetrics: bool) -> Response<Full<Bytes>> {
    match registry.text() {
        Ok(page) => {
            let (page, kind) = match openmetrics {
                true => (page, "application/openmetrics-text; version=1.0.0; charset=utf-8"),
                false => (prometheus_text(&page), "text/plain; version=0.0.4; charset=utf-8"),
            };
            let mut response = Response::new(Full::from(page));
            response.headers_mut().insert(CONTENT_TYPE, http::HeaderValue::from_static(kind));
            response
        }
        Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
    }
}

fn text(status: StatusCode, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, http::HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}
