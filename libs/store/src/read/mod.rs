//! Reading: the two ways into PostgreSQL (design D7b).
//!
//! A [`Store`] runs `.sql` files. Single-statement point reads share a few pipelined connections; lists take
//! a pooled connection of their own, so that a slow statement never stands before a fast one. Every session
//! is read-only, in UTC, with a statement timeout. A list query whose caller goes away is cancelled.

mod error;
mod lists;
mod points;

use std::time::Duration;

use tokio_postgres::{Config, Row, types::ToSql};

pub use error::ReadError;
pub use lists::LIST_SETTINGS;
use lists::Lists;
use points::Points;

use crate::TimeUs;

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
    points: Points,
    lists: Lists,
}

/// A bound parameter.
pub type Parameter<'a> = &'a (dyn ToSql + Sync);

impl Store {
    /// Begins to connect and returns at once: a database that is not there yet is tried again for ever.
    ///
    /// # Errors
    /// When a URL does not parse. Must be called inside a tokio runtime.
    pub fn open(config: &StoreConfig) -> Result<Self, ReadError> {
        let primary = session(&config.url, config)?;
        let reads = match &config.replica_url {
            Some(url) => session(url, config)?,
            None => primary,
        };
        let points = Points::open(&reads, config.point_connections.max(1), config.query_timeout);
        let lists = Lists::open(reads, config.list_connections.max(1), config.query_timeout)?;
        Ok(Self { points, lists })
    }

    /// Runs a statement that gives exactly one row, over a shared connection. For statements that are always
    /// fast: they cannot be cancelled.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub async fn point(&self, sql: &'static str, parameters: &[Parameter<'_>]) -> Result<Row, ReadError> {
        self.points.one(sql, parameters).await
    }

    /// Runs a statement that gives rows, over a pooled connection. Cancelled when dropped. Planned anew for
    /// the values at hand, so that optional filters (`$1 IS NULL OR …`) cost nothing.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub async fn list(&self, sql: &'static str, parameters: &[Parameter<'_>]) -> Result<Vec<Row>, ReadError> {
        self.lists.all(sql, parameters).await
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
        self.point("SELECT 1", &[]).await.map(|_| ())
    }
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
fn session(url: &str, config: &StoreConfig) -> Result<Config, ReadError> {
    let mut session: Config = url.parse().map_err(ReadError::Configuration)?;
    let settings = format!(
        "{} -c default_transaction_read_only=on -c statement_timeout={} -c TimeZone=UTC -c jit=off",
        session.get_options().unwrap_or_default(),
        config.query_timeout.as_millis(),
    );
    session
        .application_name(&config.name)
        .options(settings.trim())
        .connect_timeout(Duration::from_secs(2))
        .keepalives_idle(Duration::from_secs(15))
        .tcp_user_timeout(Duration::from_secs(15));
    Ok(session)
}
