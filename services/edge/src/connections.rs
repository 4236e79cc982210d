//! The accept loop: bounds connections and what one of them may hold, and closes them in order.

use std::{future::Future, net::IpAddr, pin::pin, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{
    FutureExt,
    future::{Either, ready},
};
use http::{HeaderValue, Request, StatusCode, Version, header::CONNECTION};
use http_body_util::Either as Body;
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{conn::auto, graceful::GracefulConnection},
};
use mesh_chassis::Failure;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    time::{Instant, timeout, timeout_at},
};

use crate::{
    access::{AccessLog, Record},
    config::{Config, Limits},
    connection::{ConnectionState, InFlight, Kept},
    grpc::{self, Grpc},
    guard::Guarded,
    host,
    hot::Hot,
    http::HttpService,
    metrics::Metrics,
    patience::{Patient, Times},
    rate::Standing,
    room::{Holder, NoPlace, Room},
    turned_away::{Spare, TurnedAway},
    visit::Visits,
};

/// Greatest buffer of a connection, so that thousands of slow clients cost little. More than 100 fields and a
/// head that does not fit in here are hyper's to refuse (431).
const BUFFER_BYTES: usize = 64 << 10;

/// A client that takes nothing of its answer for so long is gone (contract section 7).
pub(crate) const STALLED: Duration = Duration::from_secs(120);

/// How long kept connections are served on at a stop, so that their clients learn of it by an answer and not by
/// a request that nobody takes; at most a third of the time there is.
const LEAVING: Duration = Duration::from_secs(2);

/// What one HTTP/2 connection may hold.
pub(crate) mod http2 {
    use std::time::Duration;

    /// Requests at the same time.
    pub(crate) const STREAMS: u32 = 128;
    /// Body bytes of one request that nobody has read yet.
    pub(super) const STREAM_WINDOW: u32 = 64 << 10;
    /// Body bytes of all of them.
    pub(super) const WINDOW: u32 = 256 << 10;
    /// A frame.
    pub(super) const FRAME_BYTES: u32 = 16 << 10;
    /// Requests that the client took back before they were looked at.
    pub(super) const RESETS_BY_CLIENT: usize = 20;
    /// Requests that were broken off for the client's mistakes.
    pub(super) const RESETS_BY_MISTAKE: usize = 128;
    /// A client that is silent for so long is asked whether it is there.
    pub(super) const PING_AFTER: Duration = Duration::from_secs(20);
    /// Its time to say so.
    pub(super) const PONG_WITHIN: Duration = Duration::from_secs(10);
}

/// The status of a gRPC call that is answered by its head alone, and the one of a limit.
const GRPC_STATUS: &str = "grpc-status";
const RESOURCE_EXHAUSTED: &str = "8";

/// Where a stop has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
enum Stop {
    /// Nowhere: connections are accepted.
    Not,
    /// Those that are open are served on.
    Leaving,
    /// Requests that have begun are answered.
    Closing,
}

/// The open connections of this process.
pub(crate) struct Connections {
    stop: watch::Sender<Stop>,
}

impl Connections {
    /// Accepts on all listeners from when `ready` comes until drained.
    pub(crate) fn accept<S: HttpService>(
        listeners: Vec<TcpListener>,
        service: Hot<S>,
        grpc: &Arc<Grpc>,
        config: &Config,
        metrics: &Metrics,
        access: Option<&Arc<AccessLog>>,
        ready: impl Future<Output = ()> + Send + 'static,
    ) -> Self {
        let ready = ready.boxed().shared();
        let (stop, stopped) = watch::channel(Stop::Not);
        let (room, turned_away) =
            (Room::new(config.limits.connections), Arc::new(TurnedAway::new(access.cloned())));
        let (service, builder) = (Arc::new(service), Arc::new(builder(&config.limits)));
        let visits = Arc::new(Visits::new(config));
        for listener in listeners {
            let door = Door {
                service: Arc::clone(&service),
                grpc: Arc::clone(grpc),
                builder: Arc::clone(&builder),
                visits: Arc::clone(&visits),
                room: Arc::clone(&room),
                turned_away: Arc::clone(&turned_away),
                limits: config.limits,
                metrics: metrics.clone(),
                access: access.cloned(),
                stop: stopped.clone(),
            };
            let ready = ready.clone();
            tokio::spawn(async move {
                ready.await;
                door.accept(listener).await;
            });
        }
        Self { stop }
    }

    /// Stops accepting, serves open connections on for a moment, each next answer being its connection's last,
    /// then answers what has begun, and closes; all of it within the grace.
    pub(crate) async fn drain(self, grace: Duration) {
        let deadline = Instant::now() + grace;
        self.stop.send_replace(Stop::Leaving);
        if timeout(LEAVING.min(grace / 3), self.stop.closed()).await.is_ok() {
            return;
        }
        self.stop.send_replace(Stop::Closing);
        if timeout_at(deadline, self.stop.closed()).await.is_err() {
            tracing::warn!("closing connections that are still busy");
        }
    }
}

