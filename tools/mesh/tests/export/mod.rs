//! `mesh export` against a real mesh, and against one whose answers are spoilt on the way.

mod faulty;

use std::{
    ffi::{OsStr, OsString},
    fs,
    os::unix::ffi::OsStrExt as _,
    path::Path,
    process::Stdio,
    time::Duration,
};

use faulty::{Fault, faulty};
use mesh_testbed::{Database, Mesh, TlsFront, eventually, http_client};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::{process::Command, sync::OnceCell, time::timeout};

use crate::{
    command::{Outcome, command, says},
    stub::{Reply, StubGateway},
};

const PATIENCE: Duration = Duration::from_secs(60);
const NAME: &str = "test_net-trades-1-4.zip";
const CUT: usize = 30_000;

/// The address of a mesh with two sealed segments of two blocks each, which all tests of this process share.
async fn mesh() -> &'static str {
    static SHARED: OnceCell<(Database, Mesh, String)> = OnceCell::const_new();
    let start = || async {
        let database = Database::fresh().await;
        database.connect().await.batch_execute(include_str!("history.sql")).await.unwrap();
        let mesh = Mesh::configure(&database).env("MESH_HISTORY_INTERVAL_BLOCKS", "2").start().await;
        eventually(PATIENCE, "the history is not sealed", async || {
            let answer = mesh.get("/api/v2/networkhistory/segments").await;
            answer.status == 200 && answer.json()["segments"].as_array().unwrap().len() == 2
        })
        .await;
        let url = mesh.url();
        (database, mesh, url)
    };
    &SHARED.get_or_init(start).await.2
}

/// What plain HTTP gives.
async fn plain(from: u64, to: u64) -> Vec<u8> {
    let query = format!("fromBlock={from}&toBlock={to}&table=TABLE_TRADES");
    let url = format!("{}/api/v2/networkhistory/export?{query}", mesh().await);
    http_client().get(url).send().await.unwrap().error_for_status().unwrap().bytes().await.unwrap().to_vec()
}

/// A folder to download into.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    /// The path of the unfinished file with all trades.
    async fn part(&self) -> std::path::PathBuf {
        self.path(&format!("{NAME}.{:08x}.part", crc32c::crc32c(&plain(1, 4).await)))
    }

    fn names(&self) -> Vec<OsString> {
        let mut names: Vec<_> =
            fs::read_dir(self.0.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    }

    fn command(&self, url: &str, blocks: [&str; 2], more: &[&str]) -> Command {
        let mut command = command(&["export", "trades", "--url", url]);
        command.args(["--from-block", blocks[0], "--to-block", blocks[1]]).args(more);
        command.current_dir(self.0.path());
        command
    }

    async fn run(&self, url: &str, blocks: [&str; 2], more: &[&str]) -> Outcome {
        Outcome::of(&mut self.command(url, blocks, more), b"").await
    }

    /// Downloads all trades, into the usual file unless `more` names another.
    async fn done(&self, url: &str, more: &[&str]) -> Outcome {
        let outcome = self.run(url, ["1", "4"], more).await;
        outcome.done();
        outcome
    }

    /// Downloads all trades into the usual file, and compares it; returns standard error.
    async fn whole(&self, url: &str, more: &[&str]) -> String {
        let outcome = self.done(url, more).await;
        assert!(fs::read(self.path(NAME)).unwrap() == plain(1, 4).await);
        outcome.error
    }

    /// Expects a download to fail with exit code 1; returns the last line of standard error.
    async fn refused(&self, url: &str, blocks: [&str; 2], more: &[&str]) -> String {
        let outcome = self.run(url, blocks, more).await;
        assert_eq!((outcome.code, outcome.text()), (Some(1), ""), "{outcome:?}");
        outcome.error.lines().last().unwrap_or_default().to_owned()
    }

    /// A broken download: the first bytes are there.
    async fn cut(&self, url: &str) {
        let faulty = faulty(url, &[Fault::Cut(CUT)]).await;
        let stderr = self.refused(&faulty.url, ["1", "4"], &["--retries", "0"]).await;
        let part = self.part().await;
        says(&stderr, &[part.file_name().unwrap().to_str().unwrap(), "has 30.00 kB of", "resumes"]);
        says(&stderr, &["gave up after 1 attempt without progress"]);
        assert_eq!(fs::metadata(part).unwrap().len(), CUT as u64);
    }
}

