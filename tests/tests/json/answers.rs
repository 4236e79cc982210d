//! The form of answers: J1 and J7. The cases pin the whole JSON of each operation (J2 to J10), and `openapi`
//! compares names, types and presence with the document.

use mesh_tests::{MARKET, MeshClient, cases};
use serde_json::json;

#[tokio::test]
async fn j1_bodies_are_json_and_no_header_is_a_reason_to_refuse() {
    let mesh = MeshClient::fixture().await;
    for (_, path) in cases::answered() {
        for (name, value) in [
            ("accept", "text/html"),
            ("accept", "application/xml, */*;q=0"),
            ("accept", ""),
            ("traceparent", "00-00000000000000000000000000000000-0000000000000000-00"),
            ("traceparent", "nonsense"),
        ] {
            let answer = mesh.get_with(&path, name, value).await;
            assert_eq!(answer.status, 200, "{path}, {name}: {value}");
            assert_eq!(answer.header("content-type"), Some("application/json"), "{path}");
            answer.json();
        }
    }
    for kind in ["text/plain", "application/x-www-form-urlencoded", "nonsense"] {
        let answer = mesh.post_with("/transaction", &[("content-type", kind)], "{}").await;
        assert_eq!(answer.status, 503, "{kind}");
    }
}

#[tokio::test]
async fn j7_empty_lists_are_there_and_null_is_nowhere() {
    let mesh = MeshClient::empty().await;
    let page = json!({"edges": [], "pageInfo":
        {"startCursor": "", "endCursor": "", "hasNextPage": false, "hasPreviousPage": false}});
    for (path, body) in [
        ("/accounts".to_owned(), json!({"accounts": []})),
        ("/api/v2/upgrade/proposals".to_owned(), json!({ "protocolUpgradeProposals": page })),
        (format!("/api/v2/candle?candleId=trades_candle_1_day_{MARKET}"), json!({ "candles": page })),
        ("/api/v2/rewards/epoch/summaries".to_owned(), json!({ "summaries": page })),
        ("/api/v2/delegations".to_owned(), json!({ "delegations": page })),
        ("/api/v2/upgrade/status".to_owned(), json!({"ready": false})),
    ] {
        let answer = mesh.get(&path).await;
        assert_eq!((answer.status, answer.json()), (200, body), "{path}");
        for name in ["x-block-height", "x-block-timestamp", "etag"] {
            assert_eq!(answer.header(name), None, "J13, without a block: {path}, {name}");
        }
    }
}
