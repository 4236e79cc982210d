//! List reads: a pooled connection per statement, cancelled when its caller goes away.
//!
//! A statement that waits for a table lock gives its connection back after [`LOCK_TIMEOUT`]. From then on one
//! read of that list waits for the lock on its own connection and the others in memory, so that a locked
//! table takes no connection from other lists.
//!
//! While the server has no room for another connection, reads wait for one of those that are open.

use std::{
    collections::HashMap,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use deadpool_postgres::{Manager, ManagerConfig, Object, Pool, QueueMode, RecyclingMethod, Runtime};
use futures_util::{TryStreamExt, future::try_join_all};
use parking_lot::Mutex;
use tokio::{
    sync::{Notify, OwnedSemaphorePermit, Semaphore, SemaphorePermit},
    time::{Instant, timeout_at},
};
use tokio_postgres::{Config, GenericClient, IsolationLevel, Row, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::{
    Parameter, ReadError,
    backoff::CONNECT_TIMEOUT,
    lane::cancel_statements,
    metrics::{self, Connections, Metrics},
};
use crate::address::Address;

/// Additional settings of the sessions that read lists. Generic plans: a statement is planned once per
/// connection, since it has the shape of its request. No sorts: an index scan in list order, even where
/// statistics promise few rows. No parallel workers, which would mix the parts of a statement.
pub const LIST_SETTINGS: &str =
    "-c plan_cache_mode=force_generic_plan -c enable_sort=off -c max_parallel_workers_per_gather=0";

/// Longest wait of a statement for a lock. While a list is being found locked, it holds its share of the
/// connections for this long.
const LOCK_TIMEOUT: Duration = Duration::from_millis(50);

/// Pause between two attempts to open a connection while the server has no room for another one.
const REFUSAL_PAUSE: Duration = Duration::from_millis(500);

/// Most lists that wait for a lock at the same time, each with one connection. More than there are.
const MAX_LOCKED_LISTS: usize = 64;

/// A statement and its parameters.
#[derive(Clone, Copy)]
pub(crate) struct Query<'a> {
    pub(crate) sql: &'static str,
    pub(crate) parameters: &'a [Parameter<'a>],
    /// Bytes of rows after which no more are read; the row with the last of these bytes is the last one.
    pub(crate) most_bytes: Option<usize>,
}

impl Query<'_> {
    /// Its rows, and whether some of them were not read.
    async fn rows(
        &self,
        client: &impl GenericClient,
        statement: &Statement,
    ) -> Result<(Vec<Row>, bool), ReadError> {
        let most = self.most_bytes.unwrap_or(usize::MAX);
        let mut stream = pin!(client.query_raw(statement, self.parameters.iter().copied()).await?);
        let (mut rows, mut bytes) = (Vec::new(), 0);
        while let Some(row) = stream.try_next().await? {
            bytes += row.raw_size_bytes();
            rows.push(row);
            if bytes >= most {
                return Ok((rows, true));
            }
        }
        Ok((rows, false))
    }
}

/// The connections for lists. Cloning shares them.
#[derive(Clone)]
pub(super) struct ListPool {
    pool: Pool,
    /// Connections that wait for a lock as long as a read may, closed after use.
    waiting: Pool,
    /// For the connections that carry cancel requests.
    tls: MakeRustlsConnect,
    /// Most connections that one list may use, so that a slow one does not take all of them.
    share: usize,
    lists: Arc<Mutex<HashMap<&'static str, Arc<ListState>>>>,
    room: Arc<ServerRoom>,
    read_timeout: Duration,
    /// Longest wait for a free connection: half of the time for a read, so that the statement has the other
    /// half. Waiting reads are served in the order of their arrival.
    acquire_timeout: Duration,
    metrics: Metrics,
}

/// Whether the server has room for another connection.
#[derive(Default)]
struct ServerRoom {
    /// When it last refused one; `None` after it has accepted one.
    refused: Mutex<Option<Instant>>,
    /// Notified when a read has returned its connection.
    returned: Notify,
}

impl ServerRoom {
    /// When to try to open a connection again; `None` when the server has not refused the last one.
    fn next_attempt(&self) -> Option<Instant> {
        self.refused.lock().map(|refused| refused + REFUSAL_PAUSE)
    }
}

/// The right of a read to one of its list's connections. Dropped after the connection is returned.
struct Share {
    _permit: OwnedSemaphorePermit,
    room: Arc<ServerRoom>,
}

impl Drop for Share {
    fn drop(&mut self) {
        self.room.returned.notify_one();
    }
}

/// State shared by the reads of one list.
struct ListState {
    /// A permit for each connection that it may use.
    share: Arc<Semaphore>,
    /// Whether its last statement timed out waiting for a lock.
    is_locked: AtomicBool,
    /// The turn to wait for the lock on a connection.
    turn: Semaphore,
}

