//! A gateway that needs a key: the console asks for it, reads and watches with it, and forgets it.

use std::time::Duration;

use mesh_keys::KeyDigest;
use mesh_testbed::{eventually, keep_secret};
use mesh_tests::fixture;
use serde_json::json;

use super::{Browser, Page};

const KEY: &str = "a-key-of-the-console";

async fn until_asked(page: &Page) {
    page.until("document.querySelector('main .notice ~ form[aria-label=Key]')").await;
}

/// Does what begins the page again, and waits until it is there.
async fn begin_again(page: &Page, button: &str) {
    let loads = || page.events("Page.loadEventFired").len();
    let before = loads();
    page.press(button).await;
    eventually(Duration::from_secs(40), "the page does not begin again", async || loads() > before).await;
}

async fn give(page: &Page, key: &str) {
    page.fill("Key", key).await;
    begin_again(page, "Use this key").await;
}

#[tokio::test]
async fn a_key_is_asked_for_used_and_forgotten() {
    let Some(browser) = Browser::start().await else { return };
    keep_secret(KEY);
    let keys = tempfile::NamedTempFile::new().unwrap();
    let line = json!({"name": "console", "sha256": KeyDigest::of(KEY.as_bytes())});
    std::fs::write(keys.path(), format!("{line}\n")).unwrap();
    let (_database, _mesh, mesh_client) = fixture::start(|setup| {
        let setup = setup.env("MESH_EDGE_KEYS_FILE", keys.path().to_string_lossy());
        setup.env("MESH_EDGE_ANONYMOUS", "off")
    })
    .await;
    let page = browser.page(mesh_client.url(), 1280, 900).await;
    page.open("#/explore/delegations").await;
    until_asked(&page).await;
    page.picture("key-needed").await;
    give(&page, "another").await;
    page.until("document.querySelector('#key-note')?.textContent === 'This tab has a key.'").await;
    until_asked(&page).await;

    give(&page, KEY).await;
    page.until("document.querySelector('table[data-list=delegations] tbody tr')").await;
    page.until_data(".pulse", "live", "live").await;
    page.until(
        "document.querySelector('.line code').textContent.startsWith('curl -H \"authorization: \
        Bearer $MESH_API_KEY\" ')",
    )
    .await;
    let requests = page.events("Network.requestWillBeSent");
    assert!(requests.iter().any(|sent| sent["request"]["url"].as_str().unwrap().contains("/watch?")));
    assert!(requests.iter().all(|sent| !sent["request"]["url"].as_str().unwrap().contains(KEY)));
    let shown: String = page.eval("document.documentElement.outerHTML + location.href").await;
    assert!(!shown.contains(KEY), "{shown}");

    page.open("#/status").await;
    page.until("document.querySelector('#key-note')?.textContent === 'This tab has a key.'").await;
    page.picture("key-in-use").await;
    begin_again(&page, "Forget the key").await;
    until_asked(&page).await;
    page.assert_quiet_but_for_failed_answers();
}
