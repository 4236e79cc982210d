//! Reading: the two ways into PostgreSQL (design D7b).
//!
//! A [`Store`] runs `.sql` files. Single-statement point reads share a few pipelined connections; lists take
//! a pooled connection of their own, so that a slow statement never stands before a fast one. Every session
//! is read-only, in UTC, with a statement timeout. A statement whose caller goes away is cancelled.
//!
//! Reads may use a replica. What it says counts only when it is not behind the primary; otherwise, and when it
//! fails, the primary is asked.

mod connect;
mod error;
mod lists;
mod metrics;
mod overseer;
mod pipeline;
mod points;
mod server;
mod watch;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use mesh_telemetry::span::{self, SpanExt};
use tokio::sync::watch::Receiver;
use tokio_postgres::{Row, types::ToSql};
use tracing::Instrument;

pub use error::ReadError;
pub use lists::LIST_SETTINGS;
use metrics::{Metrics, Pool};
use server::{Server, Size};
use watch::News;
pub use watch::StoreState;

use crate::{TimeUs, address::Address};

/// Most connections to the primary while reads use a replica. The primary is then asked only for what the
/// replica has not got yet.
const BEHIND_A_REPLICA: Size = Size { points: 2, lists: 4 };

/// How to read.
#[derive(Clone)]
pub struct StoreConfig {
    /// Where the primary is: `postgresql://user:password@host:port/database`.
    pub url: String,
    /// Where a replica is, when reads may use one.
    pub replica_url: Option<String>,
    /// Longest time for one statement.
    pub query_timeout: Duration,
    /// Pipelined connections for point reads.
    pub point_connections: usize,
    /// Most pooled connections for lists.
    pub list_connections: usize,
    /// Name of the sessions in the database's own listings.
    pub name: String,
}

/// A handle for reading. Cloning shares the connections.
#[derive(Clone)]
pub struct Store {
    servers: Arc<Servers>,
}

struct Servers {
    primary: Server,
    replica: Option<Server>,
    metrics: Metrics,
}

/// A bound parameter.
pub type Parameter<'a> = &'a (dyn ToSql + Sync);

impl Store {
    /// Begins to connect and returns at once: a database that is not there yet is tried again for ever.
    ///
    /// # Errors
    /// When a URL does not parse. Must be called inside a tokio runtime.
    pub fn open(config: &StoreConfig) -> Result<Self, ReadError> {
        let whole = Size { points: config.point_connections, lists: config.list_connections };
        let metrics = Metrics::new();
        let open = |url, size, news| {
            Server::open(&session(url, config)?, size, config.query_timeout, news, metrics.clone())
        };
        let servers = match &config.replica_url {
            None => (open(&config.url, whole, News::Told)?, None),
            Some(replica) => {
                let primary = open(&config.url, whole.at_most(BEHIND_A_REPLICA), News::Told)?;
                (primary, Some(open(replica, whole, News::Untold)?))
            }
        };
        let (primary, replica) = servers;
        Ok(Self { servers: Arc::new(Servers { primary, replica, metrics }) })
    }

