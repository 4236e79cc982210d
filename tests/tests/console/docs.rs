//! `/docs` in a browser: what a visitor has filled in can be watched.

use mesh_tests::fixture;
use serde_json::{Value, json};

use super::{Browser, FITS, Page, assert_accessible, axe};
use crate::watch::{start, write_block};

const BUTTON: &str = ".opblock.is-open .watch-button";

/// The newest event as it is shown.
const NEWEST: &str = "document.querySelector('.watch details').textContent";

/// Types into the field of a parameter of the open operation.
async fn fill_parameter(page: &Page, name: &str, text: &str) {
    let field = format!("document.querySelector('.opblock.is-open tr[data-param-name={name}] input')");
    page.until(&field).await;
    let set = "Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set";
    // The viewer takes what is typed over after a pause, and at once when the field is left.
    let events = "new Event('input', { bubbles: true }), new FocusEvent('focusout', { bubbles: true })";
    let script = format!(
        "void ({set}.call({field}, {}), [{events}].forEach((event) => {field}.dispatchEvent(event)))",
        json!(text)
    );
    page.eval::<Value>(&script).await;
}

async fn until_state(page: &Page, state: &str) {
    page.until_data(".watch", "watch", state).await;
}

#[tokio::test]
async fn a_visitor_watches_a_read_as_it_is_filled_in() {
    let Some(browser) = Browser::start().await else { return };
    let (database, mut mesh, client) = start(&[]).await;
    let writer = database.connect().await;
    let page = browser.page(client.url(), 1280, 1000).await;
    page.open("docs#/Accounts/GetWithdrawal").await;
    fill_parameter(&page, "id", "xy").await;
    page.click(BUTTON).await;
    // The viewer knows by itself that this is no id.
    page.until("document.querySelector('.opblock.is-open .validation-errors')").await;
    fill_parameter(&page, "id", fixture::UNKNOWN_ID).await;
    page.click(BUTTON).await;
    page.until("document.querySelector('.watch').textContent.includes('Refused: no such withdrawal')").await;
    fill_parameter(&page, "id", fixture::WITHDRAWAL).await;
    page.click(BUTTON).await;
    until_state(&page, "live").await;
    page.until(&format!("{NEWEST}.includes('block 3')")).await;
    write_block(&writer, 4, Some("four")).await;
    page.until(&format!("{NEWEST}.includes('block 4') && {NEWEST}.includes('\"ref\": \"four\"')")).await;
    assert!(page.is("document.querySelectorAll('.watch details').length === 2").await);
    page.picture_around(".opblock.is-open .execute-wrapper", "docs-watch").await;

    mesh.service("query").kill().await;
    // The page shows the last answer until the store has a block that the gateway cannot read.
    write_block(&writer, 5, Some("five")).await;
    until_state(&page, "behind").await;
    page.until(&format!("{NEWEST}.startsWith('problem')")).await;
    mesh.service_mut("query").restart().await;
    page.until(&format!("{NEWEST}.includes('\"ref\": \"five\"')")).await;
    until_state(&page, "live").await;
    mesh.service("edge").kill().await;
    until_state(&page, "lost").await;
    mesh.service_mut("edge").restart().await;
    write_block(&writer, 6, Some("six")).await;
    page.until(&format!("{NEWEST}.includes('\"ref\": \"six\"')")).await;
    until_state(&page, "live").await;

    page.press("Stop watching").await;
    until_state(&page, "stopped").await;
    page.until_text(BUTTON, "Watch").await;
    page.assert_quiet_but_for_failed_answers();
}

#[tokio::test]
async fn operations_are_grouped_by_subject_and_the_page_is_accessible() {
    let Some(browser) = Browser::start().await else { return };
    let (_database, _mesh, client) = start(&[]).await;
    let axe = axe();
    for (size, width, theme) in [("desk", 1280, "light"), ("phone", 390, "dark")] {
        let page = browser.page(client.url(), width, 900).await;
        page.theme(theme).await;
        page.open("docs#/Markets/ListMarkets").await;
        page.until("document.querySelector('.opblock.is-open .execute')").await;
        let groups: Vec<String> =
            page.eval("[...document.querySelectorAll('.opblock-tag')].map(tag => tag.dataset.tag)").await;
        assert_eq!(groups, ["Markets", "Accounts", "Trading", "Network", "History", "Gateway"]);
        assert!(page.is("!document.querySelector('.opblock-head')").await);
        assert!(page.is("document.querySelector('.links a').href === new URL('./', location).href").await);
        page.click("[id$=-SubmitTransaction] .opblock-summary-control").await;
        page.until("document.querySelectorAll('.opblock.is-open').length === 2").await;
        assert!(page.is("!document.querySelector('[id$=-SubmitTransaction] .watch-button')").await);
        page.picture(&format!("docs-{size}-{theme}")).await;
        if let Some(axe) = &axe {
            // The viewer draws examples after the operation is open.
            page.until("document.querySelectorAll('.opblock.is-open pre[tabindex]').length >= 2").await;
            assert_accessible(&page, axe, &format!("docs, {size}, {theme}")).await;
        }
        // Several reads on one stream, which has no end to wait for.
        page.open("docs#/Gateway/Watch").await;
        page.click(BUTTON).await;
        until_state(&page, "live").await;
        let shown = "[...document.querySelectorAll('.watch summary b')].map(name => name.textContent)";
        page.until(&format!("{shown}.includes('answer-0') && {shown}.includes('answer-1')")).await;
        assert!(page.is("!document.querySelector('.opblock.is-open .execute')").await);
        assert!(page.is(FITS).await, "it is too wide");
        page.assert_quiet();
    }
}
