//! Clients of the suite "watch": thousands of connections on one thread, each with a watch or polling, and the
//! blocks that change what they see.

use std::{
    cell::{Cell, RefCell},
    net::{IpAddr, Ipv4Addr, SocketAddr},
    rc::Rc,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use mesh::failure::{Failure, cannot};
use mesh_node::NEXT_BLOCK;
use mesh_testbed::http1::Head;
use rustix::process::nice;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
    sync::{Notify, watch},
    task::{JoinHandle, LocalSet, spawn_local},
    time::{MissedTickBehavior, interval, sleep_until, timeout},
};

use super::{
    cost::MeasuredProcess,
    meter::{LOAD, Meter, Round},
};
use crate::private::Servers;

/// Connections of one local address, far below the share of the edge's connections that one may hold.
const PER_ADDRESS: usize = 500;
/// Connections that are opened at the same time.
const OPENED_AT_ONCE: usize = 64;
/// Longest time until all connections are open and have their first answer.
const OPEN_TIMEOUT: Duration = Duration::from_secs(60);
/// How much less the clients' thread weighs than others.
const CLIENTS_NICE: i32 = 10;
/// Time after the connections are open before anything counts.
const SETTLE: Duration = Duration::from_secs(3);
/// The time between two blocks, and between two requests of a polling client.
const PERIOD: Duration = Duration::from_secs(1);
/// Changes withdrawals.
const CHANGE: &str = "UPDATE withdrawals SET ref = $1::text WHERE id = ANY($2)";

/// How the clients learn of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// A watch on each connection.
    Watch,
    /// A request with `If-None-Match` a second on each connection.
    Poll,
}

/// Clients of one edge.
#[derive(Clone)]
pub(super) struct Clients {
    pub(super) manner: Manner,
    pub(super) edge: SocketAddr,
    pub(super) count: usize,
    pub(super) paths: Arc<[String]>,
    pub(super) length: Duration,
}

/// What the clients saw.
pub(super) struct Seen {
    pub(super) round: Round,
    /// Milliseconds from a block's COMMIT to each client that was told it.
    pub(super) delays_ms: Vec<f64>,
    /// Changes that a client was not told.
    pub(super) missed: usize,
    /// Resident memory of the edge with all clients connected, KiB.
    pub(super) edge_kib: Option<u64>,
}

/// A height, and when a client saw it.
type Told = (u64, Instant);

/// A block.
#[derive(Clone, Copy)]
struct Block {
    height: u64,
    committed_at: Instant,
    /// Questions whose answers it changes.
    changes: usize,
}

#[derive(Default)]
struct Shared {
    open: Cell<usize>,
    all_open: Notify,
    told: RefCell<Vec<Told>>,
    requests: Cell<u64>,
    stop: Cell<bool>,
}

impl Clients {
    /// Runs the clients on a thread of their own while `blocks` are written elsewhere. Clients are on other
    /// machines, so the thread leaves the processors to who else wants them.
    ///
    /// # Errors
    /// When a connection breaks.
    pub(super) fn run(&self, watched: &[MeasuredProcess], blocks: &Blocks) -> Result<Seen, String> {
        let run = || {
            nice(CLIENTS_NICE).map_err(|error| format!("cannot lower a priority: {error}"))?;
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.map_err(|error| format!("cannot start the clients: {error}"))?;
            LocalSet::new().block_on(&runtime, self.round(watched, blocks))
        };
        thread::scope(|scope| {
            scope.spawn(run).join().map_err(|_| "the clients panicked".to_owned()).flatten()
        })
    }

