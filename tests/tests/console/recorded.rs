//! The same views on a recorded run of a real test network; skipped without the recording.

use mesh_store::load::load_folder;
use mesh_testbed::Database;
use serde_json::{Value, json};

use crate::console::{
    browser::Browser,
    console_mesh::ConsoleMesh,
    explore::{POSITIONS, TRADES, walk},
};

#[tokio::test]
async fn every_view_shows_the_recorded_network() {
    let Some(folder) = mesh_tests::recording() else { return };
    let Some(browser) = Browser::start().await else { return };
    let database = Database::fresh().await;
    load_folder(database.url(), &folder, |_, _, _| ()).await.unwrap();
    let console_mesh = ConsoleMesh::over_database(database).await;
    let page = browser.page(console_mesh.mesh_client.url(), 1280, 900).await;
    page.open("#/status").await;
    page.until("document.querySelectorAll('[data-taking=true]').length === 4 && document.querySelector('[data-chain]')").await;
    page.picture("recorded-status").await;
    let delegations = [("Epoch", "epochSeq"), ("Party", "party"), ("Amount", "amount")];
    walk(&console_mesh, &page, "delegations", "/api/v2/delegations", "delegations", &delegations).await;
    let rewards = [("Epoch", "epoch"), ("Asset", "assetId"), ("Amount", "amount")];
    walk(&console_mesh, &page, "rewards", "/api/v2/rewards/epoch/summaries", "summaries", &rewards).await;
    walk(&console_mesh, &page, "trades", "/api/v2/trades", "trades", &TRADES).await;
    page.picture("recorded-trades").await;
    walk(&console_mesh, &page, "positions", "/api/v2/positions", "positions", &POSITIONS).await;
    // All markets have the same code, so that their ids stand beside it; a price of 976 is 97600000 with the 5
    // decimals of the market.
    let code = "CRYPTO:MESH CORE SYS TEST";
    page.until(&format!("[...document.querySelectorAll('td[data-name=Market] .name')].every(of => of.querySelector('bdi').textContent === '{code}' && of.querySelector('.id'))")).await;
    page.until_text("td[data-name='Average entry price'] .number", "976.00000").await;
    page.picture("recorded-positions").await;
    // A market with many trades is in the list.
    let client = console_mesh.database.connect().await;
    let trade = "SELECT market_id FROM trades GROUP BY 1 ORDER BY count(*) DESC LIMIT 1";
    let market: String = client.query_one(trade, &[]).await.unwrap().get(0);
    page.open("#/markets").await;
    page.until(&format!(
        "[...document.querySelectorAll('tr[data-market]')].some(row => row.dataset.market === '{market}')"
    ))
    .await;
    page.open(&format!("#/markets?market={market}&interval=1_minute")).await;
    let path = format!("/api/v2/candle?candleId=trades_candle_1_minute_{market}&pagination.first=1");
    let newest: Value = console_mesh.json(&path).await["candles"]["edges"][0]["node"].clone();
    page.until_data(".figures", "candle", &newest["start"]).await;
    let close = page.data(".figures [data-name=close] [data-value]", "value").await;
    assert_eq!(json!(close), newest["close"]);
    page.picture("recorded-markets").await;
    console_mesh.mesh_client.until_first_segment().await;
    page.open("#/export").await;
    page.until("document.querySelector('[data-digest]').dataset.digest.length === 8").await;
    page.picture("recorded-export").await;
    page.assert_quiet();
}
