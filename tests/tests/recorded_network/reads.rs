//! The operations that read one thing: withdrawals, oracle specs, orders, books, limits, height, upgrade status.

use mesh_oracles::Question;
use mesh_tests::UNKNOWN_ID;
use serde_json::json;

use crate::recorded_network::{Check, with_recording};

#[test]
fn every_answer_about_one_thing_is_what_its_oracle_computes() {
    with_recording(async |recording| {
        // The last column: a path whose ids are refused with this number, when they are unknown.
        for (operation, targets, refused) in [
            (
                "GetWithdrawal",
                "SELECT DISTINCT '/api/v2/withdrawal/' || unnest(ARRAY[id, upper(id)]) FROM withdrawals",
                Some(("/api/v2/withdrawal", 150_001)),
            ),
            (
                "GetOracleSpec",
                "SELECT DISTINCT '/api/v2/oracle/spec/' || unnest(ARRAY[id, upper(id)]) FROM oracle_specs",
                Some(("/api/v2/oracle/spec", 190_001)),
            ),
            (
                "GetOrder",
                "SELECT DISTINCT '/api/v2/order/' || id FROM orders
                 UNION SELECT '/api/v2/order/' || id || '?version=' || version FROM orders",
                Some(("/api/v2/order", 20_001)),
            ),
            (
                "GetMarketDepth",
                "SELECT DISTINCT '/api/v2/market/' || id || '/depth' || unnest(ARRAY['', '?maxDepth=2']) FROM markets",
                None,
            ),
            (
                "GetPortfolio",
                "SELECT DISTINCT '/api/v2/party/' || party_id || '/portfolio' FROM accounts",
                None,
            ),
            ("GetNetworkLimits", "SELECT '/api/v2/network/limits'", None),
            ("LastBlockHeight", "SELECT '/blockchain/height'", None),
        ] {
            let names_head = operation != "LastBlockHeight";
            let check = if names_head { Check::new } else { Check::without_head };
            let mut check = check(recording, operation);
            for row in recording.oracle.client().query(targets, &[]).await.unwrap() {
                let path: &str = row.get(0);
                let expected = recording.oracle.answer(&Question::read(path).unwrap()).await.unwrap();
                check.same(path, &expected.unwrap_or_else(|| panic!("{path} has no answer")), 1).await;
            }
            if let Some((path, number)) = refused {
                check.refused(&format!("{path}/{UNKNOWN_ID}"), 404, 5, number).await;
            }
            check.done();
        }
        // No upgrade was recorded, so none is ready.
        let mut check = Check::without_head(recording, "GetProtocolUpgradeStatus");
        check.same("/api/v2/upgrade/status", &json!({"ready": false}), 1).await;
        check.done();
    });
}
