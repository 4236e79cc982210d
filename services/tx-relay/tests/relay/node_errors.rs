//! What clients get for each answer of a node or of a proxy in front of it: a transaction is called not taken only
//! where that is known.

use std::sync::Arc;

use mesh_problem::Code;
use mesh_testbed::NodeKind;
use mesh_transaction::TxHash;
use parking_lot::Mutex;
use proto_msgs::v2::{SubmissionType::*, get_transaction_reply::Status};
use rand::{Rng as _, SeedableRng as _, rngs::SmallRng};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use warp::{Filter as _, http::Response};

use crate::fixture::{Fixture, Setup};

/// An answer to broadcasts: the status, `Retry-After`, and the body. In place of `Retry-After` there may be the name of
/// another method, which gets no answer of a node, or [`NO_INDEX`].
type Script = Arc<Mutex<(u16, &'static str, String)>>;

/// The node keeps no index.
const NO_INDEX: &str = "no index";

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
            "status" => result(json!({"node_info": {"network": "c"}, "sync_info": {"catching_up": false}})),
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

/// The result of a check, and what other methods do.
fn checked(others: &'static str, code: u32) -> (u16, &'static str, String) {
    (200, others, json!({"result": {"code": code, "data": "", "log": "", "hash": ""}}).to_string())
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
    let tx = bytes::Bytes::from_static(b"refused");
    let hash = TxHash::of(&tx);
    let text = format!(
        "broadcast error on transaction validation: tx {hash} is invalid: code=5, data=, log='poor', codespace=''"
    );
    *script.lock() = (500, "", error(&text));
    let reply = fixture.sync(&tx).await.unwrap();
    assert_eq!((reply.success, reply.code, reply.log.as_str()), (false, 5, "poor"));
    assert_eq!(fixture.status(&tx).await, Status::Refused);
    let problem = fixture.sync(&bytes::Bytes::from_static(b"other")).await.unwrap_err();
    assert_eq!((problem.code, problem.number()), (Code::DeadlineExceeded, 90_001), "the text is of another");
}

/// What a node says of a repeat is no word on the submission before it.
#[tokio::test]
async fn a_repeat_of_what_may_have_arrived_stays_open() {
    let script = Script::new(Mutex::new((200, "", String::new())));
    let fixture = fixture(&script).await;
    let refusals = [
        (500, "", error("mempool is full: number of txs 1 (max: 1)")),
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
    let problem = fixture.sync(&bytes::Bytes::from_static(b"of another client")).await.unwrap_err();
    assert_eq!(problem.number(), 90_001, "{problem}");
    // A node without an index does not say whether a block has what it accepted.
    let accepted = bytes::Bytes::from_static(b"accepted");
    *script.lock() = checked(NO_INDEX, 0);
    assert!(fixture.sync(&accepted).await.unwrap().success);
    *script.lock() = checked(NO_INDEX, 51);
    let problem = fixture.submit(&accepted, TypeCommit).await.unwrap_err();
    assert_eq!(problem.number(), 90_001, "{problem}");
    assert_eq!(fixture.status(&accepted).await, Status::Pending);
    // It may be in a mempool that cannot be read now.
    *script.lock() = (200, "unconfirmed_txs", String::new());
    let problem = fixture.read_transaction(&bytes::Bytes::from_static(b"new")).await.unwrap_err();
    assert_eq!(problem.number(), 90_001, "{problem}");
}
