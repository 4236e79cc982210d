//! `mesh export` against a real mesh, and against one whose answers are spoilt on the way.

mod behind_tls;
mod faulty;

use std::{
    ffi::OsString,
    fs,
    path::Path,
    process::{Output, Stdio},
    time::Duration,
};

use behind_tls::behind_tls;
use faulty::{Fault, Faulty};
use mesh_testbed::{Database, Mesh, eventually, http_client};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;
use tokio::{
    process::Command,
    sync::OnceCell,
    time::{Instant, sleep, timeout},
};

const PATIENCE: Duration = Duration::from_secs(60);
const NAME: &str = "test_net-trades-1-4.zip";
const PART: &str = "test_net-trades-1-4.zip.part";
const CUT: usize = 30_000;

/// The address of a mesh with two sealed segments of two blocks each, which all tests of this process share.
async fn mesh() -> &'static str {
    static SHARED: OnceCell<(Database, Mesh, String)> = OnceCell::const_new();
    let start = || async {
        let database = Database::fresh().await;
        database.connect().await.batch_execute(include_str!("history.sql")).await.unwrap();
        let mesh = Mesh::configure(&database).env("MESH_HISTORY_INTERVAL_BLOCKS", "2").start().await;
        let url = mesh.url();
        let deadline = Instant::now() + PATIENCE;
        loop {
            let answer = mesh.get("/api/v2/networkhistory/segments").await;
            if answer.status == 200 && answer.json()["segments"].as_array().unwrap().len() == 2 {
                return (database, mesh, url);
            }
            assert!(Instant::now() < deadline, "the history is not sealed: {answer:?}");
            sleep(Duration::from_millis(20)).await;
        }
    };
    &SHARED.get_or_init(start).await.2
}

