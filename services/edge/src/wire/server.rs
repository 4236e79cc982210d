//! The HTTP server: accepts connections, serves their requests with hyper, and closes them in order at a
//! shutdown.

use std::{error::Error, future::Future, io, net::IpAddr, pin::Pin, sync::Arc, time::Duration};

use futures_util::{
    FutureExt,
    future::{Either, ready},
};
use http::{
    HeaderValue, Request, StatusCode, Version,
    header::{CACHE_CONTROL, CONNECTION},
};
use http_body_util::{BodyExt, Either as EitherBody};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{conn::auto, graceful::GracefulConnection},
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    time::{Instant, timeout, timeout_at},
};
use warp::reply::Response;

use crate::{
    access_log::{AccessLog, record::Record},
    admission::{
        Admission, ConnectionPermit,
        head::has_valid_host,
        rate_limiter::RateLimitStatus,
        rejection::{Rejector, SpareFile},
    },
    config::{Config, HTTP2_STREAMS, Limits, STALL_TIMEOUT},
    connection::{ConnectionState, InFlightRequest},
    grpc::standard::Grpc,
    grpc_kind::is_grpc,
    metrics::Metrics,
    service::{FastPath, HttpService, WarpService},
    unread_body,
    wire::{
        endless::{Endless, WithoutHyper, write_answer},
        lent_socket::SocketOwner,
        strict_http1::StrictHttp1,
        timeouts::{TimeoutStream, Timeouts},
        tracked_body::TrackedBody,
        writer_thread::WriterThread,
    },
};

/// Greatest buffer of a connection, so that thousands of slow clients cost little. hyper answers 431 to more
/// than 100 fields and to a head that does not fit.
const BUFFER_BYTES: usize = 64 << 10;

/// How long open connections are served at a shutdown, so that clients are notified in a response; at most a third
/// of the grace period.
const DRAIN_TIME: Duration = Duration::from_secs(2);

/// Limits of one HTTP/2 connection.
mod http2 {
    use std::time::Duration;

    /// Unread body bytes of one request.
    pub(super) const STREAM_WINDOW: u32 = 64 << 10;
    /// Unread body bytes of all requests.
    pub(super) const WINDOW: u32 = 256 << 10;
    pub(super) const FRAME_BYTES: u32 = 16 << 10;
    /// Requests that the client reset before they were accepted.
    pub(super) const REMOTE_RESETS: usize = 20;
    /// Requests that were reset for the client's errors.
    pub(super) const LOCAL_RESETS: usize = 128;
    /// Silence of the client before a ping.
    pub(super) const PING_AFTER: Duration = Duration::from_secs(20);
    /// Longest time for the answer to a ping.
    pub(super) const PONG_TIMEOUT: Duration = Duration::from_secs(10);
}

/// The gRPC status of a call that was over a limit.
const GRPC_STATUS: &str = "grpc-status";
const RESOURCE_EXHAUSTED: &str = "8";

/// `Cache-Control` of every error.
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
enum ShutdownPhase {
    /// Connections are accepted.
    Running,
    /// Open connections are served.
    Draining,
    /// Requests that have begun are answered.
    Closing,
}

/// The open connections of this process.
pub(crate) struct Server {
    phase: watch::Sender<ShutdownPhase>,
}

