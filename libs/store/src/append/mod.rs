//! Appends blocks with all their rows behind the newest stored one, for `ingest`. The head of the store is its
//! own cursor: a transaction locks it, compares it with the block that is continued, and moves it.

mod compare;
mod fault;
mod head;
mod table;
mod text;
mod transaction_rows;

use std::{collections::BTreeMap, ops::RangeInclusive, pin::pin, time::Duration};

use bytes::Bytes;
use futures_util::{SinkExt, future::BoxFuture};
use tokio::time::timeout;
use tokio_postgres::{Client, CopyInSink, Transaction, error::SqlState};

pub use self::{
    fault::{RowFault, is_of_row, value_rule},
    head::{StoredChain, StoredHead},
    table::{Column, ColumnKind, MAX_NUMBER_BYTES, Table, kinds, table, tables},
    text::CopyText,
    transaction_rows::TransactionRows,
};
use crate::{blocks::BLOCKS, error::StoreError, session, time::TimeUs};

/// The tables whose rows have a time of their own, with that column. It is less than a second after the block's: reads as of
/// a block take rows up to then (DATA_MODEL W1).
pub const TIMED: [(&str, &str); 3] =
    [("ledger", "ledger_entry_time"), ("market_data", "synthetic_time"), ("trades", "synthetic_time")];

/// Name of the sessions in `pg_stat_activity`.
const SESSION_NAME: &str = "mesh ingest";

/// A session that waits for the lock of the head longer than this is refused it. Statements end after half a
/// minute. The server closes a session that stays silent inside a transaction for 4 s. A date such as `03/02/2026` is
/// refused: the order of day and month in `postgresql.conf` would decide which day is stored.
const SETTINGS: &str = "-c lock_timeout=1000 -c statement_timeout=30000 -c jit=off \
     -c idle_in_transaction_session_timeout=4000 -c timezone=UTC -c datestyle=ISO,YMD";

/// Longest time for beginning a transaction. A server that is there has locked the head, or refused to, after a second; the
/// connection of one that vanished says nothing.
const LOCKED_WITHIN: Duration = Duration::from_secs(3);

/// Ends the sessions of this user that hold the head and do not send.
const END_SILENT: &str = include_str!("../../sql/end_silent_sessions.sql");

/// Bytes sent to the server at a time.
const PIECE: usize = 256 << 10;

/// A block that is to be stored.
#[derive(Debug, Clone)]
pub struct NewBlock {
    /// Its height.
    pub height: u64,
    /// Its hash, lower-case hex.
    pub hash: String,
    /// Its time.
    pub time: TimeUs,
    /// Its rows by table.
    pub rows: BTreeMap<&'static str, CopyText>,
}

/// Why blocks were not stored. In each case none of them is, unless the connection was lost during the commit.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// The head of the store is not the block that they continue.
    #[error("the store has another newest block")]
    Moved,
    /// Another session holds the head. If it was silent, it has been ended.
    #[error("another session is appending blocks")]
    Busy,
    /// PostgreSQL refused a row.
    #[error("{0}")]
    Refused(RowFault),
    /// The server cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A session that appends blocks.
#[derive(Debug)]
pub struct Appender {
    client: Client,
}

