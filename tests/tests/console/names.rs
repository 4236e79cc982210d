//! Names and scaled figures: markets and assets are shown by what they are called, figures by their decimals, exactly;
//! what is copied is raw, and what has no name stays as the API has it.

use std::time::Duration;

use mesh_testbed::{Database, retry};
use mesh_tests::fixture::{self, ASSET, MARKET, PARTY};
use serde_json::{Value, json};

use crate::console::{
    browser::Browser,
    console_mesh::{ConsoleMesh, ungrouped},
    page::Page,
};

/// 27 digits, of which a float holds 16.
const BIG: &str = "123456789012345678901234567";

/// A market and an asset that no list knows, and those that this test adds to the fixture.
const UNLISTED_MARKET: &str = "a9a9a9a9a9a9a9a9a9a9a9a9a9a9a9a9a9a9a9a9a9a9a9a9a9a9a9a9a9a9a9a9";
const UNLISTED_ASSET: &str = "f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9";
const TENS_MARKET: &str = "a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2";
const HUGE_ASSET: &str = "f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4";

async fn write_figures(database: &Database) {
    let client = database.connect().await;
    let rows = format!(
        "INSERT INTO assets (id, name, symbol, decimals, quantum, source, erc20_contract, lifetime_limit, withdraw_threshold, status, tx_hash, block_time) VALUES
            ('{HUGE_ASSET}', 'Too fine', 'FINE', 2147483647, 1, '', '', 0, 0, 'STATUS_ENABLED', 'aa', '2023-06-20 10:00:00+00');
         INSERT INTO accounts (id, party_id, asset_id, market_id, type, tx_hash, block_time) VALUES
            ('21', repeat('b7', 32), '{ASSET}', '{MARKET}', 3, 'aa', '2023-06-20 10:00:00+00'),
            ('22', repeat('b7', 32), '{UNLISTED_ASSET}', '{UNLISTED_MARKET}', 3, 'aa', '2023-06-20 10:00:00+00'),
            ('23', repeat('b7', 32), '{HUGE_ASSET}', '', 4, 'aa', '2023-06-20 10:00:00+00'),
            ('24', repeat('b7', 32), '{ASSET}', '', 4, 'aa', '2023-06-20 10:00:00+00');
         INSERT INTO balances (account_id, block_time, tx_hash, balance) VALUES
            ('21', '2023-06-20 10:00:00+00', 'aa', {BIG}), ('22', '2023-06-20 10:00:00+00', 'aa', {BIG}),
            ('23', '2023-06-20 10:00:00+00', 'aa', {BIG}), ('24', '2023-06-20 10:00:00+00', 'aa', 1500000);
         INSERT INTO trades (synthetic_time, tx_hash, block_time, seq_num, id, market_id, price, size, buyer, seller, aggressor, buy_order, sell_order, type) VALUES
            ('2023-06-20 10:59:59.2+00', 'aa', '2023-06-20 10:59:59.2+00', 0, repeat('75', 32), '{TENS_MARKET}', 7, 12, repeat('b7', 32), repeat('b8', 32), 1, '', '', 1),
            ('2023-06-20 10:59:59.3+00', 'aa', '2023-06-20 10:59:59.3+00', 0, repeat('76', 32), '{UNLISTED_MARKET}', 1234567, 12, repeat('b7', 32), repeat('b8', 32), 1, '', '', 1);"
    );
    client.batch_execute(&rows).await.unwrap();
}

/// What a column shows, without the grouping of digits.
async fn shown(page: &Page<'_>, name: &str) -> Vec<String> {
    let cells = format!("[...document.querySelectorAll('td[data-name={}]')]", json!(name));
    let texts: Vec<String> = page.eval(&format!("{cells}.map(cell => cell.innerText.trim())")).await;
    texts.iter().map(|text| ungrouped(text).replace(['\n', '\u{a0}'], " ")).collect()
}

/// Waits until a column shows these texts.
async fn until_shown(page: &Page<'_>, name: &str, expected: &[&str]) {
    let cells = format!("[...document.querySelectorAll('td[data-name={}]')]", json!(name));
    let texts = format!(
        "{cells}.map(cell => cell.innerText.trim().replaceAll('\\u202f', '').replaceAll(/[\\n\\u00a0]/g, ' '))"
    );
    page.until(&format!("JSON.stringify({texts}) === {}", json!(json!(expected).to_string()))).await;
}