/// What plain HTTP gives.
async fn plain(from: u64, to: u64) -> Vec<u8> {
    let url = format!(
        "{}/api/v2/networkhistory/export?fromBlock={from}&toBlock={to}&table=TABLE_TRADES",
        mesh().await
    );
    let client = http_client();
    client.get(url).send().await.unwrap().error_for_status().unwrap().bytes().await.unwrap().to_vec()
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

    fn names(&self) -> Vec<OsString> {
        let mut names: Vec<_> =
            fs::read_dir(self.0.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    }

    fn command(&self, url: &str, blocks: [&str; 2], more: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mesh"));
        command.current_dir(self.0.path()).args(["export", "trades", "--url", url]);
        command.args(["--from-block", blocks[0], "--to-block", blocks[1]]).args(more);
        command.stdin(Stdio::null()).kill_on_drop(true);
        command
    }

    async fn run(&self, url: &str, blocks: [&str; 2], more: &[&str]) -> Output {
        timeout(PATIENCE, self.command(url, blocks, more).output()).await.unwrap().unwrap()
    }

    /// Downloads all trades; returns standard output and standard error.
    async fn done(&self, url: &str, more: &[&str]) -> (String, String) {
        let output = self.run(url, ["1", "4"], more).await;
        let (out, stderr) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{stderr}");
        (out, stderr)
    }

    /// Expects a download to fail with exit code 1; returns the last line of standard error.
    async fn refused(&self, url: &str, blocks: [&str; 2], more: &[&str]) -> String {
        let output = self.run(url, blocks, more).await;
        let stderr = text(&output.stderr);
        assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(1), ""), "{stderr}");
        stderr.lines().last().unwrap_or_default().to_owned()
    }

    /// A broken download: the first bytes are there.
    async fn cut(&self, url: &str) {
        let faulty = Faulty::before(url, &[Fault::Cut(CUT)]).await;
        let stderr = self.refused(faulty.url(), ["1", "4"], &["--retries", "0"]).await;
        assert!(
            stderr.contains(PART) && stderr.contains("keeps 30.0 kB of") && stderr.contains("goes on"),
            "{stderr}"
        );
        assert_eq!(fs::metadata(self.path(PART)).unwrap().len(), CUT as u64);
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[track_caller]
fn says(stderr: &str, parts: &[&str]) {
    for part in parts {
        assert!(stderr.contains(part), "no {part:?} in: {stderr}");
    }
}

#[tokio::test]
async fn a_gateway_behind_tls_is_trusted_by_the_certificates_of_the_system() {
    let (gateway, folder) = (mesh().await, Folder::new());
    let certificates = tempfile::tempdir().unwrap();
    let (url, authority) = behind_tls(gateway, certificates.path()).await;
    let mut export = folder.command(&url, ["1", "4"], &[]);
    let output = timeout(PATIENCE, export.env("SSL_CERT_FILE", authority).output()).await.unwrap().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(fs::read(folder.path(NAME)).unwrap() == plain(1, 4).await);

    let stranger = tempfile::tempdir().unwrap();
    let other = mesh_testbed::certify(stranger.path()).ca;
    let mut export = folder.command(&url, ["1", "4"], &["--retries", "0"]);
    let output = timeout(PATIENCE, export.env("SSL_CERT_FILE", other).output()).await.unwrap().unwrap();
    let stderr = text(&output.stderr);
    assert!(output.status.code() == Some(1) && stderr.contains("certificate"), "{stderr}");
}

#[tokio::test]
async fn a_download_is_the_file_that_plain_http_gives() {
    let (url, folder) = (mesh().await, Folder::new());
    let whole = plain(1, 4).await;
    assert!(whole.len() > 10 * CUT, "{} bytes", whole.len());
    let (out, stderr) = folder.done(url, &[]).await;
    assert_eq!(stderr, "");
    says(&out, &["4000 rows", &format!("{} bytes", whole.len()), "MB/s", NAME]);
    assert_eq!(out.lines().count(), 1);
    assert_eq!(folder.names(), [NAME]);
    assert!(fs::read(folder.path(NAME)).unwrap() == whole);

    let (out, _) = folder.done(url, &["--json", "-o", "own.zip"]).await;
    let outcome: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&outcome["file"], &outcome["table"]), (&"own.zip".into(), &"TABLE_TRADES".into()));
    assert_eq!((&outcome["bytes"], &outcome["rows"]), (&whole.len().into(), &4000.into()));
    assert_eq!(outcome["resumed_from"], 0);
    assert_eq!(outcome["crc32c"], format!("{:08x}", crc32c::crc32c(&whole)));
    assert!(outcome["etag"].as_str().unwrap().starts_with('"') && outcome["seconds"].is_f64(), "{outcome}");

    fs::create_dir(folder.path("inside")).unwrap();
    folder.done(url, &["-o", "inside"]).await;
    assert!(fs::read(folder.path("inside").join(NAME)).unwrap() == whole);

    let output = folder.run(url, ["1", "4"], &["-o", "-"]).await;
    assert!(output.status.success() && output.stdout == whole);
    says(&text(&output.stderr), &["4000 rows", "standard output"]);
}

#[tokio::test]
async fn a_later_call_goes_on_where_an_earlier_one_broke_off() {
    let (url, folder) = (mesh().await, Folder::new());
    folder.cut(url).await;
    let watched = Faulty::before(url, &[]).await;
    let (out, stderr) = folder.done(watched.url(), &["--json"]).await;
    says(&stderr, &["going on from 30.0 kB"]);
    assert_eq!(serde_json::from_str::<Value>(&out).unwrap()["resumed_from"], CUT);
    assert!(fs::read(folder.path(NAME)).unwrap() == plain(1, 4).await);
    assert_eq!(folder.names(), [NAME]);
    let requests = watched.requests();
    assert_eq!(requests.len(), 2, "{requests:?}");
    says(&requests[1], &[&format!("range: bytes={CUT}-\r\n"), "if-range: \""]);

    // All of it may be there already.
    let whole = Folder::new();
    whole.cut(url).await;
    fs::write(whole.path(PART), plain(1, 4).await).unwrap();
    whole.done(url, &[]).await;
    assert_eq!(whole.names(), [NAME]);
}

