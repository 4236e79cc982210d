//! Clients of the suite "watch": thousands of connections on one thread, each with a watch or polling.

use std::{
    cell::{Cell, RefCell},
    net::SocketAddr,
    rc::Rc,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use mesh_testbed::http1::Head;
use rustix::process::nice;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::Notify,
    task::{JoinHandle, LocalSet, spawn_local},
    time::{sleep_until, timeout},
};

use super::{
    cost::MeasuredProcess,
    meter::{LOAD, Meter, Round},
};
use crate::watches::{
    HeightAt, OPENED_AT_ONCE,
    blocks::{Blocks, delays},
    connect, watch_request,
};

/// Longest time until all connections are open and have their first answer.
const OPEN_TIMEOUT: Duration = Duration::from_secs(60);
/// How much less the clients' thread weighs than others.
const CLIENTS_NICE: i32 = 10;
/// Time after the connections are open before anything counts.
const SETTLE: Duration = Duration::from_secs(3);

/// The time between two blocks, and between two requests of a polling client.
pub(super) const PERIOD: Duration = Duration::from_secs(1);

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
    /// Paths whose answers change with each block.
    pub(super) changes: usize,
    pub(super) length: Duration,
}

/// The observations of the clients.
pub(super) struct Seen {
    pub(super) round: Round,
    /// Times from a block's COMMIT to its receipt by each client, milliseconds.
    pub(super) delays_ms: Vec<f64>,
    /// Changes that a client did not receive.
    pub(super) missed: usize,
    /// Resident memory of the edge with all clients connected, KiB.
    pub(super) edge_kib: Option<u64>,
}

#[derive(Default)]
struct Shared {
    open: Cell<usize>,
    all_open: Notify,
    received: RefCell<Vec<HeightAt>>,
    requests: Cell<u64>,
    stop: Cell<bool>,
}

impl Clients {
    /// Runs the clients on a separate thread while `blocks` are written elsewhere. Real clients are on other
    /// machines, so the thread has a low priority.
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
        shared.received.borrow_mut().clear();
        shared.requests.set(0);
        tokio::time::sleep(self.length).await;
        let load_us = super::cost::thread_cpu_us() - own;
        let (spent, ended) = (meter.stop(load_us), Instant::now());
        let (events, requests) = (shared.received.borrow().len() as u64, shared.requests.get());
        // The last block may be in flight.
        tokio::time::sleep(SETTLE).await;
        shared.stop.set(true);
        // Watches run until they are dropped: one that has ended has failed.
        if let Some(ended) = clients.into_iter().find(JoinHandle::is_finished) {
            ended.await.map_err(|error| error.to_string())??;
        }
        let received = shared.received.take();
        let written = blocks.written(begun, ended - PERIOD);
        let delays_ms: Vec<f64> =
            delays(&written, &received).iter().map(|delay| delay.as_secs_f64() * 1e3).collect();
        let expected = written.len() * self.changes * self.count / self.paths.len();
        let missed = expected.saturating_sub(delays_ms.len());
        let amount = if self.manner == Manner::Watch { events } else { requests };
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
        let mut stream = connect(self.edge, index, None).await.map_err(lost)?;
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

async fn watch_events(
    stream: &mut TcpStream,
    path: &str,
    shared: &Shared,
    opened: impl FnOnce(),
) -> std::io::Result<()> {
    stream.write_all(watch_request(path, None).as_bytes()).await?;
    let (mut text, mut opened) = (Vec::with_capacity(2048), Some(opened));
    loop {
        if stream.read_buf(&mut text).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let now = Instant::now();
        let mut rest = 0;
        while let Some(end) = find(&text[rest..], b"\n\n") {
            if let Some(height) = event_id(&text[rest..rest + end]) {
                shared.received.borrow_mut().push((height, now));
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
            shared.received.borrow_mut().push((height, Instant::now()));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_height_of_an_event_is_its_id() {
        assert_eq!(event_id(b"x-request-id: 1\r\n\r\n1c\r\nid: 57\nevent: answer"), Some(57));
        assert_eq!(event_id(b"id: 57\nevent: answer"), Some(57));
        assert_eq!(event_id(b": 57"), None);
    }
}
