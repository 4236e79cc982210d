//! A temporary table with the columns of a CSV text in their order: those of the target table with their
//! types, all others as text.

use tokio_postgres::Transaction;

use crate::{
    LoadError,
    copy_in::{STAGING, quoted, quoted_list},
};

/// A staging table. All names are quoted SQL identifiers.
pub(crate) struct Staging {
    pub(crate) name: String,
    /// A column for each one of the text, in its order.
    pub(crate) columns: Vec<String>,
    /// The columns that the target has, too, separated by commas.
    pub(crate) known: String,
}

impl Staging {
    /// Makes the table for a text with this header, for the target `table` with these `columns`; `like` are the
    /// `LIKE` options: what is copied from the target besides its columns.
    pub(crate) async fn make(
        transaction: &Transaction<'_>,
        table: &str,
        header: &[String],
        columns: &[String],
        like: &str,
    ) -> Result<Self, LoadError> {
        let name = quoted(&format!("{STAGING}{table}"));
        let known = quoted_list(header.iter().filter(|column| columns.contains(column)));
        let mut staging = Self { name, columns: Vec::new(), known };
        let mut sql =
            format!("CREATE TEMP TABLE {} (LIKE {} {like}) ON COMMIT DROP", staging.name, quoted(table));
        for column in header {
            if columns.contains(column) {
                staging.columns.push(quoted(column));
            } else {
                // A generated name, because the name in the text may be empty or too long for an identifier.
                let skipped = format!("{STAGING}skipped_{}", staging.columns.len());
                sql.push_str(&format!("; ALTER TABLE {} ADD COLUMN {skipped} text", staging.name));
                staging.columns.push(skipped);
            }
        }
        transaction.batch_execute(&sql).await.map_err(LoadError::in_step("making a staging table"))?;
        Ok(staging)
    }

    pub(crate) async fn drop(self, transaction: &Transaction<'_>) -> Result<(), LoadError> {
        let dropped = transaction.batch_execute(&format!("DROP TABLE {}", self.name)).await;
        dropped.map_err(LoadError::in_step("dropping a staging table"))
    }
}
