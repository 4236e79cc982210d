//! `mesh load`: loads a folder of CSV files into a database and prints a report.

use std::path::Path;

use mesh_loader::load::{LoadedTable, SkippedFile, load_folder};
use mesh_problem::error_chain;

use crate::{
    failure::{Failure, failed},
    terminal::print_line,
};

/// Loads a folder into a migrated database; prints each table and the files and columns left out.
pub(crate) async fn load_into(url: &str, folder: &Path) -> Result<(), Failure> {
    let progress =
        |number, all, table: &str| print_line(&format!("loading {number} of {all} tables ({table})"));
    let report = load_folder(url, folder, progress)
        .await
        .map_err(|error| failed!("nothing was loaded from {}: {}", folder.display(), error_chain(&error)))?;
    for SkippedFile { file, reason } in &report.skipped_files {
        print_line(&format!("skipped the file {file}: {reason}"));
    }
    for LoadedTable { table, skipped_columns, defaulted_columns, .. } in &report.tables {
        if !skipped_columns.is_empty() {
            print_line(&format!("skipped in {table} the unknown columns {}", skipped_columns.join(", ")));
        }
        if !defaulted_columns.is_empty() {
            let columns = defaulted_columns.join(", ");
            print_line(&format!("left to their default in {table} the columns {columns}"));
        }
    }
    let rows: u64 = report.tables.iter().map(|table| table.rows).sum();
    print_line(&format!("loaded {rows} rows into {} tables", report.tables.len()));
    Ok(())
}
