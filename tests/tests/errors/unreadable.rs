//! Stored values that have no form in an answer (contract 2.4): every list and single read shows the rest.

use mesh_testbed::Database;
use mesh_tests::{MeshClient, fixture, metric};
use serde_json::{Value, json};

/// Writers refuse some of these values; they are stored all the same.
const NO_CHECKS: &str = "DO $$ DECLARE found record; BEGIN
    FOR found IN SELECT conrelid::regclass AS holder, conname FROM pg_constraint
        WHERE contype = 'c' AND conname ~ '_(numbers|times)_check$'
    LOOP EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', found.holder, found.conname); END LOOP;
END $$";

/// Names that the contract does not know, each committed by itself.
const NEW_NAMES: [&str; 6] = [
    "oracle_spec_status", "withdrawal_status", "protocol_upgrade_proposal_status",
    "market_trading_mode_type", "asset_status", "position_status_type",
];

const VALUES: &str = include_str!("unreadable.sql");

const LISTS: [(&str, &str); 11] = [
    ("/api/v2/upgrade/proposals", "/protocolUpgradeProposals/edges"),
    ("/api/v2/rewards/epoch/summaries", "/summaries/edges"),
    ("/api/v2/delegations", "/delegations/edges"),
    ("/api/v2/markets", "/markets/edges"),
    ("/api/v2/assets", "/assets/edges"),
    ("/api/v2/trades", "/trades/edges"),
    ("/api/v2/positions", "/positions/edges"),
    ("/api/v2/orders", "/orders/edges"),
    ("/api/v2/deposits", "/deposits/edges"),
    ("/api/v2/withdrawals", "/withdrawals/edges"),
    ("/accounts", "/accounts"),
];

async fn get(mesh: &MeshClient, path: &str) -> Value {
    let answer = mesh.get(path).await;
    assert_eq!(answer.status, 200, "{path}: {answer:?}");
    answer.json()
}

async fn store_unreadable(database: &Database) {
    let client = database.connect().await;
    client.batch_execute(NO_CHECKS).await.unwrap();
    for kind in NEW_NAMES {
        client.batch_execute(&format!("ALTER TYPE {kind} ADD VALUE 'NEW'")).await.unwrap();
    }
    client.batch_execute(VALUES).await.unwrap_or_else(|error| panic!("{:?}", error.as_db_error()));
}

#[tokio::test]
async fn values_without_a_form_never_make_an_answer_fail() {
    let (database, mesh, mesh_client) =
        fixture::start(|setup| setup.env(mesh_tests::NO_CACHE.0, mesh_tests::NO_CACHE.1)).await;
    let candles = format!("/api/v2/candle?candleId=trades_candle_1_hour_{}", fixture::MARKET);
    let lists = || LISTS.iter().copied().chain([(candles.as_str(), "/candles/edges")]);
    let rows = async |path: &str, edges: &str| {
        get(&mesh_client, path).await.pointer(edges).unwrap().as_array().unwrap().clone()
    };
    let mut before = Vec::new();
    for (path, edges) in lists() {
        before.push(rows(path, edges).await.len());
    }
    store_unreadable(&database).await;
    for ((path, edges), before) in lists().zip(before) {
        let after = rows(path, edges).await;
        assert!(before > 0 && after.len() == before, "{path}: {before} rows, then {after:?}");
        for text in ["NaN", "Infinity", "NEW"] {
            assert!(!format!("{after:?}").contains(text), "{path}: {after:?}");
        }
    }
    let first = async |path: &str, edges: &str| rows(path, edges).await[0]["node"].clone();
    let proposal = first("/api/v2/upgrade/proposals", "/protocolUpgradeProposals/edges").await;
    assert_eq!(proposal["status"], "PROTOCOL_UPGRADE_PROPOSAL_STATUS_UNSPECIFIED");
    assert_eq!((&proposal["approvers"], &proposal["upgradeBlockHeight"]), (&json!(["a", "b"]), &json!("0")));
    let candle = first(&candles, "/candles/edges").await;
    assert_eq!((&candle["volume"], &candle["high"]), (&json!("18446744073709551615"), &json!("0")));
    let trade = first("/api/v2/trades", "/trades/edges").await;
    assert_eq!((&trade["type"], &trade["size"]), (&json!("TYPE_UNSPECIFIED"), &json!("0")));
    let position = first("/api/v2/positions", "/positions/edges").await;
    assert_eq!(position["realisedPnl"], "9".repeat(78), "a number that does not fit is the greatest one");
    assert_eq!(position["settled"]["realisedPnl"], "0");

    let spec = get(&mesh_client, &format!("/api/v2/oracle/spec/{}", fixture::ORACLE_SPEC)).await;
    let spec = spec.pointer("/oracleSpec/externalDataSourceSpec/spec").unwrap();
    assert_eq!(spec["status"], "STATUS_UNSPECIFIED");
    let unspecified = json!({ "operator": "OPERATOR_UNSPECIFIED", "value": "5" });
    let filter = json!({ "key": { "name": "p", "type": "TYPE_UNSPECIFIED" }, "conditions": [unspecified] });
    let oracle = json!({ "signers": [{ "pubKey": { "key": "ab" } }], "filters": [filter] });
    assert_eq!(spec["data"], json!({ "external": { "oracle": oracle } }));
    let withdrawal = get(&mesh_client, &format!("/api/v2/withdrawal/{}", fixture::WITHDRAWAL)).await;
    let withdrawal = &withdrawal["withdrawal"];
    assert_eq!((&withdrawal["status"], &withdrawal["amount"]), (&json!("STATUS_UNSPECIFIED"), &json!("0")));
    assert_eq!(withdrawal["ext"], json!({}));
    assert_eq!(get(&mesh_client, "/blockchain/height").await["spamPowDifficulty"], 15);
    let ledger = mesh_client.get(fixture::LEDGER).await;
    assert_eq!(ledger.status, 200, "{ledger:?}");
    let as_printed = ",NaN,NaN,TRANSFER_TYPE_NEW,";
    assert!(ledger.text().contains(as_printed), "as PostgreSQL prints it: {}", ledger.text());

    let counted = async |service| metric(&mesh, service, "mesh_rows_unreadable_total ").await;
    let found = counted("query").await;
    assert!(found > 20 && counted("export").await > 0, "{found}");
    for (path, _) in lists() {
        get(&mesh_client, path).await;
    }
    assert_eq!(counted("query").await, found, "each is counted once");
    let log = mesh.service("query").log();
    let lines = log.lines().filter(|line| line.contains("has no form") && line.contains("oracle_specs"));
    assert!(lines.clone().all(|line| line.contains(fixture::ORACLE_SPEC)), "{log}");
    assert!(lines.count() > 0, "{log}");
}
