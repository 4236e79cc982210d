//! A height or a time in the header puts the whole page at that block: the views show the API's answers as of it,
//! without live updates, and the address has the height.

use serde_json::{Value, json};

use super::{MARKET, Page, SharedConsoleMesh, shared_page};

/// A block in the middle of the demo network.
const AT: &str = "atBlock=700";

const FIELD: &str = "Height or time, UTC";

/// The page of the market is that of the block.
async fn until_market(page: &Page, mesh: &SharedConsoleMesh) {
    let trades = mesh.json(&format!("/api/v2/trades?marketId={MARKET}&pagination.first=20&{AT}")).await;
    let trades = trades["trades"]["edges"].as_array().unwrap();
    let sizes: Vec<_> = trades.iter().map(|edge| edge["node"]["size"].clone()).collect();
    page.until_all_data("[data-trade] td:nth-child(3) [data-value]", "value", &sizes).await;
    page.until_data(".head .last [data-value]", "value", &trades[0]["node"]["price"]).await;
    let depth = mesh.json(&format!("/api/v2/market/{MARKET}/depth?maxDepth=12&{AT}")).await;
    let prices = depth["depth"]["buy"].as_array().unwrap().iter().map(|level| level["price"].clone());
    page.until_all_data(".bids td.price [data-value]", "value", &prices.collect::<Vec<_>>()).await;
}

#[tokio::test]
async fn a_height_or_a_time_puts_the_whole_page_at_a_block() {
    let Some((_browser, mesh, page)) = shared_page().await else { return };
    page.open(&format!("#/markets/{MARKET}")).await;
    page.press("Past").await;
    for (wrong, said) in [
        ("99999999", "the block is not stored yet (the newest block is "),
        ("2001-01-01 12:00", "before the first stored block (1, "),
        ("2901-01-01T12:00:00Z", "after the newest block ("),
        ("yesterday", "expected: a height, or a time"),
    ] {
        page.fill(FIELD, wrong).await;
        page.press("Show").await;
        let wrong = "document.querySelector('.past-form .wrong').textContent";
        page.until(&format!("{wrong}.startsWith({})", json!(said))).await;
    }
    page.fill(FIELD, "700").await;
    page.press("Show").await;
    until_market(&page, &mesh).await;
    page.until_data(".past", "block", "700").await;
    assert!(page.is(&format!("location.hash === '#/markets/{MARKET}?{AT}'")).await);
    assert!(page.is("!document.querySelector('.pulse')").await);
    // The time of the sign leads to the same block.
    let sign: String = page.eval("document.querySelector('.past .number').textContent").await;
    page.click(".past a").await;
    page.until(&format!("location.hash === '#/markets/{MARKET}' && !document.querySelector('.past')")).await;
    page.until_data(".pulse", "live", "live").await;
    page.press("Past").await;
    page.fill(FIELD, sign.split_once(", ").unwrap().1).await;
    page.press("Show").await;
    page.until_data(".past", "block", "700").await;
    until_market(&page, &mesh).await;
    page.assert_quiet_but_for_failed_answers();
}

#[tokio::test]
async fn a_link_to_the_past_keeps_its_block_in_all_views_and_reads_nothing_of_now() {
    let Some((_browser, mesh, page)) = shared_page().await else { return };
    let order = mesh.json(&format!("/api/v2/orders?liveOnly=true&pagination.first=1&{AT}")).await;
    let party = order["orders"]["edges"][0]["node"]["partyId"].as_str().unwrap().to_owned();
    let path = format!("/api/v2/party/{party}/portfolio");
    let portfolio = mesh.json(&format!("{path}?{AT}")).await["portfolio"].take();
    assert_ne!(portfolio, mesh.json(&path).await["portfolio"]);
    let values = |list: &str, member: &str| -> Vec<Value> {
        portfolio[list].as_array().unwrap().iter().map(|row| row[member].clone()).collect()
    };
    page.open(&format!("#/party/{party}?{AT}")).await;
    for (list, name, member) in
        [("accounts", "Balance", "balance"), ("positions", "Volume", "openVolume"), ("orders", "Id", "id")]
    {
        let selector = format!("table[data-list={list}] td[data-name={name}] [data-value]");
        page.until_all_data(&selector, "value", &values(list, member)).await;
    }
    page.click("nav a").await;
    page.until(&format!("location.hash === '#/markets?{AT}'")).await;
    page.click(&format!("tr[data-market='{MARKET}'] a")).await;
    until_market(&page, &mesh).await;
    let requests = page.events("Network.requestWillBeSent");
    let urls = requests.iter().map(|event| event["request"]["url"].as_str().unwrap());
    let reads: Vec<_> = urls.filter(|url| url.contains("/api/") || url.contains("/watch")).collect();
    let of_now: Vec<_> = reads.iter().filter(|url| !url.contains(AT) && !url.contains("/assets?")).collect();
    assert!(reads.len() > 10 && of_now.is_empty(), "{of_now:?} of {reads:?}");
    // A view without a past says so and is live.
    page.click("nav a[href^='#/status']").await;
    page.until_text(".past strong", "This view has no past and shows now").await;
    page.until_data(".pulse", "live", "live").await;
    page.assert_quiet();
}
