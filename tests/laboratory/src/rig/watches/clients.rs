//! Many clients, and their observations.

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use mesh::failure::Failure;
use mesh_testbed::poll;
use parking_lot::Mutex;
use tokio::{
    sync::Semaphore,
    task::{AbortHandle, JoinSet},
};

use super::{OPEN_WITHIN, client::Client, figures::Report};
use crate::watches::{HeightAt, OPENED_AT_ONCE};

/// The observations of all clients.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Received heights, and when.
    pub(super) received: Vec<HeightAt>,
    /// Clients that have had their first event.
    pub(super) open: usize,
    /// Bytes of the longest answer or problem.
    pub(super) longest_event: usize,
    /// Answers at the height of an earlier one of the same client.
    pub(super) same_height: usize,
    /// Answers at a lower height than an earlier one of the same client.
    pub(super) older: usize,
    /// Answers sent twice on one stream.
    pub(super) same_answer: usize,
    /// Answers that a client already had, at a greater height at the beginning of its next stream.
    pub(super) begun_again: usize,
    /// Events with a problem.
    pub(super) problems: usize,
    /// Streams that ended in order.
    pub(super) ended: usize,
    /// The time from each end to the first bytes of the client's next stream.
    pub(super) back: Vec<Duration>,
    /// Refused connection attempts.
    pub(super) unconnected: usize,
    /// Errors of streams, and responses that are not streams.
    pub(super) failures: Vec<String>,
}

/// Clients that watch, until they are dropped.
pub(super) struct Clients {
    /// Aborts them when it is dropped.
    _tasks: JoinSet<()>,
    open: Vec<AbortHandle>,
    seen: Arc<Mutex<Seen>>,
}

impl Clients {
    /// Connects `count` clients, each with one of the paths, to the first of these edges, and waits until each
    /// has its first event.
    ///
    /// # Errors
    /// When a client has none in time.
    pub(super) async fn open(edges: &[SocketAddr], paths: &[String], count: usize) -> Result<Self, Failure> {
        let (seen, turns) = (Arc::<Mutex<Seen>>::default(), Arc::new(Semaphore::new(OPENED_AT_ONCE)));
        let mut tasks = JoinSet::new();
        let open = (0..count).map(|number| {
            let client = Client::new(&paths[number % paths.len()], number, &seen);
            tasks.spawn(client.run(edges.to_vec(), Arc::clone(&turns)))
        });
        let clients = Self { open: open.collect(), _tasks: tasks, seen };
        let are_open = async || {
            let (open, why) = clients.look(|seen| (seen.open, seen.failures.first().cloned()));
            let why = || why.map(|why| format!("; {why}")).unwrap_or_default();
            if open == count {
                return Ok(());
            }
            Err(Failure::failed(format!("only {open} of {count} watchers are connected{}", why())))
        };
        poll(OPEN_WITHIN, are_open).await?;
        Ok(clients)
    }

    /// Reads the observations.
    pub(super) fn look<T>(&self, look: impl FnOnce(&Seen) -> T) -> T {
        look(&self.seen.lock())
    }

    /// Heights received from this time on.
    pub(super) fn received_since(&self, from: Instant) -> Vec<HeightAt> {
        self.look(|seen| seen.received.iter().filter(|(_, at)| *at >= from).copied().collect())
    }

    /// Disconnects one of them.
    pub(super) fn close_one(&mut self) {
        self.open.pop().iter().for_each(AbortHandle::abort);
    }

    /// Adds the bars that hold for every client.
    pub(super) fn judge(&self, report: &mut Report) {
        self.look(|seen| {
            let failures = seen.failures.len();
            let none = |what: &str, count: usize| (format!("{what}: {count}, at most 0"), count == 0);
            for (what, holds) in [
                none("streams that broke or did not begin", failures),
                none("heights sent twice", seen.same_height),
                none("older states sent", seen.older),
                none("answers sent twice on a stream", seen.same_answer),
                none("problems sent", seen.problems),
            ] {
                report.bar(what, holds);
            }
            report.messages.extend(seen.failures.iter().cloned());
        });
    }
}
