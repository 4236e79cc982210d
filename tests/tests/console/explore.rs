//! *Explore*: tables and single items equal the API's answers, page by page, and links restore a page.

use serde_json::{Value, json};

use super::{ORACLE_SPEC, Page, SharedConsoleMesh, WITHDRAWAL, shared_page};

pub(crate) async fn cursors(page: &Page) -> Vec<String> {
    page.eval("[...document.querySelectorAll('tr[data-cursor]')].map(row => row.dataset.cursor)").await
}

/// The full values of a column, not their abbreviations.
async fn column(page: &Page, name: &str) -> Vec<String> {
    page.eval(&format!(
        "[...document.querySelectorAll('td[data-name={}]')]\
         .map(cell => (cell.querySelector('[data-value]') ?? cell).dataset.value ?? cell.textContent)",
        json!(name)
    ))
    .await
}

fn of_edges(reply: &Value, list: &str, member: &str) -> Vec<String> {
    let edges = reply[list]["edges"].as_array().unwrap();
    let text = |edge: &Value| match member {
        "cursor" => edge["cursor"].as_str().unwrap().to_owned(),
        _ => edge["node"][member].as_str().unwrap().to_owned(),
    };
    edges.iter().map(text).collect()
}

/// Waits for a page with these cursors.
async fn until_page(page: &Page, cursors: &[String]) {
    let cursors: Vec<Value> = cursors.iter().map(|cursor| json!(cursor)).collect();
    page.until_all_data("tr[data-cursor]", "cursor", &cursors).await;
}

/// The views of lists: the API's path and list, the columns and their members.
const LISTS: [(&str, &str, &str, &str); 10] = [
    ("markets", "markets", "markets", "Market: id, Mark price: markPrice, Open interest: openInterest"),
    ("assets", "assets", "assets", "Asset: id, Name: name, Quantum: quantum"),
    ("trades", "trades", "trades", "Id: id, Time: timestamp, Market: marketId, Price: price, Buyer: buyer"),
    ("orders", "orders", "orders", ORDERS),
    ("deposits", "deposits", "deposits", FUNDS),
    ("withdrawals", "withdrawals", "withdrawals", FUNDS),
    ("positions", "positions", "positions", POSITIONS),
    ("delegations", "delegations", "delegations", DELEGATIONS),
    ("rewards", "rewards/epoch/summaries", "summaries", "Epoch: epoch, Asset: assetId, Amount: amount"),
    ("proposals", "upgrade/proposals", "protocolUpgradeProposals", PROPOSALS),
];
const ORDERS: &str =
    "Id: id, Time: createdAt, Market: marketId, Price: price, Remaining: remaining, Party: partyId";
const FUNDS: &str = "Id: id, Created: createdTimestamp, Party: partyId, Amount: amount";
const POSITIONS: &str = "Party: partyId, Volume: openVolume, Average entry price: averageEntryPrice";
const DELEGATIONS: &str = "Epoch: epochSeq, Party: party, Validator: nodeId, Amount: amount";
const PROPOSALS: &str = "Height: upgradeBlockHeight, Release: networkReleaseTag";

/// Compares the list of one view with the API's, forwards, backwards and by its link.
async fn walk(
    console_mesh: &SharedConsoleMesh,
    page: &Page,
    view: &str,
    path: &str,
    list: &str,
    columns: &str,
) {
    page.open(&format!("#/explore/{view}?size=20")).await;
    let first = console_mesh.json(&format!("/api/v2/{path}?pagination.first=20")).await;
    until_page(page, &of_edges(&first, list, "cursor")).await;
    for (name, member) in columns.split(", ").map(|column| column.split_once(": ").unwrap()) {
        assert_eq!(column(page, name).await, of_edges(&first, list, member), "{view}, {name}");
    }
    if first[list]["pageInfo"]["hasNextPage"] == false {
        let are_disabled = "[...document.querySelectorAll('.steps button')].every(button => button.disabled)";
        assert!(page.is(are_disabled).await);
        return;
    }
    let end = first[list]["pageInfo"]["endCursor"].as_str().unwrap();
    let second =
        console_mesh.json(&format!("/api/v2/{path}?pagination.first=20&pagination.after={end}")).await;
    page.press("Next").await;
    until_page(page, &of_edges(&second, list, "cursor")).await;
    let link: String = page.eval("location.hash").await;
    let line: String = page.eval("document.querySelector('.line code').textContent").await;
    assert!(line.contains(end) && line.starts_with("curl "), "{line}");
    page.press("Previous").await;
    // It is the first page, which is live.
    page.until("!location.hash.includes('before=')").await;
    until_page(page, &of_edges(&first, list, "cursor")).await;
    page.open(&link).await;
    until_page(page, &of_edges(&second, list, "cursor")).await;
}

