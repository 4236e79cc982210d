//! Texts of other users are shown as text, with any markup and of any length.

use mesh_testbed::Database;
use mesh_tests::{MARKET, ORACLE_SPEC, PARTY, WITHDRAWAL, fixture};

use super::{Browser, ConsoleMesh, FITS};

const MARKUP: &str =
    "<script>document.title='broken'</script><img src=x onerror=\"document.title='broken'\">";
const RIGHT_TO_LEFT: &str =
    "\u{202e}evil\u{2066} \u{5e9}\u{5dc}\u{5d5}\u{5dd} \u{645}\u{631}\u{62d}\u{628}\u{627}";

async fn write_hostile_texts(database: &Database, long: &str) {
    let client = database.connect().await;
    for (name, text) in [("long", long), ("markup", MARKUP), ("right_to_left", RIGHT_TO_LEFT)] {
        let set = "SELECT set_config('hostile.' || $1::text, $2, false)";
        client.execute(set, &[&name, &text]).await.unwrap();
    }
    client.batch_execute(include_str!("hostile_texts.sql")).await.unwrap();
}

#[tokio::test]
async fn markup_long_texts_and_other_directions_are_shown_as_text() {
    let Some(browser) = Browser::start().await else { return };
    let database = fixture::database().await;
    let long = "reference".repeat(1112)[..10_000].to_owned();
    write_hostile_texts(&database, &long).await;
    let console_mesh = ConsoleMesh::over_database(database).await;
    let page = browser.page(console_mesh.mesh_client.url(), 360, 900).await;
    // Names stand on one line without what turns or hides text; the lists show them whole.
    let code = format!("{}…", &MARKUP[..40]);
    let symbol = format!("{RIGHT_TO_LEFT}{MARKUP}").replace(['\u{202e}', '\u{2066}'], "");
    let symbol = format!("{}…", symbol.chars().take(40).collect::<String>());
    for (view, selector, text) in [
        (format!("explore/withdrawal/{WITHDRAWAL}"), "bdi", &*long),
        (format!("explore/withdrawal/{WITHDRAWAL}"), "bdi", MARKUP),
        ("explore/proposals".to_owned(), "td bdi", MARKUP),
        ("explore/proposals".to_owned(), "td bdi", RIGHT_TO_LEFT),
        (format!("explore/oracle-spec/{ORACLE_SPEC}"), "bdi", MARKUP),
        ("explore/rewards".to_owned(), "td bdi", MARKUP),
        (format!("explore/accounts?party={PARTY}"), "td[data-name=Market] bdi", &*code),
        ("explore/markets".to_owned(), "td[data-name=Name] bdi", RIGHT_TO_LEFT),
        ("explore/assets".to_owned(), "td[data-name=Name] bdi", &*long),
        ("explore/assets".to_owned(), "td[data-name=Quantum] .unit", &*symbol),
        (format!("markets?market={MARKET}&interval=block"), "h2 bdi", &*code),
    ] {
        page.open(&format!("#/{view}")).await;
        page.until_text(selector, text).await;
        page.picture(&format!("hostile-{}", view.split(['/', '?']).take(2).collect::<Vec<_>>().join("-")))
            .await;
        assert!(page.is(FITS).await, "{view} is wider than the screen");
    }
    // Also text from the page's address.
    page.open(&format!("#/explore/{MARKUP}")).await;
    page.open(&format!("#/explore/withdrawal/{}", "%3Cimg%20src=x%20onerror=alert(1)%3E")).await;
    page.until("document.querySelector('[role=alert]')").await;
    assert!(page.is("document.title !== 'broken' && !document.querySelector('main script, main img')").await);
    assert!(page.is(FITS).await, "it is wider than the screen");
    page.assert_quiet_but_for_failed_answers();
}
