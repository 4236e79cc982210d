//! Suite "watch": thousands of watchers at a block a second, against the same clients polling, over WebSockets,
//! over several edges, and plain reads beside watchers.

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
    comparison::{block_on, run_blocking},
    cost::{self, MeasuredProcess},
    load::{Load, Pace, Requests},
    meter::{LOAD, Meter, Round},
    section::{Figures, Line, quantile},
    world::World,
};
use crate::{
    rig::{
        clients::connection::Connection,
        watching::watchers::{Over, Watch, Watchers},
    },
    watches::{Blocks, Changes, HeightAt, connect, delays},
};

const WATCHERS: usize = 10_000;
const SOCKETS_EDGE: &str = "edge-sockets";
/// Watchers of the section with several edges, and the edges: none has more than it accepts by default. A process may
/// not have as many open files, so that most watchers share connections.
const FAN_OUT: usize = 100_000;
const FAN_OUT_EDGES: [&str; 5] = ["edge", "edge-2", "edge-3", "edge-4", "edge-5"];
const FAN_OUT_OVER_HTTP1: usize = 3_000;
const ON_A_CONNECTION: usize = 100;
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

/// Clients that watch or poll.
#[derive(Clone)]
struct Clients {
    /// The edges, by the names of their processes; each has as many clients.
    edges: Vec<(&'static str, SocketAddr)>,
    count: usize,
    over: Over,
    /// How many of an edge have a connection each; the others share connections of HTTP/2.
    over_http1: usize,
    paths: Arc<[String]>,
    /// Paths whose answers change with each block.
    changes: usize,
    length: Duration,
    watched: Vec<MeasuredProcess>,
}

struct Seen {
    round: Round,
    /// Times from a block's COMMIT to its receipt by each client, milliseconds.
    delays_ms: Vec<f64>,
    /// Changes that a client did not receive.
    missed: usize,
    /// Resident memory of the edges for each client, KiB.
    kib_each: f64,
}

impl Seen {
    fn delay_ms(&self, share: f64) -> f64 {
        quantile(&self.delays_ms, share)
    }

    /// Milliseconds of CPU a second of the edges.
    fn edges_ms(&self, clients: &Clients) -> f64 {
        clients.edges.iter().map(|(name, _)| self.round.spent.ms_a_second(Some(name))).sum()
    }

    /// Events or requests a second, and milliseconds of CPU a second of the edges and of all.
    fn line(&self, name: &str, clients: &Clients) -> Line {
        Line::new("clients", name)
            .value("a second", self.round.rate())
            .value("edge ms/s", self.edges_ms(clients))
            .value("mesh ms/s", self.round.spent.ms_a_second(None))
            .value("p50 ms", self.delay_ms(0.5))
            .value("p99 ms", self.delay_ms(0.99))
            .value("KiB each", self.kib_each)
    }
}

/// Section "watchers": all answers change with each block.
pub(super) async fn all_change(world: &World<'_>) -> Result<Figures, Failure> {
    let mut clients = Clients::of(world, QUESTIONS).await?;
    let (streams, mut figures) = against_polling(world, &clients).await?;
    // A new edge: the first one keeps memory that its clients used.
    clients.edges.clear();
    clients.add_edge(world, SOCKETS_EDGE).await?;
    clients.over = Over::WebSocket;
    let sockets = clients.watch_while_blocks_come(world).await?;
    figures.lines.push(sockets.line("watch over WebSockets", &clients));
    let p99 = sockets.delay_ms(0.99) / streams.delay_ms(0.99);
    figures.found.extend([p99, sockets.kib_each / streams.kib_each, sockets.missed as f64]);
    Ok(figures)
}

/// Section "watch-quiet": few answers change with each block.
pub(super) async fn few_change(world: &World<'_>) -> Result<Figures, Failure> {
    let (_, figures) = against_polling(world, &Clients::of(world, FEW).await?).await?;
    let [_, missed, .., ratio] = figures.found[..] else { return Ok(figures) };
    Ok(Figures { found: vec![missed, ratio], ..figures })
}

/// Section "watch-fan-out": few answers change with each block.
pub(super) async fn fan_out(world: &World<'_>) -> Result<Figures, Failure> {
    let mut clients = Clients::of(world, FEW).await?;
    for name in &FAN_OUT_EDGES[1..] {
        clients.add_edge(world, name).await?;
    }
    (clients.count, clients.over_http1) = (FAN_OUT, FAN_OUT_OVER_HTTP1);
    let seen = clients.watch_while_blocks_come(world).await?;
    let title = format!(
        "{FAN_OUT} clients of {} edges, {QUESTIONS} questions, a block a second changes {FEW}",
        clients.edges.len()
    );
    let lines = vec![seen.line("watch", &clients)];
    let found = vec![seen.missed as f64, seen.kib_each];
    Ok(Figures { title, lines, found, ..Figures::default() })
}

/// The same clients watching and polling, each while blocks are written.
async fn against_polling(world: &World<'_>, clients: &Clients) -> Result<(Seen, Figures), Failure> {
    let seen = clients.watch_while_blocks_come(world).await?;
    let (_blocks, polling) = (clients.blocks(world), clients.clone());
    let round = run_blocking(move || polling.poll()).await?;
    let polling = Seen { round, delays_ms: Vec::new(), missed: 0, kib_each: f64::NAN };
    let title =
        format!("{WATCHERS} clients, {QUESTIONS} questions, a block a second changes {}", clients.changes);
    let lines = vec![seen.line("watch", clients), polling.line("poll with If-None-Match", clients)];
    let mesh_ms = |seen: &Seen| seen.round.spent.ms_a_second(None);
    let found = vec![
        seen.delay_ms(0.99),
        seen.missed as f64,
        seen.edges_ms(clients),
        seen.kib_each,
        mesh_ms(&seen) / mesh_ms(&polling),
    ];
    Ok((seen, Figures { title, lines, found, ..Figures::default() }))
}

/// Section "watch-beside": single rows without and with watchers.
pub(super) async fn beside(world: &World<'_>) -> Result<Figures, Failure> {
    let mut clients = Clients::of(world, QUESTIONS).await?;
    let paths = world.withdrawals().await?;
    let pace = Pace { clients: READERS, length: clients.length, period: Some(READ_PERIOD) };
    let load = Load::new(clients.edges[0].1, Requests::Paths(paths[..READ_PATHS].into()), pace);
    let (blocks, reading) = (clients.blocks(world), load.clone());
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
        let (edges, length) = (vec![("edge", edge)], world.length().max(LEAST_LENGTH));
        Ok(Self {
            edges,
            count: WATCHERS,
            over: Over::EventStream,
            over_http1: WATCHERS,
            paths,
            changes,
            length,
            watched,
        })
    }

