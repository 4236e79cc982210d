//! A downloaded ZIP as one CSV. Each member has the rows of some blocks; a later member can have more columns, so
//! that members are joined by the names of columns.

use std::{
    error::Error,
    fs::File,
    io::{self, Write},
};

use crate::{
    failure::{Failure, failed},
    zip::{BUFFER_BYTES, Members},
};

/// Writes the rows of all members of a ZIP as one CSV with a header: all columns, or these in this order. A column
/// that a member does not have is empty in its rows, and NULL is not distinguished from an empty text. Returns the
/// number of rows. `name` is that of the output. Blocks the thread; needs a runtime.
pub(super) fn unpack(
    zip: File,
    columns: Option<&[String]>,
    out: impl Write,
    name: &str,
) -> Result<u64, Failure> {
    let unwritten = |error: csv::Error| match error.kind() {
        csv::ErrorKind::Io(error) if error.kind() == io::ErrorKind::BrokenPipe => Failure::unread(),
        _ => failed!("cannot write {name} ({error}); name another file with -o"),
    };
    let mut members = Members::open(zip).map_err(unreadable)?;
    let mut headers = Vec::with_capacity(members.count());
    for number in 0..members.count() {
        headers.push(members.rows(number).map_err(unreadable)?.byte_headers().map_err(unreadable)?.clone());
    }
    let has = |column: &String| headers.iter().flatten().any(|name| name == column.as_bytes());
    if let Some(column) =
        columns.unwrap_or_default().iter().find(|column| !headers.is_empty() && !has(column))
    {
        return Err(failed!("no block of the range has the column {column}; leave it out"));
    }
    let columns = columns.map_or_else(|| all_columns(&headers), <[String]>::to_vec);
    let mut writer = csv::WriterBuilder::new().buffer_capacity(BUFFER_BYTES).from_writer(out);
    writer.write_record(&columns).map_err(unwritten)?;
    let (mut row, mut rows) = (csv::ByteRecord::new(), 0);
    for (number, header) in headers.iter().enumerate() {
        let place = |column: &String| header.iter().position(|name| name == column.as_bytes());
        let places: Vec<Option<usize>> = columns.iter().map(place).collect();
        let mut member = members.rows(number).map_err(unreadable)?;
        while member.read_byte_record(&mut row).map_err(unreadable)? {
            let fields = places.iter().map(|place| place.map_or(&[][..], |place| &row[place]));
            writer.write_record(fields).map_err(unwritten)?;
            rows += 1;
        }
    }
    writer.flush().map_err(|error| unwritten(error.into()))?;
    Ok(rows)
}

/// All columns, in the order in which the members bring them.
fn all_columns(headers: &[csv::ByteRecord]) -> Vec<String> {
    let mut columns: Vec<String> = Vec::new();
    for name in headers.iter().flatten() {
        let name = String::from_utf8_lossy(name).into_owned();
        if !columns.contains(&name) {
            columns.push(name);
        }
    }
    columns
}

fn unreadable(error: impl Into<Box<dyn Error + Send + Sync>>) -> Failure {
    let error = error.into();
    failed!("the download cannot be unpacked ({error}); export without --csv")
}

#[cfg(test)]
mod tests {
    use std::io::Seek as _;

    use async_zip::{Compression, StringEncoding, ZipEntryBuilder, ZipString, base::write::ZipFileWriter};
    use tokio::task::spawn_blocking;

    use super::*;

    async fn unpacked(members: &[&str], columns: Option<&[&str]>) -> Result<String, Failure> {
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
            unpack(zip, columns.as_deref(), &mut out, "").map(|_| String::from_utf8(out).unwrap())
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
        let failure = unpacked(&members, Some(&["d"])).await.unwrap_err();
        assert!(failure.to_string().contains("has the column d"), "{failure}");
    }

    #[tokio::test]
    async fn a_row_with_another_number_of_fields_is_an_error() {
        let failure = unpacked(&["a,b\n1\n"], None).await.unwrap_err();
        assert!(failure.to_string().contains("cannot be unpacked"), "{failure}");
    }
}