    /// Runs a statement that gives exactly one row, over a shared connection. For statements that are always
    /// fast. Cancelled when dropped, although not at once.
    ///
    /// # Errors
    /// See [`ReadError`]. [`ReadError::Away`] as soon as the primary is not there.
    pub async fn point(&self, sql: &'static str, parameters: &[Parameter<'_>]) -> Result<Row, ReadError> {
        self.told(Pool::Points, sql, self.read_point(sql, parameters)).await
    }

    async fn read_point(&self, sql: &'static str, parameters: &[Parameter<'_>]) -> Result<Row, ReadError> {
        let Servers { primary, replica, .. } = &*self.servers;
        if let Some(replica) = replica {
            let known = primary.head()?;
            match replica.point(sql, parameters).await {
                Ok(row) if is_current(Some(&row), known) => return Ok(row),
                Err(ReadError::Late) => return Err(ReadError::Late),
                // Behind, away, or it has cancelled the statement to keep up.
                Ok(_) | Err(_) => {}
            }
        }
        primary.point(sql, parameters).await
    }

    /// Runs a statement that gives rows, over a pooled connection. Cancelled when dropped. Planned anew for
    /// the values at hand, so that optional filters (`$1 IS NULL OR …`) cost nothing.
    ///
    /// # Errors
    /// See [`ReadError`]. [`ReadError::Away`] as soon as the primary is not there.
    pub async fn list(&self, sql: &'static str, parameters: &[Parameter<'_>]) -> Result<Vec<Row>, ReadError> {
        self.told(Pool::Lists, sql, self.read_list(sql, parameters)).await
    }

    async fn read_list(
        &self,
        sql: &'static str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, ReadError> {
        let Servers { primary, replica, .. } = &*self.servers;
        if let Some(replica) = replica {
            let known = primary.head()?;
            match replica.list(sql, parameters).await {
                Ok(rows) if is_current(rows.first(), known) => return Ok(rows),
                Err(ReadError::Late) => return Err(ReadError::Late),
                Ok(_) | Err(_) => {}
            }
        }
        primary.list(sql, parameters).await
    }

    /// Counts a read, and tells of it in its trace.
    async fn told<T>(
        &self,
        pool: Pool,
        sql: &'static str,
        read: impl Future<Output = Result<T, ReadError>>,
    ) -> Result<T, ReadError> {
        let (begun, span) = (Instant::now(), span::statement(sql, pool.name()));
        let result = read.instrument(span.clone()).await;
        let error = result.as_ref().err();
        self.servers.metrics.ended(pool, error, begun.elapsed());
        if let Some(error) = error {
            span.record_failure(error.kind());
        }
        result
    }

    /// Where the store stands: the primary's head, and whether the primary is there.
    pub fn state(&self) -> StoreState {
        self.servers.primary.state()
    }

    /// Where the store stands, as it changes.
    pub fn watch(&self) -> Receiver<StoreState> {
        self.servers.primary.watch()
    }

    /// Comes when the database answers.
    pub async fn until_ready(&self) {
        while self.ready().await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Whether the database answers.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub async fn ready(&self) -> Result<(), ReadError> {
        self.servers.primary.point("SELECT 1", &[]).await.map(|_| ())
    }
}

/// Whether what a replica says is no older than the primary's head as it was known before. A statement that
/// does not say its head is taken from the primary.
fn is_current(row: Option<&Row>, known: Option<(u64, i64)>) -> bool {
    let Some(Ok(head)) = row.map(head_of) else { return false };
    head.map(|(height, _)| height) >= known.map(|(height, _)| height)
}

/// The newest block that a statement read beside its rows: columns `head_height` and `head_time`, NULL when
/// the store has no block. Gives height and nanoseconds since the Unix epoch.
///
/// # Errors
/// When the row has no such columns.
pub fn head_of(row: &Row) -> Result<Option<(u64, i64)>, ReadError> {
    let height: Option<i64> = row.try_get("head_height")?;
    let time: Option<TimeUs> = row.try_get("head_time")?;
    Ok(height.and_then(|height| u64::try_from(height).ok()).zip(time.map(TimeUs::ns)))
}

/// Session settings of every reading connection.
fn session(url: &str, config: &StoreConfig) -> Result<Address, ReadError> {
    let Address { config: mut session, tls } = Address::read(url).map_err(ReadError::Configuration)?;
    let settings = format!(
        "{} -c default_transaction_read_only=on -c statement_timeout={} -c TimeZone=UTC -c jit=off \
         -c client_connection_check_interval=1s",
        session.get_options().unwrap_or_default(),
        config.query_timeout.as_millis(),
    );
    session
        .application_name(&config.name)
        .options(settings.trim())
        .connect_timeout(Duration::from_secs(2))
        .keepalives_idle(Duration::from_secs(15))
        .tcp_user_timeout(Duration::from_secs(15));
    Ok(Address { config: session, tls })
}
