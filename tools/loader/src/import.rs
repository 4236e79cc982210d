//! Imports sealed segments into a database (H11): one transaction per segment, so that all rows up to the
//! head are always present (W1).
//!
//! The CSV text of a segment's members is copied into a temporary table; the rows that the database lacks are
//! inserted in the order of the primary key, and triggers fill the derived tables. A segment is refused as a
//! whole when the database has other rows of the same heights.

mod member;

use std::collections::BTreeSet;

pub use member::{MemberText, Scope, Taken};
use mesh_store::{
    SEAL_SETTINGS, TimeUs,
    blocks::{BLOCKS, first_fault},
    check_triggers, connect_with,
    error::StoreError,
    schema::{self, SchemaState, primary_keys},
    within,
};
use tokio_postgres::{Client, Transaction, error::SqlState};

use crate::{
    LoadError,
    copy_in::{quoted, quoted_list},
    staging::Staging,
    tables::{Catalog, DERIVED, UNSEALED, catalog},
};

/// A connection that imports.
pub struct ImportSession {
    client: Client,
    schema: SchemaState,
    catalog: Catalog,
    keys: Catalog,
    filled: BTreeSet<String>,
}

/// The contents of a database before an import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// The chain id, when the database has one.
    pub chain_id: Option<String>,
    /// The lowest and the highest block, when there is one.
    pub heights: Option<(i64, i64)>,
    /// The schema version of segments sealed from this database.
    pub version: i32,
}

/// A segment to import.
#[derive(Debug, Clone)]
pub struct ImportSpan {
    /// The name of its object, for messages.
    pub segment: String,
    /// The chain's id.
    pub chain_id: String,
    /// First and last height.
    pub heights: (i64, i64),
    /// Times of the first and the last block.
    pub times: (TimeUs, TimeUs),
}

/// The import of one segment. Rolled back when it is dropped before [`SegmentImport::commit`].
pub struct SegmentImport<'a> {
    transaction: Transaction<'a>,
    span: ImportSpan,
    catalog: &'a Catalog,
    keys: &'a Catalog,
    filled: &'a mut BTreeSet<String>,
    /// The staged blocks and their number. Inserted last, so that the head appears together with all other
    /// rows.
    blocks: Option<(Staging, u64)>,
}

/// The chain id of the database at `url`, which may lack the schema or have none.
///
/// # Errors
/// When no server answers, or a statement fails.
pub async fn stored_chain(url: &str) -> Result<Option<String>, LoadError> {
    const STEP: &str = "reading the chain's id";
    let client = connect_with(url, "mesh import", SEAL_SETTINGS).await?;
    let exists = within(STEP, client.query_one("SELECT to_regclass('chain') IS NOT NULL", &[])).await?;
    if !exists.get::<_, bool>(0) {
        return Ok(None);
    }
    let row = within(STEP, client.query_opt("SELECT id FROM chain", &[])).await?;
    Ok(row.map(|row| row.get(0)))
}

impl ImportSession {
    /// Connects to the migrated database at `url`.
    ///
    /// # Errors
    /// When no server answers, or a migration is missing.
    pub async fn open(url: &str) -> Result<Self, LoadError> {
        let client = connect_with(url, "mesh import", SEAL_SETTINGS).await?;
        check_triggers(&client).await?;
        let schema = schema::state(&client).await?;
        if !schema.is_ready() {
            return Err(LoadError::SchemaBehind(schema.missing));
        }
        let (catalog, keys) = (catalog(&client).await?, primary_keys(&client).await?);
        Ok(Self { client, schema, catalog, keys, filled: BTreeSet::new() })
    }

