//! Reading: the two ways into PostgreSQL (design D7b).
//!
//! A [`Store`] runs `.sql` files. Point reads of one statement share a few pipelined connections, which no other
//! statement uses; lists take a pooled connection, of which each list has a share. So no read waits behind
//! another operation's lock. Every session is read-only, in UTC, with a statement timeout. A statement is
//! cancelled when its caller is dropped.
//!
//! Reads may use a replica. Its answer is used only when it is not behind the primary; otherwise, and when
//! the replica fails, the primary is read.

mod activity;
mod backoff;
mod error;
mod head_watch;
mod lane;
mod lists;
mod metrics;
mod past;
mod pipeline;
mod points;
mod row_reader;
mod server;
mod slot;
mod unreadable;
mod watchdog;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use backoff::Backoff;
pub use error::ReadError;
use head_watch::HeadSource;
pub use head_watch::StoreState;
pub use lists::LIST_SETTINGS;
pub(crate) use lists::Query;
use mesh_telemetry::span::{self, SpanExt};
use metrics::{Metrics, Pool};
pub use past::{Past, block_of};
pub use row_reader::RowReader;
use scopeguard::{ScopeGuard, guard};
use server::{Server, Size};
use tokio::sync::watch::Receiver;
use tokio_postgres::{Row, config::TargetSessionAttrs, types::ToSql};
use tracing::Instrument;
pub use unreadable::Unreadable;

use crate::{TimeUs, address::Address, session::EVERY_SESSION};

/// Most connections to the primary while reads use a replica. The primary then gets only the reads for which
/// the replica is behind.
const PRIMARY_WITH_REPLICA: Size = Size { points: 2, lists: 4 };

/// Blocks that a replica may lack at its last poll and still be read: with many blocks a second it has them by then. One that
/// lacks more may follow the primary no longer; it is not read as of earlier blocks, either.
const FAR_BEHIND: u64 = 250;

/// The configuration of a store.
#[derive(Clone)]
pub struct StoreConfig {
    /// URL of the primary: `postgresql://user:password@host:port/database`.
    pub url: String,
    /// URL of a replica, when reads may use one.
    pub replica_url: Option<String>,
    /// Longest time for one statement.
    pub query_timeout: Duration,
    /// Most pipelined connections of one point statement.
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
    unreadable: Unreadable,
}

impl Servers {
    /// The replica and the height that it must have, if there is one that is not known to be far behind the primary.
    ///
    /// # Errors
    /// While the primary does not answer.
    fn replica_with(&self, past: Option<&Past>) -> Result<Option<(&Server, Option<u64>)>, ReadError> {
        let Some(replica) = &self.replica else { return Ok(None) };
        let newest = self.primary.head()?;
        Ok(Some((replica, needed_height(past, newest))).filter(|_| !is_far_behind(replica, newest)))
    }
}

/// A bound parameter.
pub type Parameter<'a> = &'a (dyn ToSql + Sync);

impl Store {
    /// Starts to connect and returns at once; a database that cannot be reached is retried until the last
    /// handle is dropped.
    ///
    /// # Errors
    /// When a URL does not parse. Must be called inside a tokio runtime.
    pub fn open(config: &StoreConfig) -> Result<Self, ReadError> {
        let whole = Size { points: config.point_connections, lists: config.list_connections };
        let metrics = Metrics::new();
        let open = |url, size, source| {
            Server::open(&session(url, config)?, size, config.query_timeout, source, metrics.clone())
        };
        let servers = match &config.replica_url {
            None => (open(&config.url, whole, HeadSource::Notify)?, None),
            Some(replica) => {
                let primary = open(&config.url, whole.at_most(PRIMARY_WITH_REPLICA), HeadSource::Notify)?;
                (primary, Some(open(replica, whole, HeadSource::PollOnly)?))
            }
        };
        let (primary, replica) = servers;
        Ok(Self {
            servers: Arc::new(Servers { primary, replica, metrics, unreadable: Unreadable::default() }),
        })
    }