#[tokio::test]
async fn a_gateway_behind_tls_is_trusted_by_the_certificates_of_the_system() {
    let (gateway, folder) = (mesh().await, Folder::new());
    let certificates = tempfile::tempdir().unwrap();
    let front = TlsFront::start(gateway, certificates.path()).await;
    let url = format!("https://{}", front.address);
    let mut export = folder.command(&url, ["1", "4"], &[]);
    Outcome::of(export.env("SSL_CERT_FILE", &front.ca), b"").await.done();
    assert!(fs::read(folder.path(NAME)).unwrap() == plain(1, 4).await);

    let stranger = tempfile::tempdir().unwrap();
    let other = mesh_testbed::certify(stranger.path()).ca;
    let mut export = folder.command(&url, ["1", "4"], &[]);
    Outcome::of(export.env("SSL_CERT_FILE", other), b"").await.fails(1, &["certificate"]);
}

#[tokio::test]
async fn a_download_is_the_file_that_plain_http_gives() {
    let (url, folder) = (mesh().await, Folder::new());
    let whole = plain(1, 4).await;
    assert!(whole.len() > 10 * CUT, "{} bytes", whole.len());
    let done = folder.done(url, &[]).await;
    says(done.text(), &["4000 rows", &format!("{} bytes", whole.len()), "MB/s", NAME]);
    assert_eq!((done.text().lines().count(), done.error.as_str()), (1, ""));
    assert_eq!(folder.names(), [NAME]);
    assert!(fs::read(folder.path(NAME)).unwrap() == whole);

    let outcome = folder.done(url, &["--json", "-o", "own.zip"]).await.json();
    assert_eq!((&outcome["file"], &outcome["table"]), (&"own.zip".into(), &"TABLE_TRADES".into()));
    assert_eq!((&outcome["bytes"], &outcome["rows"]), (&whole.len().into(), &4000.into()));
    assert_eq!(outcome["resumed_from"], 0);
    assert_eq!(outcome["crc32c"], format!("{:08x}", crc32c::crc32c(&whole)));
    assert!(outcome["etag"].as_str().unwrap().starts_with('"') && outcome["seconds"].is_f64(), "{outcome}");

    fs::create_dir(folder.path("inside")).unwrap();
    folder.done(url, &["-o", "inside"]).await;
    assert!(fs::read(folder.path("inside").join(NAME)).unwrap() == whole);

    let piped = folder.run(url, ["1", "4"], &["-o", "-"]).await;
    assert!(piped.code == Some(0) && piped.bytes == whole);
    says(&piped.error, &["4000 rows", "standard output"]);
}

#[tokio::test]
async fn a_download_becomes_one_csv() {
    let (url, folder) = (mesh().await, Folder::new());
    let csv = NAME.replace(".zip", ".csv");
    let columns = ["--csv", "--columns", "id,block_time,price"];
    // A broken download is resumed, and only the CSV stays.
    let cut = faulty(url, &[Fault::Cut(CUT)]).await;
    let stderr = folder.refused(&cut.url, ["1", "4"], &["--csv", "--retries", "0"]).await;
    says(&stderr, &[".part has 30.00 kB of", "resumes"]);
    let done = folder.done(url, &columns).await;
    says(&done.error, &["resuming at 30.00 kB"]);
    says(done.text(), &["4000 rows", &csv]);
    assert_eq!(folder.names(), [csv.as_str()]);
    let text = fs::read_to_string(folder.path(&csv)).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines.len(), lines[0]), (4001, "id,block_time,price"));
    assert_eq!(lines[1].rsplit_once(',').unwrap().1, "1000");

    let piped = folder.run(url, ["1", "4"], &[&columns[..], &["-o", "-"]].concat()).await;
    assert!(piped.code == Some(0) && piped.bytes == text.as_bytes());
    says(&folder.refused(url, ["1", "4"], &columns).await, &[&csv, "there already", "--force"]);
    let mut export = folder.command(url, ["1", "4"], &[&columns[..], &["--json", "-o"]].concat());
    let outcome = Outcome::of(export.arg(OsStr::from_bytes(b"\xff.csv")), b"").await.json();
    assert_eq!((&outcome["file"], &outcome["bytes"]), (&"\u{fffd}.csv".into(), &text.len().into()));
    assert_eq!(outcome["crc32c"], format!("{:08x}", crc32c::crc32c(text.as_bytes())));
    let other = Folder::new();
    let wrong = other.run(url, ["1", "4"], &["--csv", "--columns", "id, colour"]).await;
    wrong.fails(2, &["no column \"colour\"", "block_time"]);
    assert!(other.names().is_empty(), "nothing was downloaded");
    other.run(url, ["1", "4"], &["--columns", "id"]).await.fails(2, &["--csv"]);
}

