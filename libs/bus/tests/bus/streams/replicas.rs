//! Reading while replicas or the bus die, freeze, drain or are full, and while readers pause.

use super::*;

#[tokio::test]
async fn a_killed_replica_costs_one_short_pause_and_a_frozen_one_short_pauses() {
    for is_killed in [true, false] {
        let (server, source) = (shared_server().await, Arc::new(Source::of(64 * MIB)));
        let [first, second] = two_replicas(&server, &source).await;
        let mut pulled = Reader::connect(&server).await.pull("plain", PullLimits::default()).await;
        let (received, _, _) = read(&mut pulled, 12 * MIB).await;
        let (thaw, thawed) = std::sync::mpsc::channel();
        let frozen = if is_killed {
            first.die();
            None
        } else {
            first.order(Order::Freeze(thawed));
            Some(first)
        };
        let pause = read_on(&mut pulled, received, &source).await;
        assert!(pause < PAUSE_AT_MOST, "{pause:?}, killed: {is_killed}");
        drop(thaw);
        if let Some(first) = frozen {
            first.die();
        }
        second.die();
    }
}

#[tokio::test]
async fn a_draining_replica_finishes_its_pulls_and_readers_go_on_elsewhere() {
    let (server, source) = (shared_server().await, Arc::new(Source::of(32 * MIB)));
    let [first, second] = two_replicas(&server, &source).await;
    let reader = Reader::connect(&server).await;
    let mut reading = Vec::new();
    for _ in 0..4 {
        let mut pulled = reader.pull("plain", PullLimits::default()).await;
        let (received, _, _) = read(&mut pulled, 8 * MIB).await;
        reading.push((pulled, received));
    }
    let (done, is_done) = oneshot::channel();
    first.order(Order::Drain(done));
    let started = Instant::now();
    let rest = reading.into_iter().map(|(mut pulled, received)| {
        let source = Arc::clone(&source);
        async move { read_on(&mut pulled, received, &source).await }
    });
    let drained = async {
        timeout(TEST_TIMEOUT, is_done).await.unwrap().unwrap();
        started.elapsed()
    };
    let (pauses, drained) = tokio::join!(futures_util::future::join_all(rest), drained);
    assert!(drained < Duration::from_secs(5), "{drained:?}");
    assert!(pauses.iter().all(|pause| *pause < PAUSE_AT_MOST), "{pauses:?}");
    first.thread.join().unwrap();
    second.die();
}

#[tokio::test]
async fn a_draining_replica_waits_for_its_pulls() {
    let (server, source, first) = served(Source::of(MIB)).await;
    let mut pulled = Reader::connect(&server).await.pull("stuck", PullLimits::default()).await;
    let received = pulled.next().await.unwrap().unwrap().to_vec();
    let rest = tokio::spawn({
        let source = Arc::clone(&source);
        async move { read_on(&mut pulled, received, &source).await }
    });
    source.until_running(true).await;
    let (done, mut is_done) = oneshot::channel();
    first.order(Order::Drain(done));
    let second = Replica::start(&server, &source, 64).await;
    let early = timeout(Duration::from_millis(100), &mut is_done).await;
    assert!(early.is_err(), "drained before its pulls were answered");
    source.gate.close();
    timeout(TEST_TIMEOUT, is_done).await.unwrap().unwrap();
    timeout(TEST_TIMEOUT, rest).await.unwrap().unwrap();
    first.thread.join().unwrap();
    second.die();
}

#[tokio::test]
async fn a_stalled_reader_costs_its_window_and_no_more() {
    let (server, source, replica) = served(Source::of(32 * MIB)).await;
    let mut pulled = Reader::connect(&server).await.pull("plain", PullLimits::default()).await;
    let (received, _, _) = read(&mut pulled, 12 * MIB).await;
    source.until_quiet(Duration::from_millis(500)).await;
    let given = source.given.load(Ordering::SeqCst) as usize;
    let window = (64 << 10) + received.len() / 16;
    assert!(given <= received.len() + window, "{given} given, {} read", received.len());
    // Longer than any timeout, and than the idle limit of a reader with short limits.
    let mut pulls = source.pulls.subscribe();
    timeout(Duration::from_millis(1_500), pulls.changed()).await.expect_err("it pulls without a reader");
    read_on(&mut pulled, received, &source).await;

    // With a window of one chunk, nothing is pulled ahead.
    let idle = Duration::from_millis(300);
    let limits = PullLimits { chunk_bytes: 64 << 10, window_chunks: 1, idle, ..PullLimits::default() };
    let given = source.given.load(Ordering::SeqCst) as usize;
    let mut pulled = Reader::connect(&server).await.pull("plain", limits).await;
    let (received, _, _) = read(&mut pulled, MIB).await;
    source.until_quiet(Duration::from_millis(600)).await;
    assert_eq!(source.given.load(Ordering::SeqCst) as usize - given, received.len());
    read_on(&mut pulled, received, &source).await;
    replica.die();
}