/// The text that gets into the clipboard when this part of the page is copied.
async fn copied(page: &Page<'_>, range: &str) -> String {
    page.eval(&format!(
        "(() => {{
            const range = document.createRange();
            {range};
            const selection = getSelection();
            selection.removeAllRanges();
            selection.addRange(range);
            const copy = new ClipboardEvent('copy', {{ clipboardData: new DataTransfer(), bubbles: true, cancelable: true }});
            document.body.dispatchEvent(copy);
            return copy.defaultPrevented ? copy.clipboardData.getData('text/plain') : 'as selected: ' + selection;
        }})()"
    ))
    .await
}

#[tokio::test]
async fn figures_are_scaled_exactly_and_raw_on_request_and_copied_raw() {
    let Some(browser) = Browser::start().await else { return };
    let database = fixture::database().await;
    write_figures(&database).await;
    let console_mesh = ConsoleMesh::over_database(database).await;
    let page = browser.page(console_mesh.mesh_client.url(), 1280, 900).await;
    let accounts = format!("#/explore/accounts?party={}", "b7".repeat(32));
    page.open(&accounts).await;
    // 6 decimals; with more places than can be meant, and without a known asset, the raw amount.
    let scaled = ["1.5 tUSD", "123456789012345678901.234567 tUSD"];
    let mut balances = [scaled[0], scaled[1], BIG, BIG];
    page.until("document.querySelector('.unit')").await;
    let mut found = shown(&page, "Balance").await;
    balances.sort();
    found.sort();
    assert_eq!(found, balances);
    page.picture("names-accounts").await;

    // Prices keep the decimals of their market; sizes of one that counts tens are multiplied.
    page.open("#/explore/trades").await;
    until_shown(
        &page,
        "Market",
        &["a9a9a9a9…a9a9a9", "ÜBER/\"X\"", "BTC/USD", "BTC/USD", "BTC/USD", "BTC/USD"],
    )
    .await;
    let prices = ["1234567", "7 X", "0.01010 USD", "0.00990 USD", "0.01050 USD", "0.01000 USD"];
    until_shown(&page, "Price", &prices).await;
    until_shown(&page, "Size", &["12", "120", "0.010", "0.010", "0.012", "0.010"]).await;
    page.picture("names-trades").await;

    page.open(&format!("#/explore/positions?partyId={PARTY}")).await;
    until_shown(&page, "Volume", &["0", "0.008"]).await;
    until_shown(&page, "Settled volume", &["0", "-9223372036854775.807"]).await;
    until_shown(&page, "Average entry price", &["–", "0.00997 USD"]).await;
    until_shown(&page, "Realised", &["7 VOTE", "-0.000001 tUSD"]).await;
    until_shown(&page, "Unrealised", &["0 VOTE", "123456789012345678901.234567 tUSD"]).await;

    page.open("#/explore/markets").await;
    until_shown(&page, "Mark price", &["–", "–", "1234567890123456789012.34567 USD"]).await;
    until_shown(&page, "Open interest", &["–", "0", "0.032"]).await;

    // A chart, its figures and its table.
    page.open(&format!("#/markets?market={MARKET}&interval=block")).await;
    page.until_text("h2 bdi", "BTC/USD").await;
    let figures = "document.querySelector('.figures').innerText.replaceAll('\\u202f', '').split(/\\s+/).slice(3).join(' ')";
    let scaled = "open 0.01010 USD high 0.01010 USD low 0.01010 USD close 0.01010 USD volume 0.010";
    page.until(&format!("{figures} === '{scaled}'")).await;
    page.eval::<Value>("void (document.querySelector('.card details').open = true)").await;
    let table = "[...document.querySelectorAll('.card details tbody tr')].map(row => row.innerText.split('\\t').slice(1).join(', '))";
    let rows: Vec<String> = page.eval(table).await;
    assert_eq!(rows[0], "0.01010 USD, 0.01010 USD, 0.01010 USD, 0.01010 USD, 0.010");
    assert_eq!(rows[1], "0.01050 USD, 0.01050 USD, 0.00990 USD, 0.00990 USD, 0.022");
    page.picture("names-candles").await;
    page.press("Raw").await;
    page.until(&format!("{figures} === 'open 1010 high 1010 low 1010 close 1010 volume 10'")).await;
    page.press("Raw").await;
    page.open("#/explore/markets").await;
    until_shown(&page, "Open interest", &["–", "0", "0.032"]).await;

    // Raw is remembered, and shows the API's figures without a unit.
    page.press("Raw").await;
    until_shown(&page, "Mark price", &["–", "0", BIG]).await;
    page.open("#/explore/trades").await;
    until_shown(&page, "Size", &["12", "12", "10", "10", "12", "10"]).await;
    assert!(page.is("document.querySelector('button.raw').getAttribute('aria-pressed') === 'true'").await);
    assert!(page.is("!document.querySelector('.unit')").await);
    page.press("Raw").await;
    until_shown(&page, "Size", &["12", "120", "0.010", "0.010", "0.012", "0.010"]).await;

    // A part of a figure or a name, a whole row, and what is neither.
    let price = "document.querySelectorAll('td[data-name=Price] .number')[2].firstChild";
    let part = format!("range.setStart({price}, 1); range.setEnd({price}, 4)");
    assert_eq!(copied(&page, &part).await, "1010");
    let name = "document.querySelectorAll('td[data-name=Market] bdi')[1]";
    assert_eq!(copied(&page, &format!("range.selectNodeContents({name})")).await, MARKET);
    let row = copied(&page, "range.selectNode(document.querySelectorAll('tbody tr')[1])").await;
    let cells: Vec<_> = row.trim().split('\t').map(str::trim).collect();
    let (buyer, seller) = ("b7".repeat(32), "b8".repeat(32));
    assert_eq!(cells[1], TENS_MARKET, "{row}");
    assert!(cells[2].starts_with('7') && cells[3] == "12", "{row}");
    assert_eq!(cells[4..6], [buyer, seller], "{row}");
    let about = "range.selectNodeContents(document.querySelector('main p.dim'))";
    assert_eq!(copied(&page, about).await, "as selected: All trades, the newest first.");
    page.assert_quiet();
}

