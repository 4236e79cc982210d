//! `mesh tx` from the command line: a node accepts what it signs, and it reports a gateway's answers.

use std::{
    collections::VecDeque,
    ffi::OsStr,
    fs::{self, File},
    io::Read as _,
    os::unix::{ffi::OsStrExt as _, fs::PermissionsExt as _},
    path::PathBuf,
    process::Stdio,
    time::Duration,
};

use bytes::Bytes;
use mesh_testbed::{DevNode, eventually};
use mesh_transaction::{SpamRules, TxHash, encode};
use proto_msgs::v2::CheckTransactionRequest;
use rustix::{
    process::{Pid, Signal, kill_process},
    pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt},
    termios::{Winsize, tcsetwinsize},
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{io::AsyncWriteExt as _, time::timeout};

use crate::{Outcome, Reply, StubGateway, body, command, mesh, says};

const PATIENCE: Duration = Duration::from_secs(60);

/// A folder with a key.
struct KeyFolder(TempDir);

impl KeyFolder {
    async fn new() -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        folder.keygen(&[]).await.done();
        folder
    }

    fn key(&self) -> PathBuf {
        self.0.path().join("key")
    }

    async fn keygen(&self, more: &[&str]) -> Outcome {
        mesh(&[&["tx", "keygen", self.key().to_str().unwrap()], more].concat()).await
    }

    async fn sign(&self, more: &[&str]) -> Outcome {
        self.sign_input(more, b"").await
    }

    async fn sign_input(&self, more: &[&str], input: &[u8]) -> Outcome {
        let key = self.key();
        let args = [&["tx", "sign", "--key", key.to_str().unwrap()], more].concat();
        Outcome::of(&mut command(&args), input).await
    }
}

/// The transaction of a request's body.
fn encoded(body: &str) -> Bytes {
    let request: CheckTransactionRequest = serde_json::from_str(body).unwrap();
    encode(&request.tx.unwrap()).into()
}

#[tokio::test]
async fn a_node_accepts_signed_transactions_of_every_version_and_difficulty() {
    let folder = KeyFolder::new().await;
    for difficulty in [0, 1, 7, 8, 14] {
        let rules = SpamRules { difficulty, tx_per_block: 100, ..SpamRules::default() };
        let node = DevNode::configure().rules(rules).start().await;
        let (hash, difficulty) = (node.chain().newest().unwrap().hash, difficulty.to_string());
        let work = ["--block-hash", &hash, "--difficulty", &difficulty, "--chain-id", "test-net"];
        for version_and_input in
            [["--tx-version", "2", "--hex", "6869"], ["--tx-version", "3", "--base64", "aGk="]]
        {
            let signed = folder.sign(&[&work[..], &version_and_input].concat()).await;
            let tx = encoded(signed.done());
            let (_, refusal) = node.chain().broadcast("broadcast_tx_sync", tx).await.unwrap();
            assert_eq!(refusal, None, "{signed:?}");
        }
    }
}

