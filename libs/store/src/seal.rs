//! Sealing sessions: a connection with the lock of the only writer, a snapshot in which all tables of a
//! segment are read, and rows as CSV text by COPY.
//!
//! COPY takes no parameters; its bounds are settings of the transaction, made by an ordinary statement of the
//! same snapshot and read by `current_setting`.

use std::{collections::BTreeMap, pin::Pin, time::Duration};

use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt, TryFutureExt};
use tokio::time::timeout;
use tokio_postgres::{Client, IsolationLevel, Row, Transaction};

use crate::{
    blocks::{self, BLOCKS},
    error::StoreError,
    read::Parameter,
    schema::{self, SchemaState},
    session,
    time::TimeUs,
};

/// Length of the pieces of text, bytes. The driver returns single rows, which are joined.
const PIECE: usize = 256 << 10;

/// Deadline of a statement, and of the next piece of rows.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(300);

/// Settings that make CSV text the same on every server (DATA_MODEL 6).
pub const SEAL_SETTINGS: &str = "-c TimeZone=UTC -c DateStyle=ISO -c IntervalStyle=postgres -c extra_float_digits=1 \
    -c bytea_output=hex -c statement_timeout=0 -c jit=off -c idle_in_transaction_session_timeout=10min \
    -c client_connection_check_interval=1s -c idle_session_timeout=30min -c tcp_keepalives_idle=30 \
    -c tcp_keepalives_interval=10 -c tcp_keepalives_count=3 -c tcp_user_timeout=60000";

/// A connection for sealing.
pub struct SealSession {
    client: Client,
}

impl SealSession {
    /// Connects to the primary at `url`; `name` is the session's name in the server's listings.
    ///
    /// # Errors
    /// When the URL does not parse or no server answers.
    pub async fn open(url: &str, name: &str) -> Result<Self, StoreError> {
        Ok(Self { client: session::connect_with(url, name, SEAL_SETTINGS).await? })
    }

    /// Takes a lock of the database, unless another session has it. It is released with the session.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn try_lock(&self, key: i64) -> Result<bool, StoreError> {
        let key: [Parameter<'_>; 1] = [&key];
        let query = self.client.query_one("SELECT pg_try_advisory_lock($1)", &key);
        Ok(within("taking a lock", query).await?.get(0))
    }

    /// Releases a lock that this session has.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn unlock(&self, key: i64) -> Result<(), StoreError> {
        let key: [Parameter<'_>; 1] = [&key];
        within("releasing a lock", self.client.query_one("SELECT pg_advisory_unlock($1)", &key)).await?;
        Ok(())
    }

    /// The chain's id, when the database has one.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn chain_id(&self) -> Result<Option<String>, StoreError> {
        let row =
            within("reading the chain's id", self.client.query_opt("SELECT id FROM chain", &[])).await?;
        Ok(row.map(|row| row.get(0)))
    }

    /// The height of the newest block, when there is one.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn newest_block(&self) -> Result<Option<i64>, StoreError> {
        let row = self.client.query_one("SELECT max(height) FROM blocks", &[]);
        Ok(within("reading the newest block", row).await?.get(0))
    }

    /// Runs a statement that changes rows; returns their number.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn execute(&self, sql: &'static str, parameters: &[Parameter<'_>]) -> Result<u64, StoreError> {
        within("writing the state of the node", self.client.execute(sql, parameters)).await
    }

    /// Begins a read-only transaction that sees one snapshot of all tables.
    ///
    /// # Errors
    /// When the connection is gone.
    pub async fn snapshot(&mut self) -> Result<Snapshot<'_>, StoreError> {
        let builder =
            self.client.build_transaction().isolation_level(IsolationLevel::RepeatableRead).read_only(true);
        Ok(Snapshot { transaction: within("beginning a snapshot", builder.start()).await? })
    }
}

/// A snapshot of all tables, released when dropped.
pub struct Snapshot<'a> {
    transaction: Transaction<'a>,
}

impl Snapshot<'_> {
    /// Runs a statement that returns exactly one row.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn one(&self, sql: &'static str, parameters: &[Parameter<'_>]) -> Result<Row, StoreError> {
        within("reading a snapshot", self.transaction.query_one(sql, parameters)).await
    }

    /// What is wrong with the blocks of these heights, whose first and last times are `times`: one is missing,
    /// is not later than the one before it, or another block is from between their times.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn fault_of_blocks(
        &self,
        (from, to): (i64, i64),
        times: (TimeUs, TimeUs),
    ) -> Result<Option<String>, StoreError> {
        if let Some(fault) = blocks::first_fault(&self.transaction, BLOCKS, Some((from, to))).await? {
            return Ok(Some(fault.to_string()));
        }
        let sql = "SELECT min(height) FROM blocks
            WHERE block_time >= $1 AND block_time <= $2 AND NOT (height >= $3 AND height <= $4)";
        let row = self.one(sql, &[&times.0, &times.1, &from, &to]).await?;
        let other: Option<i64> = row.get(0);
        Ok(other.map(|height| format!("block {height} is from between their times")))
    }

    /// The schema state in the snapshot.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn schema(&self) -> Result<SchemaState, StoreError> {
        answered("reading the schema", schema::state(&self.transaction)).await
    }

    /// The columns of each table's primary key, by table.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn primary_keys(&self) -> Result<BTreeMap<String, Vec<String>>, StoreError> {
        answered("reading the primary keys", schema::primary_keys(&self.transaction)).await
    }

    /// Runs a `COPY … TO STDOUT` statement.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn copy(&self, sql: &str) -> Result<Copy, StoreError> {
        Copy::begin(&self.transaction, sql).await
    }
}

/// The stream of the text of rows.
pub struct Copy {
    rows: Pin<Box<dyn Stream<Item = Result<Bytes, tokio_postgres::Error>> + Send>>,
    piece: BytesMut,
    is_over: bool,
}

impl Copy {
    /// Begins a `COPY … TO STDOUT` statement.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn begin(transaction: &Transaction<'_>, sql: &str) -> Result<Self, StoreError> {
        let rows = within("copying rows", transaction.copy_out(sql)).await?;
        Ok(Self { rows: Box::pin(rows), piece: BytesMut::with_capacity(PIECE), is_over: false })
    }

    /// The next piece, about 256 KiB long unless a row is longer or it is the last; `None` at the end.
    ///
    /// # Errors
    /// When the connection breaks, or no row arrives for five minutes.
    pub async fn next(&mut self) -> Result<Option<Bytes>, StoreError> {
        within("copying rows", self.fill()).await?;
        let piece = std::mem::replace(&mut self.piece, BytesMut::with_capacity(PIECE));
        Ok((!piece.is_empty()).then(|| piece.freeze()))
    }

    async fn fill(&mut self) -> Result<(), tokio_postgres::Error> {
        while !self.is_over && self.piece.len() < PIECE {
            match self.rows.next().await {
                Some(row) => self.piece.extend_from_slice(&row?),
                None => self.is_over = true,
            }
        }
        Ok(())
    }
}

/// Waits for a statement within five minutes; an error names the step.
///
/// # Errors
/// The statement fails, or the server does not answer.
pub async fn within<T>(
    step: &'static str,
    query: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, StoreError> {
    answered(step, query.map_err(StoreError::in_step(step))).await
}

async fn answered<T>(
    step: &'static str,
    query: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    timeout(RESPONSE_TIMEOUT, query).await.unwrap_or(Err(StoreError::Silent { step }))
}
