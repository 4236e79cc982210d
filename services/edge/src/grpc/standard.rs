//! The door of gRPC: which path is an operation, and the services that every gRPC server has, health and reflection.

use std::{collections::HashMap, convert::Infallible, sync::Arc, time::Duration};

use actix::Addr;
use futures_util::{FutureExt, future::BoxFuture};
use http::{Request, Response};
use hyper::body::Incoming;
use mesh_bus::Bus;
use mesh_chassis::Failure;
use mesh_problem::{Code, NOT_MAPPED, Problem};
use proto_msgs::{Contract, DESCRIPTORS, OperationInfo};
use tonic::{body::Body, server::NamedService};

use super::{Call, health::Health, standing::Standing, status};
use crate::{
    answer::{RequestId, X_REQUEST_ID},
    gateway::Gateway,
    metrics::{Limited, Metrics},
    room::{Holder, Room},
    visit::Visit,
};

/// Longest message to one of these services.
const MESSAGE_BYTES: usize = 64 << 10;

/// Streams of these services at the same time.
const STANDING_AT_MOST: usize = 1024;

/// The service of health.
const VITAL: &str = "grpc.health.v1.Health";

/// A service of a library.
type Served = Box<dyn Fn(Request<Incoming>) -> BoxFuture<'static, Response<Body>> + Send + Sync>;

/// Answers every gRPC request.
pub(crate) struct Grpc {
    gateway: Addr<Gateway>,
    operations: HashMap<String, &'static OperationInfo>,
    standard: HashMap<&'static str, Served>,
    /// Room for streams of the standard services.
    room: Arc<Room>,
    health: Arc<Health>,
    metrics: Metrics,
}

impl Grpc {
    /// Makes the services and begins to look who is there.
    pub(crate) fn new(gateway: Addr<Gateway>, bus: Bus, metrics: Metrics) -> Result<Arc<Self>, Failure> {
        let mut standard = HashMap::new();
        let (reporter, health) = tonic_health::server::health_reporter();
        serve(&mut standard, health.max_decoding_message_size(MESSAGE_BYTES));
        let reflection = || {
            tonic_reflection::server::Builder::configure()
                .register_encoded_file_descriptor_set(DESCRIPTORS)
                .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        };
        serve(&mut standard, reflection().build_v1()?.max_decoding_message_size(MESSAGE_BYTES));
        serve(&mut standard, reflection().build_v1alpha()?.max_decoding_message_size(MESSAGE_BYTES));
        let health = Health::follow(bus, reporter);
        let operations = Contract::get().operations().iter().map(|row| (row.rpc(), row)).collect();
        let room = Room::new(STANDING_AT_MOST);
        Ok(Arc::new(Self { gateway, operations, standard, room, health, metrics }))
    }

    /// Answers a request.
    pub(crate) async fn answer(self: Arc<Self>, request: Request<Incoming>, visit: Visit) -> Response<Body> {
        if let Some(operation) = self.operations.get(request.uri().path()) {
            let id = RequestId::of(request.headers());
            let call = Call::new(operation, request, visit, id.clone());
            return match self.gateway.send(call).await {
                Ok(response) => response,
                Err(error) => {
                    let problem = Problem::unavailable("the edge is stopping").caused_by(error.to_string());
                    refused(&problem, id)
                }
            };
        }
        let id = RequestId::of(request.headers());
        let service = request.uri().path().split('/').nth(1).unwrap_or_default();
        let Some((name, served)) = self.standard.get_key_value(service) else {
            self.metrics.called("none", Code::Unimplemented.number(), Duration::ZERO);
            return refused(&Problem::new(Code::Unimplemented, NOT_MAPPED, "no such method"), id);
        };
        // Who watches over the edge is answered whatever came from its address before.
        if *name != VITAL
            && let Some(problem) = visit.rate.and_then(|rate| rate.refusal())
        {
            self.metrics.limited(Limited::Rate).inc();
            self.metrics.called(name, problem.code.number(), Duration::ZERO);
            return refused(&problem, id);
        }
        let Ok(place) = self.room.enter([Holder::Address(visit.client)]) else {
            let reason = "too many streams of this service are open";
            return refused(&Problem::new(Code::ResourceExhausted, NOT_MAPPED, reason), id);
        };
        let started = std::time::Instant::now();
        let response = served(request).await;
        let code = response.headers().get("grpc-status").and_then(|code| code.to_str().ok()?.parse().ok());
        self.metrics.called(name, code.unwrap_or(0), started.elapsed());
        let stop = self.health.stopped();
        response.map(|body| Body::new(Standing::new(body, stop, place)))
    }

    /// Says everywhere that nothing is served here any more, and ends the streams that would stand for ever.
    pub(crate) async fn stop(&self) {
        self.health.stop().await;
    }
}

/// The service that every gRPC server has and a path leads to.
pub(crate) fn standard_service(path: &str) -> Option<&'static str> {
    let service = path.split('/').nth(1)?;
    let all = [VITAL, "grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"];
    all.into_iter().find(|standard| *standard == service)
}

fn refused(problem: &Problem, id: RequestId) -> Response<Body> {
    let mut response = status::refused(problem);
    response.headers_mut().insert(X_REQUEST_ID, id.into_value());
    response
}

fn serve<S>(into: &mut HashMap<&'static str, Served>, service: S)
where
    S: tower_service::Service<Request<Incoming>, Response = Response<Body>, Error = Infallible>
        + NamedService
        + Clone
        + Send
        + Sync
        + 'static,
    S::Future: Send + 'static,
{
    let served: Served = Box::new(move |request| {
        let answered = service.clone().call(request);
        async move { answered.await.unwrap_or_else(|never| match never {}) }.boxed()
    });
    into.insert(S::NAME, served);
}