#[tokio::test]
async fn a_download_that_breaks_goes_on_by_itself() {
    let (url, folder) = (mesh().await, Folder::new());
    let faults = [
        Fault::Unavailable,
        Fault::Closed,
        Fault::Cut(CUT),
        Fault::Unavailable,
        Fault::Stall(CUT),
        Fault::Cut(0),
    ];
    let faulty = Faulty::before(url, &faults).await;
    // Two tries in a row would be too few, if those that bring something counted.
    let (_, stderr) = folder.done(faulty.url(), &["--retries", "2", "--patience", "1"]).await;
    says(&stderr, &["503", "nothing came for 1 s", "trying again"]);
    assert!(fs::read(folder.path(NAME)).unwrap() == plain(1, 4).await);
    let requests = faulty.requests();
    let range = |bytes: usize| format!("range: bytes={bytes}-\r\n");
    assert!(requests[..3].iter().all(|head| !head.contains("range:")), "{requests:?}");
    for (head, bytes) in requests[3..].iter().zip([CUT, CUT, 2 * CUT, 2 * CUT]) {
        says(head, &[&range(bytes)]);
    }

    let piped = Faulty::before(url, &[Fault::Cut(CUT)]).await;
    let output = folder.run(piped.url(), ["1", "4"], &["-o", "-"]).await;
    assert!(output.status.success() && output.stdout == plain(1, 4).await);
}

#[tokio::test]
async fn a_file_that_changed_is_begun_again() {
    let (url, folder) = (mesh().await, Folder::new());
    let faulty = Faulty::before(url, &[Fault::Retagged(CUT)]).await;
    let (_, stderr) = folder.done(faulty.url(), &[]).await;
    says(&stderr, &["has changed", "starting again"]);
    assert!(fs::read(folder.path(NAME)).unwrap() == plain(1, 4).await);

    let faulty = Faulty::before(url, &[Fault::Retagged(CUT)]).await;
    let output = folder.run(faulty.url(), ["1", "4"], &["-o", "-"]).await;
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), CUT));
    says(&text(&output.stderr), &["standard output cannot be taken back"]);
}

#[tokio::test]
async fn a_wrong_checksum_is_tried_once_more_and_never_kept() {
    let (url, folder) = (mesh().await, Folder::new());
    let once = Faulty::before(url, &[Fault::Flip]).await;
    let (_, stderr) = folder.done(once.url(), &[]).await;
    says(&stderr, &["came wrong", "checksum", "starting again"]);
    assert!(fs::read(folder.path(NAME)).unwrap() == plain(1, 4).await);

    let always = Folder::new();
    let faulty = Faulty::before(url, &[Fault::Flip; 3]).await;
    let stderr = always.refused(faulty.url(), ["1", "4"], &[]).await;
    says(&stderr, &["came wrong", "not kept", "try again"]);
    assert_eq!((always.names().len(), faulty.requests().len()), (0, 2));

    // A part may have been spoilt on the disk, too.
    let spoilt = Folder::new();
    spoilt.cut(url).await;
    fs::write(spoilt.path(PART), vec![0; CUT]).unwrap();
    let (_, stderr) = spoilt.done(url, &[]).await;
    says(&stderr, &["going on", "came wrong"]);
    assert!(fs::read(spoilt.path(NAME)).unwrap() == plain(1, 4).await);

    let output = folder.run(Faulty::before(url, &[Fault::Flip]).await.url(), ["1", "4"], &["-o", "-"]).await;
    assert_eq!(output.status.code(), Some(1));
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
        let output = folder.run(url, blocks, &["--snap", "-o", "f.zip", "--force"]).await;
        let stderr = text(&output.stderr);
        assert!(output.status.success(), "{stderr}");
        let notice = format!("taking blocks {}-{} instead of {}-{}", whole.0, whole.1, blocks[0], blocks[1]);
        assert_eq!(stderr.contains(&notice), taken, "{stderr}");
        assert!(fs::read(folder.path("f.zip")).unwrap() == plain(whole.0, whole.1).await, "{blocks:?}");
    }
    let stderr = folder.refused(url, ["2", "9"], &["--snap"]).await;
    says(&stderr, &["missing blocks 5-9", "`last`"]);
}