#[tokio::test]
async fn a_gateway_that_does_not_know_a_parameter_refuses_it() {
    let faults = [Fault::None, Fault::Cut(CUT)];
    let (folder, gateway) = (Folder::new(), faulty(mesh().await, &faults).await);
    folder.whole(&gateway.url, &["--snap"]).await;
    let heads = gateway.heads();
    assert!(heads.len() >= 3, "the listing, a part, and the rest: {heads:?}");
    for head in heads {
        assert!(head.contains("\r\nprefer: handling=strict\r\n"), "{head}");
    }
}

#[tokio::test]
async fn a_later_call_goes_on_where_an_earlier_one_broke_off() {
    let (url, folder) = (mesh().await, Folder::new());
    folder.cut(url).await;
    let watched = faulty(url, &[]).await;
    let done = folder.done(&watched.url, &["--json"]).await;
    says(&done.error, &["resuming at 30.00 kB"]);
    assert_eq!(done.json()["resumed_from"], CUT);
    assert!(fs::read(folder.path(NAME)).unwrap() == plain(1, 4).await);
    assert_eq!(folder.names(), [NAME]);
    let requests = watched.heads();
    assert_eq!(requests.len(), 2, "{requests:?}");
    says(&requests[1], &[&format!("range: bytes={CUT}-\r\n"), "if-range: \""]);

    // Another file under the same name is begun at its first byte.
    let other = Folder::new();
    let gateway = faulty(url, &[Fault::Cut(CUT)]).await;
    other.refused(&gateway.url, ["1", "4"], &["--retries", "0", "-o", "f.zip"]).await;
    let outcome = other.run(url, ["1", "2"], &["-o", "f.zip"]).await;
    outcome.done();
    assert!(!outcome.error.contains("resuming"), "{outcome:?}");
    assert!(fs::read(other.path("f.zip")).unwrap() == plain(1, 2).await);

    // All of it may be there already.
    let whole = Folder::new();
    whole.cut(url).await;
    fs::write(whole.part().await, plain(1, 4).await).unwrap();
    whole.done(url, &[]).await;
    assert_eq!(whole.names(), [NAME]);
}

#[tokio::test]
async fn a_download_that_breaks_goes_on_by_itself() {
    let (url, folder) = (mesh().await, Folder::new());
    let (away, cut) = ([Fault::Unavailable, Fault::Closed], [Fault::Cut(CUT), Fault::Unavailable]);
    let faults = [&away[..], &cut, &[Fault::Stall(CUT), Fault::Cut(0)]].concat();
    let gateway = faulty(url, &faults).await;
    // Two consecutive attempts would be too few if attempts with progress counted.
    let stderr = folder.whole(&gateway.url, &["--retries", "2", "--patience", "2"]).await;
    says(&stderr, &["503", "nothing came for 2 s", "retrying"]);
    let requests = gateway.heads();
    let range = |bytes: usize| format!("range: bytes={bytes}-\r\n");
    assert!(requests[..3].iter().all(|head| !head.contains("range:")), "{requests:?}");
    for (head, bytes) in requests[3..].iter().zip([CUT, CUT, 2 * CUT, 2 * CUT]) {
        says(head, &[&range(bytes)]);
    }

    let gateway = faulty(url, &[Fault::Cut(CUT)]).await;
    let piped = folder.run(&gateway.url, ["1", "4"], &["-o", "-"]).await;
    assert!(piped.code == Some(0) && piped.bytes == plain(1, 4).await);
}