impl Server {
    /// Accepts on all listeners once `ready` resolves, until drained.
    ///
    /// # Errors
    /// When no thread can be started.
    #[expect(clippy::too_many_arguments, reason = "each is a part of the process that is made once, in main")]
    pub(crate) fn start<S: WarpService>(
        listeners: Vec<TcpListener>,
        service: HttpService<S>,
        grpc: &Arc<Grpc>,
        admission: &Arc<Admission>,
        config: &Config,
        metrics: &Metrics,
        access_log: Option<&Arc<AccessLog>>,
        ready: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<Self> {
        let ready = ready.boxed().shared();
        let (sender, phase) = watch::channel(ShutdownPhase::Running);
        let acceptor = Acceptor {
            service: Arc::new(service),
            grpc: Arc::clone(grpc),
            builder: Arc::new(builder(&config.limits)),
            admission: Arc::clone(admission),
            rejector: Arc::new(Rejector::new(access_log.cloned())),
            limits: config.limits,
            metrics: metrics.clone(),
            access_log: access_log.cloned(),
            phase,
            writer: WriterThread::start()?,
        };
        for listener in listeners {
            let (acceptor, ready) = (acceptor.clone(), ready.clone());
            tokio::spawn(async move {
                ready.await;
                acceptor.accept(listener).await;
            });
        }
        Ok(Self { phase: sender })
    }

    /// Stops accepting, serves open connections for up to [`DRAIN_TIME`] (the next response on each is its last),
    /// completes requests in flight, and closes; all within the grace period.
    pub(crate) async fn drain(self, grace: Duration) {
        let deadline = Instant::now() + grace;
        self.phase.send_replace(ShutdownPhase::Draining);
        if timeout(DRAIN_TIME.min(grace / 3), self.phase.closed()).await.is_ok() {
            return;
        }
        self.phase.send_replace(ShutdownPhase::Closing);
        if timeout_at(deadline, self.phase.closed()).await.is_err() {
            tracing::warn!("closing connections that are still busy");
        }
    }
}

fn builder(limits: &Limits) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().header_read_timeout(None).max_buf_size(BUFFER_BYTES);
    // HTTP/2 counts 32 bytes more for each field than the limit does, and rejects a larger head without a body:
    // twice the limit lets the gateway reject it with an explanation.
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(HTTP2_STREAMS)
        .max_header_list_size(u32::try_from(limits.head_bytes * 2).unwrap_or(u32::MAX))
        .max_frame_size(http2::FRAME_BYTES)
        .initial_stream_window_size(http2::STREAM_WINDOW)
        .initial_connection_window_size(http2::WINDOW)
        .max_send_buf_size(BUFFER_BYTES)
        .max_pending_accept_reset_streams(http2::REMOTE_RESETS)
        .max_local_error_reset_streams(http2::LOCAL_RESETS)
        .keep_alive_interval(http2::PING_AFTER)
        .keep_alive_timeout(http2::PONG_TIMEOUT);
    builder
}

/// Counts an open connection, holds its permit, and keeps a shutdown waiting.
struct OpenConnection {
    metrics: Metrics,
    phase: watch::Receiver<ShutdownPhase>,
    _permit: ConnectionPermit,
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.metrics.connections.dec();
    }
}

/// Accepts and serves connections.
struct Acceptor<S> {
    service: Arc<HttpService<S>>,
    grpc: Arc<Grpc>,
    builder: Arc<auto::Builder<TokioExecutor>>,
    admission: Arc<Admission>,
    rejector: Arc<Rejector>,
    limits: Limits,
    metrics: Metrics,
    access_log: Option<Arc<AccessLog>>,
    phase: watch::Receiver<ShutdownPhase>,
    writer: WriterThread,
}

impl<S> Clone for Acceptor<S> {
    fn clone(&self) -> Self {
        Self {
            service: Arc::clone(&self.service),
            grpc: Arc::clone(&self.grpc),
            builder: Arc::clone(&self.builder),
            admission: Arc::clone(&self.admission),
            rejector: Arc::clone(&self.rejector),
            limits: self.limits,
            metrics: self.metrics.clone(),
            access_log: self.access_log.clone(),
            phase: self.phase.clone(),
            writer: self.writer.clone(),
        }
    }
}

impl<S: WarpService> Acceptor<S> {
    /// Serves connections that get a permit and rejects others, until a shutdown.
    async fn accept(self, listener: TcpListener) {
        let (mut phase, mut spare) = (self.phase.clone(), SpareFile::open());
        loop {
            tokio::select! {
                () = reached(&mut phase, ShutdownPhase::Draining) => return,
                accepted = listener.accept() => match accepted {
                    Ok((stream, peer)) => match self.admission.connection(peer.ip()) {
                        Ok(permit) => self.serve(stream, peer.ip(), permit),
                        Err(rejected) => self.rejector.reject(stream, peer.ip(), rejected.reason()),
                    },
                    Err(error) => if spare.handle_accept_error(&listener, &error, &self.rejector).await {
                        self.admission.count_rejected_connection("files");
                    }
                },
            }
        }
    }

