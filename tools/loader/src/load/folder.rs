//! The CSV files of a folder to load, each with its table and columns.

use std::{
    io,
    path::{Path, PathBuf},
};

use tokio::io::AsyncReadExt;

use super::{SkipReason, SkippedFile, header};
use crate::{
    LoadError,
    tables::{Catalog, DERIVED, missing_in},
};

/// Prefix of the names of the candle views, one per interval.
const DERIVED_VIEWS: &str = "trades_candle_";

/// Longest header, bytes, so that a file without line breaks is not read to its end.
const HEADER_LIMIT: u64 = 1 << 20;

/// One file and where its columns go.
pub(super) struct Source {
    pub(super) table: String,
    pub(super) file: String,
    pub(super) path: PathBuf,
    /// The header, in the order of the file.
    pub(super) header: Vec<String>,
    /// Columns of the file that the table does not have, in the order of the file.
    pub(super) unknown: Vec<String>,
    /// Columns of the table that the file does not have.
    pub(super) defaulted: Vec<String>,
}

/// Lists `dir`: the files to load, sorted by table with `blocks` last, and those to skip.
pub(super) async fn find_sources(
    dir: &Path,
    catalog: &Catalog,
) -> Result<(Vec<Source>, Vec<SkippedFile>), LoadError> {
    let mut sources = Vec::new();
    let mut skipped = Vec::new();
    for file in files(dir).await? {
        if !is_csv(&file) {
            skipped.push(SkippedFile { file, reason: SkipReason::NoCsv });
            continue;
        }
        let table = file.strip_suffix(".csv").unwrap_or(&file).to_owned();
        if DERIVED.contains(&table.as_str()) || table.starts_with(DERIVED_VIEWS) {
            skipped.push(SkippedFile { file, reason: SkipReason::Derived });
        } else if let Some(columns) = catalog.get(&table) {
            let path = dir.join(&file);
            let header = read_header(&path, &file).await?;
            let defaulted = missing_in(&header, columns);
            let unknown = missing_in(columns, &header);
            if unknown.len() == header.len() {
                let reason = format!("none of its columns is a column of table {table}");
                return Err(LoadError::bad_file(&file, Some("line 1".to_owned()), reason));
            }
            sources.push(Source { table, file, path, header, unknown, defaulted });
        } else {
            skipped.push(SkippedFile { file, reason: SkipReason::NoSuchTable });
        }
    }
    if sources.is_empty() {
        return Err(LoadError::NothingToLoad(dir.to_owned()));
    }
    // The head must not appear before the rows of its block. For other sessions the transaction ensures that,
    // for the load's own triggers by this order.
    sources.sort_by(|a, b| (a.table == "blocks", &a.table).cmp(&(b.table == "blocks", &b.table)));
    Ok((sources, skipped))
}

fn is_csv(file: &str) -> bool {
    Path::new(file).extension().is_some_and(|end| end.eq_ignore_ascii_case("csv"))
}

/// The names of the files and folders in `dir`, sorted.
async fn files(dir: &Path) -> Result<Vec<String>, LoadError> {
    let failed = |source| LoadError::Read(dir.to_owned(), source);
    let mut entries = tokio::fs::read_dir(dir).await.map_err(failed)?;
    let mut files = Vec::new();
    while let Some(entry) = entries.next_entry().await.map_err(failed)? {
        files.push(entry.file_name().to_string_lossy().into_owned());
    }
    files.sort();
    Ok(files)
}

async fn read_header(path: &Path, file: &str) -> Result<Vec<String>, LoadError> {
    let failed = |source| LoadError::Read(path.to_owned(), source);
    // Opening a pipe would wait for its writer.
    if !tokio::fs::metadata(path).await.map_err(failed)?.is_file() {
        return Err(failed(io::Error::other("it is not a regular file")));
    }
    let opened = tokio::fs::File::open(path).await.map_err(failed)?;
    let mut start = Vec::new();
    opened.take(HEADER_LIMIT).read_to_end(&mut start).await.map_err(failed)?;
    let whole = (start.len() as u64) < HEADER_LIMIT;
    header::parse(&start, whole)
        .map_err(|reason| LoadError::bad_file(file, Some("line 1".to_owned()), reason))
}