#[tokio::test]
async fn a_time_to_try_again_may_be_a_date() {
    let gateway = StubGateway::start(|_| async {
        let soon = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(2);
        let date = soon.strftime("%a, %d %b %Y %H:%M:%S GMT");
        let head = format!("HTTP/1.1 503 X\r\nretry-after: {date}\r\n");
        let bytes = format!("{head}connection: close\r\ncontent-length: 0\r\n\r\n").into_bytes();
        Reply { bytes, stalls: false }
    })
    .await;
    let outcome = Folder::new().run(&gateway.url, ["1", "4"], &["--retries", "1"]).await;
    assert!(!outcome.error.contains("retrying in 0."), "{outcome:?}");
    says(&outcome.error, &["503", "retrying in "]);
}

#[tokio::test]
async fn a_file_that_changed_is_begun_again() {
    let (url, folder) = (mesh().await, Folder::new());
    let gateway = faulty(url, &[Fault::Retagged(CUT)]).await;
    says(&folder.whole(&gateway.url, &[]).await, &["has changed", "starting over"]);

    let gateway = faulty(url, &[Fault::Retagged(CUT)]).await;
    let piped = folder.run(&gateway.url, ["1", "4"], &["-o", "-"]).await;
    assert_eq!((piped.code, piped.bytes.len()), (Some(1), CUT));
    says(&piped.error, &["standard output cannot be replaced"]);
}

#[tokio::test]
async fn a_wrong_checksum_is_tried_once_more_and_never_kept() {
    let (url, folder) = (mesh().await, Folder::new());
    let once = faulty(url, &[Fault::Flip]).await;
    says(&folder.whole(&once.url, &[]).await, &["is damaged", "checksum", "starting over"]);

    let always = Folder::new();
    let gateway = faulty(url, &[Fault::Flip; 3]).await;
    let stderr = always.refused(&gateway.url, ["1", "4"], &[]).await;
    says(&stderr, &["is damaged", "discarded", "try again"]);
    assert_eq!((always.names().len(), gateway.heads().len()), (0, 2));

    // A part may be spoilt on the disk; it may also be too long for the file.
    let whole = plain(1, 4).await;
    for (bytes, parts) in [
        (CUT, ["resuming", "is damaged"]),
        (whole.len(), ["resuming", "is damaged"]),
        (whole.len() + 1, ["resuming", "no such part"]),
    ] {
        let spoilt = Folder::new();
        fs::write(spoilt.part().await, vec![0; bytes]).unwrap();
        says(&spoilt.whole(url, &[]).await, &parts);
    }

    let gateway = faulty(url, &[Fault::Flip]).await;
    assert_eq!(folder.run(&gateway.url, ["1", "4"], &["-o", "-"]).await.code, Some(1));
}

#[tokio::test]
async fn heights_inside_segments_are_refused_or_snapped() {
    let (url, folder) = (mesh().await, Folder::new());
    let stderr = folder.refused(url, ["2", "4"], &[]).await;
    says(&stderr, &["fromBlock 2: nearest valid starts 1, 3", "--snap"]);
    let stderr = folder.refused(url, ["1", "3"], &[]).await;
    says(&stderr, &["toBlock 3: nearest valid ends 2, 4", "--snap"]);
    assert!(folder.names().is_empty());
    for (blocks, whole, taken) in [
        (["2", "3"], (1, 4), true),
        (["4", "4"], (3, 4), true),
        (["first", "2"], (1, 2), false),
        (["3", "last"], (3, 4), false),
    ] {
        let outcome = folder.run(url, blocks, &["--snap", "-o", "f.zip", "--force"]).await;
        outcome.done();
        let notice = format!("taking blocks {}-{} instead of {}-{}", whole.0, whole.1, blocks[0], blocks[1]);
        assert_eq!(outcome.error.contains(&notice), taken, "{outcome:?}");
        assert!(fs::read(folder.path("f.zip")).unwrap() == plain(whole.0, whole.1).await, "{blocks:?}");
    }
    let stderr = folder.refused(url, ["2", "9"], &["--snap"]).await;
    says(&stderr, &["missing blocks 5-9", "`last`"]);
}

