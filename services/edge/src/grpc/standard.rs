//! The gRPC server: calls of operations by their paths, and the standard services, health and reflection.

use std::{collections::HashMap, convert::Infallible, sync::Arc, time::Duration};

use actix::Addr;
use futures_util::{FutureExt, StreamExt, future::BoxFuture, stream};
use http::{Request, Response};
use http_body_util::{BodyExt, BodyStream, StreamBody};
use hyper::body::{Body as _, Incoming};
use mesh_bus::Bus;
use mesh_chassis::Failure;
use mesh_problem::{Code, NOT_MAPPED, Problem};
use tokio::time::timeout;
use tonic::body::Body;

use crate::{
    admission::{
        Admission, ClientContext, NO_OPERATION,
        fair_semaphore::{FairSemaphore, Owner, Permit},
    },
    connection::LongLivedStream,
    gateway::{Gateway, unanswered},
    grpc::{
        call::{GrpcCall, GrpcMethod},
        health::Health,
        protocol::{self, HEALTH, OLDER_REFLECTION, REFLECTION},
        reflection::Reflection,
        status, watch,
    },
    metrics::Metrics,
    route::routes::Routes,
    trace::{RequestId, X_REQUEST_ID},
    unread_body,
};

/// Longest message to a standard service, bytes.
const MAX_MESSAGE: usize = 64 << 10;

/// Streams of the standard services at the same time.
const MAX_STREAMS: usize = 1024;

/// Time limit of the request's message.
const FIRST_MESSAGE_WITHIN: Duration = Duration::from_secs(30);

/// A standard service, by its library.
type StandardService = Box<dyn Fn(Request<Incoming>) -> BoxFuture<'static, Response<Body>> + Send + Sync>;

/// Answers every gRPC request.
pub(crate) struct Grpc {
    gateway: Addr<Gateway>,
    routes: Arc<Routes>,
    standard: HashMap<&'static str, StandardService>,
    /// Permits for streams of the standard services.
    streams: Arc<FairSemaphore>,
    health: Arc<Health>,
    admission: Arc<Admission>,
    metrics: Metrics,
}

impl Grpc {
    /// Makes the services and starts to report health.
    ///
    /// # Errors
    /// When the descriptors cannot be reflected.
    pub(crate) async fn start(
        gateway: Addr<Gateway>,
        bus: Bus,
        routes: Arc<Routes>,
        admission: Arc<Admission>,
        metrics: Metrics,
    ) -> Result<Arc<Self>, Failure> {
        let mut standard = HashMap::new();
        let (health, health_server) = Health::start(bus).await;
        standard.insert(HEALTH, service(health_server.max_decoding_message_size(MAX_MESSAGE)));
        let reflection = Reflection::server()?.max_decoding_message_size(MAX_MESSAGE);
        let newest = service(reflection.clone());
        // The older version has the same messages under another name.
        let older: StandardService = Box::new(move |mut request| {
            let path = request.uri().path().replacen(OLDER_REFLECTION, REFLECTION, 1);
            if let Ok(uri) = path.parse() {
                *request.uri_mut() = uri;
            }
            newest(request)
        });
        standard.extend([(REFLECTION, service(reflection)), (OLDER_REFLECTION, older)]);
        let streams = FairSemaphore::new(MAX_STREAMS);
        Ok(Arc::new(Self { gateway, routes, standard, streams, health, admission, metrics }))
    }

