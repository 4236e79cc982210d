//! Texts of other users are shown as text, with any markup and of any length.

use mesh_testbed::Database;
use mesh_tests::{ASSET, MARKET, ORACLE_SPEC, PARTY, WITHDRAWAL, fixture};
use serde_json::json;

use super::{Browser, ConsoleMesh, FITS};

const MARKUP: &str =
    "<script>document.title='broken'</script><img src=x onerror=\"document.title='broken'\">";
const RIGHT_TO_LEFT: &str =
    "\u{202e}evil\u{2066} \u{5e9}\u{5dc}\u{5d5}\u{5dd} \u{645}\u{631}\u{62d}\u{628}\u{627}";

async fn write_hostile_texts(database: &Database, long: &str) {
    let client = database.connect().await;
    let ledger = "INSERT INTO withdrawals (id, party_id, amount, asset, status, ref, foreign_tx_hash, \
        created_timestamp, withdrawn_timestamp, ext, tx_hash, block_time)
        SELECT id, party_id, amount, asset, status, $2, $3, created_timestamp, withdrawn_timestamp, ext, \
        tx_hash, block_time + interval '2 hours'
        FROM withdrawals WHERE id = $1 ORDER BY block_time DESC LIMIT 1";
    assert_eq!(client.execute(ledger, &[&WITHDRAWAL, &long, &MARKUP]).await.unwrap(), 1);
    let proposal = "INSERT INTO protocol_upgrade_proposals (upgrade_block_height, network_release_tag, \
        approvers, status, tx_hash, block_time)
        VALUES (300, $1, ARRAY[$2], 'PROTOCOL_UPGRADE_PROPOSAL_STATUS_PENDING', 'aa', '2023-06-20 10:00:01+00'),
               (301, $2, '{}', 'PROTOCOL_UPGRADE_PROPOSAL_STATUS_PENDING', 'aa', '2023-06-20 10:00:01+00')";
    assert_eq!(client.execute(proposal, &[&MARKUP, &RIGHT_TO_LEFT]).await.unwrap(), 2);
    let conditions = json!([{"operator": 1, "value": RIGHT_TO_LEFT}]);
    let filters = json!([{"key": {"name": MARKUP, "type": 2}, "conditions": conditions}]);
    let spec = "UPDATE oracle_specs SET filters = $2 WHERE id = $1 AND signers IS NOT NULL";
    client.execute(spec, &[&ORACLE_SPEC, &filters]).await.unwrap();
    let reward = "INSERT INTO rewards (party_id, asset_id, market_id, reward_type, epoch_id, amount, \
        percent_of_total, \"timestamp\", tx_hash, block_time, seq_num)
        VALUES (repeat('b1', 32), 'VOTE', '', $1, 9, 1, 100, '2023-06-20 10:00:01+00', 'aa', \
        '2023-06-20 10:00:01+00', 9)";
    client.execute(reward, &[&MARKUP]).await.unwrap();
    // Names: of a market, of what it is quoted in, and of an asset.
    let future = json!({"quoteName": long, "settlementAsset": ASSET});
    let instrument = json!({"instrument": {"code": MARKUP, "name": RIGHT_TO_LEFT, "future": future}});
    let market = "INSERT INTO markets (id, tx_hash, block_time, tradable_instrument, decimal_places, \
        trading_mode, state, market_timestamps, position_decimal_places)
        VALUES ($1, 'aa', '2023-06-20 10:00:02+00', $2, 2147483647, 'TRADING_MODE_CONTINUOUS', \
        'STATE_ACTIVE', '{}', -2147483648)";
    client.execute(market, &[&MARKET, &instrument]).await.unwrap();
    let asset = "INSERT INTO assets (id, name, symbol, decimals, quantum, source, erc20_contract, \
        lifetime_limit, withdraw_threshold, status, tx_hash, block_time)
        VALUES ($1, $2, $3, -1, 1, '', '', 0, 0, 'STATUS_ENABLED', 'aa', '2023-06-20 10:00:02+00')";
    client.execute(asset, &[&ASSET, &long, &format!("{RIGHT_TO_LEFT}{MARKUP}")]).await.unwrap();
}

#[tokio::test]
async fn markup_long_texts_and_other_directions_are_shown_as_text() {
    let Some(browser) = Browser::start().await else { return };
    let database = fixture::database().await;
    let long = "reference".repeat(1112)[..10_000].to_owned();
    write_hostile_texts(&database, &long).await;
    let console_mesh = ConsoleMesh::over_database(database).await;
    let page = browser.page(console_mesh.mesh_client.url(), 360, 900).await;
    // Names stand on one line without what turns or hides text; the lists show them whole.
    let code = format!("{}…", &MARKUP[..40]);
    let symbol = format!("{RIGHT_TO_LEFT}{MARKUP}").replace(['\u{202e}', '\u{2066}'], "");
    let symbol = format!("{}…", symbol.chars().take(40).collect::<String>());
    for (view, selector, text) in [
        (format!("explore/withdrawal/{WITHDRAWAL}"), "bdi", &*long),
        (format!("explore/withdrawal/{WITHDRAWAL}"), "bdi", MARKUP),
        ("explore/proposals".to_owned(), "td bdi", MARKUP),
        ("explore/proposals".to_owned(), "td bdi", RIGHT_TO_LEFT),
        (format!("explore/oracle-spec/{ORACLE_SPEC}"), "bdi", MARKUP),
        ("explore/rewards".to_owned(), "td bdi", MARKUP),
        (format!("explore/accounts?party={PARTY}"), "td[data-name=Market] bdi", &*code),
        ("explore/markets".to_owned(), "td[data-name=Name] bdi", RIGHT_TO_LEFT),
        ("explore/assets".to_owned(), "td[data-name=Name] bdi", &*long),
        ("explore/assets".to_owned(), "td[data-name=Quantum] .unit", &*symbol),
        (format!("markets?market={MARKET}&interval=block"), "h2 bdi", &*code),
    ] {
        page.open(&format!("#/{view}")).await;
        page.until_text(selector, text).await;
        page.picture(&format!("hostile-{}", view.split(['/', '?']).take(2).collect::<Vec<_>>().join("-")))
            .await;
        assert!(page.is(FITS).await, "{view} is wider than the screen");
    }
    // Also text from the page's address.
    page.open(&format!("#/explore/{MARKUP}")).await;
    page.open(&format!("#/explore/withdrawal/{}", "%3Cimg%20src=x%20onerror=alert(1)%3E")).await;
    page.until("document.querySelector('[role=alert]')").await;
    assert!(page.is("document.title !== 'broken' && !document.querySelector('main script, main img')").await);
    assert!(page.is(FITS).await, "it is wider than the screen");
    page.assert_quiet_but_for_failed_answers();
}