#[tokio::test]
async fn a_full_replica_is_gone_around_and_the_last_one_waited_for() {
    let (server, source) = (shared_server().await, Arc::new(Source::of(10 * MIB)));
    let full = Replica::start(&server, &source, 1).await;
    let reader = Reader::connect(&server).await;
    let limits = PullLimits { idle: Duration::from_secs(3), ..PullLimits::default() };
    // The first chunk arrives, and the next pull occupies the only permit forever.
    let mut stuck = reader.pull("stuck", PullLimits::default()).await;
    let mut waiting = reader.pull("plain", limits).await;
    stuck.next().await.unwrap().unwrap();
    let stuck = tokio::spawn(async move { stuck.next().await });
    source.until_running(true).await;
    let (nothing, _, problem) = read(&mut waiting, usize::MAX).await;
    assert_eq!((nothing.len(), problem.unwrap().code), (0, Code::ResourceExhausted));

    let free = Replica::start(&server, &source, 64).await;
    let (request, opened) = loop {
        if let Ok(opened) = reader.open("plain", 0).await {
            break opened;
        }
    };
    let mut pulled = reader.bus.pull(&reader.target, request, &opened, PullOptions::default()).await.unwrap();
    read_on(&mut pulled, Vec::new(), &source).await;
    stuck.abort();
    full.die();
    free.die();
}

#[tokio::test]
async fn work_for_a_stream_that_was_dropped_stops() {
    let (server, source) = (shared_server().await, Arc::new(Source::of(10 * MIB)));
    let replica = Replica::start(&server, &source, 8).await;
    let reader = Reader::connect(&server).await;
    let mut pulled = reader.pull("stuck", PullLimits::default()).await;
    pulled.next().await.unwrap().unwrap();
    let next = timeout(Duration::from_millis(50), pulled.next()).await;
    assert!(next.is_err(), "nothing comes");
    assert!(source.running.load(Ordering::SeqCst) > 0);
    drop(pulled);
    // Long before the pull's deadline.
    let stopped = timeout(Duration::from_secs(10), source.until_running(false)).await;
    stopped.expect("the replica continues without a reader");
    replica.die();
}

#[tokio::test]
async fn a_restart_of_the_bus_is_survived_or_seen() {
    let home = tempfile::tempdir().unwrap();
    let (folder, log) = (home.path().join("nats"), home.path().join("nats.log"));
    let program = servers::find_nats().unwrap();
    let nats = Nats::prepare(&program, &folder, &log, &NatsSettings::of("*")).await.unwrap();
    let process = start(&nats).await;
    let (server, source) = (Namespace::new(&nats.bus()), Arc::new(Source::of(64 * MIB)));
    let replica = Replica::start(&server, &source, 64).await;
    let reader = Reader::connect(&server).await;
    let mut pulled = reader.pull("plain", PullLimits::default()).await;
    let impatient = PullLimits { idle: Duration::from_millis(400), ..PullLimits::default() };
    let mut breaking = reader.pull("plain", impatient).await;
    let (received, _, _) = read(&mut pulled, 12 * MIB).await;
    let (other, _, _) = read(&mut breaking, MIB).await;
    process.signal(Signal::KILL).unwrap();
    process.wait().await.unwrap();

    let (rest, _, problem) = read(&mut breaking, usize::MAX).await;
    assert_eq!(problem.unwrap().code, Code::Unavailable);
    assert!(source.bytes.starts_with(&[other, rest].concat()));

    let going_on = tokio::spawn(async move {
        let (rest, _, problem) = read(&mut pulled, usize::MAX).await;
        ([received, rest].concat(), problem)
    });
    let process = start(&nats).await;
    let (whole, problem) = timeout(TEST_TIMEOUT, going_on).await.unwrap().unwrap();
    assert_eq!(problem, None);
    assert!(whole == source.bytes, "{} bytes", whole.len());
    replica.die();
    process.stop().await.unwrap();
}

async fn start(nats: &Nats) -> Process {
    servers::start(&nats.spec(), || nats.ready(TEST_TIMEOUT)).await.unwrap()
}