#[tokio::test]
async fn a_key_is_its_owners() {
    let folder = KeyFolder::new().await;
    assert_eq!(folder.key().metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let first = fs::read(folder.key()).unwrap();
    let neighbour = PathBuf::from(format!("{}.new", folder.key().display()));
    fs::write(&neighbour, "another file").unwrap();
    folder.keygen(&[]).await.fails(1, &["--force"]);
    assert_eq!(fs::read(folder.key()).unwrap(), first);
    let other = folder.keygen(&["--force", "--json"]).await.json();
    assert_ne!(fs::read(folder.key()).unwrap(), first);
    assert_eq!(fs::read_to_string(neighbour).unwrap(), "another file");
    assert_eq!(folder.0.path().read_dir().unwrap().count(), 2, "no temporary file is left");
    mesh(&["tx", "keygen", "-"]).await.fails(2, &["is not printed", "name a file"]);
    let device = mesh(&["tx", "keygen", "--force", folder.0.path().to_str().unwrap()]).await;
    device.fails(1, &["not a regular file"]);
    let signed = folder.sign(&["--hex", "00", "--tx-version", "2", "--no-pow", "--json"]).await;
    assert_eq!(signed.error, "");
    let tx = signed.json()["tx"].take();
    assert_eq!((&tx["pubKey"], &tx["version"]), (&other["publicKey"], &json!("TX_VERSION_V2")));
    assert_eq!(tx.get("pow"), None);
    assert_eq!(folder.sign(&["--tx-version", "2", "--no-pow"]).await.code, Some(2));
    let of_another = json!({"public_key": "00".repeat(32), "secret_key": "01".repeat(32)});
    for (text, words) in [(Some(of_another.to_string()), "holds no key"), (None, "cannot read the key")] {
        text.map_or_else(|| fs::remove_file(folder.key()), |text| fs::write(folder.key(), text)).unwrap();
        let refused = folder.sign(&["--hex", "00", "--tx-version", "2", "--no-pow"]).await;
        refused.fails(1, &[words, "mesh tx keygen"]);
    }
    let mut keygen = command(&["tx", "keygen", "--json"]);
    let made = Outcome::of(keygen.arg(folder.0.path().join(OsStr::from_bytes(b"k\xff"))), b"").await;
    assert!(made.json()["publicKey"].is_string(), "a name that is not UTF-8");
}

#[tokio::test]
async fn a_command_comes_from_a_file_or_from_standard_input() {
    let folder = KeyFolder::new().await;
    let file = folder.0.path().join("command");
    fs::write(&file, b"\x00\xff").unwrap();
    let sign = async |input: &str, given: &[u8]| {
        folder.sign_input(&["--tx-version", "2", "--no-pow", "--input", input], given).await
    };
    let (from_file, given) = (sign(file.to_str().unwrap(), b"").await, sign("-", b"\x00\xff").await);
    assert_eq!(from_file.done(), given.done());
    sign("-", b"").await.fails(1, &["at least one byte"]);
    sign("-", &vec![0; (1 << 20) + 1]).await.fails(1, &["longer"]);
    sign(folder.0.path().join("nothing").to_str().unwrap(), b"").await.fails(1, &["cannot read"]);
}

/// A gateway that gives these answers one after the other; the last one stays.
async fn answering(answers: impl Into<VecDeque<(u16, Value)>>) -> StubGateway {
    let mut answers = answers.into();
    StubGateway::start(move |_| {
        let (status, answer) =
            if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() }.unwrap();
        std::future::ready(body(status, &answer.to_string()))
    })
    .await
}

/// Runs a command of `mesh tx` with a gateway.
async fn tx(gateway: &StubGateway, args: &[&str], input: &str) -> Outcome {
    let args = [&["tx"], args, &["--url", &gateway.url]].concat();
    Outcome::of(&mut command(&args), input.as_bytes()).await
}

/// Method and path of the requests so far.
fn lines(gateway: &StubGateway) -> Vec<String> {
    let line = |head: &String| head.lines().next().unwrap().trim_end_matches(" HTTP/1.1").to_owned();
    gateway.heads().iter().map(line).collect()
}

/// A signed transaction as the body of its submission, and its hash.
async fn signed() -> (String, String) {
    let signed = KeyFolder::new().await.sign(&["--hex", "00", "--tx-version", "2", "--no-pow"]).await;
    let body = signed.done().to_owned();
    let hash = TxHash::of(&encoded(&body)).to_string();
    (body, hash)
}

fn reply(success: bool, hash: &str, code: u32, data: &str) -> (u16, Value) {
    (200, json!({"success": success, "txHash": hash, "code": code, "data": data, "log": "", "height": "0"}))
}

fn fate(hash: &str, status: &str, height: &str) -> (u16, Value) {
    (200, json!({"txHash": hash, "status": status, "height": height, "code": 0, "log": ""}))
}

#[tokio::test]
async fn reads_are_strict_and_submissions_are_not() {
    let (body, hash) = signed().await;
    let gateway = answering([reply(true, &hash, 0, ""), fate(&hash, "INCLUDED", "7")]).await;
    tx(&gateway, &["submit"], &body).await.done();
    tx(&gateway, &["status", &hash], "").await.done();
    let is_strict: Vec<bool> =
        gateway.heads().iter().map(|head| head.contains("\r\nprefer: handling=strict\r\n")).collect();
    assert_eq!((lines(&gateway).len(), is_strict), (2, vec![false, true]), "{:?}", gateway.heads());
}

#[tokio::test]
async fn missing_options_are_requested_from_the_gateway() {
    let node = DevNode::start().await;
    let newest = node.chain().newest().unwrap();
    let height = json!({
        "height": "1", "hash": newest.hash, "spamPowHashFunction": "sha3_24_rounds", "spamPowDifficulty": 2,
        "spamPowNumberOfPastBlocks": 100, "spamPowNumberOfTxPerBlock": 2, "spamPowIncreasingDifficulty": false,
        "chainId": "test-net",
    });
    let gateway = answering([(200, height)]).await;
    let key = KeyFolder::new().await;
    let signed = tx(&gateway, &["sign", "--key", key.key().to_str().unwrap(), "--hex", "6869"], "").await;
    says(&signed.error, &["proof of work of 2 bits"]);
    let accepted = node.chain().broadcast("broadcast_tx_sync", encoded(signed.done())).await;
    assert_eq!(accepted.unwrap().1, None);
    assert_eq!(lines(&gateway), ["GET /blockchain/height"]);
}

