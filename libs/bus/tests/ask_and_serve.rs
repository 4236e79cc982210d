//! Asking and serving over a real bus: long replies, overload, deadlines, askers that go away, drain.

#![allow(clippy::unwrap_used)]

use std::{
    cell::RefCell,
    future::Future,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use actix::{Actor, Addr, Context, Handler};
use mesh_bus::{
    Answered, Answering, Ask, AskOptions, Bus, BusConfig, Credentials, Encoding, Format, Limits, Router,
    Serving,
};
use mesh_problem::{Code, Problem};
use prometheus_client::registry::Registry;
use prost::Message;
use proto_msgs::v2::{GetWithdrawalReply, GetWithdrawalRequest, Withdrawal};
use tokio::{sync::Notify, time::timeout};

const PATIENCE: Duration = Duration::from_secs(20);

/// Answers as the id says.
#[derive(Clone, Default)]
struct Scripted {
    gate: Rc<Notify>,
    begun: Rc<Notify>,
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
    type Result = Answering<GetWithdrawalReply>;

    fn handle(&mut self, Ask(request): Ask<GetWithdrawalRequest>, _: &mut Context<Self>) -> Self::Result {
        let Self { gate, begun, running } = self.clone();
        running.fetch_add(1, Ordering::SeqCst);
        let counted = Counted(running);
        Answering::by(async move {
            let _counted = counted;
            begun.notify_one();
            let id = match request.id.as_str() {
                "wait" => {
                    gate.notified().await;
                    request.id
                }
                "long" => "x".repeat(5 << 20),
                "missing" => {
                    return Err(Problem::not_found(150_001, "no such withdrawal").caused_by("secret"));
                }
                _ => request.id,
            };
            let withdrawal = Some(Withdrawal { id, ..Default::default() });
            Ok(Answered::at(Some((7, 1_000)), GetWithdrawalReply { withdrawal }))
        })
    }
}

struct Served {
    bus: Bus,
    script: Scripted,
    serving: Serving,
}

/// Runs a test on an actor system with one replica of `query`.
fn with_service<F: Future<Output = ()>>(in_flight: usize, test: impl FnOnce(Served) -> F) {
    actix::System::new().block_on(async {
        let bus = connect(&nuid::next()).await;
        let (script, serving) = replica(&bus, in_flight).await;
        timeout(PATIENCE, test(Served { bus, script, serving })).await.expect("the test hangs");
    });
}

async fn connect(prefix: &str) -> Bus {
    let server = mesh_testbed::nats().await;
    let bus = Bus::connect(BusConfig {
        url: server.url().to_owned(),
        credentials: server.credentials_file().map(|file| Credentials::read(file).unwrap()),
        prefix: prefix.to_owned(),
        name: "test".to_owned(),
        version: "0.0.0".to_owned(),
    });
    let bus = bus.await.unwrap();
    timeout(PATIENCE, bus.until_connected()).await.unwrap();
    bus
}

async fn replica(bus: &Bus, in_flight: usize) -> (Scripted, Serving) {
    let script = Scripted::default();
    let address: Addr<Scripted> = script.clone().start();
    let limits = Limits { in_flight, timeout: PATIENCE };
    let registry = RefCell::new(Registry::default());
    let router = Router::new(bus.clone(), "query", address, limits, &mut registry.borrow_mut());
    let serving = router.on::<GetWithdrawalRequest>().serve(async {});
    while !serving.door().is_open() {
        tokio::task::yield_now().await;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    (script, serving)
}

fn request(id: &str) -> GetWithdrawalRequest {
    GetWithdrawalRequest { id: id.to_owned() }
}

/// Waits until no handler works any more.
async fn until_idle(script: &Scripted) {
    while script.running.load(Ordering::SeqCst) > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[test]
fn a_reply_carries_the_head_it_was_read_at() {
    with_service(8, |Served { bus, serving, .. }| async move {
        let answered = bus.ask_typed(&request("a"), PATIENCE).await.unwrap();
        assert_eq!(answered.reply.withdrawal.unwrap().id, "a");
        let head = answered.head.unwrap();
        assert_eq!((head.height, head.time_ns), (7, 1_000));
        serving.drain(PATIENCE).await;
    });
}

#[test]
fn a_reply_longer_than_a_message_arrives_whole() {
    with_service(8, |Served { bus, serving, .. }| async move {
        let _serving = serving;
        for gzip in [false, true] {
            let options = AskOptions {
                encoding: Encoding { format: Format::Json, gzip },
                timeout: PATIENCE,
                request_id: "r".to_owned(),
                traceparent: None,
                repeatable: true,
            };
            let message = request("long").encode_to_vec();
            let reply = bus.ask("query", "GetWithdrawal", message.into(), &options).await.unwrap();
            assert_eq!(reply.gzipped, gzip);
            assert_eq!(reply.parts.len() > 1, !gzip);
            if !gzip {
                let json: serde_json::Value = serde_json::from_slice(&reply.parts.concat()).unwrap();
                assert_eq!(json["withdrawal"]["id"].as_str().unwrap().len(), 5 << 20);
            }
        }
    });
}

#[test]
fn a_problem_arrives_without_its_cause() {
    with_service(8, |Served { bus, serving, .. }| async move {
        let _serving = serving;
        let problem = bus.ask_typed(&request("missing"), PATIENCE).await.unwrap_err();
        assert_eq!(problem, Problem::not_found(150_001, "no such withdrawal"));
    });
}

#[test]
fn nobody_to_answer_is_said_at_once() {
    with_service(8, |Served { bus, serving, .. }| async move {
        serving.drain(PATIENCE).await;
        let problem = bus.ask_typed(&request("a"), PATIENCE).await.unwrap_err();
        assert_eq!(problem.code, Code::Unavailable);
    });
}

#[test]
fn a_full_replica_turns_requests_away_at_once() {
    with_service(1, |Served { bus, script, serving }| async move {
        let _serving = serving;
        let waiting = request("wait");
        let first = bus.ask_typed(&waiting, PATIENCE);
        tokio::pin!(first);
        tokio::select! {
            _ = &mut first => panic!("answered before its gate opened"),
            () = script.begun.notified() => {}
        }
        let problem = bus.ask_typed(&request("a"), PATIENCE).await.unwrap_err();
        assert_eq!(problem.code, Code::Unavailable);
        assert!(problem.details[0].message.contains("busy"), "{problem}");
        script.gate.notify_one();
        assert!(first.await.is_ok());
    });
}

#[test]
fn work_past_its_deadline_is_dropped() {
    with_service(8, |Served { bus, script, serving }| async move {
        let _serving = serving;
        let problem = bus.ask_typed(&request("wait"), Duration::from_millis(50)).await.unwrap_err();
        assert_eq!(problem.code, Code::DeadlineExceeded);
        until_idle(&script).await;
    });
}

#[test]
fn work_whose_asker_went_away_is_dropped() {
    with_service(8, |Served { bus, script, serving }| async move {
        let _serving = serving;
        let waiting = request("wait");
        tokio::select! {
            _ = bus.ask_typed(&waiting, PATIENCE) => panic!("answered before its gate opened"),
            () = script.begun.notified() => {}
        }
        assert_eq!(script.running.load(Ordering::SeqCst), 1);
        until_idle(&script).await;
    });
}

#[test]
fn a_draining_replica_finishes_what_it_has_and_takes_nothing_new() {
    with_service(8, |Served { bus, script, serving }| async move {
        let waiting = request("wait");
        let running = bus.ask_typed(&waiting, PATIENCE);
        tokio::pin!(running);
        tokio::select! {
            _ = &mut running => panic!("answered before its gate opened"),
            () = script.begun.notified() => {}
        }
        let drained = serving.drain(PATIENCE);
        tokio::pin!(drained);
        let late = request("late");
        let refused = async {
            loop {
                match bus.ask_typed(&late, PATIENCE).await {
                    Err(problem) => return problem,
                    Ok(_) => tokio::task::yield_now().await,
                }
            }
        };
        let problem = tokio::select! {
            () = &mut drained => panic!("drained before its request was answered"),
            problem = refused => problem,
        };
        assert_eq!(problem.code, Code::Unavailable);
        script.gate.notify_one();
        let (answered, ()) = tokio::join!(running, drained);
        assert_eq!(answered.unwrap().reply.withdrawal.unwrap().id, "wait");
    });
}