    /// Serves a connection, which keeps its permit until it is closed.
    fn serve(&self, stream: TcpStream, peer: IpAddr, permit: ConnectionPermit) {
        let _ = stream.set_nodelay(true);
        let state = Arc::new(ConnectionState::default());
        let timeouts = Timeouts { head: self.limits.head_time, idle: self.limits.idle, stall: STALL_TIMEOUT };
        let owner = Arc::new(SocketOwner::default());
        let stream = StrictHttp1::new(owner.lend(stream), Arc::clone(&state));
        let stream = TimeoutStream::new(stream, Arc::clone(&state), timeouts);
        let (acceptor, connection) = (self.clone(), Arc::clone(&state));
        let service = service_fn(move |request| acceptor.answer(request, peer, &connection));
        let (builder, writer) = (Arc::clone(&self.builder), self.writer.clone());
        let (open, access_log) = (self.open_connection(permit), self.access_log.clone());
        tokio::spawn(async move {
            // Boxed once: an async function reserves space for each move of its arguments.
            let connection = builder.serve_connection(TokioIo::new(stream), service).into_owned();
            let connection = Box::pin(connection);
            if let Err(error) = serve_until_closed(connection, &state, open.phase.clone()).await {
                match (WithoutHyper::<Answer>::take(&*error), owner.take()) {
                    (Some(answer), Some(socket)) => writer.spawn(async move {
                        let socket = TimeoutStream::new(socket, state, timeouts);
                        if let Err(error) = write_answer(socket, answer).await {
                            tracing::debug!(%error, "an endless answer broke");
                        }
                        drop(open);
                    }),
                    _ => log_broken(&*error, peer, &state, access_log.as_deref()),
                }
            }
        });
    }

    fn open_connection(&self, permit: ConnectionPermit) -> OpenConnection {
        self.metrics.connections.inc();
        OpenConnection { metrics: self.metrics.clone(), phase: self.phase.clone(), _permit: permit }
    }

    /// Answers a request: from the cache, over gRPC, or by warp.
    fn answer(
        &self,
        request: Request<Incoming>,
        peer: IpAddr,
        connection: &Arc<ConnectionState>,
    ) -> impl Future<Output = Result<Answer, WithoutHyper<Answer>>> + Send + 'static + use<S> {
        let client = self.admission.identify(connection, peer, request.headers());
        let record = self
            .access_log
            .as_ref()
            .map(|log| log.begin(&request, self.admission.client_address(peer, request.headers())));
        let exchange = Exchange {
            request: connection.start_request(),
            is_http1: request.version() < Version::HTTP_2,
            rate: client.rate,
            record,
        };
        if !has_valid_host(&request) {
            if !exchange.is_http1 {
                unread_body::discard(request.into_body().into_data_stream());
            }
            return Either::Left(ready(Ok(exchange.refuse_host())));
        }
        let question = match self.service.try_cached(&request, &client) {
            FastPath::Hit(response) => {
                return Either::Left(ready(Ok(exchange.finish(response, &self.phase))));
            }
            FastPath::Miss(question) => question,
        };
        // The gateway refuses gRPC over HTTP/1.
        if !exchange.is_http1 && is_grpc(request.method(), request.headers()) {
            let answered = Arc::clone(&self.grpc).answer(request, client);
            return Either::Right(Either::Left(Box::pin(async move {
                let mut response = answered.await;
                exchange.write_rate(&mut response);
                Ok(exchange.track(response.map(EitherBody::Right)))
            })));
        }
        let version = request.version();
        let answered = self.service.call_warp(request, client, question);
        let (phase, connection) = (self.phase.clone(), Arc::clone(connection));
        // Boxed, since the future of the filter is large and would be moved with every answer of the fast
        // path.
        Either::Right(Either::Right(Box::pin(async move {
            let Ok(response) = answered.await;
            let is_http1 = exchange.is_http1;
            let mut answer = exchange.finish(response, &phase);
            // Bytes of an earlier response that hyper has not written would be lost.
            if is_http1 && Endless::is(&answer) && !connection.is_blocked() {
                *answer.version_mut() = version;
                return Err(WithoutHyper::new(answer));
            }
            Ok(answer)
        })))
    }
}

/// An answer by warp or by gRPC.
type Answer = http::Response<TrackedBody<EitherBody<<Response as WithBody>::Body, tonic::body::Body>>>;

/// Names the body of warp's responses, which has no public path.
trait WithBody {
    type Body;
}

impl<B> WithBody for http::Response<B> {
    type Body = B;
}

/// A request with what finishes its answer.
struct Exchange {
    request: InFlightRequest,
    is_http1: bool,
    rate: Option<RateLimitStatus>,
    record: Option<Box<Record>>,
}