#[tokio::test]
async fn a_submission_reports_the_answer_of_the_gateway() {
    let (body, hash) = signed().await;
    for (given, kind) in [("async", "TYPE_ASYNC"), ("TYPE_COMMIT", "TYPE_COMMIT"), ("Commit", "TYPE_COMMIT")]
    {
        let gateway = answering([reply(true, &hash, 0, "")]).await;
        let submitted = tx(&gateway, &["submit", "--type", given], &body).await;
        says(submitted.done(), &[&format!(" {hash}")]);
        assert_eq!(lines(&gateway), ["POST /transaction"]);
        let (_, sent) = gateway.requests().remove(0);
        assert_eq!(serde_json::from_str::<Value>(&sent).unwrap()["type"], kind);
        assert_eq!(encoded(&sent), encoded(&body));
    }

    let refusal = reply(false, "", 89, "proof of work tid already used");
    let refused = tx(&answering([refusal.clone()]).await, &["submit", "--json"], &body).await;
    refused.fails(1, &["code 89: proof of work tid already used"]);
    assert_eq!(refused.json(), refusal.1);

    let other = answering([reply(true, &"AB".repeat(32), 0, "")]).await;
    tx(&other, &["submit"], &body).await.fails(1, &[&hash]);
}

#[tokio::test]
async fn a_submission_without_a_certain_answer_is_looked_for() {
    let (body, hash) = signed().await;
    let detail = json!({"@type": "type.googleapis.com/api.v2.ErrorDetail", "code": 90001,
        "message": "its fate is unknown", "inner": ""});
    let late = (504, json!({"code": 4, "message": "DeadlineExceeded error", "details": [detail]}));
    let gateway = answering([late.clone()]).await;
    let failed = tx(&gateway, &["submit"], &body).await;
    failed.fails(1, &["its fate is unknown", &format!("tx status {hash}")]);
    assert_eq!(gateway.requests().len(), 1);

    let gateway = answering([
        late,
        fate(&hash, "UNKNOWN", "0"),
        (503, json!({})),
        fate(&hash, "PENDING", "0"),
        fate(&hash, "INCLUDED", "12"),
    ])
    .await;
    let followed = tx(&gateway, &["submit", "--wait"], &body).await;
    assert_eq!(followed.done(), format!("included {hash} in block 12\n"));
    let lines = lines(&gateway);
    assert_eq!(lines[0], "POST /transaction");
    assert!(lines[1..].iter().all(|line| *line == format!("GET /transaction/{hash}")), "{lines:?}");
}

#[tokio::test]
async fn a_submission_that_is_stopped_names_the_command_that_looks_for_it() {
    let (body, hash) = signed().await;
    let silence = |_| std::future::ready(Reply { bytes: Vec::new(), stalls: true });
    let gateway = StubGateway::start(silence).await;
    let mut submit = command(&["tx", "submit", "--json", "--url", &gateway.url]);
    submit.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = submit.spawn().unwrap();
    child.stdin.take().unwrap().write_all(body.as_bytes()).await.unwrap();
    eventually(PATIENCE, "nothing is submitted", async || !gateway.requests().is_empty()).await;
    kill_process(Pid::from_raw(child.id().unwrap().cast_signed()).unwrap(), Signal::INT).unwrap();
    let stopped = Outcome::from(timeout(PATIENCE, child.wait_with_output()).await.unwrap().unwrap());
    let look = format!("tx status {hash} --url {}`", gateway.url);
    stopped.fails(1, &["stopped; the outcome is open", &look]);
}

#[tokio::test]
async fn a_gateway_that_redirects_names_the_other_address() {
    let (body, hash) = signed().await;
    let gateway = StubGateway::start(|head| {
        let path = head.split_whitespace().nth(1).unwrap();
        let moved = format!("HTTP/1.1 301 X\r\nlocation: https://gateway.invalid/below{path}\r\n");
        let bytes = format!("{moved}connection: close\r\ncontent-length: 0\r\n\r\n").into_bytes();
        std::future::ready(Reply { bytes, stalls: false })
    })
    .await;
    for args in [&["submit"][..], &["submit", "--wait"], &["check"], &["status", &hash]] {
        let refused = tx(&gateway, args, &body).await;
        refused.fails(1, &["refused: ", "redirects to https://gateway.invalid/below; give that with --url"]);
    }
    assert_eq!(gateway.requests().len(), 4);
}

