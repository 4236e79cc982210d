//! Asking and serving over a real bus: long replies, overload, deadlines, askers that go away, drain.

#![allow(clippy::unwrap_used)]

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
use prost::Message;
use proto_msgs::v2::{
    GetWithdrawalReply, GetWithdrawalRequest, ListAccountsReply, ListAccountsRequest, Withdrawal,
};
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
    type Result = AnswerFuture<GetWithdrawalReply>;

    fn handle(
        &mut self,
        Ask(request, scope): Ask<GetWithdrawalRequest>,
        _: &mut Context<Self>,
    ) -> Self::Result {
        let Self { gate, begun, running } = self.clone();
        running.fetch_add(1, Ordering::SeqCst);
        let counted = Counted(running);
        scope.run(async move {
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
        let prefix = nuid::next();
        let bus = connect(&prefix).await;
        let (script, serving) = replica(&prefix, in_flight).await;
        timeout(PATIENCE, test(Served { bus, script, serving })).await.expect("the test hangs");
    });
}

/// Connects who asks.
async fn connect(prefix: &str) -> Bus {
    connect_as(EDGE, prefix).await
}

async fn connect_as(user: &str, prefix: &str) -> Bus {
    let bus = Bus::connect(mesh_testbed::nats().await.config(user, prefix)).await.unwrap();
    timeout(PATIENCE, bus.until_connected()).await.unwrap();
    bus
}

async fn replica(prefix: &str, in_flight: usize) -> (Scripted, ServiceHandle) {
    limited_replica(prefix, Limits { in_flight, per_operation: in_flight, timeout: PATIENCE }).await
}

