//! Point reads: a few shared connections on which statements are pipelined.
//!
//! No read has a timer of its own. An overseer looks at all connections every [`LOOK`] and retires those that
//! hold up their callers; these go on elsewhere while they have time left.

use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::RwLock;
use tokio::{
    pin, select,
    sync::{Notify, watch},
    time::{Instant, sleep, timeout, timeout_at},
};
use tokio_postgres::{CancelToken, Row};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::{
    Parameter, ReadError, StoreState,
    connect::{CONNECT_AT_MOST, Pause},
    metrics::Connections,
    overseer::oversee,
    pipeline::{Pipeline, Retirement},
};
use crate::address::Address;

/// How often a retired connection's statements are cancelled: the first time ends the one that runs, and the
/// server finds that nobody reads its answer; the second time ends the next one, should it have begun.
const CANCELS: usize = 3;

/// Pause between two cancels.
const CANCEL_AGAIN: Duration = Duration::from_millis(50);

/// Longest time for one cancel.
pub(super) const CANCEL_AT_MOST: Duration = Duration::from_secs(2);

#[derive(Clone)]
pub(super) struct Points {
    shared: Arc<Shared>,
}

pub(super) struct Shared {
    slots: Vec<Arc<Slot>>,
    next: AtomicUsize,
    patience: Duration,
    server: watch::Receiver<StoreState>,
    connected: Arc<Notify>,
}

/// The place of one connection, which is replaced when it breaks.
#[derive(Default)]
pub(super) struct Slot(RwLock<Option<Arc<Pipeline>>>);

impl Slot {
    pub(super) fn get(&self) -> Option<Arc<Pipeline>> {
        self.0.read().clone()
    }

    fn get_if(&self, wanted: impl Fn(&Pipeline) -> bool) -> Option<Arc<Pipeline>> {
        let slot = self.0.read();
        slot.as_ref().filter(|pipeline| pipeline.is_open() && wanted(pipeline)).cloned()
    }

    fn put(&self, pipeline: Option<Arc<Pipeline>>) {
        *self.0.write() = pipeline;
    }
}

impl Shared {
    pub(super) fn slots(&self) -> &[Arc<Slot>] {
        &self.slots
    }

    /// Longest time for one read.
    pub(super) fn patience(&self) -> Duration {
        self.patience
    }
}

impl Points {
    /// Reads over so many connections to a server, and fails at once what is under way when that is away.
    /// `patience` is longer than the server's own statement timeout.
    pub(super) fn open(
        address: &Address,
        connections: usize,
        patience: Duration,
        server: watch::Receiver<StoreState>,
    ) -> Self {
        let slots: Vec<_> = (0..connections).map(|_| Arc::new(Slot::default())).collect();
        let connected = Arc::new(Notify::new());
        for slot in &slots {
            // These tasks end when the last handle is gone.
            tokio::spawn(keep_connected(address.clone(), Arc::downgrade(slot), Arc::clone(&connected)));
        }
        let shared = Arc::new(Shared {
            slots,
            next: AtomicUsize::new(0),
            patience,
            server: server.clone(),
            connected,
        });
        tokio::spawn(oversee(Arc::downgrade(&shared), server));
        Self { shared }
    }

    pub(super) async fn one(
        &self,
        sql: &'static str,
        parameters: &[Parameter<'_>],
    ) -> Result<Row, ReadError> {
        let until = Instant::now() + self.shared.patience;
        let mut pipeline = self.connection().ok_or(ReadError::Away(None))?;
        let mut has_broken = false;
        loop {
            let error = match pipeline.one(sql, parameters).await {
                Err(error @ ReadError::Away(_)) => error,
                result => return result,
            };
            // Reading twice does no harm.
            pipeline = if Instant::now() >= until {
                return Err(ReadError::Late);
            } else if !self.shared.server.borrow().is_there {
                return Err(error);
            } else if pipeline.is_retired() {
                timeout_at(until, self.next_connection()).await.map_err(|_| ReadError::Late)??
            } else if has_broken {
                return Err(error);
            } else {
                has_broken = true;
                self.connection().ok_or(error)?
            };
        }
    }

    /// Those with something to do count as used.
    pub(super) fn connections(&self) -> Connections {
        let slots = &self.shared.slots;
        let open: Vec<_> = slots.iter().filter_map(|slot| slot.get_if(|_| true)).collect();
        let progress = |pipeline: &Arc<Pipeline>| pipeline.progress();
        let used = open.iter().map(progress).filter(|progress| progress.sent > progress.answered).count();
        Connections { used, idle: open.len() - used, pending: 0, most: slots.len() }
    }

    /// A connection whose turn it is, rather one where nothing is held up.
    fn connection(&self) -> Option<Arc<Pipeline>> {
        let slots = &self.shared.slots;
        let start = self.shared.next.fetch_add(1, Ordering::Relaxed);
        let find = |wanted: fn(&Pipeline) -> bool| {
            (0..slots.len()).find_map(|step| slots[start.wrapping_add(step) % slots.len()].get_if(wanted))
        };
        find(|pipeline| !pipeline.is_stuck()).or_else(|| find(|_| true))
    }

    /// A connection, as soon as there is one.
    async fn next_connection(&self) -> Result<Arc<Pipeline>, ReadError> {
        let mut server = self.shared.server.clone();
        loop {
            let connected = self.shared.connected.notified();
            pin!(connected);
            // From here on no connection is missed.
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

async fn keep_connected(Address { config, tls }: Address, slot: Weak<Slot>, connected: Arc<Notify>) {
    let mut pause = Pause::default();
    while slot.strong_count() > 0 {
        let (client, connection) = match timeout(CONNECT_AT_MOST, config.connect(tls.clone())).await {
            Ok(Ok(made)) => made,
            failed => {
                if let Ok(Err(error)) = failed {
                    tracing::debug!(%error, "the database cannot be reached");
                }
                sleep(pause.next()).await;
                continue;
            }
        };
        pause = Pause::default();
        let Some(place) = slot.upgrade() else { return };
        let (cancel, retirement) = (client.cancel_token(), Arc::new(Retirement::default()));
        place.put(Some(Arc::new(Pipeline::new(client, Arc::clone(&retirement)))));
        drop(place);
        connected.notify_waiters();
        select! {
            ended = connection => {
                if let Err(error) = ended {
                    tracing::warn!(%error, "a database connection broke");
                }
            }
            () = retirement.wished() => {
                tracing::info!("a database connection is replaced: nothing moves on it");
                tokio::spawn(stop(cancel, tls.clone()));
            }
        }
        if let Some(place) = slot.upgrade() {
            place.put(None);
        }
    }
}

/// Ends what still runs on a connection that is closed already.
async fn stop(cancel: CancelToken, tls: MakeRustlsConnect) {
    for _ in 0..CANCELS {
        match timeout(CANCEL_AT_MOST, cancel.cancel_query(tls.clone())).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "a query could not be cancelled"),
            Err(_) => tracing::debug!("a query could not be cancelled in time"),
        }
        sleep(CANCEL_AGAIN).await;
    }
}
