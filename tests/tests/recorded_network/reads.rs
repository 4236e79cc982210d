//! The operations that read one thing: withdrawals, oracle specs, orders, books, limits, height, upgrade status.

use mesh_oracles::Question;
use mesh_tests::UNKNOWN_ID;
use serde_json::json;

use crate::recorded_network::{Check, with_recording};

#[test]
fn every_answer_about_one_thing_is_what_its_oracle_computes() {
    with_recording(async |recording| {
        // The last column: a path whose unknown ids are not found, with this number.
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
            let check = Check { recording, names_head: operation != "LastBlockHeight" };
            for row in recording.oracle.client().query(targets, &[]).await.unwrap() {
                let path: &str = row.get(0);
                let expected = recording.oracle.answer(&Question::read(path).unwrap()).await.unwrap();
                check.same(path, &expected.unwrap_or_else(|| panic!("{path} has no answer"))).await;
            }
            if let Some((path, number)) = refused {
                check.not_found(&format!("{path}/{UNKNOWN_ID}"), number).await;
            }
        }
        // No upgrade was recorded, so none is ready.
        let check = Check { recording, names_head: false };
        check.same("/api/v2/upgrade/status", &json!({"ready": false})).await;
    });
}
