//! Suite "watch": thousands of watchers at a block a second, against the same clients polling, and plain reads
//! beside watchers.

use std::{
    net::SocketAddr,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use mesh::{
    failure::Failure,
    processes::{NATS, POSTGRES},
};
use mesh_launcher::open_files;
use rustix::process::nice;
use tokio::time::sleep;

use super::{
    comparison::run_blocking,
    cost::{self, MeasuredProcess},
    http_load::{Load, Requests},
    load::{Client, Pace},
    meter::{LOAD, Meter, Round},
    section::{Figures, Line, quantile},
    world::World,
};
use crate::{
    rig::{clients::connection::Connection, watching::watchers::Watchers},
    watches::{
        blocks::{Blocks, Changes, delays},
        connect,
    },
};

const WATCHERS: usize = 10_000;
const QUESTIONS: usize = 100;
/// Questions of which a block changes the answer where it does not change all. On the recorded network no list
/// of the contract changes with more than 6 of 100 blocks.
const FEW: usize = 6;
/// Changes the withdrawals that are watched.
const CHANGE: &str = "UPDATE withdrawals SET ref = $1::text WHERE id = ANY($2)";
/// The time between two blocks, and between two requests of a polling client.
const PERIOD: Duration = Duration::from_secs(1);
/// Least length of a round, so that it has many blocks.
const LEAST_LENGTH: Duration = Duration::from_secs(20);
/// Time after the watchers are connected before anything counts, and for the last block to arrive.
const SETTLE: Duration = Duration::from_secs(3);
/// How much less the clients' thread weighs than others: real clients are on other machines.
const CLIENTS_NICE: i32 = 10;
/// Plain reads beside watchers: connections, the time between two reads of one, and paths.
const READERS: u64 = 16;
const READ_PERIOD: Duration = Duration::from_millis(20);
const READ_PATHS: usize = 20_000;
/// Time in which all watchers are connected, and more than the reads need.
const CONNECTED: Duration = Duration::from_secs(10);
const LONGER: Duration = Duration::from_secs(15);

/// Clients of one edge.
#[derive(Clone)]
struct Clients {
    edge: SocketAddr,
    paths: Arc<[String]>,
    /// Paths whose answers change with each block.
    changes: usize,
    length: Duration,
    watched: Vec<MeasuredProcess>,
}

/// What watchers have observed.
struct Seen {
    round: Round,
    /// Times from a block's COMMIT to its receipt by each client, milliseconds.
    delays_ms: Vec<f64>,
    /// Changes that a client did not receive.
    missed: usize,
    /// Resident memory of the edge for each client, KiB.
    kib_each: f64,
}

/// Section "watchers": all answers change with each block.
pub(super) async fn all_change(world: &World<'_>) -> Result<Figures, Failure> {
    against_polling(world, QUESTIONS).await
}

/// Section "watch-quiet": few answers change with each block.
pub(super) async fn few_change(world: &World<'_>) -> Result<Figures, Failure> {
    let figures = against_polling(world, FEW).await?;
    let [_, missed, .., ratio] = figures.found[..] else { return Ok(figures) };
    Ok(Figures { found: vec![missed, ratio], ..figures })
}

/// The same clients watching and polling, each while blocks are written.
async fn against_polling(world: &World<'_>, changes: usize) -> Result<Figures, Failure> {
    let clients = Clients::of(world, changes).await?;
    let (watching, blocks) = (clients.clone(), clients.blocks(world).await?);
    let Seen { round, delays_ms, missed, kib_each } = run_blocking(move || watching.watch(&blocks)).await?;
    let _blocks = clients.blocks(world).await?;
    let polling = run_blocking(move || clients.poll()).await?;
    let edge_ms = |round: &Round| round.spent.ms_a_second(Some("edge"));
    let mesh_ms = |round: &Round| round.spent.ms_a_second(None);
    let line = |name, round: &Round| {
        Line::new("clients", name)
            .value("a second", round.rate())
            .value("edge ms/s", edge_ms(round))
            .value("mesh ms/s", mesh_ms(round))
    };
    let [p50, p99] = [0.5, 0.99].map(|share| quantile(&delays_ms, share));
    let title = format!("{WATCHERS} clients, {QUESTIONS} questions, a block a second changes {changes}");
    let lines = vec![line("watch", &round), line("poll with If-None-Match", &polling)];
    let note =
        format!("from COMMIT to a watcher: p50 {p50:.1} ms, p99 {p99:.1} ms; {kib_each:.1} KiB each\n");
    let found = vec![p99, missed as f64, edge_ms(&round), kib_each, mesh_ms(&round) / mesh_ms(&polling)];
    Ok(Figures { title, lines, note, found, ..Figures::default() })
}

/// Section "watch-beside": single rows without and with watchers.
pub(super) async fn beside(world: &World<'_>) -> Result<Figures, Failure> {
    let mut clients = Clients::of(world, QUESTIONS).await?;
    let paths = world.withdrawals().await?;
    let pace = Pace { clients: READERS, length: clients.length, period: Some(READ_PERIOD) };
    let load =
        Load { address: clients.edge, requests: Requests::Paths(Arc::from(&paths[..READ_PATHS])), pace };
    let (blocks, reading) = (clients.blocks(world).await?, load.clone());
    let alone = run_blocking(move || reading.run(&[])).await?;
    clients.length += LONGER;
    let watching = run_blocking(move || clients.watch(&blocks).map(|seen| (seen, blocks)));
    let (watching, beside) = tokio::join!(watching, async {
        sleep(CONNECTED).await;
        run_blocking(move || load.run(&[])).await
    });
    let ((seen, _blocks), beside) = (watching?, beside?);
    let line = |name, round: &Round| {
        Line::new("single rows", name)
            .value("a second", round.rate())
            .value("p50 ms", round.quantile_ms(0.5))
            .value("p99 ms", round.quantile_ms(0.99))
    };
    let title = format!("{} reads a second beside {WATCHERS} watchers", READERS * 50);
    let lines = vec![line("alone", &alone), line("beside watchers", &beside)];
    let note = format!("watchers meanwhile: p99 {:.0} ms\n", quantile(&seen.delays_ms, 0.99));
    let found = vec![beside.quantile_ms(0.99) / alone.quantile_ms(0.99)];
    Ok(Figures { title, lines, note, found, ..Figures::default() })
}

impl Clients {
    async fn of(world: &World<'_>, changes: usize) -> Result<Self, Failure> {
        open_files::raise();
        let paths = Arc::from(&world.withdrawals().await?[..QUESTIONS]);
        let edge = world.edges().await?.cached;
        let watched = world.mesh.watch(&["edge", "query", "node-info", NATS, POSTGRES]);
        Ok(Self { edge, paths, changes, length: world.length().max(LEAST_LENGTH), watched })
    }

    /// Starts to write blocks, each of which changes the answers to this many questions in turn.
    async fn blocks(&self, world: &World<'_>) -> Result<Blocks, Failure> {
        let all: Vec<String> =
            self.paths.iter().filter_map(|path| Some(path.rsplit_once('/')?.1.to_owned())).collect();
        let changes = self.changes;
        let ids = Box::new(move |height: u64| {
            let first = height as usize * changes % all.len();
            all.iter().cycle().skip(first).take(changes).cloned().collect()
        });
        Blocks::write(&world.servers, Changes { period: PERIOD, statement: CHANGE, ids }).await
    }

    /// Watches on one connection each.
    ///
    /// # Errors
    /// When a connection breaks.
    fn watch(&self, blocks: &Blocks) -> Result<Seen, String> {
        at_low_priority(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.map_err(|error| format!("cannot start the clients: {error}"))?;
            runtime.block_on(self.watch_blocks(blocks)).map_err(|failure| failure.to_string())
        })
    }

    async fn watch_blocks(&self, blocks: &Blocks) -> Result<Seen, Failure> {
        let edge = self.watched.iter().find(|process| process.name == "edge");
        let memory_kib =
            || edge.and_then(|edge| cost::memory_kib(edge.pid)).map_or(f64::NAN, |kib| kib as f64);
        let before_kib = memory_kib();
        let watchers = Watchers::crowd(&[self.edge], &self.paths, WATCHERS, (0, 1)).await?;
        sleep(SETTLE).await;
        let kib_each = (memory_kib() - before_kib) / WATCHERS as f64;
        let (meter, before_us, begun) = (Meter::start(&self.watched), cost::thread_us(), Instant::now());
        sleep(self.length).await;
        let own_us = cost::thread_us() - before_us;
        let (spent, ended) = (meter.stop(own_us), Instant::now());
        // The last block may be in flight.
        sleep(SETTLE).await;
        if let Some(failure) = watchers.look(|record| record.failed().into_iter().next()) {
            return Err(Failure::failed(failure.message));
        }
        let received = watchers.received_since(begun);
        let amount = received.iter().filter(|(_, at)| *at <= ended).count() as u64;
        let written = blocks.written(begun, ended - PERIOD);
        let delays_ms: Vec<f64> =
            delays(&written, &received).iter().map(|delay| delay.as_secs_f64() * 1e3).collect();
        let expected = written.len() * self.changes * WATCHERS / self.paths.len();
        let missed = expected.saturating_sub(delays_ms.len());
        let round = Round { amount, spent, own: Some((LOAD, own_us)), ..Round::default() };
        Ok(Seen { round, delays_ms, missed, kib_each })
    }

    /// Polls with `If-None-Match` on one connection each.
    ///
    /// # Errors
    /// When a connection breaks.
    fn poll(&self) -> Result<Round, String> {
        let pace = Pace { clients: WATCHERS as u64, length: self.length, period: Some(PERIOD) };
        let connect = |number: u64| PollingClient::connect(self.edge, &self.paths, number as usize);
        at_low_priority(|| pace.run(&self.watched, connect))
    }
}

