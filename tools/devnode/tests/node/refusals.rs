//! Transactions that are rejected before their check, refused by it, or fail in their block.

use std::time::Duration;

use bytes::Bytes;
use mesh_devnode::Checks;
use mesh_transaction::{SpamRules, encode};
use proto_msgs::v2::ProofOfWork;
use serde_json::json;

use super::fixture::{Fixture, inner_reason, reason, rules, signed};

#[tokio::test]
async fn a_refused_transaction_has_a_code_and_a_reason_and_may_come_again() {
    let fixture = Fixture::new().await;
    let mut unsigned = signed(1, "order", None);
    unsigned.signature = None;
    let text = Bytes::from_static(b"no transaction");
    let without_work = Bytes::from(encode(&signed(1, "order", None)));
    let cases = [
        (text, 60, "transaction could not be decoded"),
        (Bytes::from(encode(&unsigned)), 51, "signature is missing"),
        (without_work, 89, "proof of work is missing"),
    ];
    for (tx, code, text) in cases {
        for _ in 0..2 {
            let result = fixture.send("broadcast_tx_sync", &tx).await;
            assert_eq!((&result["code"], &result["log"]), (&json!(code), &json!("")), "{result}");
            assert_eq!(reason(&result), text);
            let result = fixture.send("check_tx", &tx).await;
            assert_eq!((&result["code"], inner_reason(&result)), (&json!(code), text.to_owned()));
            let result = fixture.send("broadcast_tx_commit", &tx).await;
            assert_eq!((&result["height"], &result["tx_result"]["code"]), (&json!("0"), &json!(0)));
            assert_eq!(
                (&result["check_tx"]["code"], inner_reason(&result["check_tx"])),
                (&json!(code), text.to_owned())
            );
            assert_eq!(fixture.send("broadcast_tx_async", &tx).await["code"], 0);
        }
        fixture.blocks(1).await;
        assert_eq!(fixture.height_of(&tx).await, None);
    }
}

#[tokio::test]
async fn refused_transactions_stay_in_the_cache_of_a_node_that_keeps_them() {
    let fixture = Fixture::with(|settings| settings.limits.keep_refused = true).await;
    let tx = Bytes::from_static(b"no transaction");
    assert_eq!(fixture.send("broadcast_tx_sync", &tx).await["code"], 60);
    assert_eq!(fixture.error_text("broadcast_tx_sync", &tx).await, "tx already exists in cache");
}

#[tokio::test]
async fn a_tid_is_used_once_and_a_quota_bars() {
    let fixture = Fixture::new().await;
    let tx = fixture.transaction(1, "order");
    assert_eq!(fixture.send("broadcast_tx_sync", &tx).await["code"], 0);
    // Another command with the same work.
    let pow = ProofOfWork { tid: "tid of 1 order".into(), nonce: 0 };
    let again = Bytes::from(encode(&signed(1, "another", Some(pow))));
    let result = fixture.send("broadcast_tx_sync", &again).await;
    assert_eq!((&result["code"], reason(&result)), (&json!(89), "proof of work tid already used".to_owned()));

    let fixture = Fixture::under(SpamRules { tx_per_block: 1, ..rules() }).await;
    let [first, second, third] = ["1", "2", "3"].map(|input| fixture.transaction(2, input));
    assert_eq!(fixture.send("broadcast_tx_sync", &first).await["code"], 0);
    // A check has no consequence, a broadcast has.
    for method in ["check_tx", "broadcast_tx_sync"] {
        assert_eq!(fixture.send(method, &second).await["code"], 89);
    }
    let result = fixture.send("broadcast_tx_sync", &third).await;
    assert!(reason(&result).contains("barred for 30 more seconds"), "{}", reason(&result));
}

/// A node with a difficulty of 12 bits, so that work is not valid for another block by accident, and a transaction
/// with work on the oldest block of the window.
async fn with_oldest_work() -> (Fixture, Bytes) {
    let fixture = Fixture::under(SpamRules { difficulty: 12, ..rules() }).await;
    let tx = fixture.transaction(1, "old");
    fixture.blocks(4).await;
    (fixture, tx)
}

#[tokio::test]
async fn work_on_a_block_that_left_the_window_is_refused() {
    let (fixture, tx) = with_oldest_work().await;
    assert_eq!(fixture.send("check_tx", &tx).await["code"], 0);
    fixture.blocks(1).await;
    let result = fixture.send("broadcast_tx_sync", &tx).await;
    assert_eq!((&result["code"], reason(&result).contains("last 5 blocks")), (&json!(89), true));
}

