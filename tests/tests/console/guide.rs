//! The guide in a browser: accessible, and no wider than a phone.

use mesh_tests::MeshClient;

use super::{Browser, FITS, assert_accessible, axe};

/// The pages that are tested in the second theme, too: all of them share one style.
const SAMPLE: [&str; 3] = ["./", "traders", "tables"];

#[tokio::test]
async fn every_page_of_the_guide_is_accessible_and_fits_the_screen() {
    let Some(browser) = Browser::start().await else { return };
    let (client, axe) = (MeshClient::fixture().await, axe());
    let index = client.get("/guide/").await;
    let pages = index.text().split("<li><a href=\"").skip(1).filter_map(|rest| rest.split('"').next());
    let pages: Vec<&str> = pages.filter(|link| !link.starts_with('#')).collect();
    assert!(pages.len() > 15, "{pages:?}");
    for (size, width, theme) in [("desk", 1400, "light"), ("phone", 360, "dark")] {
        let page = browser.page(client.url(), width, 900).await;
        page.theme(theme).await;
        for name in &pages {
            page.open(&format!("guide/{name}")).await;
            assert!(page.is(FITS).await, "{name} is wider than a {size}");
            if let Some(axe) = axe.as_ref().filter(|_| theme == "light" || SAMPLE.contains(name)) {
                assert_accessible(&page, axe, &format!("{name}, {size}, {theme}")).await;
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
}
