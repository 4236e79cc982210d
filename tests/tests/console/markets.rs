//! *Markets*: the list is sorted by turnover and searched; candles are the API's, older ones are loaded on the way
//! back, and the newest one is updated; so are the order book and the live orders of the remembered party.

use serde_json::{Value, json};

use super::{MARKET, demo_page, shared_page, write_block};

fn nodes(reply: &Value) -> Vec<Value> {
    reply["candles"]["edges"].as_array().unwrap().iter().map(|edge| edge["node"].clone()).collect()
}

#[tokio::test]
async fn candles_are_shown_loaded_backwards_and_updated() {
    let Some((_browser, console_mesh, page)) = demo_page().await else { return };
    let candles = |interval: &str, more: &str| {
        format!("/api/v2/candle?candleId=trades_candle_{interval}_{MARKET}{more}")
    };
    page.open(&format!("#/markets?market={MARKET}&interval=block")).await;
    let newest = nodes(&console_mesh.json(&candles("block", "&pagination.first=1")).await).remove(0);
    page.until_data(".figures", "candle", &newest["start"]).await;
    for member in ["open", "high", "low", "close", "volume"] {
        let shown = page.data(&format!(".figures [data-name={member}] [data-value]"), "value").await;
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
    page.until_data(".figures", "candle", &hour["start"]).await;
    assert!(page.is("location.hash.includes('interval=1_hour')").await);
    // After one more trade the last candle changes, or a new one appears.
    let client = console_mesh.database.connect().await;
    let trade = "INSERT INTO trades (synthetic_time, tx_hash, block_time, seq_num, id, market_id, price, \
        size, buyer, seller, buy_order, sell_order, type)
        SELECT synthetic_time + interval '1 microsecond', tx_hash, block_time, seq_num + 1, 'fe', market_id, \
        price, 4242, buyer, seller, buy_order, sell_order, type
        FROM trades WHERE market_id = $1 ORDER BY synthetic_time DESC LIMIT 1";
    assert_eq!(client.execute(trade, &[&MARKET]).await.unwrap(), 1);
    let volume = hour["volume"].as_str().unwrap().parse::<u64>().unwrap() + 4242;
    page.until_data(".figures [data-name=volume] [data-value]", "value", volume.to_string()).await;
    page.assert_quiet();
}

/// The codes of the listed markets.
const LISTED: &str =
    "[...document.querySelectorAll('tr[data-market] .name bdi')].map(name => name.textContent)";

#[tokio::test]
async fn markets_come_first_sorted_by_turnover_and_enter_opens_the_first_match() {
    let Some((_browser, console_mesh, page)) = shared_page().await else { return };
    page.open("").await;
    page.until("document.querySelectorAll('.trend').length >= 5").await;
    let markets = console_mesh.json("/api/v2/markets").await["markets"]["edges"].clone();
    let markets: Vec<Value> = markets.as_array().unwrap().iter().map(|edge| edge["node"].clone()).collect();
    let state = |code: &String| {
        let market = markets.iter().find(|market| market["code"] == json!(code)).unwrap();
        market["state"].as_str().unwrap().to_owned()
    };
    let listed: Vec<String> = page.eval(LISTED).await;
    assert_eq!(listed.len(), markets.len());
    let ended =
        ["STATE_SETTLED", "STATE_CLOSED", "STATE_REJECTED", "STATE_CANCELLED", "STATE_TRADING_TERMINATED"];
    let are_ended: Vec<_> = listed.iter().map(|code| ended.contains(&state(code).as_str())).collect();
    assert!(are_ended.is_sorted() && are_ended.contains(&true), "{listed:?}");
    // Figures of the first market: its newest trade, and the volume of its candles.
    let id = page.data("tr[data-market]", "market").await;
    let path = format!("/api/v2/candle?candleId=trades_candle_15_minutes_{id}&pagination.first=97");
    let day = nodes(&console_mesh.json(&path).await);
    let volume: u64 =
        day.iter().map(|candle| candle["volume"].as_str().unwrap().parse::<u64>().unwrap()).sum();
    let cell = |name: &str| format!("tr[data-market='{id}'] [data-name={name}] [data-value]");
    page.until_data(&cell("Last"), "value", &day[0]["close"]).await;
    page.until_data(&cell("Volume"), "value", volume.to_string()).await;
    // A market that never traded has no prices.
    let rejected =
        "[...document.querySelectorAll('tr[data-market]')].find(row => row.innerText.includes('Rejected'))";
    page.until(&format!("{rejected}.querySelector('[data-name=Last]').textContent === '–'")).await;

    page.fill("Find a market", "eur").await;
    page.until("document.querySelectorAll('tr[data-market]').length >= 2").await;
    let first: String = page.data("tr.active", "market").await;
    page.eval::<Value>("void document.querySelector('main input').focus()").await;
    page.key("Enter", false).await;
    page.until(&format!("location.hash === '#/markets/{first}'")).await;
    // The page of the market: its name, its figures and its newest trades.
    page.until(
        "document.title === `${document.querySelector('.head h2 bdi').textContent} · Markets · Tradewind`",
    )
    .await;
    let trades = console_mesh.json(&format!("/api/v2/trades?marketId={first}&pagination.first=20")).await;
    let trades = trades["trades"]["edges"].as_array().unwrap().clone();
    page.until_data("[data-trade]", "trade", &trades[0]["node"]["id"]).await;
    page.until_data(".head .last [data-value]", "value", &trades[0]["node"]["price"]).await;
    let shown: usize = page.eval("document.querySelectorAll('[data-trade]').length").await;
    assert_eq!(shown, trades.len());
    page.open("#/nothing").await;
    page.until_text(".empty", "Page not found. Show all markets").await;
    page.click(".empty a").await;
    page.until("document.title.startsWith('Markets')").await;
    page.assert_quiet();
}

/// The levels of one side of the order book, from the best price.
fn levels(side: &str) -> String {
    let value = "cell => cell.querySelector('[data-value]').dataset.value";
    format!(
        "[...document.querySelectorAll('table[data-list={side}] tbody tr')].map(row => [
            ...['.price', '.volume'].map(cell => ({value})(row.querySelector(cell))), \
            Number(row.querySelector('.orders').textContent)])"
    )
}

