//! The guide in a browser: accessible in both themes and at phone width.

use std::path::Path;

use mesh_tests::{client::MeshClient, say};
use serde_json::{Value, json};

use crate::console::{browser::Browser, page::Page};

const AXE: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../services/edge/console/node_modules/axe-core/axe.min.js");

/// The pages that are tested in the second theme, too: all of them share one style.
const SAMPLE: [&str; 3] = ["./", "traders", "tables"];

/// Every violation that axe-core finds.
async fn violations(page: &Page<'_>, axe: &str) -> Vec<Value> {
    page.eval::<Value>(&format!("(() => {{ {axe}\n; return null; }})()")).await;
    let script = "axe.run(document, { resultTypes: ['violations'] }).then(found => found.violations.map(of =>
        ({ id: of.id, nodes: of.nodes.slice(0, 5).map(node => [node.html.slice(0, 200), node.failureSummary]) })))";
    page.eval(script).await
}

#[tokio::test]
async fn every_page_of_the_guide_is_accessible_and_fits_the_screen() {
    let Some(browser) = Browser::start().await else { return };
    let client = MeshClient::fixture().await;
    let axe = std::fs::read_to_string(Path::new(AXE)).ok();
    if axe.is_none() {
        say("skipped: axe-core; `npm ci` in services/edge/console installs it");
    }
    let index = client.get("/guide/").await;
    let pages = index.text().split("<li><a href=\"").skip(1).filter_map(|rest| rest.split('"').next());
    let pages: Vec<&str> = pages.filter(|link| !link.starts_with('#')).collect();
    assert!(pages.len() > 15, "{pages:?}");
    let mut found = Vec::new();
    for (size, width, theme) in [("desk", 1400, "light"), ("phone", 360, "dark")] {
        let page = browser.page(client.url(), width, 900).await;
        let preference = json!({"features": [{"name": "prefers-color-scheme", "value": theme}]});
        page.call("Emulation.setEmulatedMedia", preference).await;
        for name in &pages {
            page.open(&format!("guide/{name}")).await;
            let fits = "document.documentElement.scrollWidth <= document.documentElement.clientWidth";
            assert!(page.is(fits).await, "{name} is wider than a {size}");
            if let Some(axe) = axe.as_ref().filter(|_| theme == "light" || SAMPLE.contains(name)) {
                let of_page = violations(&page, axe).await.into_iter();
                found.extend(of_page.map(|violation| format!("{name}, {size}, {theme}: {violation}")));
            }
        }
        page.open("guide/traders").await;
        page.picture(&format!("guide-{size}-{theme}")).await;
        if size == "phone" {
            let is_shown = "document.querySelector('.pages a').checkVisibility()";
            assert!(!page.is(is_shown).await, "the list of pages covers the page");
            page.press("Pages").await;
            page.until(is_shown).await;
        }
        page.assert_quiet();
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