#[tokio::test]
async fn names_that_are_not_unique_come_with_their_id() {
    let Some(browser) = Browser::start().await else { return };
    let database = fixture::database().await;
    // Another asset of the same symbol; a market whose code only looks the same, one that has another's id for a
    // code, and one whose code cannot be seen.
    let rows = format!(
        "INSERT INTO assets (id, name, symbol, decimals, quantum, source, erc20_contract, lifetime_limit, withdraw_threshold, status, tx_hash, block_time) VALUES
            (repeat('f3', 32), 'Another dollar', 'TUSD', 2, 1, '', '', 0, 0, 'STATUS_ENABLED', 'aa', '2023-06-20 10:00:00+00');
         INSERT INTO accounts (id, party_id, asset_id, market_id, type, tx_hash, block_time) VALUES
            ('31', repeat('b7', 32), repeat('f3', 32), repeat('a4', 32), 3, 'aa', '2023-06-20 10:00:00+00'),
            ('32', repeat('b7', 32), '{ASSET}', '{MARKET}', 3, 'aa', '2023-06-20 10:00:00+00');
         INSERT INTO balances (account_id, block_time, tx_hash, balance) VALUES
            ('31', '2023-06-20 10:00:00+00', 'aa', 1500000), ('32', '2023-06-20 10:00:00+00', 'aa', 1500000);"
    );
    let client = database.connect().await;
    client.batch_execute(&rows).await.unwrap();
    for (id, code) in [("a4", "BTC\u{200b}/USD"), ("a5", MARKET), ("a6", "\u{200b}\u{2060}")] {
        let instrument = json!({"instrument": {"code": code, "name": "", "future": {"quoteName": "123", "settlementAsset": "f3".repeat(32)}}});
        let market = "INSERT INTO markets (id, tx_hash, block_time, tradable_instrument, decimal_places, trading_mode, state, market_timestamps, position_decimal_places)
            VALUES ($1, 'aa', '2023-06-20 10:00:00+00', $2, 2, 'TRADING_MODE_CONTINUOUS', 'STATE_ACTIVE', '{}', 0)";
        client.execute(market, &[&id.repeat(32), &instrument]).await.unwrap();
    }
    let data = "INSERT INTO market_data (synthetic_time, tx_hash, block_time, seq_num, market, mark_price)
        VALUES ('2023-06-20 10:00:01.5+00', 'aa', '2023-06-20 10:00:01.5+00', 0, repeat('a4', 32), 4200)";
    client.execute(data, &[]).await.unwrap();
    let console_mesh = ConsoleMesh::over_database(database).await;
    let page = browser.page(console_mesh.mesh_client.url(), 1280, 900).await;
    page.open(&format!("#/explore/accounts?party={}", "b7".repeat(32))).await;
    until_shown(&page, "Market", &["BTC/USD a1a1a1a1…a1a1a1", "BTC/USD a4a4a4a4…a4a4a4"]).await;
    until_shown(&page, "Asset", &["tUSD f1f1f1f1…f1f1f1", "TUSD f3f3f3f3…f3f3f3"]).await;
    until_shown(&page, "Balance", &["1.5 tUSD", "15000 TUSD"]).await;
    page.picture("names-not-unique").await;
    page.open("#/explore/markets").await;
    let names = [
        "a6a6a6a6…a6a6a6",
        &format!("{}… a5a5a5a5…a5a5a5", &MARKET[..40]),
        "BTC/USD a4a4a4a4…a4a4a4",
        "a3a3a3a3…a3a3a3",
        "ÜBER/\"X\"",
        "BTC/USD a1a1a1a1…a1a1a1",
    ];
    until_shown(&page, "Market", &names).await;
    // What prices are quoted in is not shown where it could be read as digits.
    assert_eq!(shown(&page, "Mark price").await[2], "42.00");
    // A name that two markets have filters the list; with its id it is one of them.
    page.open("#/markets").await;
    page.until("document.querySelectorAll('tr[data-market]').length === 6").await;
    page.fill("Find a market", "btc/usd").await;
    page.until("document.querySelectorAll('tr[data-market]').length === 2").await;
    page.fill("Find a market", "BTC/USD a4a4a4a4…a4a4a4").await;
    page.eval::<()>("document.querySelector('form').requestSubmit() ?? null").await;
    page.until(&format!("location.hash === '#/markets/{}'", "a4".repeat(32))).await;
    // So in a link.
    page.open("#/markets?market=btc/usd").await;
    page.until("document.querySelectorAll('tr[data-market]').length === 2").await;
    page.open("#/markets?market=%C3%9Cber/%22x%22").await;
    page.until_text("h2 bdi", "ÜBER/\"X\"").await;
    page.assert_quiet();
}

