//! `mesh tx` from the command line: a node accepts what it signs, and it reports a gateway's answers.

use std::{
    collections::VecDeque,
    fs,
    io::Write as _,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use mesh_testbed::DevNode;
use mesh_transaction::{SpamRules, TxHash, encode};
use proto_msgs::v2::CheckTransactionRequest;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpListener,
    task::{JoinHandle, spawn_blocking},
};

/// A folder with a key.
struct KeyFolder(TempDir);

impl KeyFolder {
    fn new() -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        let made = mesh(&["tx", "keygen", folder.key().to_str().unwrap()], b"");
        assert!(made.status.success());
        folder
    }

    fn key(&self) -> PathBuf {
        self.0.path().join("key")
    }

    fn sign(&self, more: &[&str]) -> Output {
        mesh(&[&["tx", "sign", "--key", self.key().to_str().unwrap()], more].concat(), b"")
    }

    /// What is signed for a node's newest block.
    fn signed_for(&self, node: &DevNode, difficulty: u32, more: &[&str]) -> String {
        let hash = node.chain().newest().unwrap().hash;
        let difficulty = difficulty.to_string();
        let work = ["--block-hash", &hash, "--difficulty", &difficulty, "--chain-id", "test-net"];
        let output = self.sign(&[&work, more].concat());
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }
}

