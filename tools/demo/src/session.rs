//! A connection to the store: reads its newest block, and writes blocks, all rows of a block in one transaction.

use std::collections::BTreeMap;

use mesh_store::BlockWriter;
use tokio_postgres::Client;

use crate::{
    error::{DemoError, Step},
    moment::Moment,
    rows::Rows,
};

/// Key of the advisory lock that excludes a second writer of the history.
const LOCK: i64 = 0x6465_6d6f_6665_6564;

/// A stored block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
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
    /// Connects and takes the lock. [`DemoError::Busy`] when another session has it.
    pub(crate) async fn connect(url: &str) -> Result<Self, DemoError> {
        let client = mesh_store::connect(url, "mesh demo network").await?;
        client
            .batch_execute("SET TIME ZONE 'UTC'; SET client_encoding TO 'UTF8'")
            .await
            .step("preparing the session")?;
        let row = client
            .query_one("SELECT pg_try_advisory_lock($1)", &[&LOCK])
            .await
            .step("taking the writer's lock")?;
        if row.get(0) { Ok(Session { client }) } else { Err(DemoError::Busy) }
    }

    /// The newest stored block.
    pub(crate) async fn head(&self) -> Result<Option<Head>, DemoError> {
        let sql = "SELECT height, (extract(epoch FROM block_time) * 1000000)::int8, hash \
                   FROM blocks ORDER BY height DESC LIMIT 1";
        let row = self.client.query_opt(sql, &[]).await.step("reading the newest block")?;
        Ok(row.map(|row| head_from_row(&row)))
    }

    /// Stored blocks above a height, lowest first.
    pub(crate) async fn blocks_after(&self, height: u64, most: i64) -> Result<Vec<Head>, DemoError> {
        let sql = "SELECT height, (extract(epoch FROM block_time) * 1000000)::int8, hash \
                   FROM blocks WHERE height > $1 ORDER BY height LIMIT $2";
        let rows = self.client.query(sql, &[&(height as i64), &most]).await.step("reading stored blocks")?;
        Ok(rows.iter().map(head_from_row).collect())
    }

    /// Ids and balances of all accounts whose balance is not zero.
    pub(crate) async fn balances(&self) -> Result<BTreeMap<String, String>, DemoError> {
        let sql = "SELECT account_id, balance::text FROM current_balances WHERE balance <> 0";
        let rows = self.client.query(sql, &[]).await.step("reading the balances")?;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
    }

    /// Chain id of the store.
    pub(crate) async fn chain_id(&self) -> Result<Option<String>, DemoError> {
        let row = self.client.query_opt("SELECT id FROM chain", &[]).await.step("reading the chain id")?;
        Ok(row.map(|row| row.get(0)))
    }

    /// Writes the rows of one or more whole blocks in one transaction.
    pub(crate) async fn write(&mut self, rows: &Rows) -> Result<(), DemoError> {
        let writer = BlockWriter::begin(&mut self.client).await?;
        for table in rows.tables() {
            writer.write(table, rows.count(table), rows.text(table)).await?;
        }
        Ok(writer.commit().await?)
    }

    /// Runs ANALYZE on the tables after a bulk load.
    pub(crate) async fn analyze(&self) -> Result<(), DemoError> {
        self.client.batch_execute("ANALYZE").await.step("analysing the tables")
    }
}

fn head_from_row(row: &tokio_postgres::Row) -> Head {
    Head { height: row.get::<_, i64>(0).unsigned_abs(), time: Moment::from_us(row.get(1)), hash: row.get(2) }
}
