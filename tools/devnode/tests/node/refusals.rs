//! Transactions that are refused by their check, turned away before it, or fail in their block.

use std::time::Duration;

use bytes::Bytes;
use mesh_devnode::Checks;
use mesh_transaction::{Block, Puzzle, SearchControl, SpamRules, encode, search};
use proto_msgs::v2::ProofOfWork;
use serde_json::json;
use tokio::time::sleep;

use super::stage::{Stage, inner_reason, reason, rules, signed};

#[tokio::test]
async fn a_refused_transaction_has_a_code_and_a_reason_and_may_come_again() {
    let stage = Stage::set().await;
    let mut unsigned = signed(1, "order", None);
    unsigned.signature = None;
    let text = Bytes::from_static(b"no transaction");
    let without_work = Bytes::from(encode(&signed(1, "order", None)));
    let cases = [
        (text, 60, "transaction could not be decoded"),
        (Bytes::from(encode(&unsigned)), 51, "signature is missing"),
        (without_work, 89, "proof of work is missing"),
    ];
    for (tx, code, said) in cases {
        for _ in 0..2 {
            let result = stage.send("broadcast_tx_sync", &tx).await;
            assert_eq!((&result["code"], &result["log"]), (&json!(code), &json!("")), "{result}");
            assert_eq!(reason(&result), said);
            let result = stage.send("check_tx", &tx).await;
            assert_eq!((&result["code"], inner_reason(&result)), (&json!(code), said.to_owned()));
            let result = stage.send("broadcast_tx_commit", &tx).await;
            assert_eq!((&result["height"], &result["tx_result"]["code"]), (&json!("0"), &json!(0)));
            assert_eq!(
                (&result["check_tx"]["code"], inner_reason(&result["check_tx"])),
                (&json!(code), said.to_owned())
            );
            assert_eq!(stage.send("broadcast_tx_async", &tx).await["code"], 0);
        }
        stage.blocks(1).await;
        assert_eq!(stage.height_of(&tx).await, None);
    }
}

#[tokio::test]
async fn refused_transactions_stay_in_the_cache_of_a_node_that_keeps_them() {
    let stage = Stage::with(|settings| settings.limits.keep_refused = true).await;
    let tx = Bytes::from_static(b"no transaction");
    assert_eq!(stage.send("broadcast_tx_sync", &tx).await["code"], 60);
    assert_eq!(stage.turned("broadcast_tx_sync", &tx).await, "tx already exists in cache");
}

#[tokio::test]
async fn a_tid_is_used_once_and_a_quota_bars() {
    let stage = Stage::set().await;
    let tx = stage.transaction(1, "order");
    assert_eq!(stage.send("broadcast_tx_sync", &tx).await["code"], 0);
    // Another command with the same work.
    let pow = ProofOfWork { tid: "tid of 1 order".into(), nonce: 0 };
    let again = Bytes::from(encode(&signed(1, "another", Some(pow))));
    let result = stage.send("broadcast_tx_sync", &again).await;
    assert_eq!((&result["code"], reason(&result)), (&json!(89), "proof of work tid already used".to_owned()));

    let one = SpamRules { tx_per_block: 1, ..rules() };
    let newest = stage.node.chain().newest().unwrap();
    let block = Block { height: newest.height + 1, hash: "c".repeat(64), time: newest.time };
    stage.node.chain().commit(block, one).await.unwrap();
    let [first, second, third] = ["1", "2", "3"].map(|input| stage.transaction(2, input));
    assert_eq!(stage.send("broadcast_tx_sync", &first).await["code"], 0);
    // A check has no consequence, a broadcast has.
    for method in ["check_tx", "broadcast_tx_sync"] {
        assert_eq!(stage.send(method, &second).await["code"], 89);
    }
    let result = stage.send("broadcast_tx_sync", &third).await;
    assert!(reason(&result).contains("barred for 30 more seconds"), "{}", reason(&result));
}

/// Makes blocks 11 to 15, on which work takes 12 bits: no accident makes it good for another one. Gives a
/// transaction with work on block 11, the oldest that counts.
async fn with_oldest_work(stage: &Stage) -> Bytes {
    let chain = stage.node.chain();
    let hard = SpamRules { difficulty: 12, ..rules() };
    for height in 11..=15_u64 {
        let time = chain.newest().unwrap().time;
        chain.commit(Block { height, hash: format!("{height:064x}"), time }, hard).await.unwrap();
    }
    let puzzle = Puzzle::new("", &format!("{:064x}", 11), "old");
    let nonce = search(&puzzle, 12, &SearchControl::default()).unwrap();
    Bytes::from(encode(&signed(1, "old", Some(ProofOfWork { tid: "old".into(), nonce }))))
}