#[tokio::test]
async fn a_file_that_is_there_is_replaced_on_demand_only() {
    let (url, folder) = (mesh().await, Folder::new());
    fs::write(folder.path(NAME), "mine").unwrap();
    let watched = faulty(url, &[]).await;
    for more in [&["-o", NAME][..], &[]] {
        let stderr = folder.refused(&watched.url, ["1", "4"], more).await;
        says(&stderr, &[NAME, "there already", "--force"]);
        assert_eq!(watched.heads().len(), usize::from(more.is_empty()), "its name is known without asking");
    }
    assert_eq!((fs::read(folder.path(NAME)).unwrap(), folder.names().len()), (b"mine".to_vec(), 1));
    folder.whole(url, &["--force"]).await;
    let stderr = folder.refused(url, ["1", "4"], &["--force", "-o", "/dev/null"]).await;
    says(&stderr, &["not a regular file"]);
}

#[tokio::test]
async fn a_stopped_download_says_how_to_go_on() {
    let (url, folder) = (mesh().await, Folder::new());
    let gateway = faulty(url, &[Fault::Stall(CUT)]).await;
    let mut command = folder.command(&gateway.url, ["1", "4"], &[]);
    let child = command.kill_on_drop(true).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let part = folder.part().await;
    let has_come = async || fs::metadata(&part).map_or(0, |part| part.len()) >= CUT as u64;
    eventually(PATIENCE, "nothing comes", has_come).await;
    let other = folder.refused(url, ["1", "4"], &[]).await;
    says(&other, &["another download"]);
    kill_process(Pid::from_raw(child.id().unwrap().cast_signed()).unwrap(), Signal::INT).unwrap();
    let outcome = Outcome::from(timeout(PATIENCE, child.wait_with_output()).await.unwrap().unwrap());
    assert_eq!(outcome.code, Some(1));
    says(&outcome.error, &["stopped", ".part has 30.00 kB of", "resumes from there"]);
    folder.whole(url, &[]).await;
}

#[tokio::test]
async fn what_cannot_work_is_one_sentence_with_what_to_do() {
    let (url, folder) = (mesh().await, Folder::new());
    for (stderr, parts) in [
        (folder.refused("http://127.0.0.1:1", ["1", "4"], &["--retries", "1"]).await, ["refused", "--url"]),
        (folder.refused(&url.replace("http", "https"), ["1", "4"], &[]).await, ["http or https", "--url"]),
        (folder.refused(url, ["1", "4"], &["-o", "none/f.zip"]).await, ["none/f.zip.", "make its folder"]),
        (folder.refused(url, ["1", "4"], &["-o", "none/"]).await, ["none/", "make its folder"]),
        (folder.refused(&format!("{url}/below"), ["1", "4"], &[]).await, ["refused", "--url"]),
    ] {
        says(&stderr, &parts);
    }
    for (blocks, more) in [(["4", "1"], &[][..]), (["1", "4"], &["--json", "-o", "-"])] {
        folder.run(url, blocks, more).await.fails(2, &[]);
    }
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let outcome = Outcome::writing_to(&mut folder.command(url, ["1", "4"], &["-o", "-"]), full).await;
    assert_eq!(outcome.code, Some(1));
    says(&outcome.error, &["No space left"]);
    assert!(Path::new("/dev/full").exists() && folder.names().is_empty());
    for more in [&["-o", "-"][..], &["--csv", "-o", "-"]] {
        let (_, closed) = std::io::pipe().unwrap();
        // Its reader has read enough.
        Outcome::writing_to(&mut folder.command(url, ["1", "4"], more), closed).await.ends_silently();
    }
}