    async fn round(&self, watched: &[MeasuredProcess], blocks: &Blocks) -> Result<Seen, String> {
        let shared = Rc::new(Shared::default());
        let permits = Arc::new(tokio::sync::Semaphore::new(OPENED_AT_ONCE));
        let clients: Vec<JoinHandle<Result<(), String>>> = (0..self.count)
            .map(|index| spawn_local(self.clone().client(index, Rc::clone(&shared), Arc::clone(&permits))))
            .collect();
        let is_open = async {
            while shared.open.get() < self.count {
                shared.all_open.notified().await;
            }
        };
        timeout(OPEN_TIMEOUT, is_open)
            .await
            .map_err(|_| format!("only {} of {} clients are connected", shared.open.get(), self.count))?;
        tokio::time::sleep(SETTLE).await;
        let edge = watched.iter().find(|process| process.name.starts_with("edge"));
        let edge_kib = edge.and_then(|edge| super::cost::memory_kib(edge.pid));
        let (meter, own) = (Meter::start(watched), super::cost::thread_cpu_us());
        let begun = Instant::now();
        shared.told.borrow_mut().clear();
        shared.requests.set(0);
        tokio::time::sleep(self.length).await;
        let load_us = super::cost::thread_cpu_us() - own;
        let (spent, ended) = (meter.stop(load_us), Instant::now());
        let requests = shared.requests.get();
        // The last block may be on its way.
        tokio::time::sleep(SETTLE).await;
        shared.stop.set(true);
        // Watches go on until they are dropped: one that has ended has failed.
        if let Some(ended) = clients.into_iter().find(JoinHandle::is_finished) {
            ended.await.map_err(|error| error.to_string())??;
        }
        let told = shared.told.take();
        let written = blocks.written(begun, ended - PERIOD);
        let delays_ms = delays_ms(&written, &told);
        let changes: usize = written.iter().map(|block| block.changes).sum();
        let missed = (changes * self.count / self.paths.len()).saturating_sub(delays_ms.len());
        let amount = if self.manner == Manner::Watch { told.len() as u64 } else { requests };
        let round = Round { amount, took_ms: Vec::new(), spent, own_us: vec![(LOAD, load_us)] };
        Ok(Seen { round, delays_ms, missed, edge_kib })
    }

    async fn client(
        self,
        index: usize,
        shared: Rc<Shared>,
        permits: Arc<tokio::sync::Semaphore>,
    ) -> Result<(), String> {
        let permit = permits.acquire_owned().await;
        let lost = |error: std::io::Error| format!("a client lost its connection: {error}");
        let mut stream = connect(self.edge, index / PER_ADDRESS).await.map_err(lost)?;
        let path = &self.paths[index % self.paths.len()];
        let opened = || {
            drop(permit);
            shared.open.set(shared.open.get() + 1);
            shared.all_open.notify_one();
        };
        match self.manner {
            Manner::Watch => watch_events(&mut stream, path, &shared, opened).await,
            Manner::Poll => {
                let turn = index as f64 / self.count as f64;
                poll(&mut stream, path, &shared, turn, opened).await
            }
        }
        .map_err(lost)
    }
}

async fn connect(edge: SocketAddr, number: usize) -> std::io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    let last = u8::try_from(number + 2).unwrap_or(u8::MAX);
    socket.bind(SocketAddr::from((IpAddr::V4(Ipv4Addr::new(127, 0, 0, last)), 0)))?;
    let stream = socket.connect(edge).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

