//! A connection to the store: reads its newest block, and writes blocks, all rows of a block in one transaction.

use std::collections::BTreeMap;

use mesh_store::{BlockWriter, error::StoreError};
use tokio_postgres::{Client, Error, Row};

use crate::{moment::Moment, rows::Rows};

/// Key of the advisory lock that excludes a second writer of the history.
const LOCK: i64 = 0x6465_6d6f_6665_6564;

/// A block as the store has it.
pub(crate) struct StoredBlock {
    /// Height of the block.
    pub(crate) height: u64,
    /// Time of the block.
    pub(crate) time: Moment,
    /// Hash of the block, 64 lower-case hex digits.
    pub(crate) hash: String,
}

/// A connection that holds the writer's lock.
pub(crate) struct Session {
    client: Client,
}

impl Session {
    /// Connects and takes the lock, which a process that has just ended may have for a moment.
    pub(crate) async fn connect(url: &str) -> Result<Self, StoreError> {
        let client = mesh_store::connect(url, "mesh demo network").await?;
        let prepare = format!(
            "SET TIME ZONE 'UTC'; SET client_encoding TO 'UTF8'; SET lock_timeout TO '10s'; \
             SELECT pg_advisory_lock({LOCK}); RESET lock_timeout"
        );
        client.batch_execute(&prepare).await.map_err(failed("taking the writer's lock"))?;
        Ok(Session { client })
    }

    /// The stored blocks from a height on, or the newest one below, in rising height.
    pub(crate) async fn last_blocks(&self, from: u64) -> Result<Vec<StoredBlock>, StoreError> {
        let sql = "SELECT height, (extract(epoch FROM block_time) * 1000000)::int8, hash FROM blocks \
                   WHERE height >= least($1, (SELECT max(height) FROM blocks)) ORDER BY height";
        let rows =
            self.client.query(sql, &[&from.cast_signed()]).await.map_err(failed("reading stored blocks"))?;
        let block = |row: &Row| {
            let (height, time) = (row.get::<_, i64>(0).unsigned_abs(), Moment::from_us(row.get(1)));
            StoredBlock { height, time, hash: row.get(2) }
        };
        Ok(rows.iter().map(block).collect())
    }

    /// Ids and balances of all accounts whose balance is not zero.
    pub(crate) async fn balances(&self) -> Result<BTreeMap<String, String>, StoreError> {
        let sql = "SELECT account_id, balance::text FROM current_balances WHERE balance <> 0";
        let rows = self.client.query(sql, &[]).await.map_err(failed("reading the balances"))?;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
    }

    /// Chain id of the store.
    pub(crate) async fn chain_id(&self) -> Result<Option<String>, StoreError> {
        let row = self
            .client
            .query_opt("SELECT id FROM chain", &[])
            .await
            .map_err(failed("reading the chain id"))?;
        Ok(row.map(|row| row.get(0)))
    }

    /// Writes the rows of one or more whole blocks in one transaction.
    pub(crate) async fn write(&mut self, rows: &Rows) -> Result<(), StoreError> {
        let writer = BlockWriter::begin(&mut self.client).await?;
        for table in rows.tables() {
            writer.write(table, rows.count(table), rows.text(table)).await?;
        }
        writer.commit().await
    }

    /// Runs ANALYZE on the tables after a bulk load.
    pub(crate) async fn analyze(&self) -> Result<(), StoreError> {
        self.client.batch_execute("ANALYZE").await.map_err(failed("analysing the tables"))
    }
}

/// The error of a step.
fn failed(step: &'static str) -> impl FnOnce(Error) -> StoreError {
    move |source| StoreError::Database { step, source }
}
