//! The pipelined connections of one point statement: one at first, more when reads overlap.
//!
//! No read has its own timer: the watchdog checks the connections at an interval and retires those that
//! make no progress. Their reads are retried over another connection while they have time left.

use std::{
    future::pending,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use mesh_problem::error_chain;
use tokio::{
    pin, select,
    sync::{Notify, watch},
    time::{Instant, sleep, timeout, timeout_at},
};
use tokio_postgres::{CancelToken, Row, error::SqlState};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::{
    Parameter, ReadError, StoreState,
    activity::ReadActivity,
    backoff::{Backoff, CONNECT_TIMEOUT},
    metrics::Connections,
    pipeline::{CloseSignal, Pipeline},
    slot::Slot,
    watchdog::watchdog,
};
use crate::address::Address;

/// Most cancel requests for one connection. The first one ends the running statement, the following ones those that
/// the server receives after it.
const CANCELS: usize = 5;

/// Pause between two cancel requests.
const CANCEL_PAUSE: Duration = Duration::from_millis(50);

/// Longest time for one cancel request.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(2);

/// The connections of one statement. They end when it is dropped.
pub(super) struct Lane {
    address: Address,
    sql: &'static str,
    slots: Arc<[Arc<Slot>]>,
    /// Number of slots, from the first one, that are kept connected.
    opened: AtomicUsize,
    read_timeout: Duration,
    server: watch::Receiver<StoreState>,
    /// Whether the server had no room for the last connection that was attempted.
    is_full: Arc<AtomicBool>,
    /// Notifies reads that a connection was made, or that the server has no room.
    connected: Arc<Notify>,
}

impl Lane {
    /// Opens the first of at most `connections` connections of a statement. Pending reads fail with [`ReadError::Away`] when
    /// `server` goes down. `read_timeout` is the limit of one read, longer than the server's statement
    /// timeout.
    pub(super) fn open(
        address: &Address,
        sql: &'static str,
        connections: usize,
        read_timeout: Duration,
        server: watch::Receiver<StoreState>,
        activity: &Arc<ReadActivity>,
    ) -> Self {
        let slots: Arc<[_]> = (0..connections).map(|_| Arc::new(Slot::default())).collect();
        let watchdog = watchdog(Arc::downgrade(&slots), read_timeout, server.clone(), Arc::clone(activity));
        tokio::spawn(watchdog);
        let lane = Self {
            address: address.clone(),
            sql,
            slots,
            opened: AtomicUsize::new(0),
            read_timeout,
            server,
            is_full: Arc::default(),
            connected: Arc::default(),
        };
        lane.open_another();
        lane
    }

    /// Keeps one more slot connected, if there is one.
    fn open_another(&self) {
        let next = |opened: usize| (opened < self.slots.len()).then_some(opened + 1);
        let Ok(number) = self.opened.fetch_update(Relaxed, Relaxed, next) else { return };
        let slot = Arc::downgrade(&self.slots[number]);
        // The task ends when the slot is dropped.
        let (is_full, connected) = (Arc::clone(&self.is_full), Arc::clone(&self.connected));
        tokio::spawn(keep_connected(self.address.clone(), self.sql, slot, is_full, connected));
    }

    /// Runs the statement, which returns exactly one row.
    pub(super) async fn one(&self, parameters: &[Parameter<'_>]) -> Result<Row, ReadError> {
        let until = Instant::now() + self.read_timeout;
        let mut pipeline = self.next_connection(None, until).await?;
        let mut has_broken = false;
        loop {
            let error = match pipeline.one(parameters).await {
                Err(error @ ReadError::Away(_)) => error,
                result => return result,
            };
            // Retried, since a read may run twice.
            if Instant::now() >= until {
                return Err(ReadError::Late);
            }
            let is_retired = pipeline.is_retired();
            if !self.server.borrow().is_there || !is_retired && has_broken {
                return Err(error);
            }
            has_broken |= !is_retired;
            pipeline = self.next_connection(Some(&pipeline), until).await?;
        }
    }

    /// How many connections are open; those with running statements count as used.
    pub(super) fn connections(&self) -> Connections {
        let slots = &self.slots;
        let open: Vec<_> = slots.iter().filter_map(|slot| slot.get_open()).collect();
        let used = open.iter().filter(|pipeline| pipeline.progress().under_way() > 0).count();
        Connections { used, idle: open.len() - used, pending: 0, most: slots.len() }
    }

    /// The open connection, other than a broken one, with the fewest statements under way, the first of
    /// several: while there are few reads, few sessions serve them and stay in the processor's caches. A stuck
    /// one only when all are stuck. When all have statements under way, another one is opened for the reads to
    /// come.
    fn connection(&self, broken: Option<&Arc<Pipeline>>) -> Option<Arc<Pipeline>> {
        let open = self.slots.iter().filter_map(|slot| slot.get_open());
        // It may not be known yet that the connection is closed.
        let open = open.filter(|open| broken.is_none_or(|broken| !Arc::ptr_eq(open, broken)));
        let pipeline = open.min_by_key(|open| (open.is_stuck(), open.progress().under_way()))?;
        if pipeline.progress().under_way() > 0 {
            self.open_another();
        }
        Some(pipeline)
    }

    /// The same; waits for one that is being made.
    async fn next_connection(
        &self,
        broken: Option<&Arc<Pipeline>>,
        until: Instant,
    ) -> Result<Arc<Pipeline>, ReadError> {
        if let Some(pipeline) = self.connection(broken) {
            return Ok(pipeline);
        }
        let mut server = self.server.clone();
        let next = async {
            loop {
                let connected = self.connected.notified();
                pin!(connected);
                // Registered before the check below, so that no notification is missed.
                connected.as_mut().enable();
                if let Some(pipeline) = self.connection(broken) {
                    return Ok(pipeline);
                }
                if self.is_full.load(Relaxed) {
                    return Err(ReadError::Full(None));
                }
                select! {
                    () = connected => {}
                    _ = server.wait_for(|server| !server.is_there) => return Err(ReadError::Away(None)),
                }
            }
        };
        let connecting_until = until.min(Instant::now() + CONNECT_TIMEOUT);
        let late = |_| if connecting_until == until { ReadError::Late } else { ReadError::Away(None) };
        timeout_at(connecting_until, next).await.map_err(late)?
    }
}

/// Keeps a slot connected: connects again whenever its connection ends, until the slot is dropped.
async fn keep_connected(
    Address { config, tls }: Address,
    sql: &'static str,
    slot: Weak<Slot>,
    is_full: Arc<AtomicBool>,
    connected: Arc<Notify>,
) {
    let mut backoff = Backoff::default();
    while slot.strong_count() > 0 {
        let (client, connection) = match timeout(CONNECT_TIMEOUT, config.connect(tls.clone())).await {
            Ok(Ok(connection)) => connection,
            failed => {
                let refused = failed.as_ref().ok().and_then(|failed| failed.as_ref().err()?.code());
                is_full.store(refused == Some(&SqlState::TOO_MANY_CONNECTIONS), Relaxed);
                connected.notify_waiters();
                if let Ok(Err(error)) = failed {
                    tracing::debug!(error = error_chain(&error), "the database cannot be reached");
                }
                sleep(backoff.next()).await;
                continue;
            }
        };
        backoff = Backoff::default();
        is_full.store(false, Relaxed);
        let Some(open) = slot.upgrade() else { return };
        let (cancel, close) = (client.cancel_token(), Arc::new(CloseSignal::default()));
        open.set(Some(Arc::new(Pipeline::new(client, sql, Arc::clone(&close)))));
        drop(open);
        connected.notify_waiters();
        select! {
            ended = connection => {
                if let Err(error) = ended {
                    tracing::warn!(error = error_chain(&error), "a database connection broke");
                }
            }
            () = close.requested() => {
                tracing::info!("a database connection is replaced: nothing moves on it");
                tokio::spawn(cancel_statements(cancel, tls.clone(), pending::<()>()));
            }
        }
        if let Some(broken) = slot.upgrade() {
            broken.set(None);
        }
    }
}

/// Cancels the statements that the server runs for a connection that is given up, until they have `ended`. A request
/// that overtakes its statement has no effect, so that one is not enough.
pub(super) async fn cancel_statements(cancel: CancelToken, tls: MakeRustlsConnect, ended: impl Future) {
    pin!(ended);
    for _ in 0..CANCELS {
        match timeout(CANCEL_TIMEOUT, cancel.cancel_query(tls.clone())).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                return tracing::debug!(error = error_chain(&error), "a query could not be cancelled");
            }
            Err(_) => return tracing::debug!("a query could not be cancelled in time"),
        }
        if timeout(CANCEL_PAUSE, &mut ended).await.is_ok() {
            return;
        }
    }
}
