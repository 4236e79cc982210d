//! Accessibility: every view on a desk in the light theme and on a phone in the dark one has no finding of
//! axe-core and nothing wider than the screen. No view of markets and assets
//! shows the id of one that has a name.

use std::path::Path;

use mesh_tests::say;
use serde_json::{Value, json};

use super::{ASSET, Browser, MARKET, Page, SharedConsoleMesh};

/// The page fits into the width of the screen.
pub(crate) const FITS: &str = "document.documentElement.scrollWidth <= document.documentElement.clientWidth";

/// The page shows the id of something that has a name.
const SHOWS_ID: &str = include_str!("shows_id.js");

/// The views that may show ids.
const UNNAMED: [&str; 3] = ["party", "explore-oracle-spec", "explore-proposals"];

/// The source of axe-core from the console's development packages; `None` when these are not installed.
pub(crate) fn axe() -> Option<String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../services/edge/console/node_modules/axe-core/axe.min.js");
    let source = std::fs::read_to_string(file).ok();
    if source.is_none() {
        say("skipped: axe-core; `npm ci` in services/edge/console brings it");
    }
    source
}

/// axe-core finds nothing in the open page.
pub(crate) async fn assert_accessible(page: &Page, axe: &str, name: &str) {
    page.eval::<Value>(&format!("(() => {{ {axe}\n; return null; }})()")).await;
    let found: Vec<Value> = page
        .eval(
            "axe.run(document, { resultTypes: ['violations'] }).then(found => found.violations
                .map(of => ({ id: of.id, help: of.help, nodes: of.nodes.slice(0, 5)\
                .map(node => [node.html.slice(0, 200), node.failureSummary]) })))",
        )
        .await;
    assert!(found.is_empty(), "{name}: {}", json!(found));
}

#[tokio::test]
async fn every_view_is_accessible() {
    let Some(browser) = Browser::start().await else { return };
    let console_mesh = SharedConsoleMesh::shared().await;
    console_mesh.mesh_client.until_first_segment().await;
    let axe = axe();
    let party = console_mesh.json("/api/v2/delegations?pagination.first=1").await;
    let party = party["delegations"]["edges"][0]["node"]["party"].as_str().unwrap().to_owned();
    let first = async |table| console_mesh.first_id(table).await;
    let (withdrawal, spec) = (first("withdrawals").await, first("oracle_specs").await);
    let order = first("orders").await;
    let mut ids = Vec::new();
    for list in ["markets", "assets"] {
        let rows = console_mesh.json(&format!("/api/v2/{list}")).await[list]["edges"].take();
        let rows = rows.as_array().unwrap().iter().map(|row| &row["node"]);
        let is_text = |text: &Value| text.as_str().is_some_and(|text| !text.is_empty());
        let named = rows.filter(|node| is_text(&node["code"]) || is_text(&node["symbol"]));
        let named = named.filter_map(|node| node["id"].as_str()).filter(|id| id.len() == 64);
        ids.extend(named.map(str::to_owned));
    }
    assert!(ids.len() > 5, "{ids:?}");
    let named = "document.querySelector('tbody .name') && document.querySelector('tbody tr')";
    // What is there when a view is whole: a selector, or a condition.
    let views = [
        (
            "status",
            "#/status".to_owned(),
            "document.querySelectorAll('[data-taking=true]').length === 4 && \
             document.querySelector('[data-chain]') && \
             Number(document.querySelector('[data-looks]').dataset.looks) >= 4",
        ),
        ("markets", String::new(), "document.querySelectorAll('.trend').length >= 5"),
        ("markets-found", "#/markets/usd".to_owned(), "tr.active .trend"),
        (
            "market",
            format!("#/markets/{MARKET}"),
            "document.querySelector('.candles canvas') && document.querySelector('h2 bdi') && \
             document.querySelector('.last-trades tbody tr') && document.querySelectorAll('.levels').length === 2",
        ),
        (
            "market-past",
            format!("#/markets/{MARKET}?atBlock=700"),
            "document.querySelector('.past').textContent.includes('UTC') && \
             document.querySelector('.candles canvas') && document.querySelectorAll('.levels').length === 2",
        ),
        ("party", format!("#/party/{party}"), "document.querySelectorAll('table').length >= 4"),
        ("party-none", "#/party".to_owned(), ".empty"),
        ("not-found", "#/nothing".to_owned(), ".empty a"),
        ("withdrawal-none", "#/explore/withdrawal".to_owned(), ".empty a + a"),
        ("explore-markets", "#/explore/markets".to_owned(), named),
        ("explore-assets", "#/explore/assets".to_owned(), named),
        ("explore-trades", format!("#/explore/trades?marketId={MARKET}"), named),
        ("explore-orders", "#/explore/orders".to_owned(), named),
        ("explore-order", format!("#/explore/order/{order}"), ".facts .name"),
        ("explore-deposits", "#/explore/deposits".to_owned(), named),
        ("explore-withdrawals", "#/explore/withdrawals".to_owned(), named),
        ("explore-positions", "#/explore/positions".to_owned(), "td[data-name=Realised] .unit"),
        ("explore-withdrawal", format!("#/explore/withdrawal/{withdrawal}"), ".facts .name"),
        ("explore-oracle-spec", format!("#/explore/oracle-spec/{spec}"), "[data-status]"),
        ("explore-delegations", "#/explore/delegations".to_owned(), "tbody tr"),
        ("explore-accounts", format!("#/explore/accounts?party={party}"), named),
        ("explore-rewards", "#/explore/rewards".to_owned(), named),
        ("explore-proposals", "#/explore/proposals".to_owned(), "tbody tr"),
        (
            "export-tables",
            "#/export/tables?table=TABLE_ORDERS".to_owned(),
            "table[data-list=columns] tbody tr",
        ),
        ("export", "#/export?from=1".to_owned(), "document.querySelector('[data-rows]').dataset.rows"),
        ("export-ledger", format!("#/export/ledger?party=network&asset={ASSET}"), ".transfer"),
        ("submit", format!("#/submit?hash={}", "AB".repeat(32)), "[data-outcome]"),
    ];
    for (size, width, height, theme) in [("desk", 1280, 900, "light"), ("phone", 360, 780, "dark")] {
        let page = browser.page(console_mesh.mesh_client.url(), width, height).await;
        page.theme(theme).await;
        for (name, view, is_there) in &views {
            page.open(view).await;
            match is_there.contains("document.") {
                true => page.until(is_there).await,
                false => page.until(&format!("document.querySelector({})", json!(is_there))).await,
            }
            let pulse = "document.querySelector('[data-pulse]').textContent !== '–'";
            page.until(&format!("document.querySelector('.in-past') || {pulse}")).await;
            page.picture(&format!("{name}-{size}-{theme}")).await;
            assert!(page.is(FITS).await, "{name} is wider than a {size}");
            if !UNNAMED.contains(name) {
                // Names may come after the rows.
                page.until(&format!("!({SHOWS_ID})({})", json!(ids))).await;
            }
            let Some(axe) = &axe else { continue };
            assert_accessible(&page, axe, &format!("{name}, {size}, {theme}")).await;
        }
        page.assert_quiet();
    }
}
