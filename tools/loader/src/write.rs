//! Writes rows of whole blocks behind the newest stored one, in one transaction, with the checks of W1: for the
//! demo network and other indexers.

use bytes::Bytes;
use futures_util::stream;
use mesh_store::{append::kinds, blocks::BLOCKS, check_triggers, schema};
use tokio_postgres::{Client, Transaction};

use crate::{
    LoadError,
    copy_in::{CsvText, check_count, copy_in},
    sequence::BlockSequence,
};

/// Bytes sent to the server at a time.
const PIECE: usize = 256 << 10;

/// A transaction that writes blocks. Rolled back when it is dropped before [`BlockWriter::commit`].
pub struct BlockWriter<'a> {
    transaction: Transaction<'a>,
    head: Option<(i64, String)>,
}

impl<'a> BlockWriter<'a> {
    /// Begins behind the newest block of the database.
    ///
    /// # Errors
    /// The server is gone.
    pub async fn begin(client: &'a mut Client) -> Result<BlockWriter<'a>, LoadError> {
        check_triggers(client).await?;
        let transaction =
            client.transaction().await.map_err(LoadError::in_step("beginning a transaction"))?;
        let sql = "SELECT height, to_char(block_time AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US') || '+00' FROM last_block";
        let head = transaction.query_opt(sql, &[]).await.map_err(LoadError::in_step("reading the head"))?;
        Ok(Self { transaction, head: head.map(|row| (row.get(0), row.get(1))) })
    }

    /// Writes `rows` rows of a table: CSV text without a header, in the order of the table's columns.
    ///
    /// # Errors
    /// [`LoadError::BadFile`] when a row does not fit, when blocks leave out a height or are not later than the
    /// block before, or when the database stored fewer rows; the server is gone.
    pub async fn write(&self, table: &str, rows: u64, text: &str) -> Result<(), LoadError> {
        let columns = schema::columns(table);
        let copied = CsvText {
            file: table,
            relation: table,
            columns: &columns,
            names: &columns,
            kinds: kinds(table, &columns),
            has_header: false,
            blocks: (table == BLOCKS).then(|| BlockSequence::after(self.head.clone())),
        };
        let pieces = text.as_bytes().chunks(PIECE).map(|piece| Ok(Bytes::copy_from_slice(piece)));
        let stored = copy_in(&self.transaction, copied, stream::iter(pieces)).await?;
        check_count(table, rows, stored)
    }

    /// Commits the blocks.
    ///
    /// # Errors
    /// The server is gone; the blocks may be stored or not.
    pub async fn commit(self) -> Result<(), LoadError> {
        self.transaction.commit().await.map_err(LoadError::in_step("committing blocks"))
    }
}