#[tokio::test]
async fn a_transaction_can_fail_in_its_block() {
    let (fixture, tx) = with_oldest_work().await;
    let making = async {
        fixture.until_waiting().await;
        fixture.blocks(1).await
    };
    let (result, height) = tokio::join!(fixture.send("broadcast_tx_commit", &tx), making);
    assert_eq!(result["check_tx"]["code"], 0);
    assert_eq!(result["tx_result"]["code"], 89);
    assert_eq!(result["height"], json!(height.to_string()));
    assert_eq!(fixture.height_of(&tx).await, Some(height));
    // It failed, so it is no replay; its work is too old now.
    let result = fixture.send("broadcast_tx_sync", &tx).await;
    assert_eq!((&result["code"], reason(&result).contains("last 5 blocks")), (&json!(89), true));
}

#[tokio::test]
async fn rejections_before_the_check_have_cometbfts_texts() {
    let fixture = Fixture::with(|settings| {
        settings.limits.mempool_txs = 2;
        settings.limits.tx_bytes = 2000;
    })
    .await;
    let tx = fixture.transaction(1, "order");
    fixture.send("broadcast_tx_sync", &tx).await;
    assert_eq!(fixture.error_text("broadcast_tx_sync", &tx).await, "tx already exists in cache");
    assert_eq!(fixture.error_text("broadcast_tx_async", &tx).await, "tx already exists in cache");
    assert_eq!(
        fixture.error_text("broadcast_tx_commit", &tx).await,
        "error on broadcastTxCommit: tx already exists in cache"
    );
    let large = Bytes::from(vec![0; 2001]);
    assert_eq!(
        fixture.error_text("broadcast_tx_sync", &large).await,
        "Tx too large. Max size is 2000, but got 2001"
    );
    fixture.send("broadcast_tx_sync", &fixture.transaction(2, "order")).await;
    let third = fixture.transaction(3, "order");
    let full = fixture.error_text("broadcast_tx_sync", &third).await;
    assert!(full.starts_with("mempool is full: number of txs 2 (max: 2), total txs bytes "), "{full}");
    // A rejected transaction changes nothing.
    fixture.blocks(1).await;
    assert_eq!(fixture.send("broadcast_tx_sync", &third).await["code"], 0);
    // A transaction in a block is still in the cache.
    assert_eq!(fixture.error_text("broadcast_tx_sync", &tx).await, "tx already exists in cache");
}

#[tokio::test]
async fn a_node_that_catches_up_takes_nothing() {
    let fixture = Fixture::new().await;
    let tx = fixture.transaction(1, "order");
    fixture.node.chain().catch_up(true);
    let status = fixture.call("status", json!({})).await;
    assert_eq!(status["result"]["sync_info"]["catching_up"], true);
    for method in ["broadcast_tx_async", "broadcast_tx_sync", "broadcast_tx_commit"] {
        assert_eq!(fixture.error_text(method, &tx).await, "endpoint is closed while node is catching up");
    }
    fixture.node.chain().catch_up(false);
    assert_eq!(fixture.send("broadcast_tx_sync", &tx).await["code"], 0);
}

#[tokio::test]
async fn a_commit_that_waits_in_vain_says_so_and_the_transaction_stays() {
    let fixture = Fixture::with(|settings| settings.limits.commit_wait = Duration::from_millis(50)).await;
    let tx = fixture.transaction(1, "order");
    assert_eq!(
        fixture.error_text("broadcast_tx_commit", &tx).await,
        "timed out waiting for tx to be included in a block"
    );
    let height = fixture.blocks(1).await;
    assert_eq!(fixture.height_of(&tx).await, Some(height));
}

#[tokio::test]
async fn only_so_many_commits_wait() {
    let fixture = Fixture::with(|settings| settings.limits.commits = 0).await;
    let text = fixture.error_text("broadcast_tx_commit", &fixture.transaction(1, "order")).await;
    assert_eq!(text, "max_subscription_clients 0 reached");
}

#[tokio::test]
async fn without_checks_every_transaction_that_decodes_is_accepted() {
    let fixture = Fixture::with(|settings| settings.checks = Checks::None).await;
    let tx = Bytes::from(encode(&signed(1, "order", None)));
    assert_eq!(fixture.send("broadcast_tx_sync", &tx).await["code"], 0);
    assert_eq!(fixture.send("broadcast_tx_sync", &Bytes::from_static(b"text")).await["code"], 60);
    let height = fixture.blocks(1).await;
    assert_eq!(fixture.height_of(&tx).await, Some(height));
}