impl ListState {
    /// Waits for the turn to wait for the lock. `None` when the list is not locked, or no longer.
    async fn turn(&self, until: Instant) -> Result<Option<SemaphorePermit<'_>>, ReadError> {
        if !self.is_locked.load(Relaxed) {
            return Ok(None);
        }
        let turn = timeout_at(until, self.turn.acquire()).await;
        let turn = turn.ok().and_then(Result::ok).ok_or(ReadError::Late)?;
        Ok(self.is_locked.load(Relaxed).then_some(turn))
    }
}

impl ListPool {
    pub(super) fn open(
        Address { mut config, tls }: Address,
        connections: usize,
        read_timeout: Duration,
        metrics: Metrics,
    ) -> Result<Self, ReadError> {
        let acquire_timeout = read_timeout / 2;
        let pool = |config: &Config, size| {
            let recycled = ManagerConfig { recycling_method: RecyclingMethod::Fast };
            Pool::builder(Manager::from_config(config.clone(), tls.clone(), recycled))
                .max_size(size)
                .wait_timeout(Some(acquire_timeout))
                .create_timeout(Some(CONNECT_TIMEOUT))
                .runtime(Runtime::Tokio1)
                // The connection used last: while there are few reads, few sessions serve them and stay in the
                // processor's caches.
                .queue_mode(QueueMode::Lifo)
                .build()
        };
        let settings = format!("{} {LIST_SETTINGS}", config.get_options().unwrap_or_default());
        let mut with_lock_timeout = |wait: Duration, size| {
            pool(config.options(format!("{settings} -c lock_timeout={}", wait.as_millis())), size)
        };
        // Before the read is late: a lock then ends with another error than a slow statement.
        let waiting = with_lock_timeout(lock_patience(read_timeout), MAX_LOCKED_LISTS)?;
        let pool = with_lock_timeout(LOCK_TIMEOUT, connections)?;
        let (share, lists, room) = (share(connections), Arc::default(), Arc::default());
        Ok(Self { pool, waiting, tls, share, lists, room, read_timeout, acquire_timeout, metrics })
    }

    /// Closes the connections that no read uses: their server may be gone without a word.
    pub(super) fn close_unused(&self) {
        for pool in [&self.pool, &self.waiting] {
            pool.retain(|_, _| false);
        }
    }

    pub(super) fn connections(&self) -> Connections {
        let status = self.pool.status();
        let idle = status.available.min(status.size);
        Connections { used: status.size - idle, idle, pending: status.waiting, most: status.max_size }
    }

