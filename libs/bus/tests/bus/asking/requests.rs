//! One replica: replies, problems, limits, deadlines, drain.

use std::net::TcpListener;

use mesh_launcher::{
    process::{Process, ProcessSpec},
    servers::find_nats,
};

use super::*;

#[test]
fn a_reply_carries_the_head_it_was_read_at() {
    with_service(8, |Served { bus, serving, .. }| async move {
        let answered = bus.ask_typed(&request("a"), TEST_TIMEOUT).await.unwrap();
        assert_eq!(answered.reply.withdrawal.unwrap().id, "a");
        let head = answered.head.unwrap();
        assert_eq!((head.height, head.time_ns), (7, 1_000));
        serving.drain(TEST_TIMEOUT).await;
    });
}

#[test]
fn a_reply_longer_than_a_message_arrives_whole() {
    with_service(8, async |Served { bus, serving: _serving, .. }| {
        for gzip in [false, true] {
            let encoding = Encoding { format: Format::Json, gzip };
            let options = AskOptions { encoding, ..options(TEST_TIMEOUT, true) };
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
    with_service(8, async |Served { bus, serving: _serving, .. }| {
        let problem = bus.ask_typed(&request("missing"), TEST_TIMEOUT).await.unwrap_err();
        assert_eq!(problem, Problem::not_found(150_001, "no such withdrawal"));
    });
}

#[test]
fn no_replica_is_reported_at_once() {
    with_service(8, |Served { bus, serving, .. }| async move {
        serving.drain(TEST_TIMEOUT).await;
        let problem = bus.ask_typed(&request("a"), TEST_TIMEOUT).await.unwrap_err();
        assert_eq!(problem.code, Code::Unavailable);
    });
}

#[test]
fn a_request_waits_for_its_turn_at_a_full_replica_unless_it_would_wait_too_long() {
    with_service(1, async |Served { bus, script, serving: _serving }| {
        let waiting = request("wait");
        let first = bus.ask_typed(&waiting, TEST_TIMEOUT);
        tokio::pin!(first);
        tokio::select! {
            _ = &mut first => panic!("answered before its gate opened"),
            () = script.started.notified() => {}
        }
        is_refused_soon(&bus).await;
        let other = request("a");
        let second = bus.ask_typed(&other, TEST_TIMEOUT);
        tokio::pin!(second);
        tokio::select! {
            _ = &mut second => panic!("answered before its turn"),
            () = is_refused_soon(&bus) => {}
        }
        script.gate.notify_one();
        assert!(first.await.is_ok());
        assert!(second.await.is_ok());
    });
}

#[actix::test]
async fn a_request_is_sent_to_every_replica_while_they_lack_what_others_may_have() {
    let (prefix, bus, first, _first_serving) = connected(8).await;
    let (second, _second_serving) = replica(&prefix, 8).await;
    // When the second heartbeat of each has arrived here, other listeners have its first one.
    let mut beats = bus.subscribe::<Beating>().await.unwrap();
    let mut heard: HashMap<String, u32> = HashMap::new();
    while heard.len() < 2 || heard.values().any(|times| *times < 2) {
        bus.ask_typed(&request("a"), TEST_TIMEOUT).await.unwrap();
        let beat = timeout(TEST_TIMEOUT, beats.next()).await.expect("they beat").unwrap();
        *heard.entry(beat.id).or_default() += 1;
    }
    // Of the requests before.
    for script in [&first, &second] {
        let _ = timeout(Duration::from_millis(1), script.started.notified()).await;
    }
    let problem = bus.ask_typed(&request("lacking"), TEST_TIMEOUT).await.unwrap_err();
    let shown = (problem.code, problem.details[0].message.as_str());
    assert_eq!(shown, (Code::Unavailable, "the replica lacks a part"), "it names what is lacking");
    for script in [first, second] {
        timeout(TEST_TIMEOUT, script.started.notified()).await.expect("a replica is left out");
    }
}

/// Sends requests with little time, until one is refused: none has ended for longer than half of that time.
async fn is_refused_soon(bus: &Bus) {
    let refused = async || {
        let answered = bus.ask_typed(&request("a"), Duration::from_millis(50)).await;
        answered.is_err_and(|problem| problem.details[0].message.contains("busy"))
    };
    eventually(TEST_TIMEOUT, "nothing is refused", refused).await;
}

/// A heartbeat, of which only the name is read.
#[derive(serde::Serialize, serde::Deserialize)]
struct Beating {
    id: String,
}

impl Announcement for Beating {
    const TOPIC: &'static str = "replicas.query";
}

#[actix::test]
async fn one_operation_may_not_have_all_places() {
    let prefix = nuid::next();
    let bus = connect(&prefix).await;
    let limits = Limits { in_flight: 2, per_operation: 2, timeout: TEST_TIMEOUT };
    let (script, serving) = limited_replica(&prefix, limits).await;
    let _serving = serving;
    let waiting = request("wait");
    let mut slow = Vec::new();
    for _ in 0..2 {
        let (bus, waiting) = (bus.clone(), waiting.clone());
        slow.push(actix::spawn(async move { bus.ask_typed(&waiting, TEST_TIMEOUT).await }));
        timeout(TEST_TIMEOUT, script.started.notified()).await.unwrap();
    }
    is_refused_soon(&bus).await;
    assert!(bus.ask_typed(&ListAccountsRequest::default(), TEST_TIMEOUT).await.is_ok(), "another operation");
    for asked in slow {
        script.gate.notify_one();
        assert!(asked.await.unwrap().is_ok());
    }
    assert!(bus.ask_typed(&request("a"), TEST_TIMEOUT).await.is_ok());
}

#[actix::test]
async fn requests_refused_by_full_replicas_go_to_one_that_is_not_full() {
    let prefix = nuid::next();
    let bus = connect(&prefix).await;
    let target = bus.target("query", "GetWithdrawal");
    let once = options(TEST_TIMEOUT, false);
    let (mut busy, mut replicas) = (Vec::new(), Vec::new());
    let mut beats = bus.subscribe::<Beating>().await.unwrap();
    let mut heard: HashMap<String, u32> = HashMap::new();
    for _ in 0..4 {
        let (script, serving) = replica(&prefix, 1).await;
        let started = Rc::clone(&script.started);
        replicas.push((script, serving));
        // When a replica's second heartbeat has arrived here, other listeners have its first one.
        while heard.len() < replicas.len() || heard.values().any(|times| *times < 2) {
            let beat = timeout(TEST_TIMEOUT, beats.next()).await.expect("they beat").unwrap();
            *heard.entry(beat.id).or_default() += 1;
        }
        if replicas.len() < 4 {
            let (bus, target, once) = (bus.clone(), Arc::clone(&target), once.clone());
            let message = request("wait").encode_to_vec();
            busy.push(actix::spawn(async move { bus.ask(&target, message.into(), &once).await }));
            timeout(TEST_TIMEOUT, started.notified()).await.expect("the one with room gets it");
        }
    }
    for _ in 0..40 {
        bus.ask_typed(&request("a"), TEST_TIMEOUT).await.unwrap();
    }
    for (script, _) in &replicas {
        script.gate.notify_one();
    }
    for asked in busy {
        assert!(asked.await.unwrap().is_ok());
    }
}

#[test]
fn work_past_its_deadline_is_dropped() {
    with_service(8, async |Served { bus, script, serving: _serving }| {
        let problem = bus.ask_typed(&request("wait"), Duration::from_millis(50)).await.unwrap_err();
        assert_eq!(problem.code, Code::DeadlineExceeded);
        until_idle(&script).await;
    });
}

/// Its sender may still wait: a clock may have been set.
#[test]
fn a_request_whose_deadline_passed_on_its_way_is_refused() {
    with_service(8, async |Served { bus, serving: _serving, .. }| {
        let client = client(EDGE).await;
        let inbox = format!("{}.{}.query", mesh_bus::permissions::inbox_prefix(EDGE), nuid::next());
        let mut replies = client.subscribe(format!("{inbox}.*")).await.unwrap();
        let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis();
        for (took, is_refused) in [(0, false), (20_000, true), (9_000, false)] {
            let mut headers = async_nats::HeaderMap::new();
            headers.insert("Mesh-Ask", format!("proto 10000 {} r 0", now - took));
            let (subject, reply_to) = (bus.subject("query", "GetWithdrawal"), format!("{inbox}.{took}"));
            let payload = request("a").encode_to_vec().into();
            client.publish_with_reply_and_headers(subject, reply_to, headers, payload).await.unwrap();
            let reply = replies.next().await.unwrap();
            let headers = reply.headers.unwrap_or_default();
            assert_eq!(headers.get("Mesh-Overloaded").is_some(), is_refused, "{took} ms: {headers:?}");
        }
    });
}

#[test]
fn work_whose_asker_went_away_is_dropped() {
    with_service(8, async |Served { bus, script, serving: _serving }| {
        let waiting = request("wait");
        tokio::select! {
            _ = bus.ask_typed(&waiting, TEST_TIMEOUT) => panic!("answered before its gate opened"),
            () = script.started.notified() => {}
        }
        assert_eq!(script.running.load(Ordering::SeqCst), 1);
        until_idle(&script).await;
    });
}

#[test]
fn a_cancellation_that_overtakes_its_request_is_remembered() {
    with_service(8, async |Served { bus, script, serving: _serving }| {
        let (client, reply_to) = (client(EDGE).await, "a.reply");
        client.publish(bus.subject("cancel", "query"), reply_to.into()).await.unwrap();
        for (id, reply_to) in [("wait", reply_to), ("after it", "another.reply")] {
            let (subject, payload) = (bus.subject("query", "GetWithdrawal"), request(id).encode_to_vec());
            client.publish_with_reply(subject, reply_to, payload.into()).await.unwrap();
        }
        script.started.notified().await;
        until_idle(&script).await;
    });
}

#[test]
fn a_draining_replica_finishes_what_it_has_and_takes_nothing_new() {
    with_service(8, |Served { bus, script, serving }| async move {
        let waiting = request("wait");
        let running = bus.ask_typed(&waiting, TEST_TIMEOUT);
        tokio::pin!(running);
        tokio::select! {
            _ = &mut running => panic!("answered before its gate opened"),
            () = script.started.notified() => {}
        }
        let drained = serving.drain(TEST_TIMEOUT);
        tokio::pin!(drained);
        let late = request("late");
        let refused = async {
            loop {
                match bus.ask_typed(&late, TEST_TIMEOUT).await {
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

/// A server of a test's own.
struct OwnServer {
    spec: ProcessSpec,
    port: u16,
    process: Process,
    _home: tempfile::TempDir,
}

impl OwnServer {
    fn start() -> Self {
        let home = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let spec = ProcessSpec::new("nats-server", find_nats().unwrap(), home.path().join("log"));
        let spec = spec.arg("-a").arg("127.0.0.1").arg("-p").arg(port.to_string());
        Self { process: Process::spawn(&spec).unwrap(), spec, port, _home: home }
    }

    async fn connect(&self) -> Bus {
        let bus = Bus::connect(crate::own_server(self.port)).await.unwrap();
        timeout(TEST_TIMEOUT, bus.until_connected()).await.unwrap();
        bus
    }
}

const LIMITS: Limits = Limits { in_flight: 8, per_operation: 8, timeout: TEST_TIMEOUT };

#[test]
fn a_replica_that_has_lost_the_bus_stops_at_once() {
    actix::System::new().block_on(async {
        let server = OwnServer::start();
        let bus = server.connect().await;
        let (_script, serving) = serve(bus.clone(), LIMITS).await;
        server.process.stop().await.unwrap();
        eventually(TEST_TIMEOUT, "it is still connected", async || !bus.is_connected()).await;
        timeout(TEST_TIMEOUT / 4, serving.drain(TEST_TIMEOUT)).await.expect("it waits for the bus");
    });
}

#[test]
fn a_replica_that_connected_again_leaves_without_taking_requests_along() {
    actix::System::new().block_on(async {
        let mut server = OwnServer::start();
        let (asker, ours, others) = tokio::join!(server.connect(), server.connect(), server.connect());
        let target = asker.target("query", "GetWithdrawal");
        let ask = async |id, repeatable| {
            let request = request(id).encode_to_vec().into();
            asker.ask(&target, request, &options(TEST_TIMEOUT, repeatable)).await.unwrap()
        };
        let (script, leaving) = serve(ours.clone(), LIMITS).await;
        for _ in 0..400 {
            ask("a", true).await;
        }
        server.process.stop().await.unwrap();
        eventually(TEST_TIMEOUT, "they are connected", async || {
            !asker.is_connected() && !ours.is_connected()
        })
        .await;
        server.process = Process::spawn(&server.spec).unwrap();
        timeout(TEST_TIMEOUT, futures_util::future::join(asker.until_connected(), ours.until_connected()))
            .await
            .unwrap();
        // A read is repeated until both have their subscriptions again.
        ask("a", true).await;
        // The news of the reads, which would be taken for that of the next request.
        script.started.notified().await;
        let running = ask("wait", false);
        tokio::pin!(running);
        tokio::select! {
            _ = &mut running => panic!("answered before its gate opened"),
            () = script.started.notified() => {}
        }
        let (_script, staying) = serve(others, LIMITS).await;
        let drained = actix::spawn(leaving.drain(TEST_TIMEOUT));
        let mut late = 0;
        for _ in 0..100 {
            let started = std::time::Instant::now();
            ask("a", true).await;
            late += usize::from(started.elapsed() > Duration::from_millis(90));
        }
        assert!(late < 5, "{late} of 100 went to the one that leaves");
        script.gate.notify_one();
        running.await;
        drained.await.unwrap();
        staying.drain(TEST_TIMEOUT).await;
    });
}