    /// Runs a statement that returns exactly one row, over a connection that only this statement uses. For
    /// statements that are always fast. When dropped, it is cancelled by the watchdog after a moment. A replica is
    /// read when it has the block `past`, without one when it has the newest block.
    ///
    /// # Errors
    /// See [`ReadError`]. [`ReadError::Away`] as soon as the primary is not there.
    pub async fn point(
        &self,
        sql: &'static str,
        parameters: &[Parameter<'_>],
        past: Option<&Past>,
    ) -> Result<Row, ReadError> {
        self.recorded(Pool::Points, sql, self.read_point(sql, parameters, past)).await
    }

    async fn read_point(
        &self,
        sql: &'static str,
        parameters: &[Parameter<'_>],
        past: Option<&Past>,
    ) -> Result<Row, ReadError> {
        if let Some((replica, needed)) = self.servers.replica_with(past)? {
            match replica.point(sql, parameters).await {
                Ok(row) if has_height(Some(&row), needed) => return Ok(row),
                Err(ReadError::Late) => return Err(ReadError::Late),
                // The replica is behind or away, or replication has cancelled the statement.
                Ok(_) | Err(_) => {}
            }
        }
        let row = self.servers.primary.point(sql, parameters).await?;
        if is_behind(Some(&row), past) { Err(ReadError::Away(None)) } else { Ok(row) }
    }

    /// Runs a statement that returns rows, over a pooled connection. Cancelled when dropped. It is planned once
    /// per connection, for all values. Statements of one `list` (of one operation) together use at most its
    /// share of the connections. `past` as in [`Store::point`].
    ///
    /// # Errors
    /// See [`ReadError`]. [`ReadError::Away`] as soon as the primary is not there.
    pub async fn list(
        &self,
        list: &'static str,
        sql: &'static str,
        parameters: &[Parameter<'_>],
        past: Option<&Past>,
    ) -> Result<Vec<Row>, ReadError> {
        let rows = self.lists(list, &[Query { sql, parameters, most_bytes: None }], past).await?;
        Ok(rows.into_iter().flatten().collect())
    }

    /// Runs statements as [`Store::list`] does, several ones in one snapshot; the first returns the head.
    pub(crate) async fn lists(
        &self,
        list: &'static str,
        queries: &[Query<'_>],
        past: Option<&Past>,
    ) -> Result<Vec<Vec<Row>>, ReadError> {
        let sql = queries.first().map_or("", |query| query.sql);
        self.recorded(Pool::Lists, sql, self.read_lists(list, queries, past)).await
    }

    async fn read_lists(
        &self,
        list: &'static str,
        queries: &[Query<'_>],
        past: Option<&Past>,
    ) -> Result<Vec<Vec<Row>>, ReadError> {
        if let Some((replica, needed)) = self.servers.replica_with(past)? {
            match replica.list(list, queries).await {
                Ok(rows) if has_height(rows.first().and_then(|rows| rows.first()), needed) => {
                    return Ok(rows);
                }
                Err(ReadError::Late) => return Err(ReadError::Late),
                Ok(_) | Err(_) => {}
            }
        }
        let rows = self.servers.primary.list(list, queries).await?;
        let first = rows.first().and_then(|rows| rows.first());
        if is_behind(first, past) { Err(ReadError::Away(None)) } else { Ok(rows) }
    }

    /// Counts a read, also one that is given up, and records it in the trace.
    async fn recorded<T>(
        &self,
        pool: Pool,
        sql: &'static str,
        read: impl Future<Output = Result<T, ReadError>>,
    ) -> Result<T, ReadError> {
        let (started, span) = (Instant::now(), span::statement(sql, pool.name()));
        let abandoned =
            guard((), |()| self.servers.metrics.ended(pool, Some("abandoned"), started.elapsed()));
        let result = read.instrument(span.clone()).await;
        ScopeGuard::into_inner(abandoned);
        let error = result.as_ref().err().map(ReadError::kind);
        self.servers.metrics.ended(pool, error, started.elapsed());
        if let Some(error) = error {
            span.record_failure(error);
        }
        result
    }

    /// Where readers note values that have no form in an answer.
    pub fn unreadable(&self) -> &Unreadable {
        &self.servers.unreadable
    }

    /// The primary's head, and whether the primary answers.
    pub fn state(&self) -> StoreState {
        self.servers.primary.state()
    }

    /// A receiver of [`Store::state`] at each change.
    pub fn watch(&self) -> Receiver<StoreState> {
        self.servers.primary.watch()
    }

    /// Resolves when the database answers.
    pub async fn until_ready(&self) {
        let (mut state, mut backoff) = (self.watch(), Backoff::default());
        // The head watch may have connected before the first connection for reads is made, or before the migration.
        while state.wait_for(|state| state.is_there).await.is_ok() && self.ready().await.is_err() {
            tokio::time::sleep(backoff.next()).await;
        }
    }

    /// Whether the database answers, has been migrated, and refuses no connections for lists; with a replica, whether one
    /// of the two servers has such connections.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub async fn ready(&self) -> Result<(), ReadError> {
        let Servers { primary, replica, .. } = &*self.servers;
        primary.point("SELECT count(*) FROM last_block", &[]).await?;
        match (primary.lists_ready().await, replica) {
            (Err(_), Some(replica)) => replica.lists_ready().await,
            (ready, _) => ready,
        }
    }
}

/// The height that a replica must have: that of the block that is asked for, or of the primary's head known before.
fn needed_height(past: Option<&Past>, known: Option<(u64, i64)>) -> Option<u64> {
    past.map(|past| past.height).or(known.map(|(height, _)| height))
}

/// Whether a replica lacks so many blocks of the primary, at its last poll, that its answer would be too old.
fn is_far_behind(replica: &Server, newest: Option<(u64, i64)>) -> bool {
    let head = replica.state().head.map_or(0, |(height, _)| height);
    newest.is_some_and(|(newest, _)| head.saturating_add(FAR_BEHIND) < newest)
}

/// Whether a replica has this height. An answer without a head counts as older.
fn has_height(row: Option<&Row>, needed: Option<u64>) -> bool {
    let Some(Ok(head)) = row.map(head_of) else { return false };
    head.map(|(height, _)| height) >= needed
}

/// Whether an answer of the primary lacks the block that is asked for, and which it had before: another server, with less, has
/// taken its place.
fn is_behind(row: Option<&Row>, past: Option<&Past>) -> bool {
    past.is_some_and(|past| !has_height(row, Some(past.height)))
}

/// The newest block that a statement read together with its rows: columns `head_height` and `head_time`, NULL
/// when the store has no block. Returns height and nanoseconds since the Unix epoch.
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
    // The driver chooses a server by whether its sessions may write. The user's rights are to read in any case.
    let is_read_only = session.get_target_session_attrs() == TargetSessionAttrs::Any;
    let settings = format!(
        "{} {EVERY_SESSION}{} -c statement_timeout={} -c TimeZone=UTC -c jit=off -c client_connection_check_interval=1s",
        session.get_options().unwrap_or_default(),
        if is_read_only { " -c default_transaction_read_only=on" } else { "" },
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