#[tokio::test]
async fn views_work_without_names_and_learn_those_of_new_ids() {
    let Some(browser) = Browser::start().await else { return };
    let database = fixture::database().await;
    write_figures(&database).await;
    let console_mesh = ConsoleMesh::over_database(database).await;
    let page = browser.page(console_mesh.mesh_client.url(), 1280, 900).await;
    let blocked = json!({"urls": ["*api/v2/markets*", "*api/v2/assets*"]});
    page.call("Network.setBlockedURLs", blocked).await;
    page.open(&format!("#/markets?market={MARKET}&interval=block")).await;
    page.until_data(".figures [data-name=close] [data-value]", "value", "1010").await;
    assert_eq!(page.eval::<String>("document.querySelector('h2 .id').innerText").await, "a1a1a1a1…a1a1a1");
    page.open("#/explore/trades").await;
    let ids = ["a9a9a9a9…a9a9a9", "a2a2a2a2…a2a2a2"];
    let known = ["a1a1a1a1…a1a1a1"; 4];
    until_shown(&page, "Market", &[&ids[..], &known].concat()).await;
    until_shown(&page, "Size", &["12", "12", "10", "10", "12", "10"]).await;
    // As soon as they can be read.
    page.call("Network.setBlockedURLs", json!({"urls": []})).await;
    until_shown(
        &page,
        "Market",
        &["a9a9a9a9…a9a9a9", "ÜBER/\"X\"", "BTC/USD", "BTC/USD", "BTC/USD", "BTC/USD"],
    )
    .await;
    // A market that is proposed while the page is open: its id is new to the page.
    let client = console_mesh.database.connect().await;
    let rows = "INSERT INTO markets (id, tx_hash, block_time, tradable_instrument, decimal_places, trading_mode, state, market_timestamps, position_decimal_places)
            VALUES (repeat('a8', 32), 'aa', '2023-06-20 10:59:59.4+00', '{\"instrument\": {\"code\": \"NEW\", \"name\": \"New\", \"future\": {\"quoteName\": \"N\", \"settlementAsset\": \"VOTE\"}}}', 1, 'TRADING_MODE_CONTINUOUS', 'STATE_ACTIVE', '{}', 0);
        INSERT INTO trades (synthetic_time, tx_hash, block_time, seq_num, id, market_id, price, size, buyer, seller, buy_order, sell_order, type)
            VALUES ('2023-06-20 10:59:59.4+00', 'aa', '2023-06-20 10:59:59.4+00', 0, repeat('77', 32), repeat('a8', 32), 12, 3, repeat('b9', 32), repeat('b8', 32), '', '', 1)";
    client.batch_execute(rows).await.unwrap();
    page.eval::<Value>(&format!("void (location.hash = '#/explore/trades?partyId={}')", "b9".repeat(32)))
        .await;
    until_shown(&page, "Market", &["NEW"]).await;
    until_shown(&page, "Price", &["1.2 N"]).await;
    page.assert_quiet_but_for_failed_answers();
}

