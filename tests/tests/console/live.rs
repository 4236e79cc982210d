//! What a page shows is watched on one stream: nothing is asked again while there is one, and the frame says
//! whether what is shown is live, behind or lost.

use mesh_tests::{Events, ProxiedServer, fixture};
use serde_json::{Value, json};
use tokio_postgres::Client;

use super::{Browser, ConsoleMesh, Page, cursors, page_of, ungrouped, write_block};

/// Remembers the streams that the page opens.
const RECORD: &str = include_str!("record_streams.js");

/// The number of streams that are not closed.
const OPEN_STREAMS: &str = "streams.filter(stream => stream.readyState !== EventSource.CLOSED).length";

/// The reads of the newest stream, as its address has them.
const READS: &str = "new URL(streams.at(-1).url).searchParams.getAll('read')";

/// Adds a block with a trade of this id, which is the newest one.
async fn write_trade(client: &Client, id: &str) {
    write_block(client, &include_str!("newest_trade.sql").replace("{id}", id)).await;
}

/// Waits until the frame says this of what is shown, by its dot and in words.
async fn until_live(page: &Page, state: &str) {
    let said = "pulse.querySelector('[role=status]').textContent.toLowerCase()";
    let is_it = format!("pulse => pulse.dataset.live === '{state}' && {said}.startsWith('{state}')");
    page.until(&format!("({is_it})(document.querySelector('.pulse'))")).await;
}

async fn until_trade(page: &Page, id: &str) {
    page.until_data("td[data-name=Id] [data-value]", "value", id).await;
}

async fn height(page: &Page) -> u64 {
    let shown: String = page.eval("document.querySelector('[data-pulse]').textContent").await;
    ungrouped(&shown).parse().unwrap()
}

async fn until_height(page: &Page, least: u64) {
    let shown = "Number(document.querySelector('[data-pulse]').textContent.replaceAll('\\u202f', ''))";
    page.until(&format!("{shown} >= {least}")).await;
}

/// Addresses that the page has requested, but for the status of the mesh, which is no operation of the contract.
fn requests(page: &Page) -> Vec<String> {
    let addresses = page.events("Network.requestWillBeSent").into_iter();
    let addresses = addresses.map(|event| event["request"]["url"].as_str().unwrap().to_owned());
    addresses.filter(|address| !address.ends_with("/console/now")).collect()
}

#[tokio::test]
async fn blocks_and_rows_come_by_one_stream_and_wait_for_who_selects_text() {
    let Some((_browser, console_mesh, page)) = page_of(ConsoleMesh::sealed).await else { return };
    let client = console_mesh.database.connect().await;
    page.call("Page.addScriptToEvaluateOnNewDocument", json!({"source": RECORD})).await;
    page.open("#/explore/trades").await;
    // The height, the list, and the names of the few markets.
    page.until(&format!("{READS}.length === 3 && {OPEN_STREAMS} === 1")).await;
    until_live(&page, "live").await;
    let before = requests(&page).len();
    let first = height(&page).await;
    for id in ["fe", "ff"] {
        write_trade(&client, id).await;
        until_trade(&page, id).await;
    }
    until_height(&page, first + 10).await;
    assert_eq!(requests(&page)[before..], [""; 0], "nothing is asked for");

    // Rows stand still while text of them is selected.
    let select = "void getSelection().selectAllChildren(document.querySelector('td[data-name=Id]'))";
    page.eval::<Value>(select).await;
    let shown = cursors(&page).await;
    write_trade(&client, "f1").await;
    page.until_data("[data-waiting]", "waiting", "true").await;
    assert_eq!(cursors(&page).await, shown);
    page.eval::<Value>("void getSelection().removeAllRanges()").await;
    until_trade(&page, "f1").await;

    // Another view, another stream; a later page of a list needs none.
    page.press("Positions").await;
    page.until("document.querySelector('table[data-list=positions] tbody tr')").await;
    let reads = |list: &str| format!("{READS}.some(read => read.startsWith('/api/v2/{list}'))");
    page.until(&format!("{} && {OPEN_STREAMS} === 1", reads("positions"))).await;
    page.press("Trades").await;
    page.press("Next").await;
    page.until(&format!("!{} && {OPEN_STREAMS} === 1", reads("trades"))).await;
    until_live(&page, "live").await;
    page.assert_quiet();
}

