//! Streams over a real bus: replicas that die, freeze, drain or are full, a bus that restarts, readers that
//! pause.

mod reading;
mod replicas;

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
    Bus, CancelOnDrop, Chunks, Limits, MAX_POSITIONS_AHEAD, Open, OpenReply, Piece, Position, Pull,
    PullLimits, PullOptions, PullStream, Router, Target, Totals, permissions::EDGE,
};
use mesh_launcher::{
    process::{Process, Signal},
    servers::{self, Nats, NatsSettings},
};
use mesh_problem::{Code, Problem};
use mesh_telemetry::Registry;
use mesh_testbed::eventually;
use prost::Message;
use proto_msgs::v2::{ExportInfo, ExportLedgerEntriesRequest};
use tokio::{
    sync::{Semaphore, mpsc, oneshot, watch},
    time::timeout,
};

const TEST_TIMEOUT: Duration = Duration::from_secs(60);
/// Longest pause between two pieces: the idle time of at most a second, and another second for a busy
/// machine.
const PAUSE_AT_MOST: Duration = Duration::from_secs(2);
const MIB: usize = 1 << 20;

/// The source of streams, and counts of the requests to it.
struct Source {
    bytes: Bytes,
    /// The length in the reply to an opening.
    announced: Option<u64>,
    totals: Totals,
    pulls: watch::Sender<usize>,
    given: AtomicU64,
    /// Pulls that are neither finished nor dropped.
    running: AtomicUsize,
    /// Permits for the pulls of party "stuck" after its first.
    gate: Semaphore,
}

impl Source {
    /// Waits until some pull is running, or none is.
    async fn until_running(&self, is_running: bool) {
        let reached = async || (self.running.load(Ordering::SeqCst) > 0) == is_running;
        eventually(TEST_TIMEOUT, "pulls begin or end too late", reached).await;
    }

    /// Waits until no pull has come for this long.
    async fn until_quiet(&self, time: Duration) {
        let mut pulls = self.pulls.subscribe();
        while timeout(time, pulls.changed()).await.is_ok() {}
    }

    fn of(length: usize) -> Self {
        let bytes = (0..length as u64 / 8 + 1).flat_map(|at| (at * 0x9e37_79b9).to_le_bytes());
        let bytes = bytes.collect::<Vec<u8>>();
        Self {
            bytes: Bytes::from(bytes).slice(..length),
            announced: Some(length as u64),
            totals: Totals { bytes: length as u64, rows: None },
            pulls: watch::Sender::default(),
            given: AtomicU64::default(),
            running: AtomicUsize::default(),
            gate: Semaphore::new(0),
        }
    }
}

/// Streams its source in the manner that the party in the request names.
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
            head: None,
            is_permanent: false,
        })
    }
}

/// Counts a running pull until it is dropped.
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
        source.pulls.send_modify(|pulls| *pulls += 1);
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

/// A replica in its own thread.
struct Replica {
    orders: mpsc::UnboundedSender<Order>,
    thread: JoinHandle<()>,
}

enum Order {
    /// Ends like a killed process: without draining, by closing the connections.
    Die,
    /// Does nothing at all until this channel closes.
    Freeze(std::sync::mpsc::Receiver<()>),
    /// Drains as on SIGTERM, then sends to this channel.
    Drain(oneshot::Sender<()>),
}