/// Known ids that a page shows although they have names.
const SHOWN_IDS: &str = "(async () => {
    const rows = async (path, list) => (await (await fetch(path)).json())[list].edges.map(({ node }) => node);
    const named = [...await rows('api/v2/markets', 'markets'), ...await rows('api/v2/assets', 'assets')];
    const ids = named.filter(({ code, symbol }) => code || symbol).map(({ id }) => id).filter(id => id.length === 64);
    const main = document.querySelector('main').cloneNode(true);
    main.querySelectorAll('.lines').forEach(lines => lines.remove());
    const typed = [...document.querySelectorAll('main input, main option')].map(field => field.value).join(' ');
    const short = [...main.querySelectorAll('code.id[data-value]')].map(id => id.dataset.value);
    return ids.filter(id => (main.textContent + typed).includes(id) || short.includes(id));
})()";

#[tokio::test]
async fn no_view_shows_the_id_of_what_has_a_name() {
    let Some(browser) = Browser::start().await else { return };
    let console_mesh = ConsoleMesh::demo().await;
    let page = browser.page(console_mesh.mesh_client.url(), 1280, 900).await;
    let market = console_mesh.json("/api/v2/trades?pagination.first=1").await;
    let market = market["trades"]["edges"][0]["node"]["marketId"].as_str().unwrap().to_owned();
    let assets = console_mesh.json("/api/v2/assets").await["assets"]["edges"].clone();
    let dollar = assets.as_array().unwrap().iter().find(|edge| edge["node"]["symbol"] == "tUSD").unwrap();
    let dollar = dollar["node"]["id"].as_str().unwrap();
    let withdrawal = "SELECT id FROM withdrawals ORDER BY id LIMIT 1";
    let withdrawal: String =
        console_mesh.database.connect().await.query_one(withdrawal, &[]).await.unwrap().get(0);
    let markets = console_mesh.json("/api/v2/markets").await["markets"]["edges"].clone();
    let newest = markets.as_array().unwrap().iter().find(|edge| edge["node"]["id"] == json!(market)).unwrap();
    let code = newest["node"]["code"].as_str().unwrap();
    page.open(&format!("#/markets?market={market}")).await;
    page.until_text("h2 bdi", code).await;
    let quote = newest["node"]["quoteName"].as_str().unwrap();
    page.until_text(".figures [data-name=close] .unit", quote).await;
    let views = [
        "#/markets".to_owned(),
        format!("#/markets?market={market}"),
        "#/explore/markets".to_owned(),
        format!("#/explore/markets?settlementAsset={dollar}"),
        "#/explore/assets".to_owned(),
        format!("#/explore/trades?marketId={market}"),
        "#/explore/positions".to_owned(),
        "#/explore/accounts?party=network".to_owned(),
        format!("#/explore/accounts?market={market}"),
        "#/explore/rewards".to_owned(),
        format!("#/explore/rewards?filter.assetIds={dollar}&filter.marketIds={market}"),
        format!("#/explore/withdrawal/{withdrawal}"),
        format!("#/export/ledger?party=network&asset={dollar}"),
    ];
    for view in views {
        page.open(&view).await;
        page.until("document.querySelector('.name bdi, .figures bdi, datalist option')").await;
        page.until("document.querySelector('.candles, tbody tr, .empty, .facts, .transfer')").await;
        page.until("!document.querySelector('[aria-busy=true]')").await;
        // Names may come after the rows.
        retry(Duration::from_secs(10), async || {
            let ids: Vec<String> = page.eval(SHOWN_IDS).await;
            if ids.is_empty() { Ok(()) } else { Err(format!("{view} shows {ids:?}")) }
        })
        .await;
    }
    // A market is found by its name, its code, and a part of its id.
    for text in [newest["node"]["name"].as_str().unwrap(), &code.to_lowercase(), &market[..16], &market] {
        page.open("#/markets").await;
        page.until("document.querySelector('tr[data-market]')").await;
        page.fill("Find a market", text).await;
        page.until("document.querySelector('tr.active')").await;
        page.eval::<()>("document.querySelector('form').requestSubmit() ?? null").await;
        page.until_text("h2 bdi", code).await;
    }
    page.open("#/markets/no%20such%20market").await;
    page.until_text(".wrong", "No market found").await;
    page.assert_quiet();
}
