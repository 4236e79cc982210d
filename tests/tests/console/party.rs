//! The page of a party: its lists are the API's, it is remembered, and its ledger is downloaded.

use serde_json::{Value, json};

use super::shared_page;

#[tokio::test]
async fn a_party_has_a_page_that_is_remembered_and_its_ledger() {
    let Some((_browser, console_mesh, page)) = shared_page().await else { return };
    let saves = json!({"source": "delete window.showSaveFilePicker"});
    page.call("Page.addScriptToEvaluateOnNewDocument", saves).await;
    page.open("#/explore/orders?liveOnly=true").await;
    page.click("td[data-name=Party] a").await;
    page.until("document.title.endsWith(' · Party · Tradewind')").await;
    let party = page.data("[data-party]", "party").await;
    let edges = |list: &Value, member: &str| -> Vec<Value> {
        list["edges"].as_array().unwrap().iter().map(|edge| edge["node"][member].clone()).collect()
    };
    let accounts = console_mesh.json(&format!("/accounts?party={party}")).await;
    let balances: Vec<_> =
        accounts["accounts"].as_array().unwrap().iter().map(|account| account["balance"].clone()).collect();
    let trades = console_mesh.json(&format!("/api/v2/trades?partyId={party}&pagination.first=20")).await;
    let positions = console_mesh.json(&format!("/api/v2/positions?partyId={party}")).await;
    let orders = console_mesh.json(&format!("/api/v2/orders?partyId={party}&liveOnly=true")).await;
    let deposits = console_mesh.json(&format!("/api/v2/deposits?partyId={party}&pagination.first=8")).await;
    for (list, name, expected) in [
        ("orders", "Id", edges(&orders["orders"], "id")),
        ("deposits", "Amount", edges(&deposits["deposits"], "amount")),
        ("accounts", "Balance", balances),
        ("trades", "Id", edges(&trades["trades"], "id")),
        ("positions", "Volume", edges(&positions["positions"], "openVolume")),
    ] {
        let selector = format!("table[data-list={list}] td[data-name={name}] [data-value]");
        page.until_all_data(&selector, "value", &expected).await;
    }

    page.press("Remember this party").await;
    page.open("").await;
    page.click("nav a[href^='#/party/']").await;
    page.until_data("[data-party]", "party", &party).await;
    page.press("Download").await;
    page.until_data(".transfer", "phase", "done").await;
    let asset = accounts["accounts"][0]["asset"].as_str().unwrap();
    let ledger = format!("/api/v2/ledgerentry/export?partyId={party}&assetId={asset}");
    let length = console_mesh.mesh_client.get(&ledger).await.body.len();
    page.until_data(".transfer", "received", length.to_string()).await;
    page.press("Forget this party").await;
    page.until("!document.querySelector(\"nav a[href^='#/party/']\")").await;
    page.assert_quiet();
}
