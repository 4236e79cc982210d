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
use crate::{
    rig::watching::watchers::Watchers,
    watches::{
        HeightAt, OPENED_AT_ONCE,
        blocks::{Blocks, delays},
        connect,
    },
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
        let (mut watchers, mut polling) = (None, Vec::new());
        match self.manner {
            Manner::Watch => {
                let crowd = Watchers::crowd(&[self.edge], &self.paths, self.count, (0, 1)).await;
                watchers = Some(crowd.map_err(|failure| failure.to_string())?);
            }
            Manner::Poll => polling = self.start_polling(&shared).await?,
        }
        tokio::time::sleep(SETTLE).await;
        let edge = watched.iter().find(|process| process.name.starts_with("edge"));
        let edge_kib = edge.and_then(|edge| super::cost::memory_kib(edge.pid));
        let (meter, own) = (Meter::start(watched), super::cost::thread_cpu_us());
        let begun = Instant::now();
        shared.requests.set(0);
        tokio::time::sleep(self.length).await;
        let load_us = super::cost::thread_cpu_us() - own;
        let (spent, ended) = (meter.stop(load_us), Instant::now());
        let requests = shared.requests.get();
        // The last block may be in flight.
        tokio::time::sleep(SETTLE).await;
        shared.stop.set(true);
        let (received, amount) = match &watchers {
            Some(watchers) => {
                let failure = watchers.look(|record| record.failed().into_iter().next());
                failure.map_or(Ok(()), |failure| Err(failure.message))?;
                let received = watchers.received_since(begun);
                let amount = received.iter().filter(|(_, at)| *at <= ended).count() as u64;
                (received, amount)
            }
            None => (shared.received.take(), requests),
        };
        // A client that polls runs until it is dropped: one that has ended has failed.
        if let Some(ended) = polling.into_iter().find(JoinHandle::is_finished) {
            ended.await.map_err(|error| error.to_string())??;
        }
        let written = blocks.written(begun, ended - PERIOD);
        let delays_ms: Vec<f64> =
            delays(&written, &received).iter().map(|delay| delay.as_secs_f64() * 1e3).collect();
        let expected = written.len() * self.changes * self.count / self.paths.len();
        let missed = expected.saturating_sub(delays_ms.len());
        let round = Round { amount, took_ms: Vec::new(), spent, own_us: vec![(LOAD, load_us)] };
        Ok(Seen { round, delays_ms, missed, edge_kib })
    }

    /// Starts the clients that poll, and waits until each has its first answer.
    async fn start_polling(
        &self,
        shared: &Rc<Shared>,
    ) -> Result<Vec<JoinHandle<Result<(), String>>>, String> {
        let permits = Arc::new(tokio::sync::Semaphore::new(OPENED_AT_ONCE));
        let clients = (0..self.count)
            .map(|index| spawn_local(self.clone().client(index, Rc::clone(shared), Arc::clone(&permits))))
            .collect();
        let is_open = async {
            while shared.open.get() < self.count {
                shared.all_open.notified().await;
            }
        };
        timeout(OPEN_TIMEOUT, is_open)
            .await
            .map_err(|_| format!("only {} of {} clients are connected", shared.open.get(), self.count))?;
        Ok(clients)
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
        let turn = index as f64 / self.count as f64;
        poll(&mut stream, path, &shared, turn, opened).await.map_err(lost)
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
