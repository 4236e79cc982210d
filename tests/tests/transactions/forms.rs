//! The form of the answers (contract 4.2, 4.17, 5.3).

use std::time::Duration;

use mesh_devnode::Limits;
use mesh_testbed::{DevNode, NodeKind, on_both_nodes};
use mesh_tests::assert_problem;
use mesh_transaction::{ALGORITHM, Key, Puzzle, SearchControl, search};
use proto_msgs::v2::{ProofOfWork, Transaction, TxVersion, transaction::From as Sender};
use serde_json::json;
use tokio::time::interval;

use crate::transactions::{Environment, body, hash, raw};

on_both_nodes!(
    a_transaction_is_taken_refused_followed_and_found,
    a_full_mempool_is_429_and_a_stopped_node_503_with_retry_after,
    a_transaction_made_from_the_current_height_answer_is_accepted,
);

async fn a_transaction_is_taken_refused_followed_and_found(kind: NodeKind) {
    let environment =
        Environment::start_with(kind, DevNode::configure().every(Duration::from_millis(100))).await;
    let tx = environment.node.transaction(1, "order").await;
    let accepted =
        json!({"success": true, "txHash": hash(&tx), "code": 0, "data": "", "log": "", "height": "0"});
    let answer = environment.post("/transaction", &json!({"tx": body(&tx), "type": "TYPE_SYNC"})).await;
    assert_eq!((answer.status, answer.json()), (200, accepted.clone()));
    assert_eq!(environment.post("/transaction/raw", &json!({"tx": raw(&tx)})).await.json(), accepted);
    let committed =
        environment.post("/transaction", &json!({"tx": body(&tx), "type": "TYPE_COMMIT"})).await.json();
    let height = committed["height"].as_str().unwrap().to_owned();
    assert!(height.parse::<u64>().unwrap() > 1, "{committed}");
    for spelled in [hash(&tx), hash(&tx).to_lowercase()] {
        let fate = environment.get(&format!("/transaction/{spelled}")).await;
        let included =
            json!({"txHash": hash(&tx), "status": "INCLUDED", "height": height, "code": 0, "log": ""});
        assert_eq!((fate.status, fate.json()), (200, included));
    }
    let mut spam = environment.node.transaction(1, "spam").await;
    spam.pow = None;
    let refused = json!({
        "success": false, "txHash": "", "code": 89, "data": "proof of work is missing", "log": "", "height": "0",
    });
    let answer = environment.post("/transaction", &json!({"tx": body(&spam)})).await;
    assert_eq!((answer.status, answer.json()), (200, refused));
    let fate = environment.get(&format!("/transaction/{}", hash(&spam))).await.json();
    assert_eq!((&fate["status"], &fate["code"]), (&json!("REFUSED"), &json!(89)));
    let nobody = environment.get(&format!("/transaction/{}", "ab".repeat(32))).await.json();
    let unknown =
        json!({"txHash": "AB".repeat(32), "status": "UNKNOWN", "height": "0", "code": 0, "log": ""});
    assert_eq!(nobody, unknown);
    let answer = environment.get("/transaction/nothing").await;
    assert_problem(&answer, 400, 3, 10_015);
}

async fn a_full_mempool_is_429_and_a_stopped_node_503_with_retry_after(kind: NodeKind) {
    let limits = Limits { mempool_txs: 1, ..Limits::default() };
    let mut environment = Environment::start_with(kind, DevNode::configure().limits(limits)).await;
    let first = environment.node.transaction(1, "1").await;
    let second = environment.node.transaction(1, "2").await;
    assert_eq!(environment.post("/transaction", &json!({"tx": body(&first)})).await.status, 200);
    let answer = environment.post("/transaction", &json!({"tx": body(&second)})).await;
    assert_problem(&answer, 429, 8, 90_002);
    let height = environment.get("/blockchain/height").await;
    assert_eq!(height.status, 200, "{height:?}");
    environment.node.kill().await;
    // A keep-alive connection may break under the first request: then its result is unknown.
    let answer = environment.post("/transaction", &json!({"tx": body(&second)})).await;
    assert!([503, 504].contains(&answer.status), "{answer:?}");
    let answer = environment.post("/transaction", &json!({"tx": body(&second)})).await;
    assert_problem(&answer, 503, 14, 90_001);
}

async fn a_transaction_made_from_the_current_height_answer_is_accepted(kind: NodeKind) {
    let environment =
        Environment::start_with(kind, DevNode::configure().every(Duration::from_millis(100))).await;
    let (mut heights, key) = (std::collections::BTreeSet::new(), Key::from_seed(&[3; 32]));
    // No divisor of the block interval, so that each transaction is made at another time between two blocks.
    let mut pace = interval(Duration::from_millis(17));
    for turn in 0..60 {
        pace.tick().await;
        let head = environment.get("/blockchain/height").await.json();
        let text = |name: &str| head[name].as_str().unwrap().to_owned();
        let (tid, input) = (format!("turn {turn}"), turn.to_string());
        // The node's difficulty is 2; the answer shows another one, since the store has no parameters.
        let nonce = search(&Puzzle::new("", &text("hash"), &tid), 2, &SearchControl::default());
        let tx = Transaction {
            signature: key.sign(TxVersion::V3, &text("chainId"), input.as_bytes(), ALGORITHM),
            input_data: input.into(),
            version: TxVersion::V3.into(),
            from: Some(Sender::PubKey(key.public())),
            pow: nonce.map(|nonce| ProofOfWork { tid, nonce }),
        };
        let answer = environment.post("/transaction", &json!({"tx": body(&tx)})).await;
        assert_eq!((answer.status, &answer.json()["code"]), (200, &json!(0)), "{head} {answer:?}");
        heights.insert(text("height"));
    }
    assert!(heights.len() > 2, "{heights:?}");
}