async fn limited_replica(prefix: &str, limits: Limits) -> (Scripted, ServiceHandle) {
    let bus = connect_as("query", prefix).await;
    let script = Scripted::default();
    let address: Addr<Scripted> = script.clone().start();
    let registry = RefCell::new(Registry::default());
    let router = Router::new(bus, "query", address, limits, &mut registry.borrow_mut());
    let serving = router.on::<GetWithdrawalRequest>().on::<ListAccountsRequest>().serve(async {});
    while !serving.readiness().is_ready() {
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
            let reply =
                bus.ask(&bus.target("query", "GetWithdrawal"), message.into(), &options).await.unwrap();
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

/// Names of the replicas that beat.
#[derive(serde::Serialize, serde::Deserialize)]
struct Beating {
    id: String,
}

impl Announcement for Beating {
    const TOPIC: &'static str = "replicas.query";
}

#[test]
fn one_operation_may_not_have_all_places() {
    actix::System::new().block_on(async {
        let prefix = nuid::next();
        let bus = connect(&prefix).await;
        let limits = Limits { in_flight: 4, per_operation: 2, timeout: PATIENCE };
        let (script, serving) = limited_replica(&prefix, limits).await;
        let _serving = serving;
        let waiting = request("wait");
        let mut slow = Vec::new();
        for _ in 0..2 {
            let (bus, waiting) = (bus.clone(), waiting.clone());
            slow.push(actix::spawn(async move { bus.ask_typed(&waiting, PATIENCE).await }));
            timeout(PATIENCE, script.begun.notified()).await.unwrap();
        }
        let problem = bus.ask_typed(&request("a"), PATIENCE).await.unwrap_err();
        assert!(problem.details[0].message.contains("busy"), "{problem}");
        assert!(bus.ask_typed(&ListAccountsRequest::default(), PATIENCE).await.is_ok(), "another operation");
        for asked in slow {
            script.gate.notify_one();
            assert!(asked.await.unwrap().is_ok());
        }
        assert!(bus.ask_typed(&request("a"), PATIENCE).await.is_ok());
    });
}

#[test]
fn what_full_replicas_turn_away_goes_to_the_one_that_has_room() {
    actix::System::new().block_on(async {
        let prefix = nuid::next();
        let bus = connect(&prefix).await;
        let target = bus.target("query", "GetWithdrawal");
        let once = AskOptions {
            encoding: Encoding::default(),
            timeout: PATIENCE,
            request_id: "r".to_owned(),
            traceparent: None,
            repeatable: false,
        };
        let (mut busy, mut replicas) = (Vec::new(), Vec::new());
        let mut beats = bus.subscribe::<Beating>().await.unwrap();
        let mut heard: HashMap<String, u32> = HashMap::new();
        for _ in 0..4 {
            let (script, serving) = replica(&prefix, 1).await;
            let begun = Rc::clone(&script.begun);
            replicas.push((script, serving));
            // Whoever listens has heard of one that is heard for the second time here.
            while heard.len() < replicas.len() || heard.values().any(|times| *times < 2) {
                let beat = timeout(PATIENCE, beats.next()).await.expect("they beat").unwrap();
                *heard.entry(beat.id).or_default() += 1;
            }
            if replicas.len() < 4 {
                let (bus, target, once) = (bus.clone(), Arc::clone(&target), once.clone());
                let message = request("wait").encode_to_vec();
                busy.push(actix::spawn(async move { bus.ask(&target, message.into(), &once).await }));
                timeout(PATIENCE, begun.notified()).await.expect("the one with room gets it");
            }
        }
        for _ in 0..40 {
            bus.ask_typed(&request("a"), PATIENCE).await.unwrap();
        }
        for (script, _) in &replicas {
            script.gate.notify_one();
        }
        for asked in busy {
            assert!(asked.await.unwrap().is_ok());
        }
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

/// Somebody in the queue group who takes requests and does nothing, like a replica that froze.
async fn frozen(bus_prefix: &str) -> (async_nats::Client, async_nats::Subscriber) {
    let config = mesh_testbed::nats().await.config("query", bus_prefix);
    let mut options = async_nats::ConnectOptions::new();
    if let Some(Credentials::Password { user, password }) = config.credentials {
        options = options.user_and_password(user, password);
    }
    if let Some(file) = config.tls_ca {
        options = options.add_root_certificates(file);
    }
    let client = options.connect(config.url).await.unwrap();
    let subject = format!("{bus_prefix}.query.GetWithdrawal");
    let requests = client.queue_subscribe(subject, "query".to_owned()).await.unwrap();
    // Once it hears itself, the server has its subscription.
    let own = format!("{bus_prefix}.query._.itself");
    let mut heard = client.subscribe(own.clone()).await.unwrap();
    client.publish(own, "".into()).await.unwrap();
    timeout(PATIENCE, heard.next()).await.unwrap();
    (client, requests)
}

#[test]
fn a_read_that_a_frozen_replica_took_is_answered_by_another() {
    actix::System::new().block_on(async {
        let prefix = nuid::next();
        let bus = connect(&prefix).await;
        let (_script, serving) = replica(&prefix, 64).await;
        let (_client, _requests) = frozen(&prefix).await;
        // The first ask begins to listen for replicas; the beat that tells of the living one comes within 100
        // ms.
        let asks = (0..40).map(|_| async {
            let begun = std::time::Instant::now();
            bus.ask_typed(&request("a"), PATIENCE).await.unwrap();
            begun.elapsed()
        });
        let took = timeout(PATIENCE, futures_util::future::join_all(asks)).await.expect("the test hangs");
        let late = took.iter().filter(|took| **took > Duration::from_millis(90)).count();
        assert!((1..40).contains(&late), "{late} of 40 went to the frozen one first");
        serving.drain(PATIENCE).await;
    });
}

#[test]
fn a_submission_is_never_put_twice() {
    actix::System::new().block_on(async {
        let prefix = nuid::next();
        let bus = connect(&prefix).await;
        let (_client, requests) = frozen(&prefix).await;
        let options = AskOptions {
            encoding: Encoding::default(),
            timeout: Duration::from_millis(400),
            request_id: "r".to_owned(),
            traceparent: None,
            repeatable: false,
        };
        let target = bus.target("query", "GetWithdrawal");
        let problem = bus.ask(&target, request("a").encode_to_vec().into(), &options).await.unwrap_err();
        assert_eq!(problem.code, Code::DeadlineExceeded);
        let put = requests.take_until(tokio::time::sleep(Duration::from_millis(50)));
        assert_eq!(put.count().await, 1);
    });
}

#[test]
fn a_replica_that_leaves_answers_whatever_the_bus_gave_it() {
    actix::System::new().block_on(async {
        let prefix = nuid::next();
        let asker = connect(&prefix).await;
        let (_script, serving) = replica(&prefix, 1000).await;
        let target = asker.target("query", "GetWithdrawal");
        for round in 0..15 {
            let (_script, leaving) = replica(&prefix, 1000).await;
            let asks = (0..300).map(|number| {
                let (asker, target) = (&asker, &target);
                async move {
                    tokio::time::sleep(Duration::from_micros(200 * number)).await;
                    let options = AskOptions {
                        encoding: Encoding::default(),
                        timeout: Duration::from_secs(5),
                        request_id: "r".to_owned(),
                        traceparent: None,
                        repeatable: false,
                    };
                    asker.ask(target, request("a").encode_to_vec().into(), &options).await
                }
            });
            let drained = async {
                tokio::time::sleep(Duration::from_millis(25)).await;
                leaving.drain(PATIENCE).await;
            };
            let (answers, ()) =
                timeout(PATIENCE, async { tokio::join!(futures_util::future::join_all(asks), drained) })
                    .await
                    .expect("the test hangs");
            let lost: Vec<_> = answers.into_iter().filter_map(Result::err).collect();
            assert!(lost.is_empty(), "round {round}: {} of 300 lost: {:?}", lost.len(), lost[0]);
        }
        serving.drain(PATIENCE).await;
    });
}

#[test]
fn a_submission_that_nobody_got_goes_to_somebody_who_listens() {
    actix::System::new().block_on(async {
        let prefix = nuid::next();
        let bus = connect(&prefix).await;
        let (_script, serving) = replica(&prefix, 64).await;
        // It listens under its name only, so that nothing is given to it that nobody answers.
        let (client, mut requests) = frozen(&prefix).await;
        requests.unsubscribe().await.unwrap();
        let _by_name = client.subscribe(format!("{prefix}.query.*.frozen")).await.unwrap();
        let target = bus.target("query", "GetWithdrawal");
        // One that is silent makes askers go by name; one that has just left still counts as there.
        let beat = async |id: &str| {
            let beat = format!(r#"{{"id":"{id}","is_taking":true}}"#);
            client.publish(format!("{prefix}.events.replicas.query"), beat.into()).await.unwrap();
        };
        beat("frozen").await;
        let asked = async {
            tokio::time::sleep(Duration::from_millis(600)).await;
            for _ in 0..30 {
                let options = AskOptions {
                    encoding: Encoding::default(),
                    timeout: PATIENCE,
                    request_id: "r".to_owned(),
                    traceparent: None,
                    repeatable: false,
                };
                bus.ask(&target, request("a").encode_to_vec().into(), &options).await.unwrap();
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let beats = async {
            loop {
                beat("left").await;
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::select! {
            asked = timeout(PATIENCE, asked) => asked.expect("the test hangs"),
            () = beats => {}
        }
        serving.drain(PATIENCE).await;
    });
}

#[test]
fn a_replica_that_is_known_to_be_silent_gets_no_requests() {
    actix::System::new().block_on(async {
        let prefix = nuid::next();
        let bus = connect(&prefix).await;
        let (_script, serving) = replica(&prefix, 64).await;
        let (client, mut requests) = frozen(&prefix).await;
        // It listens under its name, so that it counts as frozen, not as gone.
        let _by_name = client.subscribe(format!("{prefix}.query.*.frozen")).await.unwrap();
        bus.ask_typed(&request("a"), PATIENCE).await.unwrap();
        let beat = r#"{"id":"frozen","is_taking":true}"#;
        client.publish(format!("{prefix}.events.replicas.query"), beat.into()).await.unwrap();
        client.flush().await.unwrap();
        tokio::time::sleep(Duration::from_millis(600)).await;
        while let Ok(Some(_)) = timeout(Duration::from_millis(5), requests.next()).await {}
        for _ in 0..40 {
            bus.ask_typed(&request("a"), PATIENCE).await.unwrap();
        }
        let put = timeout(Duration::from_millis(50), requests.next()).await;
        assert!(put.is_err(), "it was asked");
        serving.drain(PATIENCE).await;
    });
}