#[tokio::test]
async fn a_file_that_is_there_is_replaced_on_demand_only() {
    let (url, folder) = (mesh().await, Folder::new());
    fs::write(folder.path(NAME), "mine").unwrap();
    let watched = Faulty::before(url, &[]).await;
    for more in [&["-o", NAME][..], &[]] {
        let stderr = folder.refused(watched.url(), ["1", "4"], more).await;
        says(&stderr, &[NAME, "there already", "--force"]);
        assert_eq!(
            watched.requests().len(),
            usize::from(more.is_empty()),
            "its name is known without asking"
        );
    }
    assert_eq!((fs::read(folder.path(NAME)).unwrap(), folder.names().len()), (b"mine".to_vec(), 1));
    folder.done(url, &["--force"]).await;
    assert!(fs::read(folder.path(NAME)).unwrap() == plain(1, 4).await);
    let stderr = folder.refused(url, ["1", "4"], &["--force", "-o", "/dev/null"]).await;
    says(&stderr, &["no ordinary file"]);
}

#[tokio::test]
async fn a_stopped_download_says_how_to_go_on() {
    let (url, folder) = (mesh().await, Folder::new());
    let faulty = Faulty::before(url, &[Fault::Stall(CUT)]).await;
    let mut command = folder.command(faulty.url(), ["1", "4"], &[]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    eventually(PATIENCE, "nothing comes", async || {
        fs::metadata(folder.path(PART)).map_or(0, |part| part.len()) >= CUT as u64
    })
    .await;
    let other = folder.refused(url, ["1", "4"], &[]).await;
    says(&other, &["another download"]);
    kill_process(Pid::from_raw(child.id().unwrap().cast_signed()).unwrap(), Signal::INT).unwrap();
    let output = timeout(PATIENCE, child.wait_with_output()).await.unwrap().unwrap();
    assert_eq!(output.status.code(), Some(1));
    says(&text(&output.stderr), &["stopped", PART, "keeps 30.0 kB of", "goes on from there"]);
    folder.done(url, &[]).await;
    assert!(fs::read(folder.path(NAME)).unwrap() == plain(1, 4).await);
}

#[tokio::test]
async fn what_cannot_work_is_one_sentence_with_what_to_do() {
    let (url, folder) = (mesh().await, Folder::new());
    for (stderr, parts) in [
        (folder.refused("http://127.0.0.1:1", ["1", "4"], &["--retries", "1"]).await, ["refused", "--url"]),
        (
            folder.refused(url, ["1", "4"], &["-o", "none/f.zip"]).await,
            ["none/f.zip.part", "make its folder"],
        ),
        (folder.refused(url, ["1", "4"], &["-o", "none/"]).await, ["none/", "make its folder"]),
        (folder.refused(&format!("{url}/below"), ["1", "4"], &[]).await, ["refused", "--url"]),
    ] {
        says(&stderr, &parts);
    }
    for (blocks, more) in [(["4", "1"], &[][..]), (["1", "4"], &["--json", "-o", "-"])] {
        let output = folder.run(url, blocks, more).await;
        assert_eq!((output.status.code(), text(&output.stderr).lines().count()), (Some(2), 1));
    }
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = folder.command(url, ["1", "4"], &["-o", "-"]);
    let output =
        command.stdout(full).stderr(Stdio::piped()).spawn().unwrap().wait_with_output().await.unwrap();
    assert_eq!(output.status.code(), Some(1));
    says(&text(&output.stderr), &["No space left"]);
    assert!(Path::new("/dev/full").exists() && folder.names().is_empty());
}
