//! Valid transactions from their broadcast to their block.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use mesh_devnode::received;
use mesh_transaction::TxHash;
use serde_json::json;

use super::fixture::Fixture;
use crate::transactions::rules;

#[tokio::test]
async fn a_good_transaction_comes_into_the_next_block() {
    let fixture = Fixture::new().await;
    for (party, method) in [(1, "broadcast_tx_sync"), (2, "broadcast_tx_async")] {
        let tx = fixture.transaction(party, "order");
        let hash = TxHash::of(&tx).to_string();
        let expected = json!({"code": 0, "data": "", "log": "", "codespace": "", "hash": hash});
        assert_eq!(fixture.send(method, &tx).await, expected);
        assert_eq!(fixture.height_of(&tx).await, None);
        let waiting = fixture.call("unconfirmed_txs", json!({})).await["result"].clone();
        let encoded = STANDARD.encode(&tx);
        let bytes = tx.len().to_string();
        assert_eq!(waiting, json!({"n_txs": "1", "total": "1", "total_bytes": bytes, "txs": [encoded]}));

        let height = fixture.blocks(1).await;
        let result = json!({
            "code": 0, "data": null, "log": "", "info": "", "gas_wanted": "0", "gas_used": "0", "events": [],
            "codespace": "",
        });
        let by_base64 = fixture.call("tx", json!({"hash": STANDARD.encode(TxHash::of(&tx).bytes())})).await;
        let expected = json!({
            "hash": hash, "height": height.to_string(), "index": 0, "tx_result": result, "tx": encoded,
        });
        assert_eq!(by_base64["result"], expected);
        assert_eq!(fixture.get(&format!("/tx?hash=0x{hash}")).await.1["result"], expected);
        let block = fixture.call("block", json!({"height": height.to_string()})).await;
        assert_eq!(block["result"]["block"]["data"]["txs"], json!([encoded]));
        let waiting = fixture.call("num_unconfirmed_txs", json!({})).await["result"].clone();
        assert_eq!(waiting, json!({"n_txs": "0", "total": "0", "total_bytes": "0", "txs": null}));
    }
}

#[tokio::test]
async fn every_broadcast_call_is_recorded_and_no_check() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("broadcasts");
    let fixture = Fixture::with(rules(), |settings| settings.broadcasts = Some(record.clone())).await;
    let (first, second) = (fixture.transaction(1, "first"), fixture.transaction(1, "second"));
    fixture.send("broadcast_tx_sync", &first).await;
    fixture.error_text("broadcast_tx_async", &first).await;
    fixture.error_text("broadcast_tx_commit", &first).await;
    fixture.send("broadcast_tx_sync", &second).await;
    fixture.send("check_tx", &fixture.transaction(2, "third")).await;
    let counts = received(&record).unwrap();
    assert_eq!(counts.len(), 2);
    assert_eq!((counts[&TxHash::of(&first)], counts[&TxHash::of(&second)]), (3, 1));
}
