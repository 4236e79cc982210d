//! Asking and serving over a real bus: long replies, overload, deadlines, askers that go away, drain.

mod replicas;
mod requests;

use std::{
    cell::RefCell,
    collections::HashMap,
    future::Future,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use actix::{Actor, Addr, Context, Handler};
use futures_util::StreamExt;
use mesh_bus::{
    Announcement, Answer, AnswerFuture, Ask, AskOptions, Bus, Credentials, Encoding, Format, Limits, Router,
    ServiceHandle, permissions::EDGE,
};
use mesh_problem::{Code, Problem};
use mesh_telemetry::Registry;
use mesh_testbed::eventually;
use prost::Message;
use proto_msgs::v2::{
    GetWithdrawalReply, GetWithdrawalRequest, ListAccountsReply, ListAccountsRequest, Withdrawal,
};
use tokio::{sync::Notify, time::timeout};

const TEST_TIMEOUT: Duration = Duration::from_secs(20);

/// Answers by the instruction in the request's id.
#[derive(Clone, Default)]
struct Scripted {
    gate: Rc<Notify>,
    started: Rc<Notify>,
    running: Arc<AtomicUsize>,
}

/// Counts work that has not been finished or dropped.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Actor for Scripted {
    type Context = Context<Self>;
}

impl Handler<Ask<GetWithdrawalRequest>> for Scripted {
    type Result = AnswerFuture<GetWithdrawalReply>;

    fn handle(
        &mut self,
        Ask(request, scope): Ask<GetWithdrawalRequest>,
        _: &mut Context<Self>,
    ) -> Self::Result {
        let Self { gate, started, running } = self.clone();
        running.fetch_add(1, Ordering::SeqCst);
        let counted = Counted(running);
        scope.run(async move {
            let _counted = counted;
            started.notify_one();
            let id = match request.id.as_str() {
                "wait" => {
                    gate.notified().await;
                    request.id
                }
                "long" => "x".repeat(5 << 20),
                "missing" => {
                    return Err(Problem::not_found(150_001, "no such withdrawal").caused_by("secret"));
                }
                "lacking" => return Err(Problem::unavailable("the replica lacks a part").local()),
                _ => request.id,
            };
            let withdrawal = Some(Withdrawal { id, ..Default::default() });
            Ok(Answer::at(Some((7, 1_000)), GetWithdrawalReply { withdrawal }))
        })
    }
}

impl Handler<Ask<ListAccountsRequest>> for Scripted {
    type Result = AnswerFuture<ListAccountsReply>;

    fn handle(&mut self, Ask(_, scope): Ask<ListAccountsRequest>, _: &mut Context<Self>) -> Self::Result {
        scope.run(async { Ok(Answer::at(Some((7, 1_000)), ListAccountsReply::default())) })
    }
}

struct Served {
    bus: Bus,
    script: Scripted,
    serving: ServiceHandle,
}

/// Runs a test on an actor system with one replica of `query`.
fn with_service<F: Future<Output = ()>>(in_flight: usize, test: impl FnOnce(Served) -> F) {
    actix::System::new().block_on(async {
        let (_, bus, script, serving) = connected(in_flight).await;
        timeout(TEST_TIMEOUT, test(Served { bus, script, serving })).await.expect("the test hangs");
    });
}

/// A subject prefix, a client, and a replica.
async fn connected(in_flight: usize) -> (String, Bus, Scripted, ServiceHandle) {
    let prefix = nuid::next().to_string();
    let bus = connect(&prefix).await;
    let (script, serving) = replica(&prefix, in_flight).await;
    (prefix, bus, script, serving)
}

/// Connects a client.
async fn connect(prefix: &str) -> Bus {
    connect_as(EDGE, prefix).await
}

async fn connect_as(user: &str, prefix: &str) -> Bus {
    let bus = Bus::connect(mesh_testbed::nats().await.config(user, prefix)).await.unwrap();
    timeout(TEST_TIMEOUT, bus.until_connected()).await.unwrap();
    bus
}

async fn replica(prefix: &str, in_flight: usize) -> (Scripted, ServiceHandle) {
    limited_replica(prefix, Limits { in_flight, per_operation: in_flight, timeout: TEST_TIMEOUT }).await
}

async fn until_ready(serving: &ServiceHandle) {
    eventually(TEST_TIMEOUT, "the replica does not get ready", async || serving.readiness().is_ready()).await;
}

async fn limited_replica(prefix: &str, limits: Limits) -> (Scripted, ServiceHandle) {
    serve(connect_as("query", prefix).await, limits).await
}

async fn serve(bus: Bus, limits: Limits) -> (Scripted, ServiceHandle) {
    let script = Scripted::default();
    let address: Addr<Scripted> = script.clone().start();
    let registry = RefCell::new(Registry::default());
    let router = Router::new(bus, "query", address, limits, &mut registry.borrow_mut());
    let serving = router.on::<GetWithdrawalRequest>().on::<ListAccountsRequest>().serve(async {});
    until_ready(&serving).await;
    (script, serving)
}

/// The options of a request in protobuf.
pub(crate) fn options(timeout: Duration, repeatable: bool) -> AskOptions {
    let (encoding, request_id) = (Encoding::default(), "r".to_owned());
    AskOptions { encoding, timeout, request_id, client: 0, traceparent: None, repeatable }
}

fn request(id: &str) -> GetWithdrawalRequest {
    GetWithdrawalRequest { id: id.to_owned(), ..Default::default() }
}

/// Waits until no handler is running.
async fn until_idle(script: &Scripted) {
    eventually(TEST_TIMEOUT, "a handler runs on", async || script.running.load(Ordering::SeqCst) == 0).await;
}

/// A client without the rules of [`Bus`].
async fn client(user: &str) -> async_nats::Client {
    let config = mesh_testbed::nats().await.config(user, "");
    let mut options = async_nats::ConnectOptions::new();
    if let Some(Credentials::Password { user, password }) = config.credentials {
        options = options.user_and_password(user, password);
    }
    if let Some(file) = config.tls_ca {
        options = options.add_root_certificates(file);
    }
    options.connect(config.url).await.unwrap()
}

/// A member of the queue group that takes requests and does nothing, like a frozen replica.
async fn frozen(bus_prefix: &str) -> (async_nats::Client, async_nats::Subscriber) {
    let client = client("query").await;
    let subject = format!("{bus_prefix}.query.GetWithdrawal");
    let requests = client.queue_subscribe(subject, "query".to_owned()).await.unwrap();
    // Once its own message arrives, the server has its subscription.
    let own = format!("{bus_prefix}.query._.itself");
    let mut heard = client.subscribe(own.clone()).await.unwrap();
    client.publish(own, "".into()).await.unwrap();
    timeout(TEST_TIMEOUT, heard.next()).await.unwrap();
    (client, requests)
}
