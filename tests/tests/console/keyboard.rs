//! Navigation by keyboard alone: from view to view, and to the content.

use super::shared_page;

#[tokio::test]
async fn views_are_reached_by_keys_alone_and_the_theme_stays() {
    let Some((_browser, _mesh, page)) = shared_page().await else { return };
    page.open("").await;
    page.key("Tab", false).await;
    assert!(page.is("document.activeElement.classList.contains('skip')").await);
    page.key("Enter", false).await;
    assert!(page.is("document.activeElement.id === 'main'").await);
    for name in ["Explore", "Export", "Submit", "Status", "Markets"] {
        let focus = format!(
            "void [...document.querySelectorAll('nav a')].find(link => link.textContent === '{name}').focus()"
        );
        page.eval::<serde_json::Value>(&focus).await;
        page.key("Enter", false).await;
        page.until(&format!(
            "document.title.startsWith('{name}') && \
            document.querySelector('nav [aria-current]').textContent === '{name}'"
        ))
        .await;
        page.until("document.activeElement.id === 'main'").await;
    }
    // The theme goes from the system's to light, then to dark, and dark is remembered.
    page.click(".themes").await;
    page.until("document.documentElement.dataset.theme === 'light'").await;
    page.click(".themes").await;
    page.until("document.documentElement.dataset.theme === 'dark'").await;
    page.open("#/explore").await;
    assert!(page.is("document.documentElement.dataset.theme === 'dark'").await);
    page.click(".themes").await;
    page.until("document.documentElement.dataset.theme === undefined").await;
    page.assert_quiet();
}