#[tokio::test]
async fn the_order_book_and_the_orders_of_my_party_are_live() {
    let Some((_browser, console_mesh, page)) = demo_page().await else { return };
    let depth = format!("/api/v2/market/{MARKET}/depth?maxDepth=12");
    let depth = console_mesh.json(&depth).await["depth"].take();
    let best = |side: &str| depth[side][0]["price"].as_str().unwrap().parse::<i64>().unwrap();
    let live = format!("/api/v2/orders?marketId={MARKET}&liveOnly=true");
    let live = console_mesh.json(&live).await["orders"]["edges"].take();
    let live = live.as_array().unwrap().iter().map(|edge| &edge["node"]);
    let order =
        live.clone().find(|order| order["side"] == "SIDE_BUY" && order["price"] == depth["buy"][0]["price"]);
    let order = order.unwrap();
    let party = order["partyId"].as_str().unwrap();
    let of_party: Vec<_> =
        live.filter(|order| order["partyId"] == party).map(|order| order["id"].clone()).collect();

    page.open(&format!("#/party/{party}")).await;
    page.press("Remember this party").await;
    page.open(&format!("#/markets/{MARKET}")).await;
    for (side, table) in [("buy", "bids"), ("sell", "offers")] {
        let expected = depth[side].as_array().unwrap().iter();
        let expected: Vec<_> =
            expected.map(|level| json!([level["price"], level["volume"], level["orders"]])).collect();
        assert!(!expected.is_empty(), "{side}");
        page.until_json(&levels(table), expected).await;
    }
    let spread = (best("sell") - best("buy")).to_string();
    page.until_data("[data-best=spread] [data-value]", "value", spread).await;
    page.until_all_data("table[data-list=orders] td[data-name=Id] [data-value]", "value", &of_party).await;

    // A block in which more of that order remains.
    let client = console_mesh.database.connect().await;
    let id = order["id"].as_str().unwrap();
    let newer = format!(
        "INSERT INTO orders SELECT (jsonb_populate_record(newest, jsonb_build_object(
                'remaining', newest.remaining + 4242, 'block_time', (SELECT max(block_time) FROM blocks)))).*
            FROM orders AS newest WHERE id = '{id}'
            ORDER BY newest.block_time DESC, newest.seq_num DESC LIMIT 1"
    );
    write_block(&client, &newer).await;
    let more = |of: &Value| (of.as_str().unwrap().parse::<u64>().unwrap() + 4242).to_string();
    let volume = json!(more(&depth["buy"][0]["volume"]));
    page.until(&format!("{}[0][1] === {volume}", levels("bids"))).await;
    let row = of_party.iter().position(|of_party| of_party == id).unwrap();
    let remaining = format!(
        "table[data-list=orders] tr[data-cursor]:nth-child({}) [data-name=Remaining] [data-value]",
        row + 1
    );
    page.until_data(&remaining, "value", more(&order["remaining"])).await;

    let settled = console_mesh.json("/api/v2/markets?state=STATE_SETTLED&pagination.first=1").await;
    page.open(&format!("#/markets/{}", settled["markets"]["edges"][0]["node"]["id"].as_str().unwrap())).await;
    page.until_text(".empty", "The order book is empty: the market has no live orders with a price.").await;
    page.until_text(".empty", "My party has no live orders in this market.").await;
    page.assert_quiet();
}
