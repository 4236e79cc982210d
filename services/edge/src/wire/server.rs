//! The HTTP server: accepts connections, serves their requests with hyper, and closes them in order at a
//! shutdown.

use std::{convert::Infallible, error::Error, io, net::IpAddr, pin::Pin, sync::Arc, time::Duration};

use futures_util::{
    FutureExt,
    future::{Either as EitherFuture, pending, ready},
};
use http::{Request, StatusCode, Version};
use http_body_util::BodyExt;
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::{conn::auto, graceful::GracefulConnection},
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    time::{Instant, timeout, timeout_at},
};
use tokio_util::either::Either;

use crate::{
    access_log::AccessLog,
    admission::{
        Admission, ClientContext, ConnectionPermit,
        head::has_valid_host,
        rejection::{Rejector, SpareFile},
    },
    ask::cache::HttpQuestion,
    config::{Limits, STALL_TIMEOUT},
    connection::ConnectionState,
    grpc::standard::Grpc,
    grpc_kind::is_grpc,
    metrics::Metrics,
    service::{FastPath, HttpService, WarpService},
    trace::RequestId,
    unread_body,
    wire::{
        endless::{Endless, write_answer},
        exchange::{Answer, Exchange},
        hyper_settings::builder,
        lent_socket::SocketOwner,
        strict_http1::StrictHttp1,
        switch::{is_switch, switch},
        timeouts::{TimeoutStream, Timeouts},
        tls::{Socket, Tls, has_agreed_on_http2},
        writer_thread::WriterThread,
    },
};

/// How long open connections are served at a shutdown, so that clients are notified in a response; at most a third
/// of the grace period.
const DRAIN_TIME: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
enum ShutdownPhase {
    /// Connections are accepted.
    Running,
    /// Open connections are served.
    Draining,
    /// Requests that have begun are answered.
    Closing,
}

