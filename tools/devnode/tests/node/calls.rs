//! The forms of calls: posted calls, batches, URIs, and invalid calls.

use serde_json::{Value, json};

use super::fixture::Fixture;

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
    assert_eq!(fixture.get("/block?height=9").await.1["result"], before);
    let first = fixture.call("block", json!({"height": "1"})).await["result"].clone();
    assert_eq!(first["block"]["header"]["last_block_id"]["hash"], "");
    for method in ["block", "block_results"] {
        let error_at = async |height: i64| {
            let (status, answer) = fixture.get(&format!("/{method}?height={height}")).await;
            assert_eq!(status, 500);
            answer["error"]["data"].as_str().unwrap().to_owned()
        };
        assert_eq!(error_at(0).await, "height must be greater than 0, but got 0");
        assert_eq!(
            error_at(11).await,
            "height 11 must be less than or equal to the current blockchain height 10"
        );
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
async fn several_calls_at_once_are_answered_in_their_order_and_notifications_never() {
    let fixture = Fixture::new().await;
    let calls = json!([
        {"jsonrpc": "2.0", "id": "a", "method": "health"},
        {"jsonrpc": "2.0", "method": "health"},
        {"jsonrpc": "2.0", "id": 2, "method": "nothing", "params": []},
        {"jsonrpc": "2.0", "id": 3, "method": "block", "params": {"height": {}}},
    ]);
    let (status, body) = fixture.post(&calls.to_string()).await;
    let answers: Vec<Value> = serde_json::from_str(&body).unwrap();
    assert_eq!(status, 200);
    assert_eq!(answers[0], json!({"jsonrpc": "2.0", "id": "a", "result": {}}));
    assert_eq!(answers[1]["error"], json!({"code": -32601, "message": "Method not found"}));
    assert_eq!((&answers[2]["id"], &answers[2]["error"]["code"]), (&json!(3), &json!(-32602)));
    assert_eq!(answers.len(), 3);
    assert_eq!(fixture.post(r#"{"jsonrpc":"2.0","method":"health"}"#).await, (200, String::new()));
}

#[tokio::test]
async fn what_is_no_call_is_refused_in_the_usual_forms() {
    let fixture = Fixture::with(|settings| settings.limits.body_bytes = 1000).await;
    let (status, body) = fixture.post("{").await;
    let answer: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((status, &answer["error"]["code"]), (500, &json!(-32700)));
    assert!(answer.get("id").is_none());
    let (status, body) = fixture.post(&" ".repeat(1001)).await;
    assert_eq!(status, 400);
    assert!(body.contains("-32600") && body.contains("request body too large"), "{body}");
    let (status, body) =
        fixture.raw(b"GET /nothing HTTP/1.1\r\nhost: node\r\nconnection: close\r\n\r\n").await;
    assert_eq!((status, body.as_str()), (404, "404 page not found\n"));
    let (status, body) = fixture.raw(b"GET / HTTP/1.1\r\nhost: node\r\nconnection: close\r\n\r\n").await;
    assert!(status == 200 && body.contains("broadcast_tx_sync"), "{body}");
    let (status, answer) = fixture.get("/broadcast_tx_sync?tx=text").await;
    assert_eq!((status, &answer["error"]["code"]), (500, &json!(-32602)));
}