fn builder(limits: &Limits) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().header_read_timeout(None).max_buf_size(BUFFER_BYTES);
    // HTTP/2 counts 32 bytes more for each field than we do, and what is beyond its limit gets an answer without a
    // word; what is a little too large for us should hear why.
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(http2::STREAMS)
        .max_header_list_size(u32::try_from(limits.head_bytes * 2).unwrap_or(u32::MAX))
        .max_frame_size(http2::FRAME_BYTES)
        .initial_stream_window_size(http2::STREAM_WINDOW)
        .initial_connection_window_size(http2::WINDOW)
        .max_send_buf_size(BUFFER_BYTES)
        .max_pending_accept_reset_streams(http2::RESETS_BY_CLIENT)
        .max_local_error_reset_streams(http2::RESETS_BY_MISTAKE)
        .keep_alive_interval(http2::PING_AFTER)
        .keep_alive_timeout(http2::PONG_WITHIN);
    builder
}

/// How a connection is let in.
struct Door<S> {
    service: Arc<Hot<S>>,
    grpc: Arc<Grpc>,
    builder: Arc<auto::Builder<TokioExecutor>>,
    visits: Arc<Visits>,
    room: Arc<Room>,
    turned_away: Arc<TurnedAway>,
    limits: Limits,
    metrics: Metrics,
    access: Option<Arc<AccessLog>>,
    stop: watch::Receiver<Stop>,
}

impl<S: HttpService> Door<S> {
    /// Lets connections in while there is room and turns others away, until a stop.
    async fn accept(self, listener: TcpListener) {
        let (mut stop, mut spare) = (self.stop.clone(), Spare::new());
        loop {
            tokio::select! {
                () = reached(&mut stop, Stop::Leaving) => return,
                accepted = listener.accept() => match accepted {
                    Ok((stream, peer)) => self.admit(stream, peer.ip()),
                    Err(error) => if spare.make_do(&listener, &error, &self.turned_away).await {
                        self.metrics.refused_connection("files").inc();
                    }
                },
            }
        }
    }

    /// Serves a connection, if there is room for it. A trusted proxy brings many clients, and has no share of its own.
    fn admit(&self, stream: TcpStream, peer: IpAddr) {
        let place: Result<Box<dyn Send>, NoPlace> = match self.visits.is_proxy(peer) {
            true => self.room.enter([]).map(|place| Box::new(place) as _),
            false => self.room.enter([Holder::Address(peer.into())]).map(|place| Box::new(place) as _),
        };
        match place {
            Ok(place) => self.serve(stream, peer, place),
            Err(no_place) => {
                self.metrics.refused_connection(no_place.reason()).inc();
                self.turned_away.turn_away(stream, peer, no_place.reason());
            }
        }
    }

    /// Serves a connection, which keeps its place until it is closed.
    fn serve(&self, stream: TcpStream, peer: IpAddr, place: Box<dyn Send>) {
        let _ = stream.set_nodelay(true);
        let state = Arc::new(ConnectionState::default());
        let times = Times { head: self.limits.head_time, idle: self.limits.idle, stalled: STALLED };
        let stream = Patient::new(Guarded::new(stream, Arc::clone(&state)), Arc::clone(&state), times);
        let (service, requests, stop) = (Arc::clone(&self.service), Arc::clone(&state), self.stop.clone());
        let (grpc, visits, access) = (Arc::clone(&self.grpc), Arc::clone(&self.visits), self.access.clone());
        let service = service_fn(move |request: Request<Incoming>| {
            let in_flight = requests.take();
            let visit = visits.begin(&requests, peer, request.headers());
            let rate = visit.rate;
            let mut record =
                access.as_ref().map(|log| log.begin(&request, visits.client(peer, request.headers())));
            let is_http1 = request.version() < Version::HTTP_2;
            if !host::is_sound(&request) {
                if let Some(record) = &mut record {
                    record.refused("an odd host");
                }
                return Either::Left(ready(Ok(hostless(rate, is_http1, in_flight, record))));
            }
            if !visit.is_over_rate()
                && let Some(response) = service.at_once(&request, &requests)
            {
                return Either::Left(ready(Ok(concluded(
                    response, rate, is_http1, in_flight, record, &stop,
                ))));
            }
            // Over HTTP/1 it is the gateway's to say that gRPC is not spoken there.
            if !is_http1 && grpc::is_meant(request.method(), request.headers()) {
                let answered = Arc::clone(&grpc).answer(request, visit);
                return Either::Right(Either::Left(Box::pin(async move {
                    let mut response = answered.await;
                    tell_rate(&mut response, rate);
                    Ok(kept(response.map(Body::Right), in_flight, record))
                })));
            }
            let answered = service.by_filter(request, visit);
            let stop = stop.clone();
            // The filter's future is large, and would be moved about with every answer that needs none.
            Either::Right(Either::Right(Box::pin(async move {
                Ok::<_, S::Error>(concluded(answered.await?, rate, is_http1, in_flight, record, &stop))
            })))
        });
        let (builder, metrics, stop) = (Arc::clone(&self.builder), self.metrics.clone(), self.stop.clone());
        let access = self.access.clone();
        tokio::spawn(async move {
            metrics.connections.inc();
            let connection = builder.serve_connection(TokioIo::new(stream), service).into_owned();
            if let Err(error) = until_stopped(connection, &state, stop).await {
                tracing::debug!(error, "a connection broke");
                if let (Some(access), Some(error)) = (access, error.downcast_ref::<hyper::Error>()) {
                    unread(&access, peer, error, &state);
                }
            }
            metrics.connections.dec();
            drop(place);
        });
    }
}

