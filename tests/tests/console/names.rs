//! Names and scaled figures in a browser: markets and assets are shown by their names, figures by their
//! decimals; what is copied is raw. The functions themselves are tested in `services/edge/console/test`.

use mesh_tests::{MARKET, PARTY, fixture};
use serde_json::json;

use super::{Browser, ConsoleMesh, Page};

/// 27 digits, of which a float holds 16.
const BIG: &str = "123456789012345678901234567";

/// A market without decimals, which counts tens.
const TENS_MARKET: &str = "a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2";

/// Waits until a column shows these texts.
async fn until_shown(page: &Page, name: &str, expected: &[&str]) {
    let cells = format!("[...document.querySelectorAll('td[data-name={}]')]", json!(name));
    let texts = format!(
        "{cells}.map(cell => cell.innerText.trim().replaceAll('\\u202f', '').replaceAll(/[\\n\\u00a0]/g, ' '))"
    );
    page.until_json(&texts, expected).await;
}

/// The text that gets into the clipboard when this part of the page is copied.
async fn copied(page: &Page, range: &str) -> String {
    page.eval(&format!("({})(range => {{ {range}; }})", include_str!("copied.js"))).await
}

#[tokio::test]
async fn figures_are_scaled_exactly_and_raw_on_request_and_copied_raw() {
    let Some(browser) = Browser::start().await else { return };
    let database = fixture::database().await;
    database.connect().await.batch_execute(include_str!("names.sql")).await.unwrap();
    let console_mesh = ConsoleMesh::over_database(database).await;
    let page = browser.page(console_mesh.mesh_client.url(), 1280, 900).await;
    // Names and decimals come as soon as they can be read; ids and raw figures are shown until then.
    let blocked = json!({"urls": ["*api/v2/markets*", "*api/v2/assets*"]});
    page.call("Network.setBlockedURLs", blocked).await;
    page.open("#/explore/trades").await;
    let raw_sizes = ["12", "10", "10", "12", "10"];
    until_shown(&page, "Market", &[&["a2a2a2a2…a2a2a2"][..], &["a1a1a1a1…a1a1a1"; 4]].concat()).await;
    until_shown(&page, "Size", &raw_sizes).await;
    page.call("Network.setBlockedURLs", json!({"urls": []})).await;
    // Prices keep the decimals of their market; sizes of one that counts tens are multiplied.
    until_shown(&page, "Market", &[&["ÜBER/\"X\""][..], &["BTC/USD"; 4]].concat()).await;
    until_shown(&page, "Price", &["7 X", "0.01010 USD", "0.00990 USD", "0.01050 USD", "0.01000 USD"]).await;
    let sizes = ["120", "0.010", "0.010", "0.012", "0.010"];
    until_shown(&page, "Size", &sizes).await;
    page.picture("names-trades").await;

    // A part of a figure or a name, a whole row, and what is neither.
    let price = "document.querySelectorAll('td[data-name=Price] .number')[1].firstChild";
    let part = format!("range.setStart({price}, 1); range.setEnd({price}, 4)");
    assert_eq!(copied(&page, &part).await, "1010");
    let name = "document.querySelectorAll('td[data-name=Market] bdi')[1]";
    assert_eq!(copied(&page, &format!("range.selectNodeContents({name})")).await, MARKET);
    let row = copied(&page, "range.selectNode(document.querySelectorAll('tbody tr')[0])").await;
    let cells: Vec<_> = row.trim().split('\t').map(str::trim).collect();
    assert_eq!((cells[1], cells[3]), (TENS_MARKET, "12"), "{row}");
    let about = "range.selectNodeContents(document.querySelector('main p.dim'))";
    assert_eq!(copied(&page, about).await, "as selected: All trades, the newest first.");

    // Raw is remembered, and shows the API's figures without a unit.
    page.press("Raw").await;
    until_shown(&page, "Size", &raw_sizes).await;
    assert!(page.is("document.querySelector('button.raw').getAttribute('aria-pressed') === 'true'").await);
    page.open(&format!("#/explore/accounts?party={}", "b7".repeat(32))).await;
    until_shown(&page, "Balance", &[BIG, BIG]).await;
    assert!(page.is("!document.querySelector('.unit')").await);
    page.press("Raw").await;
    until_shown(&page, "Balance", &["123456789012345678901.234567 tUSD", BIG]).await;
    page.open(&format!("#/explore/positions?partyId={PARTY}")).await;
    until_shown(&page, "Settled volume", &["0", "-9223372036854775.807"]).await;
    until_shown(&page, "Realised", &["7 VOTE", "-0.000001 tUSD"]).await;

    page.open(&format!("#/markets?market={MARKET}&interval=block")).await;
    page.until_text("h2 bdi", "BTC/USD").await;
    let figures = "document.querySelector('.figures').innerText.replaceAll('\\u202f', '').split(/\\s+/)\
        .slice(3).join(' ')";
    let scaled = "open 0.01010 USD high 0.01010 USD low 0.01010 USD close 0.01010 USD volume 0.010";
    page.until(&format!("{figures} === '{scaled}'")).await;
    page.open("#/markets/no%20such%20market").await;
    page.until_text(".wrong", "No market found").await;
    page.assert_quiet_but_for_failed_answers();
}
