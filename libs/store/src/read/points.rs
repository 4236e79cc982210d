//! Point reads: a few shared connections on which statements are pipelined.
//!
//! No read has a timer of its own: the watchdog checks all connections at an interval and retires those that
//! make no progress. Their reads are retried over another connection while they have time left.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use tokio::{
    pin, select,
    sync::{Notify, watch},
    time::{Instant, sleep, timeout, timeout_at},
};
use tokio_postgres::{CancelToken, Row};
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

/// Number of cancel requests for a retired connection: the first one ends the running statement, the
/// following ones those that the server had received after it.
const CANCELS: usize = 3;

/// Pause between two cancel requests.
const CANCEL_PAUSE: Duration = Duration::from_millis(50);

/// Longest time for one cancel request.
pub(super) const CANCEL_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Clone)]
pub(super) struct PointPool {
    inner: Arc<Inner>,
}

struct Inner {
    slots: Arc<[Arc<Slot>]>,
    read_timeout: Duration,
    server: watch::Receiver<StoreState>,
    connected: Arc<Notify>,
}

impl PointPool {
    /// Opens `connections` pipelined connections. Pending reads fail with [`ReadError::Away`] when `server`
    /// goes down. `read_timeout` is the limit of one read, longer than the server's statement timeout.
    pub(super) fn open(
        address: &Address,
        connections: usize,
        read_timeout: Duration,
        server: watch::Receiver<StoreState>,
        activity: &Arc<ReadActivity>,
    ) -> Self {
        let slots: Arc<[_]> = (0..connections).map(|_| Arc::new(Slot::default())).collect();
        let connected = Arc::new(Notify::new());
        for slot in slots.iter() {
            // These tasks end when the last handle is gone.
            tokio::spawn(keep_connected(address.clone(), Arc::downgrade(slot), Arc::clone(&connected)));
        }
        let watchdog = watchdog(Arc::downgrade(&slots), read_timeout, server.clone(), Arc::clone(activity));
        tokio::spawn(watchdog);
        let inner = Arc::new(Inner { slots, read_timeout, server, connected });
        Self { inner }
    }

    /// Runs a statement that returns exactly one row.
    pub(super) async fn one(
        &self,
        sql: &'static str,
        parameters: &[Parameter<'_>],
    ) -> Result<Row, ReadError> {
        let until = Instant::now() + self.inner.read_timeout;
        let mut pipeline = self.connection().ok_or(ReadError::Away(None))?;
        let mut has_broken = false;
        loop {
            let error = match pipeline.one(sql, parameters).await {
                Err(error @ ReadError::Away(_)) => error,
                result => return result,
            };
            // Retried, since a read may run twice.
            pipeline = if Instant::now() >= until {
                return Err(ReadError::Late);
            } else if !self.inner.server.borrow().is_there {
                return Err(error);
            } else if pipeline.is_retired() {
                timeout_at(until, self.next_connection()).await.map_err(|_| ReadError::Late)??
            } else if has_broken {
                return Err(error);
            } else {
                has_broken = true;
                // It may not be known yet that its connection is closed.
                let other = self.connection_where(|other| !Arc::ptr_eq(other, &pipeline));
                other.or_else(|| self.connection()).ok_or(error)?
            };
        }
    }

    /// How many connections are open; those with running statements count as used.
    pub(super) fn connections(&self) -> Connections {
        let slots = &self.inner.slots;
        let open: Vec<_> = slots.iter().filter_map(|slot| slot.get_open()).collect();
        let used = open.iter().filter(|pipeline| pipeline.progress().under_way() > 0).count();
        Connections { used, idle: open.len() - used, pending: 0, most: slots.len() }
    }

    /// The open connection with the fewest statements under way, the first of several: while there are few
    /// reads, few sessions serve them and stay in the processor's caches. A stuck one only when all are stuck.
    fn connection(&self) -> Option<Arc<Pipeline>> {
        self.connection_where(|_| true)
    }

    /// The same among those that match `filter`.
    fn connection_where(&self, filter: impl Fn(&Arc<Pipeline>) -> bool) -> Option<Arc<Pipeline>> {
        let open = self.inner.slots.iter().filter_map(|slot| slot.get_open()).filter(filter);
        open.min_by_key(|pipeline| (pipeline.is_stuck(), pipeline.progress().under_way()))
    }

    /// Waits for an open connection.
    async fn next_connection(&self) -> Result<Arc<Pipeline>, ReadError> {
        let mut server = self.inner.server.clone();
        loop {
            let connected = self.inner.connected.notified();
            pin!(connected);
            // Registered before the check below, so that no notification is missed.
            connected.as_mut().enable();
            if let Some(pipeline) = self.connection() {
                return Ok(pipeline);
            }
            select! {
                () = connected => {}
                _ = server.wait_for(|server| !server.is_there) => return Err(ReadError::Away(None)),
            }
        }
    }
}

/// Keeps a slot connected: connects again whenever its connection ends, until the slot is dropped.
async fn keep_connected(Address { config, tls }: Address, slot: Weak<Slot>, connected: Arc<Notify>) {
    let mut backoff = Backoff::default();
    while slot.strong_count() > 0 {
        let (client, connection) = match timeout(CONNECT_TIMEOUT, config.connect(tls.clone())).await {
            Ok(Ok(connection)) => connection,
            failed => {
                if let Ok(Err(error)) = failed {
                    tracing::debug!(%error, "the database cannot be reached");
                }
                sleep(backoff.next()).await;
                continue;
            }
        };
        backoff = Backoff::default();
        let Some(open) = slot.upgrade() else { return };
        let (cancel, close) = (client.cancel_token(), Arc::new(CloseSignal::default()));
        open.set(Some(Arc::new(Pipeline::new(client, Arc::clone(&close)))));
        drop(open);
        connected.notify_waiters();
        select! {
            ended = connection => {
                if let Err(error) = ended {
                    tracing::warn!(%error, "a database connection broke");
                }
            }
            () = close.requested() => {
                tracing::info!("a database connection is replaced: nothing moves on it");
                tokio::spawn(cancel_statements(cancel, tls.clone()));
            }
        }
        if let Some(broken) = slot.upgrade() {
            broken.set(None);
        }
    }
}

/// Cancels the statements that the server still runs for a closed connection.
async fn cancel_statements(cancel: CancelToken, tls: MakeRustlsConnect) {
    for _ in 0..CANCELS {
        match timeout(CANCEL_TIMEOUT, cancel.cancel_query(tls.clone())).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "a query could not be cancelled"),
            Err(_) => tracing::debug!("a query could not be cancelled in time"),
        }
        sleep(CANCEL_PAUSE).await;
    }
}
