//! *Submit*: a transaction is recognised, checked, sent, and followed into its block; a refusal is shown with
//! its reason.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use mesh_transaction::{TxHash, encode};
use serde_json::json;

use super::demo_page;

#[tokio::test]
async fn a_submission_is_followed_into_its_block() {
    let Some((_browser, console_mesh, page)) = demo_page().await else { return };
    page.open("#/submit").await;
    page.fill("Signed transaction", "{\"tx\": {").await;
    page.until_data("[data-recognised]", "recognised", "nothing").await;
    let tx = console_mesh.node.transaction(1, "<b>order</b>");
    page.fill("Signed transaction", &json!({"tx": tx}).to_string()).await;
    page.until_data("[data-recognised]", "recognised", "transaction").await;
    assert!(page.is("document.querySelector('main').innerText.includes('<b>order</b>')").await);
    page.press("Dry run").await;
    page.until_data("[data-check]", "check", "0").await;
    page.press("Submit").await;
    page.until_data("[data-submit]", "submit", "0").await;
    page.until_data("[data-outcome]", "outcome", "INCLUDED").await;
    let hash = TxHash::of(&encode(&tx)).to_string();
    let expected = console_mesh.json(&format!("/transaction/{hash}")).await;
    let block = page.data("[data-outcome]", "block").await;
    assert_eq!(expected["height"], json!(block));
    page.picture("submit-included").await;
    // The link shows the same in another page.
    let link: String = page.eval("location.hash").await;
    assert!(link.contains(&hash), "{link}");
    page.open(&link).await;
    page.until_data("[data-outcome]", "block", &block).await;

    // Encoded, and without proof of work: refused for that reason.
    let mut spam = console_mesh.node.transaction(1, "spam");
    spam.pow = None;
    page.fill("Signed transaction", &STANDARD.encode(encode(&spam))).await;
    page.until_data("[data-recognised]", "recognised", "encoded").await;
    page.press("Dry run").await;
    page.until_data("[data-check]", "check", "89").await;
    page.press("Submit").await;
    page.until("document.querySelector('[data-submit]').textContent.includes('proof of work is missing')")
        .await;
    page.assert_quiet();
}

#[tokio::test]
async fn a_demo_key_signs_a_command_that_gets_into_a_block() {
    let Some((_browser, _mesh, page)) = demo_page().await else { return };
    page.open("#/submit").await;
    page.press("Try with a demo key").await;
    page.until_data("[data-outcome]", "outcome", "INCLUDED").await;
    assert!(page.is("document.querySelector('main').innerText.includes('faucet')").await);
    let key = page.data("[data-recognised] [data-value]", "value").await;
    page.click("[data-recognised] a").await;
    page.until_data("[data-party]", "party", &key).await;
    page.assert_quiet();
}