#[tokio::test]
async fn the_frame_says_whether_what_is_shown_is_live_behind_or_lost() {
    let Some(browser) = Browser::start().await else { return };
    let database = fixture::database().await;
    let store = ProxiedServer::start(database.url()).await;
    let env = [("MESH_DATABASE_URL", store.url())];
    let mut console_mesh = ConsoleMesh::with_env(database, &env).await;
    let client = console_mesh.database.connect().await;
    let page = browser.page(console_mesh.mesh_client.url(), 1280, 900).await;
    page.open("#/explore/trades").await;
    until_live(&page, "live").await;
    store.cut();
    write_trade(&client, "fe").await;
    until_live(&page, "behind").await;
    page.picture("live-behind").await;
    let phone = json!({"width": 360, "height": 780, "deviceScaleFactor": 1, "mobile": false});
    page.call("Emulation.setDeviceMetricsOverride", phone).await;
    page.until("document.documentElement.scrollWidth <= document.documentElement.clientWidth").await;
    let line = "document.querySelector('.top').scrollWidth <= innerWidth && \
        document.querySelector('.brand').offsetTop < 20";
    assert!(page.is(line).await, "the head line has room on a phone");
    page.picture("live-behind-phone").await;
    // The height is the node's and rises.
    until_height(&page, height(&page).await + 5).await;
    store.restore();
    until_live(&page, "live").await;
    until_trade(&page, "fe").await;

    console_mesh.mesh.service("edge").kill().await;
    until_live(&page, "lost").await;
    page.picture("live-lost").await;
    console_mesh.mesh.service_mut("edge").restart().await;
    until_live(&page, "live").await;
    write_trade(&client, "ff").await;
    until_trade(&page, "ff").await;
    page.assert_quiet_but_for_failed_answers();
}

#[tokio::test]
async fn without_room_for_a_stream_the_page_asks_until_there_is_some() {
    let env = [("MESH_EDGE_WATCHES", "1")];
    let start = async || ConsoleMesh::with_env(fixture::database().await, &env).await;
    let Some((_browser, console_mesh, page)) = page_of(start).await else { return };
    let client = console_mesh.database.connect().await;
    let other = Events::open(&console_mesh.mesh_client, "/api/v2/info", &[]).await.unwrap();
    page.open("#/explore/trades").await;
    until_live(&page, "behind").await;
    write_trade(&client, "fe").await;
    until_trade(&page, "fe").await;
    until_height(&page, height(&page).await + 5).await;
    drop(other);
    until_live(&page, "live").await;
    write_trade(&client, "ff").await;
    until_trade(&page, "ff").await;
    page.assert_quiet_but_for_failed_answers();
}

/// Lets the page believe that it is hidden or shown.
async fn show(page: &Page, state: &str) {
    let property = format!("'visibilityState', {{ value: '{state}', configurable: true }}");
    let event = "document.dispatchEvent(new Event('visibilitychange'))";
    page.eval::<Value>(&format!("void (Object.defineProperty(document, {property}), {event})")).await;
}

#[tokio::test]
async fn a_hidden_page_has_no_stream_after_a_while_and_is_live_again_when_it_is_shown() {
    let start = async || ConsoleMesh::over_database(fixture::database().await).await;
    let Some((_browser, console_mesh, page)) = page_of(start).await else { return };
    let client = console_mesh.database.connect().await;
    page.call("Page.addScriptToEvaluateOnNewDocument", json!({"source": RECORD})).await;
    page.open("#/explore/trades").await;
    until_live(&page, "live").await;
    show(&page, "hidden").await;
    page.until(&format!("{OPEN_STREAMS} === 0")).await;
    write_trade(&client, "fe").await;
    show(&page, "visible").await;
    until_trade(&page, "fe").await;
    until_live(&page, "live").await;
    page.assert_quiet();
}