impl Exchange {
    /// Finishes a response. Over HTTP/1 it is the connection's last if the request's body is rejected, or at a
    /// shutdown.
    fn finish(self, mut response: Response, phase: &watch::Receiver<ShutdownPhase>) -> Answer {
        let is_broken = self.is_http1 && self.request.is_broken();
        if is_broken {
            response = Response::default();
            *response.status_mut() = StatusCode::BAD_REQUEST;
        }
        self.write_rate(&mut response);
        // `has_changed` is one atomic load; `borrow` takes a lock.
        let is_stopping = phase.has_changed().unwrap_or(true);
        if is_broken || self.is_http1 && is_stopping && self.request.is_last() {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        self.track(response.map(EitherBody::Left))
    }

    /// Rejects an invalid `Host` with an empty 400, as strict HTTP/1 rejects other requests. Over HTTP/1 it is the
    /// connection's last response.
    fn refuse_host(mut self) -> Answer {
        if let Some(record) = &mut self.record {
            record.set_reason("an invalid host");
        }
        let mut response = Response::default();
        *response.status_mut() = StatusCode::BAD_REQUEST;
        self.write_rate(&mut response);
        if self.is_http1 {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        self.track(response.map(EitherBody::Left))
    }

    /// Writes the client's allowance into the headers, where rates are limited.
    fn write_rate<B>(&self, response: &mut http::Response<B>) {
        let Some(rate) = self.rate else { return };
        let is_refused = response.status() == StatusCode::TOO_MANY_REQUESTS
            || response.headers().get(GRPC_STATUS).is_some_and(|status| status == RESOURCE_EXHAUSTED);
        rate.write_headers(response.headers_mut(), is_refused);
    }

    /// Counts the request as in flight until the response body is dropped, and records it in the access log. Every
    /// response passes here last: errors, including a gRPC status without messages, get `no-store`.
    fn track<B: hyper::body::Body>(
        mut self,
        mut response: http::Response<B>,
    ) -> http::Response<TrackedBody<B>> {
        let status = response.status();
        let headers = response.headers_mut();
        if status.is_client_error() || status.is_server_error() || headers.contains_key(GRPC_STATUS) {
            headers.insert(CACHE_CONTROL, NO_STORE);
        }
        if let Some(record) = &mut self.record {
            record.set_head(&response, &self.request);
        }
        response.map(|body| TrackedBody::new(body, self.request, self.record))
    }
}

/// Logs why a connection broke; in the access log if hyper refused a head: the answer had neither id nor body.
fn log_broken(
    error: &(dyn Error + Send + Sync + 'static),
    peer: IpAddr,
    state: &ConnectionState,
    access_log: Option<&AccessLog>,
) {
    tracing::debug!(error = error.to_string(), "a connection broke");
    let (Some(access_log), Some(error)) = (access_log, error.downcast_ref::<hyper::Error>()) else { return };
    if !error.is_parse() {
        return;
    }
    let text = error.to_string();
    // hyper distinguishes the two only in the error text.
    let status = match (error.is_parse_too_large(), text.contains("URI")) {
        (true, true) => StatusCode::URI_TOO_LONG,
        (true, false) => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        _ => StatusCode::BAD_REQUEST,
    };
    let because = state.refusal().map_or(text, |reason| reason.to_string());
    access_log.refused(peer, status, nuid::next().as_str(), &because, 0);
}

/// Serves a connection to its end. At a shutdown an HTTP/2 client gets a GOAWAY at once and loses nothing. An
/// idle HTTP/1 connection stays open as long as possible, since a request could already be in flight.
async fn serve_until_closed<C: GracefulConnection>(
    mut connection: Pin<Box<C>>,
    state: &ConnectionState,
    mut phase: watch::Receiver<ShutdownPhase>,
) -> Result<(), C::Error> {
    let shutdown = async {
        reached(&mut phase, ShutdownPhase::Draining).await;
        if !state.is_http2() {
            reached(&mut phase, ShutdownPhase::Closing).await;
        }
    };
    tokio::select! {
        biased;
        ended = connection.as_mut() => return ended,
        () = shutdown => connection.as_mut().graceful_shutdown(),
    }
    connection.await
}

/// Resolves once the shutdown phase is at least `phase`.
async fn reached(current: &mut watch::Receiver<ShutdownPhase>, phase: ShutdownPhase) {
    let _ = current.wait_for(|current| *current >= phase).await;
}