    /// Reads chain, heights and schema version of the database.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn stored(&self) -> Result<Stored, LoadError> {
        let sql = "SELECT (SELECT id FROM chain), min(height), max(height) FROM blocks";
        let row = within("reading what is stored", self.client.query_one(sql, &[])).await?;
        let heights = row.get::<_, Option<i64>>(1).zip(row.get(2));
        Ok(Stored { chain_id: row.get(0), heights, version: self.schema.exportable })
    }

    /// Begins a segment, and waits until no other session writes blocks.
    ///
    /// # Errors
    /// [`LoadError::Busy`] when another session keeps writing, [`LoadError::Disagrees`] on another chain.
    pub async fn begin(&mut self, span: ImportSpan) -> Result<SegmentImport<'_>, LoadError> {
        const STEP: &str = "beginning an import";
        let transaction = within(STEP, self.client.transaction()).await?;
        let locked = transaction
            .batch_execute("SET LOCAL lock_timeout = '10s'; SET LOCAL statement_timeout = '1h'; LOCK TABLE blocks IN SHARE ROW EXCLUSIVE MODE");
        within(STEP, locked).await.map_err(|error| match error {
            StoreError::Database { source, .. } if source.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => {
                LoadError::Busy
            }
            error => error.into(),
        })?;
        // Settings of the transaction, because COPY takes no parameters.
        let bounds = "SELECT set_config('mesh.time_from', $1::timestamptz::text, true),
            set_config('mesh.time_to', $2::timestamptz::text, true)";
        within(STEP, transaction.query_one(bounds, &[&span.times.0, &span.times.1])).await?;
        let named = "INSERT INTO chain (id) VALUES ($1) ON CONFLICT DO NOTHING";
        within(STEP, transaction.execute(named, &[&span.chain_id])).await?;
        let chain: String = within(STEP, transaction.query_one("SELECT id FROM chain", &[])).await?.get(0);
        if chain != span.chain_id {
            let what = format!("it holds the chain {chain:?}, the segment {:?}", span.chain_id);
            return Err(LoadError::Disagrees(span.segment, what));
        }
        Ok(SegmentImport {
            transaction,
            span,
            catalog: &self.catalog,
            keys: &self.keys,
            filled: &mut self.filled,
            blocks: None,
        })
    }

    /// The tables without a row that no segment fills: they are loaded from CSV files.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn unfilled(&self) -> Result<Vec<&'static str>, LoadError> {
        let mut unfilled = Vec::new();
        for table in UNSEALED {
            let sql = format!("SELECT EXISTS (SELECT FROM {})", quoted(table));
            let row = within("reading what is stored", self.client.query_one(&sql, &[])).await?;
            unfilled.extend((!row.get::<_, bool>(0)).then_some(table));
        }
        Ok(unfilled)
    }

    /// Ends the import: without statistics the first readers would get plans made for empty tables.
    ///
    /// # Errors
    /// When the statement fails; imported segments stay.
    pub async fn finish(self) -> Result<(), LoadError> {
        if self.filled.is_empty() {
            return Ok(());
        }
        let tables = quoted_list(self.filled.iter().map(String::as_str).chain(DERIVED));
        let sql = format!("ANALYZE {tables}");
        Ok(within("analysing the imported tables", self.client.batch_execute(&sql)).await?)
    }
}

impl SegmentImport<'_> {
    /// Inserts the blocks and commits the segment.
    ///
    /// # Errors
    /// The blocks disagree, or the connection is lost; then no row of the segment is stored.
    pub async fn commit(mut self) -> Result<(), LoadError> {
        if let Some((staging, rows)) = self.blocks.take() {
            self.insert(BLOCKS, Scope::Span, &staging, rows).await?;
        }
        self.check_sequence().await?;
        let committed = self.transaction.commit().await;
        committed.map_err(LoadError::in_step("committing a segment"))
    }

    /// Checks that the database has every block of the span, and that they join to its blocks below and above.
    async fn check_sequence(&self) -> Result<(), LoadError> {
        const STEP: &str = "reading the blocks around a segment";
        let (low, high) = self.span.heights;
        let sql = "SELECT EXISTS (SELECT FROM blocks WHERE height < $1), EXISTS (SELECT FROM blocks WHERE height > $2)";
        let around = within(STEP, self.transaction.query_one(sql, &[&low, &high])).await?;
        let joined = (low - i64::from(around.get::<_, bool>(0)), high + i64::from(around.get::<_, bool>(1)));
        match first_fault(&self.transaction, BLOCKS, Some(joined)).await? {
            None => Ok(()),
            Some(fault) => {
                let file = format!("{BLOCKS} of {}", self.span.segment);
                Err(LoadError::bad_file(&file, Some(format!("height {}", fault.height())), fault))
            }
        }
    }

    fn disagrees(&self, what: impl Into<String>) -> LoadError {
        LoadError::Disagrees(self.span.segment.clone(), what.into())
    }
}