    async fn add_edge(&mut self, world: &World<'_>, name: &'static str) -> Result<(), Failure> {
        let edge = world.mesh.start_named(&world.servers, &[("edge", name)], Vec::new()).await?;
        self.edges.push((name, edge));
        self.watched.extend(world.mesh.watch(&[name]));
        Ok(())
    }

    /// Starts to write blocks, each of which changes the answers to this many questions in turn.
    fn blocks(&self, world: &World<'_>) -> Blocks {
        let all: Vec<String> =
            self.paths.iter().filter_map(|path| Some(path.rsplit_once('/')?.1.to_owned())).collect();
        let changes = self.changes;
        let ids = Box::new(move |height: u64| {
            let first = height as usize * changes % all.len();
            all.iter().cycle().skip(first).take(changes).cloned().collect()
        });
        Blocks::write(&world.servers, Some(Changes { statement: CHANGE, ids }))
    }

    async fn watch_while_blocks_come(&self, world: &World<'_>) -> Result<Seen, Failure> {
        let (watching, blocks) = (self.clone(), self.blocks(world));
        run_blocking(move || watching.watch(&blocks)).await
    }

    /// Watches on one connection each.
    fn watch(&self, blocks: &Blocks) -> Result<Seen, String> {
        at_low_priority(|| {
            block_on(async { self.watch_blocks(blocks).await.map_err(|failure| failure.to_string()) })
        })
    }

    async fn watch_blocks(&self, blocks: &Blocks) -> Result<Seen, Failure> {
        let is_edge = |process: &&MeasuredProcess| self.edges.iter().any(|(name, _)| process.name == *name);
        let memory_kib = || {
            let of = |edge: &MeasuredProcess| cost::memory_kib(edge.pid).map_or(f64::NAN, |kib| kib as f64);
            self.watched.iter().filter(is_edge).map(of).sum::<f64>()
        };
        let before_kib = memory_kib();
        let mut crowds = Vec::new();
        for (_, edge) in &self.edges {
            let watches = Watch::each(&self.paths, self.count.div_ceil(self.edges.len()), self.over);
            let over_http2 = watches.len().saturating_sub(self.over_http1);
            crowds.push(Watchers::crowd(*edge, watches, (over_http2, ON_A_CONNECTION)).await?);
        }
        let count: usize = crowds.iter().map(|crowd| crowd.look(|record| record.watches.len())).sum();
        sleep(SETTLE).await;
        let kib_each = (memory_kib() - before_kib) / count as f64;
        let (meter, before_us, begun) = (Meter::start(&self.watched), cost::thread_us(), Instant::now());
        sleep(self.length).await;
        let own_us = cost::thread_us() - before_us;
        let (spent, ended) = (meter.stop(own_us), Instant::now());
        // The last block may be in flight.
        sleep(SETTLE).await;
        if let Some(failure) = crowds.iter().find_map(|crowd| crowd.look(|record| record.failed().pop())) {
            return Err(Failure::failed(failure.message));
        }
        let received: Vec<HeightAt> = crowds.iter().flat_map(|crowd| crowd.received_since(begun)).collect();
        let amount = received.iter().filter(|(_, at)| *at <= ended).count() as u64;
        let written = blocks.written(begun, ended - PERIOD);
        let delays_ms: Vec<f64> =
            delays(&written, &received).iter().map(|delay| delay.as_secs_f64() * 1e3).collect();
        let expected = written.len() * self.changes * count / self.paths.len();
        let missed = expected.saturating_sub(delays_ms.len());
        let round = Round { amount, spent, own: Some((LOAD, own_us)), ..Round::default() };
        Ok(Seen { round, delays_ms, missed, kib_each })
    }

    /// Polls with `If-None-Match` on one connection each.
    fn poll(&self) -> Result<Round, String> {
        let pace = Pace { clients: self.count as u64, length: self.length, period: Some(PERIOD) };
        let connect = async |number: u64| {
            let stream = connect(self.edges[0].1, number as usize, None).await;
            let mut connection =
                Connection::over(stream.map_err(|error| format!("cannot connect: {error}"))?);
            let path = self.paths[number as usize % self.paths.len()].clone();
            let mut etag = String::new();
            Ok(async move || {
                let sent = connection.send(&path, &format!("If-None-Match: {etag}\r\n")).await;
                sent.map_err(|error| error.to_string())?;
                let answer = connection.receive().await.map_err(|error| error.to_string())?;
                answer.raw.header("etag").unwrap_or_default().clone_into(&mut etag);
                Ok(true)
            })
        };
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