impl Replica {
    async fn start(namespace: &Namespace, source: &Arc<Source>, in_flight: usize) -> Self {
        let (orders, mut ordered) = mpsc::unbounded_channel();
        let (started, is_started) = oneshot::channel();
        let (config, source) =
            (namespace.server.config("export", &namespace.prefix).unwrap(), Arc::clone(source));
        let thread = std::thread::spawn(move || {
            let system = actix::System::new();
            system.block_on(async move {
                let bus = Bus::connect(config).await.unwrap();
                bus.until_connected().await;
                let limits = Limits { in_flight, per_operation: in_flight, timeout: TEST_TIMEOUT };
                let exporter = Exporter(source).start();
                let router = Router::new(bus, "export", exporter, limits, &mut Registry::default());
                let serving = router.on_stream::<ExportLedgerEntriesRequest>().serve(async {});
                let is_ready = async || serving.readiness().is_ready();
                eventually(TEST_TIMEOUT, "the replica does not get ready", is_ready).await;
                let _ = started.send(());
                loop {
                    match ordered.recv().await {
                        Some(Order::Freeze(thawed)) => drop(thawed.recv()),
                        Some(Order::Drain(done)) => {
                            serving.drain(TEST_TIMEOUT).await;
                            let _ = done.send(());
                            return;
                        }
                        Some(Order::Die) | None => return,
                    }
                }
            });
        });
        timeout(TEST_TIMEOUT, is_started).await.unwrap().unwrap();
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

async fn two_replicas(namespace: &Namespace, source: &Arc<Source>) -> [Replica; 2] {
    [Replica::start(namespace, source, 64).await, Replica::start(namespace, source, 64).await]
}

/// A subject prefix of its own on a bus.
struct Namespace {
    server: mesh_launcher::bus::Bus,
    prefix: String,
}

impl Namespace {
    fn new(server: &mesh_launcher::bus::Bus) -> Self {
        Self { server: server.clone(), prefix: nuid::next().to_string() }
    }

    async fn connect(&self, user: &str) -> Bus {
        let config = self.server.config(user, &self.prefix).unwrap();
        let bus = Bus::connect(config).await.unwrap();
        timeout(TEST_TIMEOUT, bus.until_connected()).await.unwrap();
        bus
    }
}

async fn shared_server() -> Namespace {
    Namespace::new(mesh_testbed::nats().await.bus())
}

/// A source on the shared server, and a replica that streams it.
async fn served(source: Source) -> (Namespace, Arc<Source>, Replica) {
    let (server, source) = (shared_server().await, Arc::new(source));
    let replica = Replica::start(&server, &source, 64).await;
    (server, source, replica)
}

/// A client that reads streams.
struct Reader {
    bus: Bus,
    target: Arc<Target>,
}

impl Reader {
    async fn connect(namespace: &Namespace) -> Self {
        let bus = namespace.connect(EDGE).await;
        let target = bus.target("export", "ExportLedgerEntries");
        Self { bus, target }
    }

    async fn open(&self, party: &str, from_byte: u64) -> Result<(Bytes, OpenReply), Problem> {
        let request = ExportLedgerEntriesRequest { party_id: party.to_owned(), ..Default::default() };
        let request = Bytes::from(request.encode_to_vec());
        let options = crate::asking::options(TEST_TIMEOUT, true);
        let opened = self.bus.open(&self.target, request.clone(), from_byte, &options).await?;
        Ok((request, opened))
    }

    async fn pull(&self, party: &str, limits: PullLimits) -> PullStream {
        let (request, opened) = self.open(party, 0).await.unwrap();
        let options = PullOptions { limits, ..PullOptions::default() };
        self.bus.pull(&self.target, request, &opened, options).await.unwrap()
    }
}

/// Reads this many bytes or to the end of the stream; returns the longest pause, too.
async fn read(pulled: &mut PullStream, most: usize) -> (Vec<u8>, Duration, Option<Problem>) {
    let (mut read, mut longest) = (Vec::new(), Duration::ZERO);
    let reading = async {
        while read.len() < most {
            let started = Instant::now();
            match pulled.next().await {
                Some(Ok(bytes)) => read.extend_from_slice(&bytes),
                Some(Err(problem)) => return Some(problem),
                None => return None,
            }
            longest = longest.max(started.elapsed());
        }
        None
    };
    let problem = timeout(TEST_TIMEOUT, reading).await.expect("the reader hangs");
    (read, longest, problem)
}

/// Reads the rest; checks that all bytes together are the source.
async fn read_on(pulled: &mut PullStream, mut received: Vec<u8>, source: &Source) -> Duration {
    let (rest, longest, problem) = read(pulled, usize::MAX).await;
    assert_eq!(problem, None);
    received.extend(rest);
    assert!(received == source.bytes, "{} of {} bytes, or wrong ones", received.len(), source.bytes.len());
    longest
}
