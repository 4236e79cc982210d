//! The forms of calls: posted calls, URIs, and invalid calls.

use serde_json::json;

use super::fixture::Fixture;
use crate::transactions::rules;

#[tokio::test]
async fn status_names_the_newest_block_and_the_chain() {
    let fixture = Fixture::new().await;
    let newest = fixture.node.chain().newest().unwrap();
    let result = fixture.call("status", json!({})).await["result"].clone();
    assert_eq!(result["node_info"]["network"], "net-1");
    let sync = &result["sync_info"];
    assert_eq!(sync["latest_block_hash"], newest.hash.to_uppercase());
    assert_eq!((&sync["latest_block_height"], &sync["catching_up"]), (&json!("10"), &json!(false)));
    assert_eq!(sync["earliest_block_height"], "1");
    assert!(result["validator_info"]["voting_power"].is_string());
    let (status, by_uri) = fixture.get("/status").await;
    assert_eq!((status, &by_uri["id"], &by_uri["result"]), (200, &json!(-1), &result));
    assert_eq!(fixture.get("/health").await.1, json!({"jsonrpc": "2.0", "id": -1, "result": {}}));
}

#[tokio::test]
async fn a_block_is_shown_with_its_header_and_the_one_before() {
    let fixture = Fixture::new().await;
    let newest = fixture.call("block", json!({})).await["result"].clone();
    let header = &newest["block"]["header"];
    assert_eq!((&header["height"], &header["chain_id"]), (&json!("10"), &json!("net-1")));
    let before = fixture.call("block", json!({"height": 9})).await["result"].clone();
    assert_eq!(header["last_block_id"], before["block_id"]);
    for target in ["/block?height=9", "/block?height=%229%22"] {
        assert_eq!(fixture.get(target).await.1["result"], before, "{target}");
    }
    let first = fixture.call("block", json!({"height": "1"})).await["result"].clone();
    assert_eq!(first["block"]["header"]["last_block_id"]["hash"], "");
    for method in ["block", "block_results"] {
        let error_at = async |height: i64| {
            let (status, answer) = fixture.get(&format!("/{method}?height={height}")).await;
            assert_eq!(status, 500);
            answer["error"]["data"].as_str().unwrap().to_owned()
        };
        assert_eq!(error_at(0).await, "height must be greater than 0, but got 0");
        let above = "height 11 must be less than or equal to the current blockchain height 10";
        assert_eq!(error_at(11).await, above);
    }
    let results = fixture.get("/block_results?height=10").await.1["result"].clone();
    let expected = json!({
        "height": "10", "txs_results": null, "finalize_block_events": null, "validator_updates": null,
        "consensus_param_updates": null, "app_hash": "",
    });
    assert_eq!(results, expected);
}

#[tokio::test]
async fn an_unknown_transaction_is_an_error_in_a_good_answer_or_a_500_of_a_uri() {
    let fixture = Fixture::new().await;
    let hash = "AB".repeat(32);
    let expected =
        json!({"code": -32603, "message": "Internal error", "data": format!("tx ({hash}) not found")});
    let base64 = "q6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6s=";
    assert_eq!(fixture.call("tx", json!({"hash": base64})).await["error"], expected);
    let (status, answer) = fixture.get(&format!("/tx?hash=0x{hash}")).await;
    assert_eq!((status, &answer["error"]), (500, &expected));
    assert_eq!(fixture.get("/tx?hash=0xAB").await.1["error"]["data"], "tx (AB) not found");
}

#[tokio::test]
async fn invalid_calls_have_the_errors_of_a_consensus_node() {
    let fixture = Fixture::with(rules(), |settings| settings.limits.body_bytes = 1000).await;
    let large = " ".repeat(1001);
    for (body, status, code) in [("{", 500, -32700), (&large, 400, -32600)] {
        let (found, answer) = fixture.post(body).await;
        assert_eq!((found, &answer["error"]["code"]), (status, &json!(code)), "{answer}");
    }
    assert_eq!(fixture.call("nothing", json!({})).await["error"]["code"], -32601);
    for (method, wrong) in [("block", json!({"height": 1.5})), ("broadcast_tx_sync", json!({"tx": "a"}))] {
        assert_eq!(fixture.call(method, wrong).await["error"]["code"], -32602, "{method}");
    }
    for (target, status, code) in [("/nothing", 404, -32601), ("/broadcast_tx_sync?tx=0x6", 500, -32602)] {
        let (found, answer) = fixture.get(target).await;
        assert_eq!((found, &answer["error"]["code"]), (status, &json!(code)), "{target}");
    }
}
