//! *Markets*: candles are the API's, older ones are loaded on the way back, and the newest one is updated.

use serde_json::{Value, json};

use crate::console::{
    browser::Browser,
    console_mesh::{ConsoleMesh, MARKET},
};

fn nodes(reply: &Value) -> Vec<Value> {
    reply["candles"]["edges"].as_array().unwrap().iter().map(|edge| edge["node"].clone()).collect()
}

#[tokio::test]
async fn candles_are_shown_loaded_backwards_and_updated() {
    let Some(browser) = Browser::start().await else { return };
    let console_mesh = ConsoleMesh::demo().await;
    let page = browser.page(console_mesh.mesh_client.url(), 1280, 900).await;
    let candles = |interval: &str, more: &str| {
        format!("/api/v2/candle?candleId=trades_candle_{interval}_{MARKET}{more}")
    };
    page.open(&format!("#/markets?market={MARKET}&interval=block")).await;
    let newest = nodes(&console_mesh.json(&candles("block", "&pagination.first=1")).await).remove(0);
    page.until_data(".told", "told", &newest["start"]).await;
    for member in ["open", "high", "low", "close", "volume"] {
        let shown = page.data(&format!(".told [data-name={member}] [data-value]"), "value").await;
        assert_eq!(json!(shown), newest[member], "{member}");
    }
    page.picture("markets-candles").await;
    // Backwards by the keyboard, page by page, until all candles are loaded.
    let all = nodes(&console_mesh.json(&candles("block", "&pagination.first=5000")).await);
    assert!(all.len() > 300, "{} candles are too few for several pages", all.len());
    page.eval::<Value>("void document.querySelector('.candles').focus()").await;
    let count = "Number(document.querySelector('.candles').dataset.count)";
    let mut presses = 0;
    while !page.is(&format!("{count} === {}", all.len())).await {
        page.key("PageUp", false).await;
        presses += 1;
        assert!(presses < 500, "the chart has {} candles of {}", page.eval::<f64>(count).await, all.len());
    }
    page.key("Home", false).await;
    page.until_data(".candles", "from", &all.last().unwrap()["start"]).await;
    // Each interval has a link of its own.
    page.press("1 h").await;
    let hour = nodes(&console_mesh.json(&candles("1_hour", "&pagination.first=1")).await).remove(0);
    page.until_data(".told", "told", &hour["start"]).await;
    assert!(page.is("location.hash.includes('interval=1_hour')").await);
    // After one more trade the last candle changes, or a new one appears.
    let client = console_mesh.database.connect().await;
    let trade = "INSERT INTO trades (synthetic_time, tx_hash, block_time, seq_num, id, market_id, price, size, buyer, seller, buy_order, sell_order, type)
        SELECT synthetic_time + interval '1 microsecond', tx_hash, block_time, seq_num + 1, 'fe', market_id, price, 4242, buyer, seller, buy_order, sell_order, type
        FROM trades WHERE market_id = $1 ORDER BY synthetic_time DESC LIMIT 1";
    assert_eq!(client.execute(trade, &[&MARKET]).await.unwrap(), 1);
    let volume = hour["volume"].as_str().unwrap().parse::<u64>().unwrap() + 4242;
    page.until_data(".told [data-name=volume] [data-value]", "value", volume.to_string()).await;
    page.assert_quiet();
}
