//! Loads a folder of CSV files, one per table, into an empty migrated database in one transaction.
//!
//! A file `<table>.csv` begins with a header that names its columns, in any order; the rest is PostgreSQL's
//! CSV (an unquoted empty field is NULL, `""` the empty text). Files and columns that the schema does not
//! know are skipped and named in the report, columns that a file lacks take their default. Derived tables are
//! filled by the triggers. Everything happens in one transaction with `blocks` last, so the head appears
//! together with all rows below it. Files are streamed; memory does not grow with them.

mod copy;
mod folder;
mod header;

use std::{fmt, path::Path};

use folder::Source;
use mesh_store::{blocks::BLOCKS, check_triggers, connect, schema};
use tokio_postgres::{Transaction, error::SqlState};

use crate::{
    LoadError,
    copy_in::{quoted, quoted_list},
    tables::{Catalog, DERIVED, STATES, UNSEALED, catalog, check_times},
};

/// The report of a load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadReport {
    /// The tables that were loaded, in the order of loading.
    pub tables: Vec<LoadedTable>,
    /// Files and folders that were left out, sorted by name.
    pub skipped_files: Vec<SkippedFile>,
}

/// One loaded table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedTable {
    /// The table.
    pub table: String,
    /// Rows that were inserted.
    pub rows: u64,
    /// Columns of the file that the table does not have, in the order of the file.
    pub skipped_columns: Vec<String>,
    /// Columns of the table that the file does not have; they took their default.
    pub defaulted_columns: Vec<String>,
}

/// A file that a load left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkippedFile {
    /// The file's name.
    pub file: String,
    /// Why it was left out.
    pub reason: SkipReason,
}

/// Why a load left a file out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkipReason {
    /// The schema has no table of that name.
    NoSuchTable,
    /// Triggers fill the table from the others.
    Derived,
    /// Its name does not end in `.csv`.
    NoCsv,
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoSuchTable => "there is no such table",
            Self::Derived => "the table is derived from others",
            Self::NoCsv => "its name does not end in .csv",
        })
    }
}

/// Loads the CSV files of `dir` into the migrated database at `url`. Refuses, and changes nothing, when a
/// table to load is not empty, any row does not fit, or the rows are not what readers rely on (DATA_MODEL W1).
/// Each row has to belong to a block.
///
/// `progress` is called before each table with its number from 1, the number of tables, and its name.
///
/// # Errors
/// The folder cannot be read or holds no table's file, a migration is missing, a table is locked or not
/// empty, or a row does not fit.
pub async fn load_folder(
    url: &str,
    dir: &Path,
    mut progress: impl FnMut(usize, usize, &str) + Send,
) -> Result<LoadReport, LoadError> {
    let mut client = connect(url, "mesh load").await?;
    check_triggers(&client).await?;
    let schema = schema::state(&client).await?;
    if !schema.is_ready() {
        return Err(LoadError::SchemaBehind(schema.missing));
    }
    let transaction = client.transaction().await.map_err(LoadError::in_step("beginning the load"))?;
    // Overrides the settings of server and role: no time limit for the load, but one for waiting behind
    // another load.
    let settings = "SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0;
        SET LOCAL lock_timeout = '10s'; SET LOCAL TIME ZONE 'UTC'; SET LOCAL datestyle = 'ISO, YMD'";
    transaction.batch_execute(settings).await.map_err(LoadError::in_step("beginning the load"))?;
    let catalog = catalog(&transaction).await?;
    let (sources, skipped_files) = folder::find_sources(dir, &catalog).await?;
    lock_empty_tables(&transaction, &sources, &catalog).await?;

    let mut tables = Vec::with_capacity(sources.len());
    for (index, source) in sources.iter().enumerate() {
        progress(index + 1, sources.len(), &source.table);
        let rows = copy::copy_file(&transaction, source, &catalog).await?;
        tables.push(LoadedTable {
            table: source.table.clone(),
            rows,
            skipped_columns: source.unknown.clone(),
            defaulted_columns: source.defaulted.clone(),
        });
    }
    for source in sources.iter().filter(|source| comes_with_blocks(&source.table, &catalog)) {
        check_blocks_of(&transaction, source).await?;
        check_times(&transaction, &source.table, &quoted(&source.table), &source.file).await?;
    }
    // Without statistics the first reads would be planned for empty tables.
    let filled = quoted_list(sources.iter().map(|source| source.table.as_str()).chain(DERIVED));
    let analysed = transaction.batch_execute(&format!("ANALYZE {filled}")).await;
    analysed.map_err(LoadError::in_step("analysing the loaded tables"))?;
    transaction.commit().await.map_err(LoadError::in_step("committing the load"))?;
    Ok(LoadReport { tables, skipped_files })
}

/// Whether a table's rows belong to blocks and come with them.
fn comes_with_blocks(table: &str, catalog: &Catalog) -> bool {
    let columns = catalog.get(table).map_or(&[][..], Vec::as_slice);
    columns.iter().any(|column| column == "block_time") && !UNSEALED.contains(&table)
}

/// Checks that each row belongs to a block: others would be in no segment and in no answer as of a block. Rows of
/// tables that are sealed as a state may be older than the first block.
async fn check_blocks_of(transaction: &Transaction<'_>, source: &Source) -> Result<(), LoadError> {
    let is_state = STATES.contains(&&*source.table);
    let no_block = match is_state {
        true => format!("block_time > (SELECT coalesce(max(block_time), '-infinity') FROM {BLOCKS})"),
        false => format!("NOT EXISTS (SELECT FROM {BLOCKS} WHERE {BLOCKS}.block_time = loaded.block_time)"),
    };
    let table = quoted(&source.table);
    let of_none = format!("SELECT block_time::text FROM {table} AS loaded WHERE {no_block} LIMIT 1");
    let found = transaction.query_opt(&of_none, &[]).await;
    match found.map_err(LoadError::in_step("looking for the blocks of the loaded rows"))? {
        None => Ok(()),
        Some(row) => {
            let what = if is_state { "no block is as late as" } else { "no block has the block_time" };
            Err(LoadError::bad_file(&source.file, None, format!("{what} {}", row.get::<_, String>(0))))
        }
    }
}

/// Locks the tables to load against other writers and checks that they are empty. So must `blocks` be, because
/// rows are never added to stored blocks.
async fn lock_empty_tables(
    transaction: &Transaction<'_>,
    sources: &[Source],
    catalog: &Catalog,
) -> Result<(), LoadError> {
    let mut tables: Vec<&str> = sources.iter().map(|source| source.table.as_str()).collect();
    if tables.iter().any(|table| comes_with_blocks(table, catalog)) {
        tables.push(BLOCKS);
    }
    tables.sort_unstable();
    tables.dedup();
    let lock = format!("LOCK TABLE {} IN SHARE ROW EXCLUSIVE MODE", quoted_list(&tables));
    transaction.batch_execute(&lock).await.map_err(|source| match source.code() {
        Some(&SqlState::LOCK_NOT_AVAILABLE) => LoadError::Busy,
        _ => LoadError::in_step("locking the tables to load")(source),
    })?;
    let mut filled = Vec::new();
    for table in tables {
        let sql = format!("SELECT EXISTS (SELECT FROM {})", quoted(table));
        let row = transaction.query_one(&sql, &[]).await;
        if row.map_err(LoadError::in_step("looking for rows in the tables to load"))?.get(0) {
            filled.push(table.to_owned());
        }
    }
    if filled.is_empty() { Ok(()) } else { Err(LoadError::NotEmpty(filled)) }
}
