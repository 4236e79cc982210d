//! A downloaded ZIP as one CSV. Each member has the rows of some blocks; a later member can have more columns, so
//! that members are joined by the names of columns.

use std::{
    borrow::Borrow,
    error::Error,
    fs::File,
    io::{self, Write},
};

use crate::{
    failure::{Failure, failed},
    zip::{BUFFER_BYTES, Members},
};

#[derive(Debug)]
pub(super) enum UnpackError {
    /// No member has this column; those that there are.
    NoColumn(String, Vec<String>),
    Zip(Box<dyn Error + Send + Sync>),
    Write(csv::Error),
}

impl UnpackError {
    pub(super) fn into_failure(self, name: &str) -> Failure {
        match self {
            Self::NoColumn(column, known) => no_column(&column, &known),
            Self::Write(error) if matches!(error.kind(), csv::ErrorKind::Io(error) if error.kind() == io::ErrorKind::BrokenPipe) => {
                Failure::unread()
            }
            Self::Zip(error) => failed!("the download cannot be unpacked ({error}); export without --csv"),
            Self::Write(error) => failed!("cannot write {name} ({error}); name another file with -o"),
        }
    }
}

/// The failure for a column that a table with these columns does not have.
pub(super) fn no_column(column: &str, known: &[impl Borrow<str>]) -> Failure {
    Failure::usage(format!("the table has no column {column:?}; its columns are {}", known.join(", ")))
}

/// Writes the rows of all members of a ZIP as one CSV with a header: all columns, or these in this order. A column
/// that a member does not have is empty in its rows, and NULL is not distinguished from an empty text. Returns the
/// number of rows. Blocks the thread; needs a runtime.
pub(super) fn unpack(zip: File, columns: Option<&[String]>, out: impl Write) -> Result<u64, UnpackError> {
    let mut members = Members::open(zip).map_err(unreadable)?;
    let mut headers = Vec::with_capacity(members.count());
    for number in 0..members.count() {
        headers.push(members.rows(number).map_err(unreadable)?.byte_headers().map_err(unreadable)?.clone());
    }
    let columns = columns_of(&headers, columns)?;
    let mut writer = csv::WriterBuilder::new().buffer_capacity(BUFFER_BYTES).from_writer(out);
    writer.write_record(&columns).map_err(UnpackError::Write)?;
    let (mut row, mut rows) = (csv::ByteRecord::new(), 0);
    for (number, header) in headers.iter().enumerate() {
        let place = |column: &String| header.iter().position(|name| name == column.as_bytes());
        let places: Vec<Option<usize>> = columns.iter().map(place).collect();
        let mut member = members.rows(number).map_err(unreadable)?;
        while member.read_byte_record(&mut row).map_err(unreadable)? {
            let fields = places.iter().map(|place| place.map_or(&[][..], |place| &row[place]));
            writer.write_record(fields).map_err(UnpackError::Write)?;
            rows += 1;
        }
    }
    writer.flush().map_err(|error| UnpackError::Write(error.into()))?;
    Ok(rows)
}

/// The columns to write: `wanted`, or all in the order in which the members bring them.
fn columns_of(headers: &[csv::ByteRecord], wanted: Option<&[String]>) -> Result<Vec<String>, UnpackError> {
    let mut known: Vec<String> = Vec::new();
    for name in headers.iter().flatten() {
        let name = String::from_utf8_lossy(name).into_owned();
        if !known.contains(&name) {
            known.push(name);
        }
    }
    let Some(wanted) = wanted else { return Ok(known) };
    match wanted.iter().find(|column| !known.contains(column)) {
        Some(missing) => Err(UnpackError::NoColumn(missing.clone(), known)),
        None => Ok(wanted.to_vec()),
    }
}

fn unreadable(error: impl Into<Box<dyn Error + Send + Sync>>) -> UnpackError {
    UnpackError::Zip(error.into())
}

#[cfg(test)]
mod tests {
    use std::io::Seek as _;

    use async_zip::{Compression, StringEncoding, ZipEntryBuilder, ZipString, base::write::ZipFileWriter};
    use tokio::task::spawn_blocking;

    use super::*;

    async fn unpacked(members: &[&str], columns: Option<&[&str]>) -> Result<String, UnpackError> {
        let mut writer = ZipFileWriter::new(Vec::new());
        for (number, text) in (0..).zip(members) {
            let name = ZipString::new(format!("{number}.csv").into(), StringEncoding::Utf8);
            let entry = ZipEntryBuilder::new(name, Compression::Deflate);
            writer.write_entry_whole(entry, text.as_bytes()).await.unwrap();
        }
        let mut zip = tempfile::tempfile().unwrap();
        zip.write_all(&writer.close().await.unwrap()).unwrap();
        zip.rewind().unwrap();
        let columns = columns.map(|columns| columns.iter().map(|&name| name.to_owned()).collect::<Vec<_>>());
        spawn_blocking(move || {
            let mut out = Vec::new();
            unpack(zip, columns.as_deref(), &mut out).map(|_| String::from_utf8(out).unwrap())
        })
        .await
        .unwrap()
    }

    #[tokio::test]
    async fn members_are_joined_by_the_names_of_columns() {
        let members = ["a,b\n1,\"x,\n\"\"y\"\n", "b,c,a\n,3,2\n", "a,b\n"];
        let all = unpacked(&members, None).await.unwrap();
        assert_eq!(all, "a,b,c\n1,\"x,\n\"\"y\",\n2,,3\n");
        assert_eq!(unpacked(&members, Some(&["c", "a"])).await.unwrap(), "c,a\n,1\n3,2\n");
        let wrong = unpacked(&members, Some(&["d"])).await.unwrap_err();
        assert!(
            matches!(wrong, UnpackError::NoColumn(column, known) if column == "d" && known == ["a", "b", "c"])
        );
    }

    #[tokio::test]
    async fn a_row_with_another_number_of_fields_is_an_error() {
        assert!(matches!(unpacked(&["a,b\n1\n"], None).await, Err(UnpackError::Zip(_))));
    }
}