async fn watch_events(
    stream: &mut TcpStream,
    path: &str,
    shared: &Shared,
    opened: impl FnOnce(),
) -> std::io::Result<()> {
    let request = format!("GET {path} HTTP/1.1\r\nHost: bench\r\nAccept: text/event-stream\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let (mut text, mut opened) = (Vec::with_capacity(2048), Some(opened));
    loop {
        if stream.read_buf(&mut text).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let now = Instant::now();
        let mut rest = 0;
        while let Some(end) = find(&text[rest..], b"\n\n") {
            if let Some(height) = event_id(&text[rest..rest + end]) {
                shared.told.borrow_mut().push((height, now));
                if let Some(opened) = opened.take() {
                    opened();
                }
            }
            rest += end + 2;
        }
        text.drain(..rest);
    }
}

async fn poll(
    stream: &mut TcpStream,
    path: &str,
    shared: &Shared,
    turn: f64,
    opened: impl FnOnce(),
) -> std::io::Result<()> {
    let (mut etag, mut opened, mut last) = (String::new(), Some(opened), 0);
    let mut answer = Vec::with_capacity(4096);
    let mut due = Instant::now();
    while !shared.stop.get() {
        sleep_until(due.into()).await;
        // The first request opens; those that count are spread over the period.
        due += if opened.is_some() { PERIOD + PERIOD.mul_f64(turn) } else { PERIOD };
        let request = format!("GET {path} HTTP/1.1\r\nHost: bench\r\nIf-None-Match: {etag}\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        answer.clear();
        let height = loop {
            if stream.read_buf(&mut answer).await? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            let invalid = |error: String| std::io::Error::new(std::io::ErrorKind::InvalidData, error);
            let Some(head) = Head::parse(&answer).map_err(invalid)? else { continue };
            let length = if head.status == 304 { Some(0) } else { head.content_length().map_err(invalid)? };
            let whole = head.bytes + usize::try_from(length.unwrap_or(0)).unwrap_or(0);
            if answer.len() >= whole {
                head.header("etag").unwrap_or_default().clone_into(&mut etag);
                break head.header("x-block-height").and_then(|height| height.parse().ok()).unwrap_or(0);
            }
        };
        shared.requests.set(shared.requests.get() + 1);
        if height > last {
            shared.told.borrow_mut().push((height, Instant::now()));
            last = height;
        }
        if let Some(opened) = opened.take() {
            opened();
        }
    }
    Ok(())
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|window| window == wanted)
}

/// The height that an event has for its id. Its lines may stand behind a head or the length of a chunk.
fn event_id(text: &[u8]) -> Option<u64> {
    const ID: &[u8] = b"id: ";
    let at = if text.starts_with(ID) { 0 } else { find(text, b"\nid: ")? + 1 };
    let digits = &text[at + ID.len()..];
    let end = digits.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(digits.len());
    std::str::from_utf8(&digits[..end]).ok()?.parse().ok()
}

/// Milliseconds from each block's COMMIT to each time that a client was told it.
fn delays_ms(written: &[Block], told: &[Told]) -> Vec<f64> {
    let committed: std::collections::HashMap<u64, Instant> =
        written.iter().map(|block| (block.height, block.committed_at)).collect();
    let delay =
        |(height, at): &Told| Some(at.saturating_duration_since(*committed.get(height)?).as_secs_f64() * 1e3);
    told.iter().filter_map(delay).collect()
}

/// Blocks that are written once a second, each with changes of some questions, until they are dropped.
pub(super) struct Blocks {
    written: watch::Receiver<Vec<Block>>,
    writing: JoinHandle<()>,
}

impl Blocks {
    /// Begins to write; each block changes so many of these questions, one after the other.
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub(super) async fn write(servers: &Servers, paths: &[String], changes: usize) -> Result<Self, Failure> {
        let mut database = servers.connect("").await?;
        let mut ids: Vec<String> =
            paths.iter().filter_map(|path| Some(path.rsplit_once('/')?.1.to_owned())).collect();
        let (sender, written) = watch::channel(Vec::new());
        let mut ticks = interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let writing = tokio::spawn(async move {
            loop {
                ticks.tick().await;
                let block = async {
                    let transaction = database.transaction().await?;
                    let height: i64 = transaction.query_one(NEXT_BLOCK, &[]).await?.get(0);
                    transaction.execute(CHANGE, &[&height.to_string(), &&ids[..changes]]).await?;
                    transaction.commit().await?;
                    let height = height.unsigned_abs();
                    Ok::<_, tokio_postgres::Error>(Block { height, committed_at: Instant::now(), changes })
                };
                let block = block.await;
                ids.rotate_left(changes);
                match block {
                    Ok(block) => sender.send_modify(|written| written.push(block)),
                    Err(error) => return tracing_failure(&cannot("write a block", &error)),
                }
            }
        });
        Ok(Self { written, writing })
    }

    /// Those that were committed between two moments.
    fn written(&self, from: Instant, to: Instant) -> Vec<Block> {
        let is_between = |block: &&Block| (from..=to).contains(&block.committed_at);
        self.written.borrow().iter().filter(is_between).copied().collect()
    }
}

impl Drop for Blocks {
    fn drop(&mut self) {
        self.writing.abort();
    }
}

fn tracing_failure(failure: &Failure) {
    mesh::terminal::print_line(&failure.to_string());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_counts_from_the_commit_of_the_block_that_is_told() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let block = |height, ms| Block { height, committed_at: at(ms), changes: 1 };
        let told = [(4, at(11)), (5, at(14)), (6, at(20)), (5, at(30))];
        let delays = delays_ms(&[block(5, 10), block(6, 20)], &told);
        assert_eq!(delays.iter().map(|ms| ms.round()).collect::<Vec<_>>(), [4.0, 0.0, 20.0]);
    }

    #[test]
    fn the_height_of_an_event_is_its_id() {
        assert_eq!(event_id(b"x-request-id: 1\r\n\r\n1c\r\nid: 57\nevent: answer"), Some(57));
        assert_eq!(event_id(b"id: 57\nevent: answer"), Some(57));
        assert_eq!(event_id(b": 57"), None);
    }
}
