//! `mesh load`: loads a folder of CSV files into a database and prints a report.

use std::path::Path;

use mesh_loader::load::{LoadReport, load_folder};
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
    report_lines(&report).iter().for_each(|line| print_line(line));
    Ok(())
}

fn report_lines(report: &LoadReport) -> Vec<String> {
    let mut lines = Vec::new();
    for skipped in &report.skipped_files {
        lines.push(format!("skipped the file {}: {}", skipped.file, skipped.reason));
    }
    for table in report.tables.iter().filter(|table| !table.skipped_columns.is_empty()) {
        let columns = table.skipped_columns.join(", ");
        lines.push(format!("skipped in {} the unknown columns {columns}", table.table));
    }
    for table in report.tables.iter().filter(|table| !table.defaulted_columns.is_empty()) {
        let columns = table.defaulted_columns.join(", ");
        lines.push(format!("left to their default in {} the columns {columns}", table.table));
    }
    let rows: u64 = report.tables.iter().map(|table| table.rows).sum();
    lines.push(format!("loaded {rows} rows into {} tables", report.tables.len()));
    lines
}

#[cfg(test)]
mod tests {
    use mesh_loader::load::{LoadedTable, SkipReason, SkippedFile};

    use super::*;

    #[test]
    fn what_was_left_out_is_named() {
        let report = LoadReport {
            tables: vec![LoadedTable {
                table: "trades".into(),
                rows: 7,
                skipped_columns: vec!["colour".into()],
                defaulted_columns: vec!["type".into()],
            }],
            skipped_files: vec![SkippedFile { file: "notes.csv".into(), reason: SkipReason::NoSuchTable }],
        };
        let text = report_lines(&report).join("\n");
        for part in [
            "notes.csv", "no such table", "trades the unknown columns colour", "columns type",
            "loaded 7 rows into 1 tables",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
