//! What the answers look like (contract 4.2, 4.17, 5.3).

use std::time::Duration;

use mesh_devnode::Limits;
use mesh_testbed::DevNode;
use mesh_tests::problem::assert_problem;
use serde_json::json;

use crate::{Stage, body, hash, raw};

#[tokio::test]
async fn a_transaction_is_taken_refused_followed_and_found() {
    let stage = Stage::set(DevNode::configure().every(Duration::from_millis(100))).await;
    let tx = stage.node.transaction(1, "order");
    let accepted =
        json!({"success": true, "txHash": hash(&tx), "code": 0, "data": "", "log": "", "height": "0"});
    let answer = stage.post("/transaction", &json!({"tx": body(&tx), "type": "TYPE_SYNC"})).await;
    assert_eq!((answer.status, answer.json()), (200, accepted.clone()));
    assert_eq!(stage.post("/transaction/raw", &json!({"tx": raw(&tx)})).await.json(), accepted);
    let committed = stage.post("/transaction", &json!({"tx": body(&tx), "type": "TYPE_COMMIT"})).await.json();
    let height = committed["height"].as_str().unwrap().to_owned();
    assert!(height.parse::<u64>().unwrap() > 1, "{committed}");
    for spelled in [hash(&tx), hash(&tx).to_lowercase()] {
        let fate = stage.get(&format!("/transaction/{spelled}")).await;
        let included =
            json!({"txHash": hash(&tx), "status": "INCLUDED", "height": height, "code": 0, "log": ""});
        assert_eq!((fate.status, fate.json()), (200, included));
    }
    let mut spam = stage.node.transaction(1, "spam");
    spam.pow = None;
    let refused = json!({
        "success": false, "txHash": "", "code": 89, "data": "proof of work is missing", "log": "", "height": "0",
    });
    let answer = stage.post("/transaction", &json!({"tx": body(&spam)})).await;
    assert_eq!((answer.status, answer.json()), (200, refused));
    let fate = stage.get(&format!("/transaction/{}", hash(&spam))).await.json();
    assert_eq!((&fate["status"], &fate["code"]), (&json!("REFUSED"), &json!(89)));
    let nobody = stage.get(&format!("/transaction/{}", "ab".repeat(32))).await.json();
    let unknown =
        json!({"txHash": "AB".repeat(32), "status": "UNKNOWN", "height": "0", "code": 0, "log": ""});
    assert_eq!(nobody, unknown);
    let answer = stage.get("/transaction/nothing").await;
    assert_problem(&answer, 400, 3, 10_015);
}

#[tokio::test]
async fn a_check_submits_nothing() {
    let stage = Stage::set(DevNode::configure()).await;
    let tx = stage.node.transaction(1, "order");
    let fine = json!({
        "success": true, "code": 0, "gasWanted": "0", "gasUsed": "0", "data": "", "log": "", "info": "",
    });
    assert_eq!(stage.post("/transaction/check", &json!({"tx": body(&tx)})).await.json(), fine);
    assert_eq!(stage.post("/transaction/raw/check", &json!({"tx": raw(&tx)})).await.json(), fine);
    let nonsense = stage.post("/transaction/raw/check", &json!({"tx": "//8="})).await.json();
    assert_eq!((&nonsense["success"], &nonsense["code"]), (&json!(false), &json!(60)));
    assert!(stage.node.received().is_empty());
}

#[tokio::test]
async fn a_full_mempool_is_429_and_a_node_that_is_away_503_with_a_time_to_come_back() {
    let limits = Limits { mempool_txs: 1, ..Limits::default() };
    let mut stage = Stage::set(DevNode::configure().limits(limits)).await;
    let [first, second] = ["1", "2"].map(|text| stage.node.transaction(1, text));
    assert_eq!(stage.post("/transaction", &json!({"tx": body(&first)})).await.status, 200);
    let answer = stage.post("/transaction", &json!({"tx": body(&second)})).await;
    assert_problem(&answer, 429, 8, 90_002);
    let height = stage.get("/blockchain/height").await;
    assert_eq!(height.status, 200, "{height:?}");
    stage.node.kill().await;
    // A kept connection may close under the first one: then the fate is unknown.
    let answer = stage.post("/transaction", &json!({"tx": body(&second)})).await;
    assert!([503, 504].contains(&answer.status), "{answer:?}");
    let answer = stage.post("/transaction", &json!({"tx": body(&second)})).await;
    assert_problem(&answer, 503, 14, 90_001);
}

#[tokio::test]
async fn the_height_is_the_nodes() {
    let stage = Stage::set(DevNode::configure()).await;
    let newest = stage.node.chain().newest().unwrap();
    let answer = stage.get("/blockchain/height").await;
    let expected = json!({
        "height": newest.height.to_string(), "hash": newest.hash, "spamPowHashFunction": "sha3_24_rounds",
        "spamPowDifficulty": 15, "spamPowNumberOfPastBlocks": 100, "spamPowNumberOfTxPerBlock": 2,
        "spamPowIncreasingDifficulty": false, "chainId": "test-net",
    });
    assert_eq!((answer.status, answer.json()), (200, expected));
}
