//! Streams over a real bus: replicas that die, freeze, drain or are full, a bus that restarts, readers that
//! pause.

#![allow(clippy::unwrap_used)]

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use actix::{Actor, Context, Handler};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use mesh_bus::{
    AskOptions, Bus, CancelOnDrop, Chunks, Encoding, Limits, MAX_POSITIONS_AHEAD, Open, OpenReply, Piece,
    Position, Pull, PullLimits, PullOptions, PullStream, Router, Target, Totals, permissions::EDGE,
};
use mesh_launcher::{
    process::{Process, Signal},
    servers::{self, Nats, NatsSettings},
};
use mesh_problem::{Code, Problem};
use mesh_telemetry::Registry;
use prost::Message;
use proto_msgs::v2::{ExportInfo, ExportLedgerEntriesRequest};
use tokio::{
    sync::{Semaphore, mpsc, oneshot},
    time::timeout,
};

const PATIENCE: Duration = Duration::from_secs(60);
/// Longest pause that a reader may see: the idle time of at most a second, and as much for a machine that has
/// other work too.
const PAUSE_AT_MOST: Duration = Duration::from_secs(2);
const MIB: usize = 1 << 20;

/// What replicas stream, and what was asked of them.
struct Source {
    bytes: Bytes,
    /// What an opening says of the length.
    announced: Option<u64>,
    totals: Totals,
    pulls: AtomicUsize,
    given: AtomicU64,
    /// Pulls that are neither finished nor dropped.
    running: AtomicUsize,
    /// What pulls of the party "stuck" wait for, all but the first.
    gate: Semaphore,
}

impl Source {
    fn of(length: usize) -> Self {
        let bytes = (0..length as u64 / 8 + 1).flat_map(|at| (at * 0x9e37_79b9).to_le_bytes());
        let bytes = bytes.collect::<Vec<u8>>();
        Self {
            bytes: Bytes::from(bytes).slice(..length),
            announced: Some(length as u64),
            totals: Totals { bytes: length as u64, rows: None },
            pulls: AtomicUsize::default(),
            given: AtomicU64::default(),
            running: AtomicUsize::default(),
            gate: Semaphore::new(0),
        }
    }
}

/// Streams its source as the party in the request says.
struct Exporter(Arc<Source>);

impl Actor for Exporter {
    type Context = Context<Self>;
}

impl Handler<Open<ExportLedgerEntriesRequest>> for Exporter {
    type Result = Result<OpenReply, Problem>;

    fn handle(&mut self, open: Open<ExportLedgerEntriesRequest>, _: &mut Context<Self>) -> Self::Result {
        if open.request.party_id == "nobody" {
            return Err(Problem::invalid(10013, "no such party"));
        }
        Ok(OpenReply {
            info: ExportInfo { total_bytes: self.0.announced, ..Default::default() },
            first: open.from_byte.to_be_bytes().to_vec().into(),
            from_byte: open.from_byte,
            content_type: "text/csv".to_owned(),
            etag: String::new(),
            crc32c: None,
        })
    }
}

