//! Good transactions on their way into a block.

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use mesh_devnode::received;
use mesh_transaction::TxHash;
use serde_json::json;
use tokio::{
    io::AsyncWriteExt as _,
    net::TcpStream,
    time::{sleep, timeout},
};

use super::stage::{PATIENCE, Stage};

#[tokio::test]
async fn a_good_transaction_comes_into_the_next_block() {
    let stage = Stage::set().await;
    for (party, method) in [(1, "broadcast_tx_sync"), (2, "broadcast_tx_async")] {
        let tx = stage.transaction(party, "order");
        let hash = TxHash::of(&tx).to_string();
        let expected = json!({"code": 0, "data": "", "log": "", "codespace": "", "hash": hash});
        assert_eq!(stage.send(method, &tx).await, expected);
        assert_eq!(stage.height_of(&tx).await, None);
        let waiting = stage.call("unconfirmed_txs", json!({})).await["result"].clone();
        let encoded = STANDARD.encode(&tx);
        let bytes = tx.len().to_string();
        assert_eq!(waiting, json!({"n_txs": "1", "total": "1", "total_bytes": bytes, "txs": [encoded]}));

        let height = stage.blocks(1).await;
        let result = json!({
            "code": 0, "data": null, "log": "", "info": "", "gas_wanted": "0", "gas_used": "0", "events": [],
            "codespace": "",
        });
        let by_base64 = stage.call("tx", json!([STANDARD.encode(TxHash::of(&tx).bytes()), false])).await;
        let expected = json!({
            "hash": hash, "height": height.to_string(), "index": 0, "tx_result": result, "tx": encoded,
        });
        assert_eq!(by_base64["result"], expected);
        assert_eq!(stage.get(&format!("/tx?hash=0x{hash}")).await.1["result"], expected);
        let block = stage.call("block", json!({"height": height.to_string()})).await;
        assert_eq!(block["result"]["block"]["data"]["txs"], json!([encoded]));
        let waiting = stage.call("num_unconfirmed_txs", json!({})).await["result"].clone();
        assert_eq!(waiting, json!({"n_txs": "0", "total": "0", "total_bytes": "0", "txs": null}));
    }
}

#[tokio::test]
async fn a_commit_answers_with_the_block() {
    let stage = Stage::set().await;
    let tx = stage.transaction(1, "order");
    let made = async {
        while stage.node.chain().waiting(0).0 == 0 {
            sleep(Duration::from_millis(5)).await;
        }
        stage.blocks(1).await
    };
    let (result, height) = tokio::join!(stage.send("broadcast_tx_commit", &tx), made);
    assert_eq!(result["height"], json!(height.to_string()));
    assert_eq!(result["hash"], json!(TxHash::of(&tx).to_string()));
    assert_eq!((&result["check_tx"]["code"], &result["tx_result"]["code"]), (&json!(0), &json!(0)));
}

#[tokio::test]
async fn a_uri_takes_hex_and_quoted_text() {
    let stage = Stage::set().await;
    let tx = stage.transaction(1, "order");
    let (status, answer) = stage.get(&format!("/broadcast_tx_sync?tx=0x{}", hex::encode(&tx))).await;
    assert_eq!((status, &answer["id"], &answer["result"]["code"]), (200, &json!(-1), &json!(0)));
    let (status, answer) = stage.get("/check_tx?tx=%22text%22").await;
    assert_eq!((status, &answer["result"]["code"]), (200, &json!(60)));
}

#[tokio::test]
async fn a_transaction_whose_sender_goes_away_is_judged_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("broadcasts");
    let stage = Stage::with(|settings| {
        settings.check_delay = Duration::from_millis(200);
        settings.broadcasts = Some(record.clone());
    })
    .await;
    let tx = stage.transaction(1, "order");
    let target = format!("/broadcast_tx_sync?tx=0x{}", hex::encode(&tx));
    let mut stream = TcpStream::connect(stage.node.address()).await.unwrap();
    stream.write_all(format!("GET {target} HTTP/1.1\r\nhost: node\r\n\r\n").as_bytes()).await.unwrap();
    let seen = async {
        while received(&record).unwrap().is_empty() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, seen).await.unwrap();
    drop(stream);
    // While the check runs, the hash is in the cache.
    assert_eq!(stage.turned("broadcast_tx_sync", &tx).await, "tx already exists in cache");
    let kept = async {
        while stage.node.chain().waiting(0).0 == 0 {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, kept).await.unwrap();
}

#[tokio::test]
async fn every_broadcast_call_is_recorded_and_no_check() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("broadcasts");
    let stage = Stage::with(|settings| settings.broadcasts = Some(record.clone())).await;
    let (first, second) = (stage.transaction(1, "first"), stage.transaction(1, "second"));
    stage.send("broadcast_tx_sync", &first).await;
    stage.turned("broadcast_tx_async", &first).await;
    stage.turned("broadcast_tx_commit", &first).await;
    stage.send("broadcast_tx_sync", &second).await;
    stage.send("check_tx", &stage.transaction(2, "third")).await;
    let counts = received(&record).unwrap();
    assert_eq!(counts.len(), 2);
    assert_eq!((counts[&TxHash::of(&first)], counts[&TxHash::of(&second)]), (3, 1));
}