/// The body of an answer over HTTP.
trait AnswerBody: Default + hyper::body::Body<Data = Bytes, Error: Into<Failure>> {}

impl<B: Default + hyper::body::Body<Data = Bytes, Error: Into<Failure>>> AnswerBody for B {}

/// Ends the answering of a request: an answer over HTTP/1 is the last of its connection when it must be.
fn concluded<B: AnswerBody>(
    mut response: http::Response<B>,
    rate: Option<Standing>,
    is_http1: bool,
    request: InFlight,
    record: Option<Box<Record>>,
    stop: &watch::Receiver<Stop>,
) -> http::Response<Kept<Body<B, tonic::body::Body>>> {
    let is_broken = is_http1 && request.is_broken();
    if is_broken {
        response = http::Response::default();
        *response.status_mut() = StatusCode::BAD_REQUEST;
    }
    tell_rate(&mut response, rate);
    // Asking whether it has changed is cheaper than looking.
    let is_stopping = stop.has_changed().unwrap_or(true);
    if is_broken || is_http1 && is_stopping && request.is_last() {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    kept(response.map(Body::Left), request, record)
}

/// Keeps a request in flight until its answer is gone, and has it recorded where that is wanted.
fn kept<B: hyper::body::Body>(
    response: http::Response<B>,
    request: InFlight,
    mut record: Option<Box<Record>>,
) -> http::Response<Kept<B>> {
    if let Some(record) = &mut record {
        record.answered(&response, &request);
    }
    response.map(|body| Kept::new(body, request, record))
}

/// Tells of a head that hyper could not read, or was not given; its answer has neither id nor body.
fn unread(access: &AccessLog, peer: IpAddr, error: &hyper::Error, state: &ConnectionState) {
    if !error.is_parse() {
        return;
    }
    let said = error.to_string();
    // hyper tells the two apart by its words alone.
    let status = match (error.is_parse_too_large(), said.contains("URI")) {
        (true, true) => StatusCode::URI_TOO_LONG,
        (true, false) => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        _ => StatusCode::BAD_REQUEST,
    };
    let because = state.refusal().map_or(said, |because| because.to_string());
    access.refused(peer, status, nuid::next().as_str(), &because, 0);
}

/// Refuses a request that is for nobody, as the guard refuses others that two may understand in two ways: over HTTP/1 it is
/// the last one of its connection.
fn hostless<B: AnswerBody>(
    rate: Option<Standing>,
    is_http1: bool,
    request: InFlight,
    record: Option<Box<Record>>,
) -> http::Response<Kept<Body<B, tonic::body::Body>>> {
    let mut response = http::Response::new(B::default());
    *response.status_mut() = StatusCode::BAD_REQUEST;
    tell_rate(&mut response, rate);
    if is_http1 {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    kept(response.map(Body::Left), request, record)
}

/// Tells a client how it stands with its rate, where rates are limited.
fn tell_rate<B>(response: &mut http::Response<B>, rate: Option<Standing>) {
    let Some(rate) = rate else { return };
    let is_refused = response.status() == StatusCode::TOO_MANY_REQUESTS
        || response.headers().get(GRPC_STATUS).is_some_and(|status| status == RESOURCE_EXHAUSTED);
    rate.tell(response.headers_mut(), is_refused);
}

/// Serves a connection to its end. An HTTP/2 client hears of a stop at once and loses nothing; an idle HTTP/1
/// client could only see its connection closed, perhaps behind a request that it has just sent, and has until
/// the last moment to send it.
async fn until_stopped<C: GracefulConnection>(
    connection: C,
    state: &ConnectionState,
    mut stop: watch::Receiver<Stop>,
) -> Result<(), C::Error> {
    let mut connection = pin!(connection);
    let told = async {
        reached(&mut stop, Stop::Leaving).await;
        if !state.is_http2() {
            reached(&mut stop, Stop::Closing).await;
        }
    };
    tokio::select! {
        biased;
        ended = connection.as_mut() => return ended,
        () = told => connection.as_mut().graceful_shutdown(),
    }
    connection.await
}

/// Comes when a stop has come so far.
async fn reached(stop: &mut watch::Receiver<Stop>, place: Stop) {
    let _ = stop.wait_for(|stop| *stop >= place).await;
}
