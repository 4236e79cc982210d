//! With all services but the edge stopped, or the node, the page loads and shows what is unavailable; restarted
//! services are shown soon.

use std::time::{Duration, Instant};

use mesh_tests::say;

use super::{Browser, ConsoleMesh};

const SERVICES: [&str; 4] = ["export", "node-info", "query", "tx-relay"];

#[tokio::test]
async fn stopped_services_are_reported_and_restarted_ones_shown() {
    let Some(browser) = Browser::start().await else { return };
    let mut console_mesh = ConsoleMesh::demo().await;
    for service in SERVICES {
        console_mesh.mesh.service(service).kill().await;
    }
    let page = browser.page(console_mesh.mesh_client.url(), 1280, 900).await;
    page.open("#/status").await;
    page.until("document.querySelectorAll('[data-service][data-taking=false]').length === 4").await;
    page.until("document.querySelectorAll('.missing p').length >= 4").await;
    page.picture("away-everything").await;
    for view in ["#/markets", "#/explore/delegations", "#/export", "#/submit"] {
        page.open(view).await;
        page.until("document.querySelectorAll('.missing p').length >= 4").await;
    }
    page.open("#/status").await;
    page.until("document.querySelectorAll('[data-service][data-taking=false]').length === 4").await;
    for service in SERVICES {
        // A ready service sends heartbeats; from the first one on it counts as available.
        console_mesh.mesh.service_mut(service).restart().await;
        let ready = Instant::now();
        page.until(&format!("document.querySelector('[data-service={service}]').dataset.taking === 'true'"))
            .await;
        let took = ready.elapsed();
        say(&format!("the console shows {service} {} ms after it was ready", took.as_millis()));
        // The console's limit is 2 s; more is allowed here because the machine may be busy.
        assert!(took < Duration::from_secs(10), "{service} showed after {took:?}");
    }
    page.until("document.querySelectorAll('.missing p').length === 0").await;
    // A view that waited for its service continues without a click.
    console_mesh.mesh.service("query").kill().await;
    page.open("#/explore/delegations").await;
    page.until("document.querySelector('[role=alert]')").await;
    console_mesh.mesh.service_mut("query").restart().await;
    page.until("document.querySelector('table[data-list=delegations] tbody tr')").await;
    console_mesh.node.kill().await;
    page.until("document.querySelector('.missing p').textContent.includes('consensus node is unreachable')")
        .await;
    console_mesh.node.restart().await;
    page.until("document.querySelectorAll('.missing p').length === 0").await;
    // Finally the gateway is stopped.
    console_mesh.mesh.service("edge").kill().await;
    page.until("document.querySelector('.missing p').textContent.includes('does not answer')").await;
    console_mesh.mesh.service_mut("edge").restart().await;
    page.until("document.querySelectorAll('.missing p').length === 0").await;
    page.assert_quiet_but_for_failed_answers();
}