    /// Runs the statements of a list, several ones in one snapshot, and returns all rows of each.
    pub(super) async fn all(
        &self,
        list: &'static str,
        queries: &[Query<'_>],
    ) -> Result<Vec<Vec<Row>>, ReadError> {
        let until = Instant::now() + self.read_timeout;
        let state = self.state(list);
        loop {
            if let Some(_turn) = state.turn(until).await? {
                let running = self.running(self.waiting.get().await?);
                let has_time = Instant::now() + lock_patience(self.read_timeout) < until;
                let (result, connection) = running.rows(until, queries).await;
                connection.map(Object::take);
                // A read that had less time than the wait for a lock ends late in both cases.
                if has_time || !matches!(result, Err(ReadError::Late)) {
                    state.is_locked.store(matches!(result, Err(ReadError::Locked)), Relaxed);
                }
                return result;
            }
            let started = Instant::now();
            let connection = self.connection(&state).await;
            let is_late = matches!(connection, Err(ReadError::Busy));
            self.metrics.waited(metrics::Pool::Lists, is_late, started.elapsed());
            let (connection, share) = connection?;
            if state.is_locked.load(Relaxed) {
                drop(connection);
                drop(share);
                continue;
            }
            let running = self.running(connection);
            match running.rows(Instant::now() + self.read_timeout, queries).await {
                (Err(ReadError::Locked), _) => state.is_locked.store(true, Relaxed),
                (result, _) => return result,
            }
        }
    }

    fn running(&self, connection: Object) -> Running {
        Running { connection: Some(connection), tls: self.tls.clone(), is_cut: false }
    }

    fn state(&self, list: &'static str) -> Arc<ListState> {
        let new = || ListState {
            share: Arc::new(Semaphore::new(self.share)),
            is_locked: AtomicBool::new(false),
            turn: Semaphore::new(1),
        };
        Arc::clone(self.lists.lock().entry(list).or_insert_with(|| Arc::new(new())))
    }

    /// A connection and its permit from the list's share. When the server has no room for another connection, waits for
    /// an open one, or fails if there is none.
    async fn connection(&self, state: &ListState) -> Result<(Object, Share), ReadError> {
        let until = Instant::now() + self.acquire_timeout;
        let permit = timeout_at(until, Arc::clone(&state.share).acquire_owned()).await;
        let permit = permit.ok().and_then(Result::ok).ok_or(ReadError::Busy)?;
        let share = Share { _permit: permit, room: Arc::clone(&self.room) };
        loop {
            let (now, status) = (Instant::now(), self.pool.status());
            let pause_end = self.room.next_attempt().filter(|next| *next > now);
            match pause_end.filter(|_| status.available == 0) {
                Some(_) if status.size == 0 => return Err(ReadError::Full(None)),
                Some(pause_end) => {
                    // Without a notification the next attempt is due, or the time is up.
                    let _ = timeout_at(pause_end.min(until), self.room.returned.notified()).await;
                }
                None => match self.acquire().await {
                    Err(ReadError::Full(_)) if self.pool.status().size > 0 => {}
                    acquired => return Ok((acquired?, share)),
                },
            }
            if Instant::now() >= until {
                return Err(ReadError::Busy);
            }
        }
    }

    /// An unused connection, or a new one.
    async fn acquire(&self) -> Result<Object, ReadError> {
        let acquired = self.pool.get().await.map_err(ReadError::from);
        match &acquired {
            Ok(connection) if Object::metrics(connection).recycle_count == 0 => {
                *self.room.refused.lock() = None;
            }
            Err(ReadError::Full(_)) => *self.room.refused.lock() = Some(Instant::now()),
            Ok(_) | Err(_) => {}
        }
        acquired
    }

    /// Fails while no connection is open because the server refused the last one; tries to open it.
    pub(super) async fn ready(&self) -> Result<(), ReadError> {
        let is_refused = self.room.next_attempt().is_some() && self.pool.status().size == 0;
        if is_refused { self.acquire().await.map(drop) } else { Ok(()) }
    }
}

/// How long the read whose turn it is waits for a lock.
fn lock_patience(read_timeout: Duration) -> Duration {
    read_timeout * 9 / 10
}

/// How many of `connections` one list may use: all of up to 7, three quarters of more.
fn share(connections: usize) -> usize {
    connections - connections / 8 * 2
}

/// A connection with a running statement. When it is dropped before the statement has ended, it cancels the
/// statement and closes the connection, because a late cancel request could cancel the next statement.
struct Running {
    connection: Option<Object>,
    tls: MakeRustlsConnect,
    /// Whether the statement has rows that were not read.
    is_cut: bool,
}

impl Running {
    /// Runs statements, and returns the connection when they have ended.
    async fn rows(
        mut self,
        until: Instant,
        queries: &[Query<'_>],
    ) -> (Result<Vec<Vec<Row>>, ReadError>, Option<Object>) {
        match timeout_at(until, self.query(queries)).await {
            Ok(result) if self.is_cut => (result, None),
            Ok(result) => (result, self.connection.take()),
            Err(_) => (Err(ReadError::Late), None),
        }
    }

    async fn query(&mut self, queries: &[Query<'_>]) -> Result<Vec<Vec<Row>>, ReadError> {
        let connection = self.connection.as_mut().ok_or(ReadError::Away(None))?;
        if let [query] = queries {
            let statement = connection.prepare_cached(query.sql).await?;
            let (rows, is_cut) = query.rows(&***connection, &statement).await?;
            self.is_cut = is_cut;
            return Ok(vec![rows]);
        }
        let snapshot = connection.build_transaction().isolation_level(IsolationLevel::RepeatableRead);
        let snapshot = snapshot.start().await?;
        // Of several errors the first one is returned, which is why the later statements failed.
        let statements = try_join_all(queries.iter().map(|query| snapshot.prepare_cached(query.sql))).await?;
        let read = statements.iter().zip(queries);
        let read = read.map(|(statement, query)| query.rows(&*snapshot, statement));
        let read = try_join_all(read).await?;
        let is_cut = read.iter().any(|(_, is_cut)| *is_cut);
        if is_cut {
            drop(snapshot);
        } else {
            snapshot.rollback().await?;
        }
        self.is_cut = is_cut;
        Ok(read.into_iter().map(|(rows, _)| rows).collect())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        let client = Object::take(connection);
        let (cancel, tls) = (client.cancel_token(), self.tls.clone());
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            // The server answers the empty statement when it has ended those before it.
            runtime.spawn(async move { cancel_statements(cancel, tls, client.simple_query("")).await });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_list_leaves_some_of_many_connections_to_the_others() {
        assert_eq!([1, 2, 7, 8, 16, 33].map(share), [1, 2, 7, 6, 12, 25]);
    }
}
