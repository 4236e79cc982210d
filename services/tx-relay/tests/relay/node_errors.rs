//! What clients get for each answer of a node or of a proxy in front of it: a transaction is called not taken only
//! where that is known.

use std::{sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use mesh_problem::{Code, Problem};
use mesh_testbed::NodeKind;
use mesh_transaction::TxHash;
use parking_lot::Mutex;
use proto_msgs::v2::{SubmissionType::*, get_transaction_reply::Status};
use rand::{Rng as _, SeedableRng as _, rngs::SmallRng};
use serde_json::{Value, json};
use tokio::{
    net::TcpListener,
    time::{Instant, sleep, sleep_until},
};
use warp::{Filter as _, http::Response};

use crate::fixture::{Fixture, Setup, accepted, already};

/// An answer to broadcasts: the status, `Retry-After`, and the body. In place of `Retry-After` there may be the name of
/// another method, which gets no answer of a node, [`NO_INDEX`], [`WAITING`], or [`CATCHING_UP`].
type Script = Arc<Mutex<(u16, &'static str, String)>>;

/// The node keeps no index.
const NO_INDEX: &str = "no index";

/// The node says so in its status, and takes transactions, as CometBFT before 1.0 does.
const CATCHING_UP: &str = "catching up";

/// The transaction of these bytes is in the node's mempool.
const WAITING: &str = "waiting";

/// An accepted transaction may be lost after this time.
const DOUBTED_AFTER: Duration = Duration::from_millis(5_100);

/// Serves a node whose broadcasts get the scripted answer and whose index and mempool are empty.
async fn serve(script: &Script) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let script = Arc::clone(script);
    let calls = warp::post().and(warp::body::json()).map(move |call: Value| {
        let method = call["method"].as_str().unwrap_or_default();
        let result =
            |result: Value| (200, "", json!({"jsonrpc": "2.0", "id": 0, "result": result}).to_string());
        let (status, retry_after, body) = match method {
            _ if script.lock().1 == method => (502, "", String::new()),
            "status" => {
                let sync_info = json!({"catching_up": script.lock().1 == CATCHING_UP});
                result(json!({"node_info": {"network": "c"}, "sync_info": sync_info}))
            }
            "unconfirmed_txs" if script.lock().1 == WAITING => {
                result(json!({"n_txs": "1", "txs": [STANDARD.encode(WAITING)]}))
            }
            "unconfirmed_txs" => result(json!({"n_txs": "0", "txs": null})),
            "tx" if script.lock().1 == NO_INDEX => (500, "", error("transaction indexing is disabled")),
            "tx" => (500, "", error("tx (AB) not found")),
            _ => script.lock().clone(),
        };
        Response::builder().status(status).header("retry-after", retry_after).body(body)
    });
    tokio::spawn(warp::serve(calls).incoming(listener).run());
    format!("http://{address}")
}

fn error(text: &str) -> String {
    json!({"jsonrpc": "2.0", "id": 0, "error": {"code": -32603, "message": "Internal error", "data": text}})
        .to_string()
}

/// The result of a check, also inside the answer to a commit, and what other methods do.
fn checked(others: &'static str, code: u32) -> (u16, &'static str, String) {
    let check = json!({"code": code});
    let result = json!({"code": code, "data": "", "log": "", "hash": "", "check_tx": check, "tx_result": {}});
    (200, others, json!({"result": result}).to_string())
}

fn assert_open(problem: &Problem) {
    assert_eq!((problem.code, problem.number()), (Code::DeadlineExceeded, 90_001), "{problem}");
}

async fn fixture(script: &Script) -> Fixture {
    let mut fixture = Fixture::start(Setup { relays: 0, ..Setup::new(NodeKind::Development) }).await;
    fixture.start_relay(&[("MESH_NODE_URL", serve(script).await)]).await;
    fixture.await_readiness(200).await;
    fixture
}

/// The first node's proxy answers in its place.
#[tokio::test]
async fn a_node_without_answers_is_left_for_the_next_one() {
    let mut fixture = Fixture::start(Setup { relays: 0, ..Setup::new(NodeKind::Development) }).await;
    let silent = warp::any().map(|| Response::builder().status(502).body("bad gateway"));
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let urls = format!("http://{}, {}", listener.local_addr().unwrap(), fixture.node.url());
    tokio::spawn(warp::serve(silent).incoming(listener).run());
    fixture.start_relay(&[("MESH_NODE_URL", urls)]).await;
    fixture.await_readiness(200).await;
    let tx = fixture.transaction("order").await;
    assert!(fixture.sync(&tx).await.unwrap().success);
    fixture.assert_broadcasts(&tx, 1);
    fixture.start_blocks();
    assert_eq!(fixture.node.included(&TxHash::of(&tx)).await, tx);
    assert_eq!(fixture.status(&tx).await, Status::Included);
    // The silent node may have taken it.
    let problem = fixture.read_transaction(b"a transaction that was not sent").await.unwrap_err();
    assert_eq!(problem.code, Code::DeadlineExceeded, "{problem}");
}

#[tokio::test]
async fn what_is_not_known_to_be_refused_is_open() {
    let script = Script::new(Mutex::new((200, "", String::new())));
    let fixture = fixture(&script).await;
    let mut random = SmallRng::seed_from_u64(34);
    let mut words = || {
        let count = random.random_range(1..9);
        let mut word = || {
            *["mempool", "is", "full", "tx", "too", "lane", "catching", "not", "taken", "cache", ""]
                .get(random.random_range(0..11))
                .unwrap()
        };
        (0..count).map(|_| word()).collect::<Vec<_>>().join("-")
    };
    let mut answers: Vec<(u16, String)> = (0..1000).map(|_| (500, error(&words()))).collect();
    for status in [200, 301, 400, 401, 404, 500, 502, 503, 504] {
        answers.push((status, "<html>bad gateway</html>".to_owned()));
        answers.push((status, error("broadcast confirmation not received: context canceled")));
    }
    for (number, (status, body)) in answers.into_iter().enumerate() {
        let tx = format!("transaction {number}").into_bytes().into();
        *script.lock() = (status, "9", body.clone());
        let kind = [TypeAsync, TypeSync, TypeCommit][number % 3];
        let problem = fixture.submit(&tx, kind).await.unwrap_err();
        assert_eq!((problem.code, problem.number()), (Code::DeadlineExceeded, 90_001), "{status} {body}");
        assert_eq!(problem.details[0].inner, TxHash::of(&tx).to_string());
        assert_eq!(fixture.status(&tx).await, Status::Unknown);
    }
}

#[tokio::test]
async fn a_node_that_catches_up_gets_no_transaction() {
    let script = Script::new(Mutex::new(checked("", 0)));
    let fixture = fixture(&script).await;
    let tx = Bytes::from_static(b"order");
    *script.lock() = checked(CATCHING_UP, 0);
    assert!(fixture.await_readiness(503).await.contains("catching up"));
    for kind in [TypeAsync, TypeSync, TypeCommit] {
        let problem = fixture.submit(&tx, kind).await.unwrap_err();
        assert_eq!((problem.code, problem.number()), (Code::Unavailable, 90_002), "{problem}");
    }
    *script.lock() = checked("", 0);
    fixture.await_readiness(200).await;
    assert_eq!(fixture.sync(&tx).await.unwrap(), accepted(&tx));
}

#[tokio::test]
async fn what_is_known_to_be_refused_says_so_and_when_to_try_again() {
    let script = Script::new(Mutex::new((200, "", String::new())));
    let fixture = fixture(&script).await;
    let rows = [
        (500, error("max_subscription_clients 100 reached"), Code::ResourceExhausted, None),
        (500, error("mempool is full: number of txs 1 (max: 1)"), Code::ResourceExhausted, None),
        (500, error("Tx too large. Max size is 10, but got 11"), Code::InvalidArgument, None),
        (500, error("endpoint is closed while node is catching up"), Code::Unavailable, None),
        (429, "slow down".to_owned(), Code::ResourceExhausted, Some(9)),
        (429, error("rate limit"), Code::ResourceExhausted, Some(9)),
        (403, "<html>".to_owned(), Code::PermissionDenied, None),
    ];
    for (status, body, code, retry_after) in rows {
        *script.lock() = (status, "9", body.clone());
        for kind in [TypeAsync, TypeSync, TypeCommit] {
            let tx = body.clone().into_bytes().into();
            let problem = fixture.submit(&tx, kind).await.unwrap_err();
            let found = (problem.code, problem.number(), problem.retry_after_s);
            assert_eq!(found, (code, 90_002, retry_after), "{body}");
        }
    }
    // CometBFT 1.x reports a refused check as an error.
    let tx = Bytes::from_static(b"refused");
    let hash = TxHash::of(&tx);
    let text = format!(
        "broadcast error on transaction validation: tx {hash} is invalid: code=5, data=, log='poor', codespace=''"
    );
    *script.lock() = (500, "", error(&text));
    let reply = fixture.sync(&tx).await.unwrap();
    assert_eq!((reply.success, reply.code, reply.log.as_str()), (false, 5, "poor"));
    assert_eq!(fixture.status(&tx).await, Status::Refused);
    let problem = fixture.sync(&Bytes::from_static(b"other")).await.unwrap_err();
    assert_eq!((problem.code, problem.number()), (Code::DeadlineExceeded, 90_001), "the text is of another");
}

/// Relays announce no more than 32 KiB of a text.
#[tokio::test]
async fn all_relays_report_the_same_part_of_a_long_text() {
    let result = json!({"code": 5, "data": "", "log": "é".repeat(20_000), "hash": ""});
    let script = Script::new(Mutex::new((200, "", json!({"result": result}).to_string())));
    let url = serve(&script).await;
    let mut fixture = Fixture::start(Setup { relays: 0, ..Setup::new(NodeKind::Development) }).await;
    for _ in 0..2 {
        fixture.start_relay(&[("MESH_NODE_URL", url.clone())]).await;
    }
    fixture.await_readiness(200).await;
    let tx = Bytes::from_static(b"order");
    assert_eq!(fixture.sync(&tx).await.unwrap().log.len(), 40_000);
    for _ in 0..20 {
        let reply = fixture.get_transaction(&tx).await;
        assert_eq!((reply.status(), reply.log.len()), (Status::Refused, 32 << 10));
    }
}

/// What a node says of a repeat is no word on the submission before it.
#[tokio::test]
async fn a_repeat_of_what_may_have_arrived_stays_open() {
    let script = Script::new(Mutex::new((200, "", String::new())));
    let fixture = fixture(&script).await;
    let refusals = [
        (500, "", error("mempool is full: number of txs 1 (max: 1)")),
        (500, "", error("Tx too large. Max size is 10, but got 11")),
        (429, "", "slow down".to_owned()),
        (403, "", "<html>".to_owned()),
        checked("tx", 5),
    ];
    for (number, refusal) in refusals.into_iter().enumerate() {
        let tx = format!("transaction {number}").into_bytes().into();
        for script_of_node in [(502, "", String::new()), refusal] {
            *script.lock() = script_of_node.clone();
            let problem = fixture.sync(&tx).await.unwrap_err();
            let found = (problem.code, problem.number());
            assert_eq!(found, (Code::DeadlineExceeded, 90_001), "{script_of_node:?}");
        }
    }
    // Another client may have submitted what is refused now.
    *script.lock() = checked("tx", 5);
    let problem = fixture.sync(&Bytes::from_static(b"of another client")).await.unwrap_err();
    assert_eq!(problem.number(), 90_001, "{problem}");
    *script.lock() = checked("", 5);
    assert_eq!(fixture.sync(&Bytes::from_static(b"of another client")).await.unwrap().code, 5);
    // No block of this node has it, and its check refuses it: it may be in the mempool of another node at this address.
    let lost = Bytes::from_static(WAITING.as_bytes());
    *script.lock() = (502, "", String::new());
    assert_open(&fixture.sync(&lost).await.unwrap_err());
    *script.lock() = checked("", 89);
    for kind in [TypeSync, TypeCommit, TypeSync] {
        assert_open(&fixture.submit(&lost, kind).await.unwrap_err());
    }
    assert_eq!(fixture.status(&lost).await, Status::Unknown);
    // The reading of the mempool for that answer is used for 100 ms.
    sleep(Duration::from_millis(200)).await;
    *script.lock() = checked(WAITING, 89);
    assert_eq!(fixture.sync(&lost).await.unwrap(), already(&lost));
    assert_eq!(fixture.status(&lost).await, Status::Pending);
    // What a check has accepted may be in a block, of which a node without an index knows nothing.
    let checked_before = Bytes::from_static(b"accepted");
    *script.lock() = checked(NO_INDEX, 0);
    assert_eq!(fixture.sync(&checked_before).await.unwrap(), accepted(&checked_before));
    *script.lock() = checked(NO_INDEX, 51);
    sleep(DOUBTED_AFTER).await;
    assert_eq!(fixture.sync(&checked_before).await.unwrap(), accepted(&checked_before));
    assert_eq!(fixture.status(&checked_before).await, Status::Pending);
    // It may be in a mempool that cannot be read now.
    *script.lock() = (200, "unconfirmed_txs", String::new());
    let problem = fixture.read_transaction(&Bytes::from_static(b"new")).await.unwrap_err();
    assert_eq!(problem.number(), 90_001, "{problem}");
}

/// The development node is the first of the list; the second node is behind it.
#[tokio::test]
async fn a_node_that_is_behind_does_not_refuse_what_another_one_may_have() {
    let setup = Setup::new(NodeKind::Development).node(|setup| setup.check_delay(Duration::from_secs(2)));
    let mut fixture = Fixture::start(Setup { relays: 0, ..setup }).await;
    let behind = Script::new(Mutex::new(checked("", 89)));
    let second = serve(&behind).await;
    let urls = format!("{}, {second}", fixture.node.url());
    fixture.start_relay(&[("MESH_NODE_URL", urls)]).await;
    fixture.await_readiness(200).await;
    let (taken, lost) = (fixture.transaction("taken").await, fixture.transaction("lost").await);
    assert_eq!(fixture.sync(&taken).await.unwrap(), accepted(&taken));
    let doubted_at = Instant::now() + DOUBTED_AFTER;
    tokio::select! {
        reply = fixture.sync(&lost) => panic!("{reply:?}"),
        () = fixture.await_broadcasts(&lost, 1) => {}
    }
    fixture.node.kill().await;
    // The first repeat may join the submission that is in flight.
    for kind in [TypeSync, TypeSync, TypeCommit] {
        assert_open(&fixture.submit(&lost, kind).await.unwrap_err());
    }
    assert_eq!(fixture.status(&lost).await, Status::Unknown);
    sleep_until(doubted_at).await;
    assert_eq!(fixture.sync(&taken).await.unwrap(), accepted(&taken));
    assert_eq!(fixture.status(&taken).await, Status::Pending);
    // What no earlier submission left open is refused.
    let reply = fixture.sync(&Bytes::from_static(b"new")).await.unwrap();
    assert_eq!((reply.success, reply.code), (false, 89));
}
