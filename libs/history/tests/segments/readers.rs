//! Independent readers of ZIP: `async_zip`, and the programs that are installed on the machine.

use std::{fs, path::Path, process::Command};

use async_zip::base::read1::{ZipOptions, seek::ZipArchiveReader};
use futures_util::{AsyncReadExt, io::Cursor};

use crate::fixture::{History, Plan, rng, table};

/// A member as an independent reader returns it.
pub(crate) struct ZipEntry {
    pub(crate) name: String,
    pub(crate) date: String,
    pub(crate) extra: u16,
    pub(crate) attributes: u32,
}

async fn open(zip: &[u8]) -> ZipArchiveReader<Cursor<&[u8]>> {
    ZipArchiveReader::open_with_options(Cursor::new(zip), ZipOptions::untrusted()).await.unwrap()
}

pub(crate) async fn entries(zip: &[u8]) -> Vec<ZipEntry> {
    let entry = |cdr: &async_zip::spec::constructs::CDR| {
        let (date, time) = (cdr.cdrh.mod_date, cdr.cdrh.mod_time);
        ZipEntry {
            name: cdr.insecure_file_name.as_str().unwrap().to_owned(),
            date: format!(
                "{}-{:02}-{:02} {:02}:{:02}:{:02}",
                1980 + (date >> 9),
                date >> 5 & 15,
                date & 31,
                time >> 11,
                time >> 5 & 63,
                (time & 31) * 2
            ),
            extra: cdr.cdrh.extra_field_length,
            attributes: cdr.cdrh.exter_attr,
        }
    };
    open(zip).await.cdrs().iter().map(entry).collect()
}

/// Names and contents; the reader checks lengths, checksums and that both headers agree.
pub(crate) async fn unzip(zip: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut reader = open(zip).await;
    let names: Vec<String> = entries(zip).await.into_iter().map(|entry| entry.name).collect();
    let mut members = Vec::new();
    for (number, name) in names.into_iter().enumerate() {
        let mut text = Vec::new();
        reader.file(number).await.unwrap().read_to_end(&mut text).await.unwrap();
        members.push((name, text));
    }
    members
}

/// Runs a program on a ZIP if it is installed.
fn assert_accepted(program: &str, arguments: &[&str], zip: &Path) {
    match Command::new(program).args(arguments).arg(zip).output() {
        Ok(output) => {
            let printed = [output.stdout, output.stderr].concat();
            assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&printed));
        }
        Err(_) => eprintln!("skipped: no {program} on this machine"),
    }
}

/// That they accept exports is tested from outside, in `exports` of the integration tests.
#[tokio::test]
async fn other_programs_accept_segments() {
    let text = table(&mut rng(61), &["id", "note"], 700, 2000);
    let history = History::of(&[Plan::new(1, 1, 10).with("trades", text).with("orders", "id\n")]).await;
    let zip = history.path(&history.store.list().await.unwrap().segments[0].name);
    assert_accepted("unzip", &["-tq"], &zip);
    assert_accepted("7z", &["t"], &zip);
    let check = "import sys, zipfile; sys.exit(zipfile.ZipFile(sys.argv[1]).testzip() is not None)";
    assert_accepted("python3", &["-c", check], &zip);
}

#[tokio::test]
async fn a_segment_is_an_ordinary_zip() {
    let mut plan = Plan::new(1, 1, 10).with("trades", "id,note\n1,\n").with("orders", "id\n");
    plan.members.push(("currentstate/accounts.csv".to_owned(), b"id\n\"\"\n".to_vec()));
    let history = History::of(&[plan]).await;
    let name = &history.store.list().await.unwrap().segments[0].name;
    let zip = fs::read(history.path(name)).unwrap();
    let members = unzip(&zip).await;
    let names: Vec<&str> = members.iter().map(|(name, _)| &name[..]).collect();
    let expected =
        "metadata.json history/orders.csv history/trades.csv currentstate/accounts.csv layout.json";
    assert_eq!(names.join(" "), expected);
    assert_eq!(members[2].1, b"id,note\n1,\n");
    for entry in entries(&zip).await {
        assert_eq!((&entry.date[..], entry.extra, entry.attributes), ("2023-06-20 10:30:10", 0, 0));
    }
}
