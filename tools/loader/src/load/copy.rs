//! Streams one CSV file into its table with COPY.
//!
//! When the table has all columns of the file, the file is copied into the table. Otherwise it is copied into
//! a temporary table like the target, with its keys and checks and the other columns as text, so that an
//! error names the line in both cases.

use std::path::Path;

use bytes::{Bytes, BytesMut};
use futures_util::{Stream, stream};
use mesh_store::{append::kinds, blocks::BLOCKS};
use tokio::{fs::File, io::AsyncReadExt};
use tokio_postgres::Transaction;

use super::folder::Source;
use crate::{
    LoadError,
    copy_in::{CsvText, bad_row, check_count, copy_in, quoted},
    sequence::BlockSequence,
    staging::Staging,
    tables::Catalog,
};

/// Bytes read from a file and sent to the server at a time.
const PIECE: usize = 256 << 10;

/// Copies the file of `source` into its table and returns the number of rows.
pub(super) async fn copy_file(
    transaction: &Transaction<'_>,
    source: &Source,
    catalog: &Catalog,
) -> Result<u64, LoadError> {
    let target = quoted(&source.table);
    let text = pieces(&source.path);
    let file = &source.file[..];
    let copied = |relation, columns| CsvText {
        file,
        relation,
        columns,
        names: &source.header,
        kinds: kinds(&source.table, &source.header),
        has_header: true,
        blocks: (source.table == BLOCKS).then(BlockSequence::default),
    };
    if source.unknown.is_empty() {
        let columns: Vec<String> = source.header.iter().map(|name| quoted(name)).collect();
        return copy_in(transaction, copied(&target, &columns), text).await;
    }
    let columns = catalog.get(&source.table).map_or(&[][..], Vec::as_slice);
    let staging = Staging::make(transaction, &source.table, &source.header, columns, "INCLUDING ALL").await?;
    let staged = copy_in(transaction, copied(&staging.name, &staging.columns), text).await?;
    let known = &staging.known;
    let insert = format!("INSERT INTO {target} ({known}) SELECT {known} FROM {}", staging.name);
    let rows = transaction.execute(&insert, &[]).await.map_err(|error| bad_row(file, error))?;
    check_count(file, staged, rows)?;
    staging.drop(transaction).await?;
    Ok(rows)
}

fn pieces(path: &Path) -> impl Stream<Item = Result<Bytes, LoadError>> + '_ {
    let unreadable = move |error| LoadError::Read(path.to_owned(), error);
    stream::try_unfold(None, move |opened: Option<File>| async move {
        let mut file = match opened {
            Some(file) => file,
            None => File::open(path).await.map_err(unreadable)?,
        };
        let mut piece = BytesMut::with_capacity(PIECE);
        while piece.len() < PIECE && file.read_buf(&mut piece).await.map_err(unreadable)? > 0 {}
        Ok((!piece.is_empty()).then(|| (piece.freeze(), Some(file))))
    })
}
