//! Clients of the suite "watch": thousands of connections on one thread, each with a watch or polling.

use std::{
    net::SocketAddr,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use mesh_testbed::poll;
use parking_lot::Mutex;
use rustix::process::nice;
use tokio::{
    sync::Semaphore,
    task::JoinSet,
    time::{sleep, sleep_until},
};

use super::{
    cost::MeasuredProcess,
    meter::{LOAD, Meter, Round},
};
use crate::{
    rig::{
        clients::connection::{Connection, RequestError},
        watching::watchers::{OPEN_WITHIN, Watchers},
    },
    watches::{
        HeightAt, OPENED_AT_ONCE,
        blocks::{Blocks, delays},
        connect,
    },
};

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

/// What the clients that poll have received.
#[derive(Default)]
struct Polled {
    open: usize,
    received: Vec<HeightAt>,
    requests: u64,
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
            runtime.block_on(self.round(watched, blocks))
        };
        thread::scope(|scope| {
            scope.spawn(run).join().map_err(|_| "the clients panicked".to_owned()).flatten()
        })
    }

    async fn round(&self, watched: &[MeasuredProcess], blocks: &Blocks) -> Result<Seen, String> {
        let (polled, mut watchers, mut polling) = (Arc::<Mutex<Polled>>::default(), None, JoinSet::new());
        match self.manner {
            Manner::Watch => {
                let crowd = Watchers::crowd(&[self.edge], &self.paths, self.count, (0, 1)).await;
                watchers = Some(crowd.map_err(|failure| failure.to_string())?);
            }
            Manner::Poll => polling = self.start_polling(&polled).await?,
        }
        sleep(SETTLE).await;
        let edge = watched.iter().find(|process| process.name.starts_with("edge"));
        let edge_kib = edge.and_then(|edge| super::cost::memory_kib(edge.pid));
        let (meter, own) = (Meter::start(watched), super::cost::thread_cpu_us());
        let begun = Instant::now();
        let before = polled.lock().requests;
        sleep(self.length).await;
        let load_us = super::cost::thread_cpu_us() - own;
        let (spent, ended) = (meter.stop(load_us), Instant::now());
        let requests = polled.lock().requests - before;
        // The last block may be in flight.
        sleep(SETTLE).await;
        let (received, amount) = match &watchers {
            Some(watchers) => {
                let failure = watchers.look(|record| record.failed().into_iter().next());
                failure.map_or(Ok(()), |failure| Err(failure.message))?;
                let received = watchers.received_since(begun);
                let amount = received.iter().filter(|(_, at)| *at <= ended).count() as u64;
                (received, amount)
            }
            None => (std::mem::take(&mut polled.lock().received), requests),
        };
        // A client that polls runs until it is dropped: one that has ended has failed.
        if let Some(failed) = polling.try_join_next() {
            return Err(failed.map_or_else(|error| error.to_string(), |lost| lost.to_string()));
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
    async fn start_polling(&self, polled: &Arc<Mutex<Polled>>) -> Result<JoinSet<RequestError>, String> {
        let (turns, mut clients) = (Arc::new(Semaphore::new(OPENED_AT_ONCE)), JoinSet::new());
        for number in 0..self.count {
            let (client, polled, turns) = (self.clone(), Arc::clone(polled), Arc::clone(&turns));
            clients.spawn(async move {
                let Err(lost) = client.poll(number, &polled, &turns).await;
                lost
            });
        }
        let are_open = async || match polled.lock().open {
            open if open == self.count => Ok(()),
            open => Err(format!("only {open} of {} clients are connected", self.count)),
        };
        poll(OPEN_WITHIN, are_open).await?;
        Ok(clients)
    }

    async fn poll(
        &self,
        number: usize,
        polled: &Mutex<Polled>,
        turns: &Semaphore,
    ) -> Result<std::convert::Infallible, RequestError> {
        let mut turn = turns.acquire().await.ok();
        let stream = connect(self.edge, number, None).await;
        let mut connection =
            Connection::over(stream.map_err(|error| RequestError::Broken(error.to_string()))?);
        let (path, mut etag, mut last) = (&self.paths[number % self.paths.len()], String::new(), None);
        let mut due = Instant::now();
        loop {
            sleep_until(due.into()).await;
            connection.send(path, &format!("If-None-Match: {etag}\r\n")).await?;
            let answer = connection.receive().await?;
            answer.raw.header("etag").unwrap_or_default().clone_into(&mut etag);
            let mut polled = polled.lock();
            polled.requests += 1;
            due += PERIOD;
            // The first request opens; those that count are spread over the period.
            if turn.take().is_some() {
                polled.open += 1;
                due += PERIOD.mul_f64(number as f64 / self.count as f64);
            }
            if answer.height > last {
                polled.received.extend(answer.height.map(|height| (height, Instant::now())));
                last = answer.height;
            }
        }
    }
}
