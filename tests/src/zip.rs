//! Independent ZIP readers: `async_zip` in this process, and the programs installed on the machine.

#![allow(clippy::unwrap_used)] // in what the tests share

use std::fs;

use async_zip::{
    base::read1::{ZipOptions, seek::ZipArchiveReader},
    error::Result,
    spec::constructs::CDR,
};
use futures_util::{AsyncReadExt, io::Cursor};

use crate::{
    programs::{is_here, run},
    say,
};

/// A member of a ZIP: name and content.
pub type Member = (String, Vec<u8>);

/// Reads the members of a ZIP in the order of its directory.
///
/// # Errors
/// When it is not a whole ZIP, or a length or a checksum is wrong.
pub async fn read(zip: &[u8]) -> Result<Vec<Member>> {
    let mut reader = ZipArchiveReader::open_with_options(Cursor::new(zip), ZipOptions::untrusted()).await?;
    let name = |cdr: &CDR| cdr.insecure_file_name.as_str().unwrap_or("not UTF-8").to_owned();
    let names: Vec<String> = reader.cdrs().iter().map(name).collect();
    let mut members = Vec::new();
    for (number, name) in names.into_iter().enumerate() {
        let mut text = Vec::new();
        reader.file(number).await?.read_to_end(&mut text).await?;
        members.push((name, text));
    }
    Ok(members)
}

/// The members of a ZIP; panics when it is not whole.
pub async fn members(zip: &[u8]) -> Vec<Member> {
    read(zip).await.unwrap_or_else(|error| panic!("a ZIP of {} bytes: {error}", zip.len()))
}

/// Compares every ZIP with its members in Python's `zipfile`, and lets `unzip` and `7z` test it, each in one
/// call. Programs that are not installed are skipped with a message.
pub fn assert_read_by_programs(what: &str, zips: &[(&[u8], &[Member])]) {
    let folder = tempfile::tempdir().unwrap();
    for (number, (zip, members)) in zips.iter().enumerate() {
        let path = folder.path().join(format!("{number}.zip"));
        fs::write(&path, zip).unwrap();
        let texts = path.with_extension("members");
        fs::create_dir(&texts).unwrap();
        for (name, text) in *members {
            fs::write(texts.join(name), text).unwrap();
        }
    }
    let all = folder.path().join("*.zip");
    let (folder, all) = (folder.path().to_str().unwrap(), all.to_str().unwrap());
    let count = zips.len();
    let python = run("python3", &["-c", PYTHON, folder]);
    assert!(python.is_none_or(|said| said.trim() == format!("{count} as expected")), "{what}");
    // With a single archive it prints no count.
    run("unzip", &["-tqq", all]);
    let seven = run("7z", &["t", all]);
    let counted = format!("OK archives: {count}");
    assert!(seven.is_none_or(|said| count == 1 || said.contains(&counted)), "{what}");
    for program in ["python3", "unzip", "7z"].into_iter().filter(|program| !is_here(program)) {
        say(&format!("skipped: {program} as a reader of ZIP archives, which is not installed"));
    }
}

const PYTHON: &str = include_str!("zip_members.py");
