//! The operations that read one thing: withdrawals, oracle specs, limits, height, upgrade status.

use mesh_oracles::Question;
use mesh_tests::fixture::UNKNOWN_ID;
use serde_json::json;

use crate::recorded_network::{
    check::Check,
    recording::{Recording, with_recording},
};

/// Compares the answer to a path with that of the oracle.
async fn compare(recording: &Recording, check: &mut Check<'_>, path: &str) {
    let expected = recording.oracle.answer(&Question::read(path).unwrap()).await.unwrap();
    check.same(path, &expected.unwrap_or_else(|| panic!("{path} has no answer")), 1).await;
}

#[test]
fn every_withdrawal_and_every_oracle_spec_is_shown_in_its_latest_version() {
    with_recording(async |recording| {
        for (operation, table, path, number) in [
            ("GetWithdrawal", "withdrawals", "/api/v2/withdrawal", 150_001),
            ("GetOracleSpec", "oracle_specs", "/api/v2/oracle/spec", 190_001),
        ] {
            let mut check = Check::new(recording, operation);
            let ids = format!("SELECT DISTINCT id FROM {table}");
            for row in recording.oracle.client().query(&ids, &[]).await.unwrap() {
                let id: String = row.get(0);
                compare(recording, &mut check, &format!("{path}/{id}")).await;
                compare(recording, &mut check, &format!("{path}/{}", id.to_uppercase())).await;
            }
            check.refused(&format!("{path}/{UNKNOWN_ID}"), 404, 5, number).await;
            check.done();
        }
    });
}

#[test]
fn every_answer_about_one_thing_is_what_its_oracle_computes() {
    with_recording(async |recording| {
        for (operation, targets) in [
            (
                "GetOrder",
                "SELECT DISTINCT '/api/v2/order/' || id FROM orders
                 UNION SELECT '/api/v2/order/' || id || '?version=' || version FROM orders",
            ),
            ("GetMarketDepth", "SELECT DISTINCT '/api/v2/market/' || id || '/depth?maxDepth=2' FROM markets"),
            ("GetMarketDepth", "SELECT DISTINCT '/api/v2/market/' || id || '/depth' FROM markets"),
            ("GetPortfolio", "SELECT DISTINCT '/api/v2/party/' || party_id || '/portfolio' FROM accounts"),
            ("GetNetworkLimits", "SELECT '/api/v2/network/limits'"),
            ("LastBlockHeight", "SELECT '/blockchain/height'"),
        ] {
            let names_head = operation != "LastBlockHeight";
            let check = if names_head { Check::new } else { Check::without_head };
            let mut check = check(recording, operation);
            for row in recording.oracle.client().query(targets, &[]).await.unwrap() {
                compare(recording, &mut check, row.get(0)).await;
            }
            check.done();
        }
        let mut check = Check::new(recording, "GetOrder");
        check.refused(&format!("/api/v2/order/{UNKNOWN_ID}"), 404, 5, 20001).await;
        check.done();
    });
}

#[test]
fn no_upgrade_was_recorded_so_none_is_ready() {
    with_recording(async |recording| {
        let mut check = Check::without_head(recording, "GetProtocolUpgradeStatus");
        check.same("/api/v2/upgrade/status", &json!({"ready": false}), 1).await;
        check.done();
    });
}