fn mesh(args: &[&str], input: &[u8]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mesh"));
    command.args(args).env_remove("MESH_POW_PREFIX").env_remove("MESH_RELAY_SIGNATURE_ALGO");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A command that needs no input may be gone already.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

fn encoded(body: &str) -> Bytes {
    let request: CheckTransactionRequest = serde_json::from_str(body).unwrap();
    encode(&request.tx.unwrap()).into()
}

fn stderr_of(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[tokio::test]
async fn a_node_accepts_signed_transactions_of_every_version_and_difficulty() {
    let folder = KeyFolder::new();
    for difficulty in [0, 1, 7, 8, 14] {
        let rules = SpamRules { difficulty, tx_per_block: 100, ..SpamRules::default() };
        let node = DevNode::configure().rules(rules).start().await;
        for (version, input) in [("2", ["--hex", "6869"]), ("3", ["--base64", "aGk="])] {
            let body =
                folder.signed_for(&node, difficulty, &[&["--tx-version", version][..], &input].concat());
            let (_, refusal) = node.chain().broadcast("broadcast_tx_sync", encoded(&body)).await.unwrap();
            assert_eq!(refusal, None, "{body}");
        }
    }
}

#[test]
fn a_key_is_its_owners() {
    let folder = KeyFolder::new();
    assert_eq!(folder.key().metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let again = mesh(&["tx", "keygen", folder.key().to_str().unwrap()], b"");
    assert_eq!(again.status.code(), Some(1));
    assert!(stderr_of(&again).contains("--force"), "{}", stderr_of(&again));
    let other = mesh(&["tx", "keygen", "--force", "--json", folder.key().to_str().unwrap()], b"");
    let outcome: Value = serde_json::from_slice(&other.stdout).unwrap();
    let body = folder.sign(&["--hex", "00", "--tx-version", "2", "--no-pow", "--json"]);
    assert_eq!(stderr_of(&body), "");
    let body: Value = serde_json::from_slice(&body.stdout).unwrap();
    assert_eq!(
        (&body["tx"]["pubKey"], &body["tx"]["version"]),
        (&outcome["publicKey"], &json!("TX_VERSION_V2"))
    );
    assert_eq!(body["tx"].get("pow"), None);
    let without = folder.sign(&["--tx-version", "2", "--no-pow"]);
    assert_eq!(without.status.code(), Some(2));
}

#[test]
fn a_command_comes_from_a_file_or_from_standard_input() {
    let folder = KeyFolder::new();
    let file = folder.0.path().join("command");
    fs::write(&file, b"\x00\xff").unwrap();
    let sign = |input: &Path, given: &[u8]| {
        let key = folder.key();
        let args = ["tx", "sign", "--key", key.to_str().unwrap(), "--tx-version", "2", "--no-pow", "--input"];
        mesh(&[&args[..], &[input.to_str().unwrap()]].concat(), given)
    };
    assert_eq!(sign(&file, b"").stdout, sign(Path::new("-"), b"\x00\xff").stdout);
    assert_eq!(sign(Path::new("-"), b"").status.code(), Some(1));
    assert!(stderr_of(&sign(Path::new("-"), &vec![0; (1 << 20) + 1])).contains("longer"));
    assert!(stderr_of(&sign(&folder.0.path().join("nothing"), b"")).contains("cannot read"));
}

/// A fake gateway that gives prepared answers, one after the other, and records the requests.
struct Gateway {
    url: String,
    requests: Arc<Mutex<Vec<(String, String)>>>,
    serving: JoinHandle<()>,
}

impl Gateway {
    async fn that_answers(answers: Vec<(u16, Value)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (notes, mut answers) = (Arc::clone(&requests), VecDeque::from(answers));
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let mut stream = BufReader::new(stream);
                let mut head = String::new();
                while !head.ends_with("\r\n\r\n") {
                    assert!(stream.read_line(&mut head).await.unwrap() > 0);
                }
                let lower = head.to_ascii_lowercase();
                let length = lower.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
                let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
                stream.read_exact(&mut body).await.unwrap();
                let line = head.lines().next().unwrap().trim_end_matches(" HTTP/1.1").to_owned();
                notes.lock().unwrap().push((line, String::from_utf8(body).unwrap()));
                // The last answer stays.
                let (status, answer) = match answers.len() {
                    1 => answers[0].clone(),
                    _ => answers.pop_front().unwrap(),
                };
                let answer = answer.to_string();
                let head = format!(
                    "HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
                    answer.len()
                );
                stream.write_all(format!("{head}{answer}").as_bytes()).await.unwrap();
            }
        });
        Self { url, requests, serving }
    }

    async fn mesh(&self, args: &[&str], input: &str) -> Output {
        let args: Vec<String> =
            ["tx"].iter().chain(args).chain(&["--url", &self.url]).map(|arg| (*arg).to_owned()).collect();
        let input = input.to_owned();
        spawn_blocking(move || mesh(&args.iter().map(String::as_str).collect::<Vec<_>>(), input.as_bytes()))
            .await
            .unwrap()
    }

    fn requests(&self) -> Vec<(String, String)> {
        self.requests.lock().unwrap().clone()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

fn body() -> (String, String) {
    let output = KeyFolder::new().sign(&["--hex", "00", "--tx-version", "2", "--no-pow"]);
    let body = String::from_utf8(output.stdout).unwrap();
    let hash = TxHash::of(&encoded(&body)).to_string();
    (body, hash)
}

fn reply(success: bool, hash: &str, code: u32, data: &str) -> Value {
    json!({"success": success, "txHash": hash, "code": code, "data": data, "log": "", "height": "0"})
}

fn fate(hash: &str, status: &str, height: &str) -> Value {
    json!({"txHash": hash, "status": status, "height": height, "code": 0, "log": ""})
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
    let gateway = Gateway::that_answers(vec![(200, height)]).await;
    let folder = KeyFolder::new();
    let key = folder.key();
    let signed = gateway.mesh(&["sign", "--key", key.to_str().unwrap(), "--hex", "6869"], "").await;
    assert!(stderr_of(&signed).contains("proof of work of 2 bits"), "{}", stderr_of(&signed));
    let tx = encoded(&String::from_utf8(signed.stdout).unwrap());
    assert_eq!(node.chain().broadcast("broadcast_tx_sync", tx).await.unwrap().1, None);
    assert_eq!(gateway.requests(), [("GET /blockchain/height".to_owned(), String::new())]);
}

#[tokio::test]
async fn a_submission_reports_the_answer_of_the_gateway() {
    let (body, hash) = body();
    let gateway = Gateway::that_answers(vec![(200, reply(true, &hash, 0, ""))]).await;
    let output = gateway.mesh(&["submit", "--type", "async"], &body).await;
    assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("taken {hash}\n"));
    let (line, sent) = gateway.requests().remove(0);
    let (sent, body_sent): (Value, Value) =
        (serde_json::from_str(&sent).unwrap(), serde_json::from_str(&body).unwrap());
    assert_eq!((line.as_str(), &sent["type"]), ("POST /transaction", &json!("TYPE_ASYNC")));
    assert_eq!(encoded(&sent.to_string()), encoded(&body_sent.to_string()));

    let refusal = reply(false, "", 89, "proof of work tid already used");
    let gateway = Gateway::that_answers(vec![(200, refusal.clone())]).await;
    let output = gateway.mesh(&["submit", "--json"], &body).await;
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(serde_json::from_slice::<Value>(&output.stdout).unwrap(), refusal);
    assert!(stderr_of(&output).contains("code 89: proof of work tid already used"), "{}", stderr_of(&output));

    let gateway = Gateway::that_answers(vec![(200, reply(true, &"AB".repeat(32), 0, ""))]).await;
    let output = gateway.mesh(&["submit"], &body).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr_of(&output).contains(&hash), "{}", stderr_of(&output));
}