/// Runs clients on a separate thread.
fn at_low_priority<T: Send>(run: impl FnOnce() -> Result<T, String> + Send) -> Result<T, String> {
    let run = || {
        nice(CLIENTS_NICE).map_err(|error| format!("cannot lower a priority: {error}"))?;
        run()
    };
    thread::scope(|scope| scope.spawn(run).join().map_err(|_| "the clients panicked".to_owned()).flatten())
}

/// A client that polls one path.
struct PollingClient {
    connection: Connection,
    path: String,
    etag: String,
}

impl PollingClient {
    async fn connect(edge: SocketAddr, paths: &[String], number: usize) -> Result<Self, String> {
        let stream = connect(edge, number, None).await;
        let connection = Connection::over(stream.map_err(|error| format!("cannot connect: {error}"))?);
        Ok(Self { connection, path: paths[number % paths.len()].clone(), etag: String::new() })
    }
}

impl Client for PollingClient {
    async fn call(&mut self) -> Result<bool, String> {
        let exchange = async {
            self.connection.send(&self.path, &format!("If-None-Match: {}\r\n", self.etag)).await?;
            self.connection.receive().await
        };
        let answer = exchange.await.map_err(|error| error.to_string())?;
        answer.raw.header("etag").unwrap_or_default().clone_into(&mut self.etag);
        Ok(true)
    }
}