#[tokio::test]
async fn a_submission_that_did_not_reach_the_node_is_sent_again_when_it_is_waited_for() {
    let (body, hash) = signed().await;
    let away = (503, json!({"code": 14, "message": "Unavailable error", "details": []}));
    let (taken, included) = (reply(true, &hash, 0, ""), fate(&hash, "INCLUDED", "12"));
    let gateway = answering([away.clone(), away.clone(), taken, included]).await;
    let sent = tx(&gateway, &["submit", "--wait"], &body).await;
    assert_eq!(sent.done(), format!("included {hash} in block 12\n"));
    assert_eq!(lines(&gateway)[..3], ["POST /transaction"; 3]);

    let gateway = answering([away]).await;
    tx(&gateway, &["submit"], &body).await.fails(1, &["not submitted (", "again later"]);
    assert_eq!(gateway.requests().len(), 1);
    let late = tx(&gateway, &["submit", "--wait", "--patience", "1"], &body).await;
    late.fails(1, &["not submitted (", "again later, or with a greater --patience"]);
}

#[tokio::test]
async fn a_terminal_shows_a_line_that_fits_it_once_and_without_it_the_error() {
    let (body, _) = signed().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tx.json");
    fs::write(&file, body).unwrap();
    let detail = json!({"@type": "type.googleapis.com/api.v2.ErrorDetail", "code": 10000,
        "message": "the node is restarting and takes nothing", "inner": ""});
    let away = json!({"code": 14, "message": "Unavailable error", "details": [detail]});
    let gateway = answering([(503, away)]).await;
    let line = "\r\x1b[2Kwaiting to submit it: the node is resta\r\x1b[2K";
    for (kind, shown) in [("xterm", line), ("dumb", "")] {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let terminal = openpt(flags).unwrap();
        unlockpt(&terminal).unwrap();
        let end = ioctl_tiocgptpeer(&terminal, flags).unwrap();
        let size = Winsize { ws_row: 24, ws_col: 40, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&end, size).unwrap();
        let mut submit = command(&["tx", "submit", "--wait", "--patience", "1", "--url", &gateway.url]);
        submit.arg(&file).env("TERM", kind).stdin(Stdio::null()).stderr(end).kill_on_drop(true);
        let status = timeout(PATIENCE, submit.status()).await.unwrap().unwrap();
        drop(submit);
        let mut text = Vec::new();
        // It ends with an error, because its other end is closed.
        let _ = File::from(terminal).read_to_end(&mut text);
        let text = String::from_utf8(text).unwrap();
        assert!(text.starts_with(&format!("{shown}not submitted (")), "{text:?}");
        assert_eq!((status.code(), text.lines().count()), (Some(1), 1), "{text:?}");
    }
}

#[tokio::test]
async fn a_repeat_that_is_refused_because_a_block_has_it_is_included() {
    let (submission, hash) = signed().await;
    let mut submissions = 0;
    let gateway = StubGateway::start(move |head| {
        submissions += usize::from(head.starts_with("POST"));
        let (status, answer) = match (submissions, head.starts_with("POST")) {
            (1, true) => (504, json!({"code": 4, "message": "Deadline exceeded", "details": []})),
            (1, false) => fate(&hash, "UNKNOWN", "0"),
            (_, true) => reply(false, &hash, 51, "it is in a block already"),
            (_, false) => fate(&hash, "INCLUDED", "12"),
        };
        std::future::ready(body(status, &answer.to_string()))
    });
    let followed = tx(&gateway.await, &["submit", "--wait"], &submission).await;
    assert!(followed.done().ends_with("in block 12\n"));
}

#[tokio::test]
async fn following_ends_with_the_fate_or_with_its_patience() {
    let (body, hash) = signed().await;
    let taken = reply(true, &hash, 0, "");
    let (_, mut failed) = fate(&hash, "INCLUDED", "12");
    (failed["code"], failed["log"]) = (json!(89), json!("too old"));
    let gateway = answering([taken.clone(), (200, failed)]).await;
    let refused = tx(&gateway, &["submit", "--wait", "--json"], &body).await;
    refused.fails(1, &["code 89: too old"]);
    assert_eq!(refused.json()["height"], "12");

    let gateway = answering([taken, fate(&hash, "PENDING", "0")]).await;
    let late = tx(&gateway, &["submit", "--wait", "--patience", "9"], &body).await;
    late.fails(1, &["not in a block after 9 s ("]);
    let submitted = lines(&gateway).iter().filter(|line| *line == "POST /transaction").count();
    assert_eq!(submitted, 2, "the node may have lost it");
}