    /// Answers a request.
    pub(crate) async fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
        client: ClientContext,
    ) -> Response<Body> {
        let (path, id) = (request.uri().path(), RequestId::of(request.headers()));
        let method = match self.routes.rpc(path) {
            Some(operation) => Some(GrpcMethod::Operation(operation)),
            None => (path == watch::PATH).then_some(GrpcMethod::Watch),
        };
        let Some(method) = method else { return self.answer_standard(request, client, id).await };
        let call = GrpcCall::new(method, request, client, id.clone());
        self.gateway.send(call).await.unwrap_or_else(|error| refused(&unanswered(&error), id))
    }

    /// Answers a call of a standard service, or of none.
    async fn answer_standard(
        &self,
        request: Request<Incoming>,
        client: ClientContext,
        id: RequestId,
    ) -> Response<Body> {
        let service = request.uri().path().split('/').nth(1).unwrap_or_default();
        let found = self.standard.get_key_value(service);
        let name = found.map_or(NO_OPERATION, |(name, _)| *name);
        let (served, permit) = match self.admit(name, found.map(|(_, service)| service), &client) {
            Ok(admitted) => admitted,
            Err(problem) => {
                self.metrics.called(name, problem.code.number(), Duration::ZERO);
                return refused_unread(request, &problem, id).await;
            }
        };
        let started = std::time::Instant::now();
        let Ok(response) = timeout(FIRST_MESSAGE_WITHIN, served(request)).await else {
            let problem = Problem::deadline_exceeded("the message did not arrive in time");
            self.metrics.called(name, problem.code.number(), started.elapsed());
            return refused(&problem, id);
        };
        let code = protocol::status_code(response.headers()).unwrap_or(0);
        self.metrics.called(name, code, started.elapsed());
        let guards = (permit, client.connection.mark_long_lived());
        response.map(|body| long_lived(body, self.health.shutdown_reported(), guards))
    }

    /// The service of a call that may be answered, and the permit of its stream.
    ///
    /// # Errors
    /// When the client's key is not in force, there is no such service, the call is over the client's rate, or
    /// too many streams are open. Unlike operations, standard services need no key where one is needed.
    fn admit<'a>(
        &self,
        name: &str,
        found: Option<&'a StandardService>,
        client: &ClientContext,
    ) -> Result<(&'a StandardService, Permit<1>), Problem> {
        client.check_key()?;
        let service = found.ok_or_else(|| Problem::new(Code::Unimplemented, NOT_MAPPED, "no such method"))?;
        // Health checks are exempt from the rate limit.
        if name != HEALTH {
            self.admission.check_rate(client)?;
        }
        let permit = self.streams.try_acquire([Owner::Client(client.id)]).map_err(|_| {
            let reason = "too many streams of this service are open";
            Problem::new(Code::ResourceExhausted, NOT_MAPPED, reason)
        })?;
        Ok((service, permit))
    }

    /// Reports that nothing serves any more, and ends the long-lived streams.
    pub(crate) async fn stop(&self) {
        self.health.shut_down().await;
    }
}

/// A body that may stay open without sending anything. At a shutdown it ends with a status; it holds its
/// permit and the connection's mark until it is dropped.
fn long_lived(body: Body, shutdown: BoxFuture<'static, ()>, guards: (Permit<1>, LongLivedStream)) -> Body {
    if body.is_end_stream() {
        return body;
    }
    let state = Some((BodyStream::new(body), shutdown, guards));
    let frames = stream::unfold(state, |state| async move {
        let (mut frames, mut shutdown, guards) = state?;
        tokio::select! {
            biased;
            frame = frames.next() => Some((frame?, Some((frames, shutdown, guards)))),
            () = &mut shutdown => {
                let status = status::status(&Problem::unavailable("the edge is stopping"));
                Some((Ok(protocol::trailers(&status)), None))
            }
        }
    });
    Body::new(StreamBody::new(frames))
}

/// Refuses a request whose body was not read.
async fn refused_unread(request: Request<Incoming>, problem: &Problem, id: RequestId) -> Response<Body> {
    let mut body = request.into_body().into_data_stream();
    unread_body::drain(&mut body).await;
    unread_body::discard(body);
    refused(problem, id)
}

fn refused(problem: &Problem, id: RequestId) -> Response<Body> {
    let mut response = status::refused(problem);
    response.headers_mut().insert(X_REQUEST_ID, id.into_value());
    response
}

fn service<S>(service: S) -> StandardService
where
    S: tower_service::Service<Request<Incoming>, Response = Response<Body>, Error = Infallible>
        + Clone
        + Send
        + Sync
        + 'static,
    S::Future: Send + 'static,
{
    Box::new(move |request| {
        let answered = service.clone().call(request);
        async move { answered.await.unwrap_or_else(|never| match never {}) }.boxed()
    })
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use hyper::body::Frame;
    use tokio::sync::oneshot;
    use tonic::Status;

    use super::*;
    use crate::connection::ConnectionState;

    const OWNER: [Owner; 1] = [Owner::Operation("Watch")];

    #[tokio::test]
    async fn a_shutdown_ends_a_long_lived_stream_with_a_status_and_frees_its_permit() {
        let (semaphore, connection) = (FairSemaphore::new(1), Arc::new(ConnectionState::default()));
        let guards = (semaphore.try_acquire(OWNER).unwrap(), connection.mark_long_lived());
        let (stop, stopped) = oneshot::channel::<()>();
        let silent = StreamBody::new(stream::pending::<Result<Frame<Bytes>, Status>>());
        let mut body = long_lived(Body::new(silent), stopped.map(drop).boxed(), guards);
        assert!(body.frame().now_or_never().is_none());
        assert!(semaphore.try_acquire(OWNER).is_err() && connection.has_long_lived_stream());
        stop.send(()).unwrap();
        let trailers = body.frame().await.unwrap().unwrap().into_trailers().unwrap();
        assert_eq!(trailers["grpc-status"], "14");
        assert!(body.frame().await.is_none());
        assert!(semaphore.try_acquire(OWNER).is_ok() && !connection.has_long_lived_stream());
    }
}
