//! Several replicas: frozen, draining, gone; retries and hedges.

use futures_util::future::join_all;
use tokio::time::interval;

use super::*;

/// Longer than the time without a heartbeat after which a replica gets no requests.
const SILENCE: Duration = Duration::from_millis(600);

#[actix::test]
async fn a_read_that_a_frozen_replica_took_is_answered_by_another() {
    let (prefix, bus, _script, serving) = connected(64).await;
    let (_client, _requests) = frozen(&prefix).await;
    // The first request starts to listen for replicas; the live one's heartbeat comes within 100 ms.
    let asks = (0..40).map(|_| async {
        let started = std::time::Instant::now();
        bus.ask_typed(&request("a"), TEST_TIMEOUT).await.unwrap();
        started.elapsed()
    });
    let took = timeout(TEST_TIMEOUT, join_all(asks)).await.expect("the test hangs");
    let late = took.iter().filter(|took| **took > Duration::from_millis(90)).count();
    assert!((1..40).contains(&late), "{late} of 40 went to the frozen one first");
    serving.drain(TEST_TIMEOUT).await;
}

/// Another replica loses what the queue group gives it, and answers what it is asked by name.
#[actix::test]
async fn hedges_do_not_delay_the_next_ones() {
    let (prefix, bus, _script, serving) = connected(64).await;
    let (client, _requests) = frozen(&prefix).await;
    let mut by_name = client.subscribe(format!("{prefix}.query.GetWithdrawal.frozen")).await.unwrap();
    let other = actix::spawn(async move {
        let mut pace = interval(Duration::from_millis(50));
        loop {
            tokio::select! {
                _ = pace.tick() => beat(&client, &prefix, "frozen", 1).await,
                Some(hedge) = by_name.next() => client.publish(hedge.reply.unwrap(), "".into()).await.unwrap(),
            }
        }
    });
    let target = bus.target("query", "GetWithdrawal");
    let mut took = Vec::new();
    for _ in 0..80 {
        let started = std::time::Instant::now();
        let payload = request("a").encode_to_vec().into();
        bus.ask(&target, payload, &options(TEST_TIMEOUT, true)).await.unwrap();
        took.push(started.elapsed());
    }
    // Half are sent again, after four times what a reply takes, or 100 ms; on a busy machine some take longer.
    let mut later = took.split_off(40);
    later.sort_unstable();
    assert!(later[30] < Duration::from_millis(250), "{later:?}");
    other.abort();
    serving.drain(TEST_TIMEOUT).await;
}

/// The other replica refuses the hedges, until it has room. A hundred reads also use up the budget of hedges.
#[actix::test]
async fn a_read_that_a_lost_replica_took_is_answered_by_one_that_was_busy() {
    for (reads, is_gone) in [(10, false), (100, true)] {
        let prefix = nuid::next();
        let bus = connect(&prefix).await;
        let (script, serving) = replica(&prefix, 1).await;
        let ask = |id: &'static str| {
            let bus = bus.clone();
            actix::spawn(async move { bus.ask_typed(&request(id), TEST_TIMEOUT).await })
        };
        let busy = ask("wait");
        script.started.notified().await;
        let (client, mut requests) = frozen(&prefix).await;
        let by_name = client.subscribe(format!("{prefix}.query.*.frozen")).await.unwrap();
        beat(&client, &prefix, "frozen", 1).await;
        let asks: Vec<_> = (0..reads).map(|_| ask("a")).collect();
        requests.next().await.unwrap();
        // Longer than the hedges take.
        timeout(SILENCE, async { while requests.next().await.is_some() {} }).await.expect_err("it is gone");
        if is_gone {
            drop((client, requests, by_name));
        }
        script.gate.notify_one();
        busy.await.unwrap().unwrap();
        for answer in timeout(TEST_TIMEOUT / 2, join_all(asks)).await.expect("a read stays unanswered") {
            answer.unwrap().unwrap();
        }
        serving.drain(TEST_TIMEOUT).await;
    }
}