impl Appender {
    /// Connects to the database at `url`.
    ///
    /// # Errors
    /// When the URL does not parse, no server answers, or it refuses the connection.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        let client = session::connect_with(url, SESSION_NAME, SETTINGS).await?;
        session::check_triggers(&client).await?;
        Ok(Self { client })
    }

    /// Reads the chain's name and the newest block.
    ///
    /// # Errors
    /// The server cannot be used.
    pub async fn chain(&self) -> Result<StoredChain, StoreError> {
        head::read(&self.client, None).await
    }

    /// Reads the stored block at a height.
    ///
    /// # Errors
    /// The server cannot be used.
    pub async fn block(&self, height: u64) -> Result<Option<StoredHead>, StoreError> {
        Ok(head::read(&self.client, Some(height)).await?.head)
    }

    /// Reads the hashes of the stored blocks of a range, by height.
    ///
    /// # Errors
    /// The server cannot be used.
    pub async fn hashes(&self, heights: RangeInclusive<u64>) -> Result<BTreeMap<u64, String>, StoreError> {
        let sql = "SELECT height, hash FROM blocks WHERE height BETWEEN $1 AND $2";
        let (from, to) = (heights.start().cast_signed(), heights.end().cast_signed());
        let rows = self.client.query(sql, &[&from, &to]).await;
        let rows = rows.map_err(StoreError::in_step("reading stored hashes"))?;
        Ok(rows.iter().map(|row| (row.get::<_, i64>(0).unsigned_abs(), row.get(1))).collect())
    }

    /// The height of the oldest stored block.
    ///
    /// # Errors
    /// The server cannot be used.
    pub async fn oldest(&self) -> Result<Option<u64>, StoreError> {
        let row = self.client.query_opt("SELECT height FROM blocks ORDER BY height LIMIT 1", &[]).await;
        let row = row.map_err(StoreError::in_step("reading the oldest block"))?;
        Ok(row.map(|row| row.get::<_, i64>(0).unsigned_abs()))
    }

    /// Compares a block with the stored one and returns a line for each row that only one of them has.
    ///
    /// # Errors
    /// A row has a value that PostgreSQL does not take, or the server cannot be used.
    pub fn compare<'a>(&'a self, block: &'a NewBlock) -> BoxFuture<'a, Result<Vec<String>, StoreError>> {
        Box::pin(compare::compare(&self.client, block))
    }

    /// Stores `blocks` of the chain `chain_id` behind `head`, all of them or none.
    ///
    /// # Errors
    /// See [`AppendError`].
    pub fn append<'a>(
        &'a mut self,
        chain_id: &'a str,
        head: Option<&'a StoredHead>,
        blocks: &'a [NewBlock],
    ) -> BoxFuture<'a, Result<(), AppendError>> {
        Box::pin(async move {
            let outcome = self.try_append(chain_id, head, blocks).await;
            if matches!(outcome, Err(AppendError::Busy)) {
                let ended = self.client.execute(END_SILENT, &[]).await;
                ended.map_err(StoreError::in_step("ending silent sessions"))?;
            }
            outcome
        })
    }

    async fn try_append(
        &mut self,
        chain_id: &str,
        head: Option<&StoredHead>,
        blocks: &[NewBlock],
    ) -> Result<(), AppendError> {
        let begin = async {
            let transaction = self.client.transaction().await;
            let transaction = transaction.map_err(StoreError::in_step("beginning a transaction"))?;
            let locked = transaction.query_opt("SELECT height, hash FROM lock_head()", &[]).await;
            Ok::<_, StoreError>((transaction, locked))
        };
        let silent = |_| StoreError::Silent { step: "locking the newest block" };
        let (transaction, locked) = timeout(LOCKED_WITHIN, begin).await.map_err(silent)??;
        let locked = locked.map_err(|error| match error.code() {
            Some(&SqlState::LOCK_NOT_AVAILABLE) => AppendError::Busy,
            _ => StoreError::in_step("locking the newest block")(error).into(),
        })?;
        let found = locked.map(|row| (row.get::<_, i64>(0).unsigned_abs(), row.get::<_, String>(1)));
        if found != head.map(|head| (head.height, head.hash.clone())) {
            return Err(AppendError::Moved);
        }
        let name = "INSERT INTO chain (id) VALUES ($1) ON CONFLICT DO NOTHING";
        transaction.execute(name, &[&chain_id]).await.map_err(StoreError::in_step("naming the chain"))?;
        for table in tables() {
            let texts = blocks.iter().filter_map(|block| block.rows.get(table.name)).collect::<Vec<_>>();
            if !texts.is_empty() {
                copy(&transaction, table.name, &table.column_names(), &texts).await?;
            }
        }
        let mut heads = CopyText::default();
        for NewBlock { height, hash, time, .. } in blocks {
            heads.cell(Some(&time.to_string()));
            heads.cell(Some(&height.to_string()));
            heads.cell(Some(hash));
            heads.end_row();
        }
        copy(&transaction, BLOCKS, "block_time, height, hash", &[&heads]).await?;
        transaction.commit().await.map_err(StoreError::in_step("committing blocks"))?;
        Ok(())
    }
}

async fn copy(
    transaction: &Transaction<'_>,
    table: &str,
    columns: &str,
    texts: &[&CopyText],
) -> Result<(), AppendError> {
    let refused = |error| match RowFault::read(table, columns, texts, &error) {
        Some(row) => AppendError::Refused(row),
        None => StoreError::Database { step: "copying rows", source: error }.into(),
    };
    let statement = format!("COPY {table} ({columns}) FROM STDIN");
    let sink: CopyInSink<Bytes> = transaction.copy_in(&statement).await.map_err(refused)?;
    let mut sink = pin!(sink);
    for text in texts {
        for piece in text.bytes().chunks(PIECE) {
            sink.send(Bytes::copy_from_slice(piece)).await.map_err(refused)?;
        }
    }
    let sent: u64 = texts.iter().map(|text| text.rows()).sum();
    let stored = sink.finish().await.map_err(refused)?;
    if stored == sent {
        return Ok(());
    }
    Err(StoreError::Incomplete { table: table.to_owned(), sent, stored }.into())
}
