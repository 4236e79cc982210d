//! Accessibility: every view in both themes and at phone width, with screenshots, no finding of
//! axe-core and nothing wider than the screen.

use std::path::Path;

use mesh_tests::say;
use serde_json::{Value, json};

use crate::console::{
    browser::Browser,
    console_mesh::{ASSET, ConsoleMesh, MARKET},
    page::Page,
};

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
pub(crate) async fn assert_accessible(page: &Page<'_>, axe: &str, name: &str) {
    page.eval::<Value>(&format!("(() => {{ {axe}\n; return null; }})()")).await;
    let found: Vec<Value> = page
        .eval(
            "axe.run(document, { resultTypes: ['violations'] }).then(found => found.violations
                .map(of => ({ id: of.id, help: of.help, nodes: of.nodes.slice(0, 5).map(node => [node.html.slice(0, 200), node.failureSummary]) })))",
        )
        .await;
    assert!(found.is_empty(), "{name}: {}", json!(found));
}

#[tokio::test]
async fn every_view_is_accessible() {
    let Some(browser) = Browser::start().await else { return };
    let console_mesh = ConsoleMesh::demo().await;
    console_mesh.mesh_client.until_first_segment().await;
    let axe = axe();
    let party = console_mesh.json("/api/v2/delegations?pagination.first=1").await;
    let party = party["delegations"]["edges"][0]["node"]["party"].as_str().unwrap().to_owned();
    let database = console_mesh.database.connect().await;
    let first = async |table| {
        let statement = format!("SELECT id FROM {table} ORDER BY id LIMIT 1");
        database.query_one(&statement, &[]).await.unwrap().get::<_, String>(0)
    };
    let (withdrawal, spec) = (first("withdrawals").await, first("oracle_specs").await);
    let named = "document.querySelector('tbody .name') && document.querySelector('tbody tr')";
    let views = [
        (
            "status",
            "#/status".to_owned(),
            "document.querySelectorAll('[data-taking=true]').length === 4 && document.querySelector('[data-chain]') && Number(document.querySelector('[data-looks]').dataset.looks) >= 4",
        ),
        ("markets", String::new(), "document.querySelectorAll('.trend').length >= 5"),
        ("markets-found", "#/markets/usd".to_owned(), "document.querySelector('tr.active .trend')"),
        (
            "market",
            format!("#/markets/{MARKET}"),
            "document.querySelector('.candles canvas') && document.querySelector('h2 bdi') && document.querySelector('.last-trades tbody tr')",
        ),
        ("party", format!("#/party/{party}"), "document.querySelectorAll('table').length >= 4"),
        ("party-none", "#/party".to_owned(), "document.querySelector('.empty')"),
        ("not-found", "#/nothing".to_owned(), "document.querySelector('.empty a')"),
        ("withdrawal-none", "#/explore/withdrawal".to_owned(), "document.querySelector('.empty a + a')"),
        ("explore-markets", "#/explore/markets".to_owned(), named),
        ("explore-assets", "#/explore/assets".to_owned(), named),
        ("explore-trades", format!("#/explore/trades?marketId={MARKET}"), named),
        (
            "explore-positions",
            "#/explore/positions".to_owned(),
            "document.querySelector('td[data-name=Realised] .unit')",
        ),
        (
            "explore-withdrawal",
            format!("#/explore/withdrawal/{withdrawal}"),
            "document.querySelector('.facts .name')",
        ),
        (
            "explore-oracle-spec",
            format!("#/explore/oracle-spec/{spec}"),
            "document.querySelector('[data-status]')",
        ),
        ("explore-delegations", "#/explore/delegations".to_owned(), "document.querySelector('tbody tr')"),
        ("explore-accounts", format!("#/explore/accounts?party={party}"), named),
        ("explore-rewards", "#/explore/rewards".to_owned(), named),
        ("explore-proposals", "#/explore/proposals".to_owned(), "document.querySelector('tbody tr')"),
        ("export", "#/export?from=1".to_owned(), "document.querySelector('[data-rows]').dataset.rows"),
        (
            "export-ledger",
            format!("#/export/ledger?party=network&asset={ASSET}"),
            "document.querySelector('.transfer')",
        ),
        ("submit", format!("#/submit?hash={}", "AB".repeat(32)), "document.querySelector('[data-outcome]')"),
    ];
    for (size, width, height) in [("desk", 1280, 900), ("phone", 360, 780)] {
        for theme in ["light", "dark"] {
            let page = browser.page(console_mesh.mesh_client.url(), width, height).await;
            let preference = json!({"features": [{"name": "prefers-color-scheme", "value": theme}]});
            page.call("Emulation.setEmulatedMedia", preference).await;
            for (name, view, is_there) in &views {
                page.open(view).await;
                page.until(is_there).await;
                page.until("document.querySelector('[data-pulse]').textContent !== '–'").await;
                page.picture(&format!("{name}-{size}-{theme}")).await;
                assert!(
                    page.is("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
                        .await,
                    "{name} is wider than a {size}"
                );
                let Some(axe) = &axe else { continue };
                assert_accessible(&page, axe, &format!("{name}, {size}, {theme}")).await;
            }
            page.assert_quiet();
        }
    }
}