#[tokio::test]
async fn lists_page_by_cursor_and_show_what_the_api_says() {
    let Some((_browser, console_mesh, page)) = shared_page().await else { return };
    for (view, path, list, columns) in LISTS {
        walk(&console_mesh, &page, view, path, list, columns).await;
    }

    // A choice, and a time.
    let until_filtered = async |list: &str, filters: &str, last: &str| {
        page.until(&format!("location.hash.includes('{last}')")).await;
        let found = console_mesh.json(&format!("/api/v2/{list}?{filters}{last}&pagination.first=20")).await;
        until_page(&page, &of_edges(&found, list, "cursor")).await;
    };
    page.open("#/explore/markets").await;
    page.fill("State", "STATE_ACTIVE").await;
    until_filtered("markets", "", "state=STATE_ACTIVE").await;
    page.open("#/explore/orders?status=STATUS_ACTIVE").await;
    page.fill("Live", "true").await;
    until_filtered("orders", "status=STATUS_ACTIVE&", "liveOnly=true").await;
    let newest = console_mesh.json("/api/v2/trades?pagination.first=1").await;
    let newest = &newest["trades"]["edges"][0]["node"]["timestamp"];
    let second = newest.as_str().unwrap().parse::<i64>().unwrap() / 1_000_000_000;
    page.open("#/explore/trades").await;
    let until: String = page.eval(&format!("new Date({second}000).toISOString().slice(0, 19)")).await;
    page.fill("Until before, UTC", &until).await;
    page.press("Show").await;
    until_filtered("trades", "", &format!("dateRange.endTimestamp={second}000000000")).await;
    // A filter that is typed in.
    page.open("#/explore/accounts").await;
    page.fill("Party", "no party").await;
    page.press("Show").await;
    page.until("document.querySelector('.wrong')").await;
    page.fill("Party", "network").await;
    page.press("Show").await;
    page.until("location.hash.endsWith('party=network')").await;
    page.until("document.querySelector('table[data-list=accounts] tbody tr')").await;
    page.assert_quiet();
}

#[tokio::test]
async fn single_items_are_found_by_id() {
    let Some((_browser, console_mesh, page)) = shared_page().await else { return };
    // The example id of the form belongs to a later block than this shortened demo network has, so any id of
    // its data is taken.
    let client = console_mesh.database.connect().await;
    let id = |table: &str, example: &str| {
        let (client, example) = (&client, example.to_owned());
        let statement = format!("SELECT id FROM {table} ORDER BY (id = $1) DESC, id LIMIT 1");
        async move { client.query_one(&statement, &[&example]).await.unwrap().get::<_, String>(0) }
    };
    let withdrawal = id("withdrawals", WITHDRAWAL).await;
    let expected = console_mesh.json(&format!("/api/v2/withdrawal/{withdrawal}")).await["withdrawal"].clone();
    page.open("#/explore/withdrawal").await;
    page.fill("Id", &withdrawal).await;
    page.press("Show").await;
    page.until_data("[data-status]", "status", &expected["status"]).await;
    let shown = "[...document.querySelectorAll('.facts [data-value]')].map(value => value.dataset.value)";
    let shown: Vec<String> = page.eval(shown).await;
    for member in ["id", "partyId", "amount", "asset", "ref", "createdTimestamp"] {
        let value = expected[member].as_str().unwrap().to_owned();
        assert!(value.is_empty() || shown.contains(&value), "{member} {value} is not shown: {shown:?}");
    }
    let spec = id("oracle_specs", ORACLE_SPEC).await;
    let expected = console_mesh.json(&format!("/api/v2/oracle/spec/{spec}")).await;
    page.open(&format!("#/explore/oracle-spec/{spec}")).await;
    let status = &expected["oracleSpec"]["externalDataSourceSpec"]["spec"]["status"];
    page.until_data("[data-status]", "status", status).await;
    // An order by the number of its version.
    let newest = "SELECT id, version FROM orders ORDER BY version DESC, id LIMIT 1";
    let newest = client.query_one(newest, &[]).await.unwrap();
    let (order, version): (String, i32) = (newest.get(0), newest.get(1));
    page.open(&format!("#/explore/order/{order}")).await;
    for version in [version, version - 1] {
        page.until_data("[data-version]", "version", version.to_string()).await;
        let expected = console_mesh.json(&format!("/api/v2/order/{order}?version={version}")).await;
        let price = expected["order"]["price"].as_str().unwrap();
        page.until(&format!("document.querySelector('.facts [data-value=\"{price}\"]')")).await;
        if version > 1 {
            page.click("[data-version] + a").await;
        }
    }
    page.assert_quiet();
    // Without an id the page says where ids come from.
    page.open("#/explore/withdrawal").await;
    page.until("document.querySelector('.empty a[href=\"#/explore/withdrawals\"]')").await;
    page.until("document.querySelector('.empty a[href^=\"#/explore/withdrawal/\"]')").await;
    // An unknown id is reported with the error's application number.
    page.open(&format!("#/explore/withdrawal/{}", "ab".repeat(32))).await;
    page.until("document.querySelector('[role=alert]').textContent.includes('150001')").await;
}
