//! Point reads: a few shared connections on which statements are pipelined.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError, RwLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::time::{sleep, timeout};
use tokio_postgres::{Client, Config, NoTls, Row, Statement, error::SqlState};

use super::{Parameter, ReadError};

/// Longest pause between two attempts to connect.
const RECONNECT_AT_MOST: Duration = Duration::from_millis(250);

#[derive(Clone)]
pub(super) struct Points {
    shared: Arc<Shared>,
}

struct Shared {
    slots: Vec<Slot>,
    next: AtomicUsize,
    timeout: Duration,
}

/// One connection, replaced when it breaks.
type Slot = Arc<RwLock<Option<Arc<Connection>>>>;

/// Where a statement's text lies, and its length. Texts are `include_str!`s, so this tells them apart without
/// reading them for every query.
type Place = (usize, usize);

struct Connection {
    client: Client,
    prepared: Mutex<HashMap<Place, Statement>>,
}

impl Points {
    pub(super) fn open(config: &Config, connections: usize, statement_timeout: Duration) -> Self {
        let slots: Vec<Slot> = (0..connections).map(|_| Slot::default()).collect();
        for slot in &slots {
            // The task ends when the last handle is gone.
            tokio::spawn(keep_connected(config.clone(), Arc::downgrade(slot)));
        }
        Self { shared: Arc::new(Shared { slots, next: AtomicUsize::new(0), timeout: statement_timeout }) }
    }

    pub(super) async fn one(
        &self,
        sql: &'static str,
        parameters: &[Parameter<'_>],
    ) -> Result<Row, ReadError> {
        let connection = self.connection().ok_or(ReadError::Away(None))?;
        // The server's own statement timeout comes first; this one is for a server that is frozen.
        let patience = self.shared.timeout + Duration::from_millis(500);
        match timeout(patience, connection.one(sql, parameters)).await {
            Ok(result) => result,
            Err(_) => Err(ReadError::Late),
        }
    }

    fn connection(&self) -> Option<Arc<Connection>> {
        let slots = &self.shared.slots;
        let start = self.shared.next.fetch_add(1, Ordering::Relaxed);
        (0..slots.len()).find_map(|step| {
            let slot =
                slots[start.wrapping_add(step) % slots.len()].read().unwrap_or_else(PoisonError::into_inner);
            slot.as_ref().filter(|connection| !connection.client.is_closed()).cloned()
        })
    }
}

impl Connection {
    async fn one(&self, sql: &'static str, parameters: &[Parameter<'_>]) -> Result<Row, ReadError> {
        let statement = self.statement(sql).await?;
        match self.client.query_one(&statement, parameters).await {
            Err(error) if is_stale(&error) => {
                self.lock().remove(&place(sql));
                let statement = self.statement(sql).await?;
                Ok(self.client.query_one(&statement, parameters).await?)
            }
            result => Ok(result?),
        }
    }

    async fn statement(&self, sql: &'static str) -> Result<Statement, ReadError> {
        if let Some(statement) = self.lock().get(&place(sql)) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(sql).await?;
        self.lock().insert(place(sql), statement.clone());
        Ok(statement)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Place, Statement>> {
        self.prepared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn place(sql: &'static str) -> Place {
    (sql.as_ptr().addr(), sql.len())
}

/// A migration changed the shape of a prepared statement.
fn is_stale(error: &tokio_postgres::Error) -> bool {
    matches!(error.code(), Some(&SqlState::FEATURE_NOT_SUPPORTED | &SqlState::INVALID_SQL_STATEMENT_NAME))
}

async fn keep_connected(config: Config, slot: std::sync::Weak<RwLock<Option<Arc<Connection>>>>) {
    let mut pause = Duration::from_millis(10);
    while slot.strong_count() > 0 {
        match config.connect(NoTls).await {
            Ok((client, connection)) => {
                pause = Duration::from_millis(10);
                let Some(slot) = slot.upgrade() else { return };
                let connected = Arc::new(Connection { client, prepared: Mutex::default() });
                *slot.write().unwrap_or_else(PoisonError::into_inner) = Some(connected);
                drop(slot);
                if let Err(error) = connection.await {
                    tracing::warn!(%error, "a database connection broke");
                }
            }
            Err(error) => {
                tracing::debug!(%error, "the database cannot be reached");
                sleep(pause).await;
                pause = (pause * 2).min(RECONNECT_AT_MOST);
            }
        }
        if let Some(slot) = slot.upgrade() {
            *slot.write().unwrap_or_else(PoisonError::into_inner) = None;
        }
    }
}