/// What the server serves connections with.
pub(crate) struct ServerParts<S> {
    pub(crate) service: HttpService<S>,
    pub(crate) grpc: Arc<Grpc>,
    pub(crate) admission: Arc<Admission>,
    pub(crate) limits: Limits,
    pub(crate) metrics: Metrics,
    pub(crate) access_log: Option<Arc<AccessLog>>,
    /// `None` = plain connections.
    pub(crate) tls: Option<Tls>,
    /// Whether clients without a key get data.
    pub(crate) is_anonymous_allowed: bool,
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
    pub(crate) fn start<S: WarpService>(
        listeners: Vec<TcpListener>,
        parts: ServerParts<S>,
        ready: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<Self> {
        let ready = ready.boxed().shared();
        let (sender, phase) = watch::channel(ShutdownPhase::Running);
        let acceptor = Arc::new(Acceptor {
            builder: builder(&parts.limits),
            http2_builder: builder(&parts.limits).http2_only(),
            rejector: Rejector::new(parts.access_log.clone(), parts.tls.is_some()),
            writer: WriterThread::start()?,
            parts,
            phase,
        });
        for listener in listeners {
            let (acceptor, ready) = (Arc::clone(&acceptor), ready.clone());
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

/// A connection whose requests are answered.
struct Connection {
    peer: IpAddr,
    state: Arc<ConnectionState>,
    owner: Arc<SocketOwner>,
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
    parts: ServerParts<S>,
    builder: auto::Builder<TokioExecutor>,
    /// For clients that have agreed on HTTP/2.
    http2_builder: auto::Builder<TokioExecutor>,
    rejector: Rejector,
    writer: WriterThread,
    phase: watch::Receiver<ShutdownPhase>,
}

impl<S: WarpService> Acceptor<S> {
    /// Serves connections that get a permit and rejects others, until a shutdown.
    async fn accept(self: Arc<Self>, listener: TcpListener) {
        let (mut phase, mut spare) = (self.phase.clone(), SpareFile::open());
        loop {
            tokio::select! {
                () = reached(&mut phase, ShutdownPhase::Draining) => return,
                accepted = listener.accept() => match accepted {
                    Ok((stream, peer)) => match self.parts.admission.connection(peer.ip()) {
                        Ok(permit) => self.serve(stream, peer.ip(), permit),
                        Err(reason) => self.rejector.reject(stream, peer.ip(), reason),
                    },
                    Err(error) => if spare.handle_accept_error(&listener, &error, &self.rejector).await {
                        self.parts.admission.count_rejected_connection("files");
                    }
                },
            }
        }
    }

    /// Serves a connection, which keeps its permit until it is closed.
    fn serve(self: &Arc<Self>, stream: TcpStream, peer: IpAddr, permit: ConnectionPermit) {
        let _ = stream.set_nodelay(true);
        let open = self.open_connection(permit);
        let Some(tls) = self.parts.tls.clone() else {
            return self.serve_socket(Either::Left(stream), peer, open);
        };
        let (acceptor, mut phase) = (Arc::clone(self), self.phase.clone());
        tokio::spawn(async move {
            let accepted = tokio::select! {
                accepted = tls.accept(stream) => accepted,
                () = reached(&mut phase, ShutdownPhase::Closing) => return,
            };
            match accepted {
                Ok(socket) => acceptor.serve_socket(socket, peer, open),
                Err(error) => tracing::debug!(%error, "a handshake failed"),
            }
        });
    }

    fn serve_socket(self: &Arc<Self>, socket: Socket, peer: IpAddr, open: OpenConnection) {
        let state = Arc::new(ConnectionState::default());
        let timeouts = Timeouts {
            head: self.parts.limits.head_time,
            idle: self.parts.limits.idle,
            stall: STALL_TIMEOUT,
        };
        let is_http2 = has_agreed_on_http2(&socket);
        let owner = Arc::new(SocketOwner::default());
        let stream = StrictHttp1::new(owner.lend(socket), Arc::clone(&state));
        let stream = TimeoutStream::new(stream, Arc::clone(&state), timeouts);
        let connection = Connection { peer, state: Arc::clone(&state), owner: Arc::clone(&owner) };
        let acceptor = Arc::clone(self);
        let service = service_fn(move |request| acceptor.answer(request, &connection));
        let acceptor = Arc::clone(self);
        tokio::spawn(async move {
            // Boxed once: an async function reserves space for each move of its arguments.
            let builder = if is_http2 { &acceptor.http2_builder } else { &acceptor.builder };
            let connection = builder.serve_connection(TokioIo::new(stream), service).into_owned();
            let connection = Box::pin(connection);
            let served = serve_until_closed(connection, &owner, &state, open.phase.clone()).await;
            // hyper's connection has been dropped.
            let Some(socket) = owner.take_socket() else { return };
            match served {
                Ok(None) => {}
                Ok(Some(answer)) => acceptor.write_without_hyper(*answer, socket, state, timeouts, open),
                Err(error) => {
                    close_broken(&*error, socket, peer, &state, acceptor.parts.access_log.as_deref());
                }
            }
        });
    }

    /// Writes an answer without hyper, and serves the connection to its end.
    fn write_without_hyper(
        &self,
        answer: Answer,
        socket: Socket,
        state: Arc<ConnectionState>,
        timeouts: Timeouts,
        open: OpenConnection,
    ) {
        if !is_switch(&answer) {
            return self.writer.spawn(async move {
                let socket = TimeoutStream::new(socket, state, timeouts);
                if let Err(error) = write_answer(socket, answer).await {
                    tracing::debug!(%error, "an endless answer broke");
                }
                drop(open);
            });
        }
        let gateway = self.parts.service.gateway().clone();
        self.writer.spawn(async move {
            let socket = TimeoutStream::new(socket, Arc::clone(&state), timeouts);
            match switch(socket, answer, &state, gateway).await {
                // A task is as large as its largest state, and this one lasts for hours.
                Ok(session) => drop(tokio::spawn(async move {
                    session.await;
                    drop(open);
                })),
                Err(error) => tracing::debug!(%error, "a handshake broke"),
            }
        });
    }

    fn open_connection(&self, permit: ConnectionPermit) -> OpenConnection {
        self.parts.metrics.connections.inc();
        OpenConnection { metrics: self.parts.metrics.clone(), phase: self.phase.clone(), _permit: permit }
    }

    /// Counts a request as in flight, and begins its line of the access log.
    fn begin(
        &self,
        request: &Request<Incoming>,
        connection: &Connection,
        client: &ClientContext,
    ) -> Exchange {
        let record = self.parts.access_log.as_ref().map(|log| {
            let address = self.parts.admission.client_address(connection.peer, request.headers());
            log.begin(request, address, client.key.as_ref().map(|key| Arc::clone(key.key.name())))
        });
        Exchange {
            request: connection.state.start_request(),
            is_http1: request.version() < Version::HTTP_2,
            rate: client.rate,
            key: client.key.clone(),
            is_anonymous_allowed: self.parts.is_anonymous_allowed,
            record,
        }
    }

    /// Answers a request: from the cache, over gRPC, or by warp.
    fn answer(
        &self,
        request: Request<Incoming>,
        connection: &Connection,
    ) -> impl Future<Output = Result<Answer, Infallible>> + Send + 'static + use<S> {
        let started = Instant::now();
        let Connection { peer, state, .. } = connection;
        state.set_http10(request.version() == Version::HTTP_10);
        let cached = self.parts.service.find_cached(&request, started);
        let operation = cached.as_ref().map(|cached| cached.question.question.operation);
        let client = self.parts.admission.identify(state, *peer, &request, operation);
        let exchange = self.begin(&request, connection, &client);
        if !has_valid_host(&request) {
            let id = RequestId::of(request.headers());
            if !exchange.is_http1 {
                unread_body::discard(request.into_body().into_data_stream());
            }
            return EitherFuture::Left(ready(Ok(exchange.refuse_host(id))));
        }
        let question = match self.parts.service.answer_cached(cached, &request, &client, started) {
            FastPath::Hit(response) => {
                return EitherFuture::Left(ready(Ok(exchange.finish(response, is_stopping(&self.phase)))));
            }
            FastPath::Miss(question) => question,
        };
        // The gateway refuses gRPC over HTTP/1.
        if !exchange.is_http1 && is_grpc(request.method(), request.headers()) {
            let answered = Arc::clone(&self.parts.grpc).answer(request, client);
            return EitherFuture::Right(async move { Ok(exchange.finish_grpc(answered.await)) }.boxed());
        }
        // Boxed, since the future of the filter is large and would be moved with every answer of the fast
        // path.
        EitherFuture::Right(self.answer_by_warp(request, client, question, exchange, connection).boxed())
    }

    /// Answers a request by warp. An answer that is written without hyper is left with the owner of the socket.
    fn answer_by_warp(
        &self,
        request: Request<Incoming>,
        client: ClientContext,
        question: Option<HttpQuestion>,
        exchange: Exchange,
        connection: &Connection,
    ) -> impl Future<Output = Result<Answer, Infallible>> + Send + 'static + use<S> {
        let version = request.version();
        let answered = self.parts.service.call_warp(request, client, question);
        let (phase, state) = (self.phase.clone(), Arc::clone(&connection.state));
        let owner = Arc::clone(&connection.owner);
        async move {
            let Ok(response) = answered.await;
            let is_http1 = exchange.is_http1;
            if is_switch(&response) {
                state.until_writable().await;
            }
            let mut answer = exchange.finish(response, is_stopping(&phase));
            // Bytes of an earlier response that hyper has not written would be lost.
            if is_http1 && (Endless::is(&answer) && !state.is_blocked() || is_switch(&answer)) {
                *answer.version_mut() = version;
                owner.set_answer(answer);
                return pending().await;
            }
            Ok(answer)
        }
    }
}

/// Closes a connection that broke, and logs why; in the access log if hyper refused a head: the answer had
/// neither id nor body.
fn close_broken(
    error: &(dyn Error + Send + Sync + 'static),
    socket: Socket,
    peer: IpAddr,
    state: &ConnectionState,
    access_log: Option<&AccessLog>,
) {
    let is_cut = error.downcast_ref().is_some_and(hyper::Error::is_user);
    if let (true, Either::Left(socket)) = (is_cut && state.is_http10(), socket) {
        // Closed in order, the connection would make what was sent look like all of it.
        let _ = socket.set_zero_linger();
    }
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
    access_log.refused(peer, Some(status), nuid::next().as_str(), &because, 0);
}

/// Serves a connection to its end, or to an answer that is written without hyper. At a shutdown an HTTP/2 client
/// gets a GOAWAY at once and loses nothing. An idle HTTP/1 connection stays open as long as possible, since a
/// request could already be in flight.
async fn serve_until_closed<C: GracefulConnection>(
    mut connection: Pin<Box<C>>,
    owner: &SocketOwner,
    state: &ConnectionState,
    mut phase: watch::Receiver<ShutdownPhase>,
) -> Result<Option<Box<Answer>>, C::Error> {
    let shutdown = async {
        reached(&mut phase, ShutdownPhase::Draining).await;
        if !state.is_http2() {
            reached(&mut phase, ShutdownPhase::Closing).await;
        }
    };
    tokio::pin!(shutdown);
    let mut is_closing = false;
    loop {
        tokio::select! {
            biased;
            ended = connection.as_mut() => return ended.map(|()| None),
            answer = owner.answer() => return Ok(Some(answer)),
            () = &mut shutdown, if !is_closing => {
                connection.as_mut().graceful_shutdown();
                is_closing = true;
            }
        }
    }
}

/// Whether a shutdown has begun: one atomic load, where `borrow` takes a lock.
fn is_stopping(phase: &watch::Receiver<ShutdownPhase>) -> bool {
    phase.has_changed().unwrap_or(true)
}

/// Resolves once the shutdown phase is at least `phase`.
async fn reached(current: &mut watch::Receiver<ShutdownPhase>, phase: ShutdownPhase) {
    let _ = current.wait_for(|current| *current >= phase).await;
}