#[tokio::test]
async fn work_on_a_block_that_left_the_window_is_refused() {
    let stage = Stage::set().await;
    let tx = with_oldest_work(&stage).await;
    assert_eq!(stage.send("check_tx", &tx).await["code"], 0);
    stage.blocks(1).await;
    let result = stage.send("broadcast_tx_sync", &tx).await;
    assert_eq!((&result["code"], reason(&result).contains("last 5 blocks")), (&json!(89), true));
}

#[tokio::test]
async fn a_transaction_can_fail_in_its_block() {
    let stage = Stage::set().await;
    let tx = with_oldest_work(&stage).await;
    let made = async {
        while stage.node.chain().waiting(0).0 == 0 {
            sleep(Duration::from_millis(5)).await;
        }
        stage.blocks(1).await
    };
    let (result, height) = tokio::join!(stage.send("broadcast_tx_commit", &tx), made);
    assert_eq!(result["check_tx"]["code"], 0);
    assert_eq!(result["tx_result"]["code"], 89);
    assert_eq!(result["height"], json!(height.to_string()));
    assert_eq!(stage.height_of(&tx).await, Some(height));
    // It failed, so it is no replay; its work is too old now.
    let result = stage.send("broadcast_tx_sync", &tx).await;
    assert_eq!((&result["code"], reason(&result).contains("last 5 blocks")), (&json!(89), true));
}

#[tokio::test]
async fn what_is_seen_too_large_or_too_much_is_turned_away_with_comets_words() {
    let stage = Stage::with(|settings| {
        settings.limits.mempool_txs = 2;
        settings.limits.tx_bytes = 2000;
    })
    .await;
    let tx = stage.transaction(1, "order");
    stage.send("broadcast_tx_sync", &tx).await;
    assert_eq!(stage.turned("broadcast_tx_sync", &tx).await, "tx already exists in cache");
    assert_eq!(stage.turned("broadcast_tx_async", &tx).await, "tx already exists in cache");
    assert_eq!(
        stage.turned("broadcast_tx_commit", &tx).await,
        "error on broadcastTxCommit: tx already exists in cache"
    );
    let large = Bytes::from(vec![0; 2001]);
    assert_eq!(
        stage.turned("broadcast_tx_sync", &large).await,
        "Tx too large. Max size is 2000, but got 2001"
    );
    stage.send("broadcast_tx_sync", &stage.transaction(2, "order")).await;
    let third = stage.transaction(3, "order");
    let full = stage.turned("broadcast_tx_sync", &third).await;
    assert!(full.starts_with("mempool is full: number of txs 2 (max: 2), total txs bytes "), "{full}");
    // What was turned away left no trace.
    stage.blocks(1).await;
    assert_eq!(stage.send("broadcast_tx_sync", &third).await["code"], 0);
    // What is in a block is still in the cache.
    assert_eq!(stage.turned("broadcast_tx_sync", &tx).await, "tx already exists in cache");
}

#[tokio::test]
async fn a_node_that_catches_up_takes_nothing() {
    let stage = Stage::set().await;
    let tx = stage.transaction(1, "order");
    stage.node.chain().catch_up(true);
    let status = stage.call("status", json!({})).await;
    assert_eq!(status["result"]["sync_info"]["catching_up"], true);
    for method in ["broadcast_tx_async", "broadcast_tx_sync", "broadcast_tx_commit"] {
        assert_eq!(stage.turned(method, &tx).await, "endpoint is closed while node is catching up");
    }
    stage.node.chain().catch_up(false);
    assert_eq!(stage.send("broadcast_tx_sync", &tx).await["code"], 0);
}

#[tokio::test]
async fn a_commit_that_waits_in_vain_says_so_and_the_transaction_stays() {
    let stage = Stage::with(|settings| settings.limits.commit_wait = Duration::from_millis(50)).await;
    let tx = stage.transaction(1, "order");
    assert_eq!(
        stage.turned("broadcast_tx_commit", &tx).await,
        "timed out waiting for tx to be included in a block"
    );
    let height = stage.blocks(1).await;
    assert_eq!(stage.height_of(&tx).await, Some(height));
}

#[tokio::test]
async fn only_so_many_commits_wait() {
    let stage = Stage::with(|settings| settings.limits.commits = 0).await;
    let said = stage.turned("broadcast_tx_commit", &stage.transaction(1, "order")).await;
    assert_eq!(said, "max_subscription_clients 0 reached");
}

#[tokio::test]
async fn without_checks_whatever_decodes_is_taken() {
    let stage = Stage::with(|settings| settings.checks = Checks::None).await;
    let tx = Bytes::from(encode(&signed(1, "order", None)));
    assert_eq!(stage.send("broadcast_tx_sync", &tx).await["code"], 0);
    assert_eq!(stage.send("broadcast_tx_sync", &Bytes::from_static(b"text")).await["code"], 60);
    let height = stage.blocks(1).await;
    assert_eq!(stage.height_of(&tx).await, Some(height));
}