#[tokio::test]
async fn a_submission_without_a_certain_answer_is_never_sent_twice_but_looked_for() {
    let (body, hash) = body();
    let late = (
        504,
        json!({"code": 4, "message": "DeadlineExceeded error", "details": [
            {"@type": "type.googleapis.com/api.v2.ErrorDetail", "code": 90001, "message": "its fate is unknown", "inner": ""}
        ]}),
    );
    let gateway = Gateway::that_answers(vec![late.clone()]).await;
    let output = gateway.mesh(&["submit"], &body).await;
    assert_eq!(output.status.code(), Some(1));
    let text = stderr_of(&output);
    assert!(text.contains("its fate is unknown") && text.contains(&format!("tx status {hash}")), "{text}");
    assert_eq!(gateway.requests().len(), 1);

    let answers = vec![
        late,
        (200, fate(&hash, "UNKNOWN", "0")),
        (503, json!({})),
        (200, fate(&hash, "PENDING", "0")),
        (200, fate(&hash, "INCLUDED", "12")),
    ];
    let gateway = Gateway::that_answers(answers).await;
    let output = gateway.mesh(&["submit", "--wait"], &body).await;
    assert!(output.status.success(), "{}", stderr_of(&output));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("included {hash} in block 12\n"));
    let requests: Vec<String> = gateway.requests().into_iter().map(|(line, _)| line).collect();
    assert_eq!(requests[0], "POST /transaction");
    assert!(requests[1..].iter().all(|line| *line == format!("GET /transaction/{hash}")), "{requests:?}");
}

#[tokio::test]
async fn following_ends_with_the_fate_or_with_its_patience() {
    let (body, hash) = body();
    let taken = (200, reply(true, &hash, 0, ""));
    let mut failed = fate(&hash, "INCLUDED", "12");
    failed["code"] = json!(89);
    failed["log"] = json!("too old");
    let gateway = Gateway::that_answers(vec![taken.clone(), (200, failed)]).await;
    let output = gateway.mesh(&["submit", "--wait", "--json"], &body).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr_of(&output).contains("code 89: too old"), "{}", stderr_of(&output));
    assert_eq!(serde_json::from_slice::<Value>(&output.stdout).unwrap()["height"], "12");

    let gateway = Gateway::that_answers(vec![taken, (200, fate(&hash, "PENDING", "0"))]).await;
    let output = gateway.mesh(&["submit", "--wait", "--patience", "1"], &body).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr_of(&output).contains("not in a block after 1 s (it is PENDING)"),
        "{}",
        stderr_of(&output)
    );
}

#[tokio::test]
async fn a_check_and_a_status_are_reported() {
    let (body, hash) = body();
    let checked = |success, code| json!({"success": success, "code": code, "gasWanted": "0", "gasUsed": "0", "data": "", "log": "no", "info": ""});
    let gateway = Gateway::that_answers(vec![(200, checked(true, 0)), (200, checked(false, 51))]).await;
    let output = gateway.mesh(&["check"], &body).await;
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "the node would take it\n");
    let output = gateway.mesh(&["check"], &body).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr_of(&output).contains("code 51: no"), "{}", stderr_of(&output));
    assert_eq!(gateway.requests()[0].0, "POST /transaction/check");

    let gateway = Gateway::that_answers(vec![(200, fate(&hash, "INCLUDED", "12"))]).await;
    let lower = hash.to_ascii_lowercase();
    let output = gateway.mesh(&["status", &lower], "").await;
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "INCLUDED in block 12\n");
    let output = gateway.mesh(&["status", "--json", &lower], "").await;
    assert_eq!(serde_json::from_slice::<Value>(&output.stdout).unwrap(), fate(&hash, "INCLUDED", "12"));
}

#[test]
fn what_is_no_transaction_and_no_gateway_is_named() {
    let nothing = mesh(&["tx", "submit"], b"{}");
    assert_eq!(nothing.status.code(), Some(1));
    assert!(stderr_of(&nothing).contains("holds no transaction"), "{}", stderr_of(&nothing));
    let away = mesh(&["tx", "status", &"AB".repeat(32), "--url", "http://127.0.0.1:1"], b"");
    assert_eq!(away.status.code(), Some(1));
    assert!(
        stderr_of(&away).contains("http://127.0.0.1:1") && stderr_of(&away).contains("mesh up"),
        "{}",
        stderr_of(&away)
    );
}