/// Sends a heartbeat of a replica that has connected so many times.
async fn beat(client: &async_nats::Client, prefix: &str, id: &str, connects: u64) {
    let beat = format!(r#"{{"id":"{id}","is_taking":true,"connects":{connects}}}"#);
    client.publish(format!("{prefix}.events.replicas.query"), beat.into()).await.unwrap();
}

#[actix::test]
async fn a_submission_is_never_put_twice() {
    let prefix = nuid::next();
    let bus = connect(&prefix).await;
    let (_client, mut requests) = frozen(&prefix).await;
    let once = options(Duration::from_millis(400), false);
    let target = bus.target("query", "GetWithdrawal");
    let problem = bus.ask(&target, request("a").encode_to_vec().into(), &once).await.unwrap_err();
    assert_eq!(problem.code, Code::DeadlineExceeded);
    assert!(requests.next().await.is_some());
    timeout(Duration::from_millis(50), requests.next()).await.expect_err("it is put twice");
}

/// The replica connects to the bus again, or goes.
#[actix::test]
async fn a_submission_that_may_be_lost_is_put_again_to_the_replica_that_has_it() {
    for is_gone in [false, true] {
        let prefix = nuid::next();
        let bus = connect(&prefix).await;
        let (client, mut others) = frozen(&prefix).await;
        let mut requests = client.subscribe(format!("{prefix}.query.GetWithdrawal.named")).await.unwrap();
        let probes = client.subscribe(format!("{prefix}.query._.named")).await.unwrap();
        let target = bus.target("query", "GetWithdrawal");
        eventually(TEST_TIMEOUT, "the replica stays unknown", async || {
            beat(&client, &prefix, "named", 1).await;
            bus.has_replica("query")
        })
        .await;
        let once = options(TEST_TIMEOUT, false);
        let replica = async move {
            requests.next().await.unwrap();
            timeout(SILENCE * 2, requests.next()).await.expect_err("it is put twice without a loss");
            timeout(Duration::from_millis(1), others.next()).await.expect_err("it is put to any replica");
            if is_gone {
                drop((client, requests, others, probes));
                return;
            }
            beat(&client, &prefix, "named", 2).await;
            let reply_to = requests.next().await.unwrap().reply.unwrap();
            client.publish(reply_to, "done".into()).await.unwrap();
            client.flush().await.unwrap();
        };
        let asked = bus.ask(&target, request("a").encode_to_vec().into(), &once);
        let both = timeout(TEST_TIMEOUT / 2, futures_util::future::join(asked, replica));
        match both.await.expect("it has no outcome").0 {
            Ok(reply) => assert!(!is_gone && *reply.parts[0] == *b"done"),
            Err(problem) => assert!(is_gone && problem.code == Code::DeadlineExceeded, "{problem}"),
        }
    }
}

/// A reply whose first part was lost: the replica has done what was requested.
#[actix::test]
async fn a_submission_is_not_sent_again_for_a_torn_reply() {
    for (repeatable, code, sent) in [(false, Code::DeadlineExceeded, 1), (true, Code::Unavailable, 2)] {
        let prefix = nuid::next();
        let bus = connect(&prefix).await;
        let (client, requests) = frozen(&prefix).await;
        let received = AtomicUsize::new(0);
        let replies = requests.for_each(async |request| {
            received.fetch_add(1, Ordering::SeqCst);
            let mut headers = async_nats::HeaderMap::new();
            headers.insert("Mesh-Reply", "part=1/2");
            client.publish_with_headers(request.reply.unwrap(), headers, "".into()).await.unwrap();
        });
        let target = bus.target("query", "GetWithdrawal");
        let options = options(TEST_TIMEOUT / 2, repeatable);
        let asked = bus.ask(&target, request("a").encode_to_vec().into(), &options);
        let problem = tokio::select! {
            answer = asked => answer.unwrap_err(),
            () = replies => panic!("the requests end"),
        };
        assert_eq!((problem.code, received.load(Ordering::SeqCst)), (code, sent), "{problem}");
    }
}

#[actix::test]
async fn a_replica_that_leaves_answers_whatever_the_bus_gave_it() {
    let prefix = nuid::next();
    let asker = connect(&prefix).await;
    let (_script, serving) = replica(&prefix, 1000).await;
    let target = asker.target("query", "GetWithdrawal");
    for round in 0..15 {
        let (_script, leaving) = replica(&prefix, 1000).await;
        let (mut pace, mut leaving) = (interval(Duration::from_micros(200)), Some(leaving));
        let (mut asks, mut drained) = (Vec::new(), None);
        for number in 0..300 {
            pace.tick().await;
            let (asker, target) = (asker.clone(), Arc::clone(&target));
            asks.push(actix::spawn(async move {
                let once = options(Duration::from_secs(5), false);
                asker.ask(&target, request("a").encode_to_vec().into(), &once).await
            }));
            if number == 125 {
                drained = leaving
                    .take()
                    .map(|leaving| actix::spawn(async move { leaving.drain(TEST_TIMEOUT).await }));
            }
        }
        let answers = timeout(TEST_TIMEOUT, join_all(asks)).await.expect("the test hangs");
        drained.unwrap().await.unwrap();
        let lost: Vec<_> = answers.into_iter().filter_map(|answer| answer.unwrap().err()).collect();
        assert!(lost.is_empty(), "round {round}: {} of 300 lost: {:?}", lost.len(), lost[0]);
    }
    serving.drain(TEST_TIMEOUT).await;
}

#[actix::test]
async fn a_submission_that_no_replica_received_is_retried() {
    let (prefix, bus, _script, serving) = connected(64).await;
    // It subscribes under its name only, so that the queue group sends no requests to it.
    let (client, mut requests) = frozen(&prefix).await;
    requests.unsubscribe().await.unwrap();
    let _by_name = client.subscribe(format!("{prefix}.query.*.frozen")).await.unwrap();
    let target = bus.target("query", "GetWithdrawal");
    // A silent replica makes clients send to others by name; those that have just left still count as
    // alive, and may be more than the retries after pauses.
    beat(&client, &prefix, "frozen", 1).await;
    let beats = async {
        let mut pace = interval(Duration::from_millis(50));
        loop {
            pace.tick().await;
            for id in ["left-1", "left-2", "left-3", "left-4"] {
                beat(&client, &prefix, id, 1).await;
            }
        }
    };
    let asked = async {
        let mut pace = interval(Duration::from_millis(20));
        for _ in 0..30 {
            pace.tick().await;
            let once = options(TEST_TIMEOUT, false);
            bus.ask(&target, request("a").encode_to_vec().into(), &once).await.unwrap();
        }
    };
    tokio::pin!(beats);
    // The frozen one has been silent for long enough to be avoided, while the other one beats.
    timeout(SILENCE, &mut beats).await.expect_err("the heartbeats do not end");
    tokio::select! {
        asked = timeout(TEST_TIMEOUT, asked) => asked.expect("the test hangs"),
        () = beats => {}
    }
    serving.drain(TEST_TIMEOUT).await;
}

#[actix::test]
async fn a_replica_that_is_known_to_be_silent_gets_no_requests() {
    let (prefix, bus, _script, serving) = connected(64).await;
    let (client, mut requests) = frozen(&prefix).await;
    // It subscribes under its name, so that it counts as frozen, not as gone.
    let _by_name = client.subscribe(format!("{prefix}.query.*.frozen")).await.unwrap();
    bus.ask_typed(&request("a"), TEST_TIMEOUT).await.unwrap();
    beat(&client, &prefix, "frozen", 1).await;
    client.flush().await.unwrap();
    // What it was sent before it counts as silent; hedges and retries of the first request end within that.
    while let Ok(Some(_)) = timeout(SILENCE, requests.next()).await {}
    for _ in 0..40 {
        bus.ask_typed(&request("a"), TEST_TIMEOUT).await.unwrap();
    }
    let put = timeout(Duration::from_millis(50), requests.next()).await;
    assert!(put.is_err(), "it was asked");
    serving.drain(TEST_TIMEOUT).await;
}
