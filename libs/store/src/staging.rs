//! A temporary table that takes a text's columns as they come: those of the target in their types, others as
//! text.

use tokio_postgres::Transaction;

use crate::{
    copy_in::{STAGING, quoted},
    error::StoreError,
};

/// A staging table. Its names are SQL.
pub(crate) struct Staging {
    pub(crate) name: String,
    /// One for each column of the text, in its order.
    pub(crate) columns: Vec<String>,
    /// Those that the target has, too.
    pub(crate) known: Vec<String>,
}

impl Staging {
    /// Makes the table for a text whose header is given, like `table`, which has these `columns`; `like` says
    /// what beside columns it takes over.
    pub(crate) async fn make(
        transaction: &Transaction<'_>,
        table: &str,
        header: &[String],
        columns: &[String],
        like: &str,
    ) -> Result<Self, StoreError> {
        let name = quoted(&format!("{STAGING}{table}"));
        let mut staging = Self { name, columns: Vec::new(), known: Vec::new() };
        let mut sql =
            format!("CREATE TEMP TABLE {} (LIKE {} {like}) ON COMMIT DROP", staging.name, quoted(table));
        for column in header {
            if columns.contains(column) {
                staging.columns.push(quoted(column));
                staging.known.push(quoted(column));
            } else {
                // A name of our own: the text's may be empty or too long for an identifier.
                let skipped = format!("{STAGING}skipped_{}", staging.columns.len());
                sql.push_str(&format!("; ALTER TABLE {} ADD COLUMN {skipped} text", staging.name));
                staging.columns.push(skipped);
            }
        }
        transaction.batch_execute(&sql).await.map_err(StoreError::in_step("making a staging table"))?;
        Ok(staging)
    }

    /// The known columns as a list.
    pub(crate) fn list(&self) -> String {
        self.known.join(", ")
    }

    /// Removes the table.
    pub(crate) async fn drop(self, transaction: &Transaction<'_>) -> Result<(), StoreError> {
        let dropped = transaction.batch_execute(&format!("DROP TABLE {}", self.name)).await;
        dropped.map_err(StoreError::in_step("dropping a staging table"))
    }
}
