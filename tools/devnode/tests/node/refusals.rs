//! Transactions that are rejected before their check, refused by it, or fail in their block.

use bytes::Bytes;
use mesh_transaction::{SpamRules, encode};
use serde_json::json;

use super::fixture::{Fixture, inner_reason, reason};
use crate::transactions::{rules, signed};

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
            let checked = &result["check_tx"];
            assert_eq!((&checked["code"], inner_reason(checked)), (&json!(code), text.to_owned()));
            assert_eq!(fixture.send("broadcast_tx_async", &tx).await["code"], 0);
        }
        fixture.blocks(1).await;
        assert_eq!(fixture.height_of(&tx).await, None);
    }
}

#[tokio::test]
async fn a_check_has_no_consequence_and_a_broadcast_has() {
    let fixture = Fixture::with(SpamRules { tx_per_block: 1, ..rules() }, |_| {}).await;
    let [first, second, third] = ["1", "2", "3"].map(|input| fixture.transaction(2, input));
    assert_eq!(fixture.send("check_tx", &first).await["code"], 0);
    assert_eq!(fixture.send("broadcast_tx_sync", &first).await["code"], 0);
    for method in ["check_tx", "broadcast_tx_sync"] {
        assert_eq!(fixture.send(method, &second).await["code"], 89);
    }
    let result = fixture.send("broadcast_tx_sync", &third).await;
    assert!(reason(&result).contains("barred for 30 more seconds"), "{}", reason(&result));
}

#[tokio::test]
async fn a_transaction_can_fail_in_its_block() {
    // Work of 12 bits is not valid for another block by accident. It is on the oldest block of the window.
    let fixture = Fixture::with(SpamRules { difficulty: 12, ..rules() }, |_| {}).await;
    let tx = fixture.transaction(1, "old");
    fixture.blocks(4).await;
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
    let fixture = Fixture::with(rules(), |settings| {
        settings.limits.mempool_txs = 2;
        settings.limits.tx_bytes = 2000;
    })
    .await;
    let tx = fixture.transaction(1, "order");
    fixture.send("broadcast_tx_sync", &tx).await;
    assert_eq!(fixture.error_text("broadcast_tx_sync", &tx).await, "tx already exists in cache");
    assert_eq!(fixture.error_text("broadcast_tx_async", &tx).await, "tx already exists in cache");
    let committed = fixture.error_text("broadcast_tx_commit", &tx).await;
    assert_eq!(committed, "error on broadcastTxCommit: tx already exists in cache");
    let large = Bytes::from(vec![0; 2001]);
    let too_large = fixture.error_text("broadcast_tx_sync", &large).await;
    assert_eq!(too_large, "Tx too large. Max size is 2000, but got 2001");
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