#[tokio::test]
async fn a_redirect_of_a_repeat_is_no_refusal() {
    let (signed, hash) = signed().await;
    let mut taken = Some(body(200, &reply(true, &hash, 0, "").1.to_string()));
    let gateway = StubGateway::start(move |_| {
        let moved = "HTTP/1.1 302 X\r\nlocation: https://login.invalid/\r\nconnection: close\r\n\r\n";
        std::future::ready(taken.take().unwrap_or_else(|| Reply { bytes: moved.into(), stalls: false }))
    })
    .await;
    let late = tx(&gateway, &["submit", "--wait", "--patience", "8"], &signed).await;
    late.fails(1, &["not in a block after 8 s (", "redirects to https://login.invalid"]);
    assert!(!late.error.contains("refused: "), "{late:?}");
}

#[tokio::test]
async fn commands_of_the_demo_network_are_signed_and_submitted() {
    let folder = KeyFolder::new().await;
    let key = folder.key();
    let signing = ["--key", key.to_str().unwrap(), "--tx-version", "2", "--no-pow", "--json"];
    let to = "ab".repeat(32);
    let transfer = format!(r#"{{"transfer":{{"amount":"7","asset":"VOTE","to":"{to}"}}}}"#);
    for (args, input) in [
        (&["faucet", "--asset", "VOTE"][..], r#"{"faucet":{"asset":"VOTE"}}"#),
        (&["transfer", "--to", &to, "--asset", "VOTE", "--amount", "7"], &transfer),
    ] {
        let gateway = answering([reply(false, "", 51, "no")]).await;
        tx(&gateway, &[&["demo"], args, &signing].concat(), "").await.fails(1, &["code 51: no"]);
        let (head, body) = gateway.requests().remove(0);
        assert!(head.starts_with("POST /transaction "), "{head}");
        let request: CheckTransactionRequest = serde_json::from_str(&body).unwrap();
        assert_eq!(request.tx.unwrap().input_data, input);
    }
}

#[tokio::test]
async fn a_check_and_a_status_are_reported() {
    let (body, hash) = signed().await;
    let checked = |success: bool, code: u32| {
        let reply = json!({"success": success, "code": code, "gasWanted": "0", "gasUsed": "0", "data": "",
            "log": "no", "info": ""});
        (200, reply)
    };
    let gateway = answering([checked(true, 0), checked(false, 51)]).await;
    assert_eq!(tx(&gateway, &["check"], &body).await.done(), "the node would take it\n");
    tx(&gateway, &["check"], &body).await.fails(1, &["code 51: no"]);
    assert_eq!(lines(&gateway), ["POST /transaction/check"; 2]);

    let included = fate(&hash, "INCLUDED", "12");
    let gateway = answering([included.clone()]).await;
    let lower = hash.to_ascii_lowercase();
    assert_eq!(tx(&gateway, &["status", &lower], "").await.done(), "INCLUDED in block 12\n");
    assert_eq!(tx(&gateway, &["status", "--json", &lower], "").await.json(), included.1);
}

#[tokio::test]
async fn what_is_no_transaction_and_no_gateway_is_named() {
    let nothing = Outcome::of(&mut command(&["tx", "submit"]), b"{}").await;
    nothing.fails(1, &["standard input holds no transaction"]);
    let away = mesh(&["tx", "status", &"AB".repeat(32), "--url", "http://127.0.0.1:1"]).await;
    away.fails(1, &["http://127.0.0.1:1", "mesh up"]);

    // Another server may answer with any JSON object.
    let folder = KeyFolder::new().await;
    let key = folder.key();
    let (body, hash) = signed().await;
    for other in [json!({"ok": true}), json!({"success": true}), json!({"status": "UNKNOWN"})] {
        let other = answering([(200, other)]).await;
        tx(&other, &["submit"], &body).await.fails(1, &["no certain answer (", "no gateway does", &hash]);
        for args in [
            &["check"][..],
            &["status", &hash, "--json"],
            &["sign", "--hex", "00", "--key", key.to_str().unwrap()],
        ] {
            let refused = tx(&other, args, &body).await;
            refused.fails(1, &["answers what no gateway does; check --url"]);
            assert!(refused.error.starts_with(&other.url) && refused.text().is_empty(), "{refused:?}");
        }
        let export = ["export", "trades", "--from-block", "first", "--to-block", "last", "--url", &other.url];
        mesh(&export).await.fails(1, &["answers what no gateway does; check --url"]);
    }
}