/// Counts a pull for as long as it is worked on.
struct Running(Arc<Source>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Handler<Pull<ExportLedgerEntriesRequest>> for Exporter {
    type Result = CancelOnDrop<Result<Chunks, Problem>>;

    fn handle(&mut self, pull: Pull<ExportLedgerEntriesRequest>, _: &mut Context<Self>) -> Self::Result {
        let Pull { request, position, budget, scope } = pull;
        let source = Arc::clone(&self.0);
        source.pulls.fetch_add(1, Ordering::SeqCst);
        source.running.fetch_add(1, Ordering::SeqCst);
        let running = Running(Arc::clone(&source));
        scope.run(async move {
            let begin = usize::try_from(u64::from_be_bytes(position.as_bytes().try_into().unwrap())).unwrap();
            let (length, chunk) = (source.bytes.len(), budget.chunk_bytes());
            let then = (1..=MAX_POSITIONS_AHEAD).map(|pulls| begin + pulls * budget.bytes as usize);
            let then = then.take_while(|then| *then < length).map(at).collect();
            if request.party_id == "stuck" && begin > 0 {
                assert!(source.gate.acquire().await.is_err(), "it is closed, not entered");
            }
            let pieces = (0..budget.chunks as usize).map_while(move |index| {
                let from = begin + index * chunk;
                let to = (from + chunk).min(length);
                (from < length || from == begin).then(|| {
                    source.given.fetch_add((to - from) as u64, Ordering::SeqCst);
                    let end = (to == length).then_some(source.totals);
                    Ok(Piece { bytes: source.bytes.slice(from..to), after: at(to), end })
                })
            });
            let pieces = stream::iter(pieces).inspect(move |_| _ = &running);
            Ok(Chunks { next_positions: then, pieces: pieces.boxed() })
        })
    }
}

fn at(offset: usize) -> Position {
    Position::new((offset as u64).to_be_bytes().to_vec()).unwrap()
}

/// A replica in a thread of its own.
struct Replica {
    orders: mpsc::UnboundedSender<Order>,
    thread: JoinHandle<()>,
}

enum Order {
    /// Ends like a killed process: nothing is finished, connections break.
    Die,
    /// Does nothing at all until this channel closes.
    Freeze(std::sync::mpsc::Receiver<()>),
    /// Stops as on SIGTERM, then says so.
    Drain(oneshot::Sender<()>),
}

impl Replica {
    async fn start(place: &Place, source: &Arc<Source>, in_flight: usize) -> Self {
        let (orders, mut ordered) = mpsc::unbounded_channel();
        let (started, is_started) = oneshot::channel();
        let (config, source) = (place.server.config("export", &place.prefix).unwrap(), Arc::clone(source));
        let thread = std::thread::spawn(move || {
            let system = actix::System::new();
            system.block_on(async move {
                let bus = Bus::connect(config).await.unwrap();
                bus.until_connected().await;
                let limits = Limits { in_flight, per_operation: in_flight, timeout: PATIENCE };
                let exporter = Exporter(source).start();
                let router = Router::new(bus, "export", exporter, limits, &mut Registry::default());
                let serving = router.on_stream::<ExportLedgerEntriesRequest>().serve(async {});
                while !serving.readiness().is_ready() {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                let _ = started.send(());
                loop {
                    match ordered.recv().await {
                        Some(Order::Freeze(thawed)) => drop(thawed.recv()),
                        Some(Order::Drain(done)) => {
                            serving.drain(PATIENCE).await;
                            let _ = done.send(());
                            return;
                        }
                        Some(Order::Die) | None => return,
                    }
                }
            });
        });
        timeout(PATIENCE, is_started).await.unwrap().unwrap();
        Self { orders, thread }
    }

    fn order(&self, order: Order) {
        assert!(self.orders.send(order).is_ok(), "the replica is gone");
    }

    fn die(self) {
        self.order(Order::Die);
        self.thread.join().unwrap();
    }
}

/// A place of its own on a bus.
struct Place {
    server: mesh_launcher::bus::Bus,
    prefix: String,
}

impl Place {
    fn on(server: &mesh_launcher::bus::Bus) -> Self {
        Self { server: server.clone(), prefix: nuid::next().to_string() }
    }

    async fn connect(&self, user: &str) -> Bus {
        let config = self.server.config(user, &self.prefix).unwrap();
        let bus = Bus::connect(config).await.unwrap();
        timeout(PATIENCE, bus.until_connected()).await.unwrap();
        bus
    }
}

async fn shared_server() -> Place {
    Place::on(mesh_testbed::nats().await.bus())
}

/// Somebody who reads.
struct Reader {
    bus: Bus,
    target: Arc<Target>,
}

impl Reader {
    async fn connect(place: &Place) -> Self {
        let bus = place.connect(EDGE).await;
        let target = bus.target("export", "ExportLedgerEntries");
        Self { bus, target }
    }

    async fn open(&self, party: &str, from_byte: u64) -> Result<(Bytes, OpenReply), Problem> {
        let request = ExportLedgerEntriesRequest { party_id: party.to_owned(), ..Default::default() };
        let request = Bytes::from(request.encode_to_vec());
        let options = AskOptions {
            encoding: Encoding::default(),
            timeout: PATIENCE,
            request_id: "r".to_owned(),
            traceparent: None,
            repeatable: true,
        };
        let opened = self.bus.open(&self.target, request.clone(), from_byte, &options).await?;
        Ok((request, opened))
    }

    async fn pull(&self, party: &str, limits: PullLimits) -> PullStream {
        let (request, opened) = self.open(party, 0).await.unwrap();
        let options = PullOptions { limits, ..PullOptions::default() };
        self.bus.pull(&self.target, request, &opened, options).await.unwrap()
    }
}

/// Reads until this many bytes are there or the stream is over; gives the longest pause too.
async fn read(pulled: &mut PullStream, most: usize) -> (Vec<u8>, Duration, Option<Problem>) {
    let (mut read, mut longest) = (Vec::new(), Duration::ZERO);
    let reading = async {
        while read.len() < most {
            let begun = Instant::now();
            match pulled.next().await {
                Some(Ok(bytes)) => read.extend_from_slice(&bytes),
                Some(Err(problem)) => return Some(problem),
                None => return None,
            }
            longest = longest.max(begun.elapsed());
        }
        None
    };
    let problem = timeout(PATIENCE, reading).await.expect("the reader waits for ever");
    (read, longest, problem)
}

/// Reads the rest; it must make up the source together with what was read before.
async fn read_on(pulled: &mut PullStream, mut begun: Vec<u8>, source: &Source) -> Duration {
    let (rest, longest, problem) = read(pulled, usize::MAX).await;
    assert_eq!(problem, None);
    begun.extend(rest);
    assert!(begun == source.bytes, "{} of {} bytes, or wrong ones", begun.len(), source.bytes.len());
    longest
}

#[tokio::test]
async fn a_stream_arrives_whole_and_an_empty_one_too() {
    for length in [0, 1, 64 << 10, (64 << 10) + 1, 12 * MIB + 17] {
        let (server, source) = (shared_server().await, Arc::new(Source::of(length)));
        let replica = Replica::start(&server, &source, 64).await;
        let mut pulled = Reader::connect(&server).await.pull("plain", PullLimits::default()).await;
        read_on(&mut pulled, Vec::new(), &source).await;
        assert!(pulled.next().await.is_none(), "it stays over");
        replica.die();
    }
}

#[tokio::test]
async fn a_part_is_read_from_its_first_byte_to_its_last() {
    let (server, source) = (shared_server().await, Arc::new(Source::of(5 * MIB)));
    let replica = Replica::start(&server, &source, 64).await;
    let reader = Reader::connect(&server).await;
    for (from, to) in [(0, 1), (70_000, 2_000_001), (5 * MIB - 1, 5 * MIB), (7, 7)] {
        let (request, opened) = reader.open("plain", from as u64).await.unwrap();
        let options = PullOptions { to_byte: Some(to as u64), ..PullOptions::default() };
        let mut pulled = reader.bus.pull(&reader.target, request, &opened, options).await.unwrap();
        let (part, _, problem) = read(&mut pulled, usize::MAX).await;
        assert_eq!(problem, None);
        assert!(part == source.bytes[from..to], "{from}..{to}: {} bytes", part.len());
    }
    assert!(source.given.load(Ordering::SeqCst) < 3 * MIB as u64, "not more was read than was wanted");
    replica.die();
}

#[tokio::test]
async fn what_can_be_refused_is_refused_at_the_opening() {
    let (server, source) = (shared_server().await, Arc::new(Source::of(1)));
    let replica = Replica::start(&server, &source, 64).await;
    let problem = Reader::connect(&server).await.open("nobody", 0).await.unwrap_err();
    assert_eq!(problem, Problem::invalid(10013, "no such party"));
    replica.die();
}

#[tokio::test]
async fn totals_that_do_not_agree_break_the_stream_before_its_last_bytes() {
    let length = 3 * MIB;
    let totals = Totals { bytes: length as u64 + 1, rows: None };
    for announced in [None, Some(length as u64)] {
        let (server, source) = (shared_server().await, Source { announced, totals, ..Source::of(length) });
        let source = Arc::new(source);
        let replica = Replica::start(&server, &source, 64).await;
        let mut pulled = Reader::connect(&server).await.pull("plain", PullLimits::default()).await;
        let (read, _, problem) = read(&mut pulled, usize::MAX).await;
        assert_eq!(problem.unwrap().code, Code::Internal);
        assert!(read.len() < length && source.bytes.starts_with(&read));
        assert!(pulled.next().await.is_none());
        replica.die();
    }
}

#[tokio::test]
async fn a_killed_replica_costs_one_short_pause() {
    let (server, source) = (shared_server().await, Arc::new(Source::of(64 * MIB)));
    let first = Replica::start(&server, &source, 64).await;
    let second = Replica::start(&server, &source, 64).await;
    let mut pulled = Reader::connect(&server).await.pull("plain", PullLimits::default()).await;
    let (begun, _, _) = read(&mut pulled, 12 * MIB).await;
    first.die();
    let pause = read_on(&mut pulled, begun, &source).await;
    assert!(pause < PAUSE_AT_MOST, "{pause:?}");
    second.die();
}

#[tokio::test]
async fn a_frozen_replica_costs_short_pauses() {
    let (server, source) = (shared_server().await, Arc::new(Source::of(64 * MIB)));
    let first = Replica::start(&server, &source, 64).await;
    let second = Replica::start(&server, &source, 64).await;
    let mut pulled = Reader::connect(&server).await.pull("plain", PullLimits::default()).await;
    let (begun, _, _) = read(&mut pulled, 12 * MIB).await;
    let (thaw, thawed) = std::sync::mpsc::channel();
    first.order(Order::Freeze(thawed));
    let pause = read_on(&mut pulled, begun, &source).await;
    assert!(pause < PAUSE_AT_MOST, "{pause:?}");
    drop(thaw);
    first.die();
    second.die();
}

#[tokio::test]
async fn a_draining_replica_finishes_its_pulls_and_readers_go_on_elsewhere() {
    let (server, source) = (shared_server().await, Arc::new(Source::of(32 * MIB)));
    let first = Replica::start(&server, &source, 64).await;
    let second = Replica::start(&server, &source, 64).await;
    let reader = Reader::connect(&server).await;
    let mut reading = Vec::new();
    for _ in 0..4 {
        let mut pulled = reader.pull("plain", PullLimits::default()).await;
        let (begun, _, _) = read(&mut pulled, 8 * MIB).await;
        reading.push((pulled, begun));
    }
    let (done, is_done) = oneshot::channel();
    first.order(Order::Drain(done));
    let begun = Instant::now();
    let rest = reading.into_iter().map(|(mut pulled, begun)| {
        let source = Arc::clone(&source);
        async move { read_on(&mut pulled, begun, &source).await }
    });
    let drained = async {
        timeout(PATIENCE, is_done).await.unwrap().unwrap();
        begun.elapsed()
    };
    let (pauses, drained) = tokio::join!(futures_util::future::join_all(rest), drained);
    assert!(drained < Duration::from_secs(5), "{drained:?}");
    assert!(pauses.iter().all(|pause| *pause < PAUSE_AT_MOST), "{pauses:?}");
    first.thread.join().unwrap();
    second.die();
}

#[tokio::test]
async fn a_draining_replica_waits_for_its_pulls() {
    let (server, source) = (shared_server().await, Arc::new(Source::of(MIB)));
    let first = Replica::start(&server, &source, 64).await;
    let mut pulled = Reader::connect(&server).await.pull("stuck", PullLimits::default()).await;
    let begun = pulled.next().await.unwrap().unwrap().to_vec();
    let rest = tokio::spawn({
        let source = Arc::clone(&source);
        async move { read_on(&mut pulled, begun, &source).await }
    });
    while source.running.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let (done, mut is_done) = oneshot::channel();
    first.order(Order::Drain(done));
    let second = Replica::start(&server, &source, 64).await;
    let early = timeout(Duration::from_millis(100), &mut is_done).await;
    assert!(early.is_err(), "drained before its pulls were answered");
    source.gate.close();
    timeout(PATIENCE, is_done).await.unwrap().unwrap();
    timeout(PATIENCE, rest).await.unwrap().unwrap();
    first.thread.join().unwrap();
    second.die();
}

#[tokio::test]
async fn a_stalled_reader_costs_its_window_and_no_more() {
    let (server, source) = (shared_server().await, Arc::new(Source::of(32 * MIB)));
    let replica = Replica::start(&server, &source, 64).await;
    let mut pulled = Reader::connect(&server).await.pull("plain", PullLimits::default()).await;
    let (begun, _, _) = read(&mut pulled, 12 * MIB).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let given = source.given.load(Ordering::SeqCst) as usize;
    let window = (64 << 10) + begun.len() / 16;
    assert!(given <= begun.len() + window, "{given} given, {} read", begun.len());
    let pulls = source.pulls.load(Ordering::SeqCst);
    // Longer than any patience, and than the idle limit of an impatient reader.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert_eq!(source.pulls.load(Ordering::SeqCst), pulls);
    read_on(&mut pulled, begun, &source).await;

    // With a window of one chunk, nothing is asked for ahead.
    let idle = Duration::from_millis(300);
    let limits = PullLimits { chunk_bytes: 64 << 10, window_chunks: 1, idle, ..PullLimits::default() };
    let given = source.given.load(Ordering::SeqCst) as usize;
    let mut pulled = Reader::connect(&server).await.pull("plain", limits).await;
    let (begun, _, _) = read(&mut pulled, MIB).await;
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert_eq!(source.given.load(Ordering::SeqCst) as usize - given, begun.len());
    read_on(&mut pulled, begun, &source).await;
    replica.die();
}

#[tokio::test]
async fn a_full_replica_is_gone_around_and_the_last_one_waited_for() {
    let (server, source) = (shared_server().await, Arc::new(Source::of(10 * MIB)));
    let full = Replica::start(&server, &source, 1).await;
    let reader = Reader::connect(&server).await;
    let limits = PullLimits { idle: Duration::from_secs(3), ..PullLimits::default() };
    // The first chunk comes, and the next pull takes the only place for ever.
    let mut stuck = reader.pull("stuck", PullLimits::default()).await;
    let mut waiting = reader.pull("plain", limits).await;
    stuck.next().await.unwrap().unwrap();
    let stuck = tokio::spawn(async move { stuck.next().await });
    while source.running.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
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
    let stopped = async {
        while source.running.load(Ordering::SeqCst) > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    // Long before the pull's deadline.
    timeout(Duration::from_secs(10), stopped).await.expect("the replica works on for nobody");
    replica.die();
}

#[tokio::test]
async fn a_restart_of_the_bus_is_survived_or_seen() {
    let home = tempfile::tempdir().unwrap();
    let (folder, log) = (home.path().join("nats"), home.path().join("nats.log"));
    let program = servers::find_nats().unwrap();
    let nats = Nats::prepare(&program, &folder, &log, &NatsSettings::of("*")).await.unwrap();
    let process = start(&nats).await;
    let (server, source) = (Place::on(&nats.bus()), Arc::new(Source::of(64 * MIB)));
    let replica = Replica::start(&server, &source, 64).await;
    let reader = Reader::connect(&server).await;
    let mut pulled = reader.pull("plain", PullLimits::default()).await;
    let impatient = PullLimits { idle: Duration::from_millis(400), ..PullLimits::default() };
    let mut breaking = reader.pull("plain", impatient).await;
    let (begun, _, _) = read(&mut pulled, 12 * MIB).await;
    let (other, _, _) = read(&mut breaking, MIB).await;
    process.signal(Signal::KILL).unwrap();
    process.wait().await.unwrap();

    let (rest, _, problem) = read(&mut breaking, usize::MAX).await;
    assert_eq!(problem.unwrap().code, Code::Unavailable);
    assert!(source.bytes.starts_with(&[other, rest].concat()));

    let going_on = tokio::spawn(async move {
        let (rest, _, problem) = read(&mut pulled, usize::MAX).await;
        ([begun, rest].concat(), problem)
    });
    let process = start(&nats).await;
    let (whole, problem) = timeout(PATIENCE, going_on).await.unwrap().unwrap();
    assert_eq!(problem, None);
    assert!(whole == source.bytes, "{} bytes", whole.len());
    replica.die();
    process.stop().await.unwrap();
}

async fn start(nats: &Nats) -> Process {
    servers::start(&nats.spec(), || nats.ready(PATIENCE)).await.unwrap()
}
