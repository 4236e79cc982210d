//! *Status*: the page shows the API's current answers.

use std::time::{Duration, Instant};

use mesh_testbed::{Database, Mesh, Signal, eventually};
use serde_json::{Value, json};

use super::{shared_page, ungrouped};

#[tokio::test]
async fn the_status_shows_height_lag_services_and_limits_of_the_demo_network() {
    let Some((_browser, console_mesh, page)) = shared_page().await else { return };
    // The name of the view in older links.
    page.open("#/now").await;
    page.until("document.title.startsWith('Status')").await;
    page.until("document.querySelectorAll('[data-service][data-taking=true]').length === 4").await;
    let single = "[...document.querySelectorAll('[data-replicas]')].every(of => of.dataset.replicas === '1')";
    page.until(single).await;
    let height = page.data("[data-height]", "height").await;
    let first: u64 = height.parse().unwrap();
    // The page is updated.
    page.until(&format!("Number(document.querySelector('[data-height]').dataset.height) > {first}")).await;
    let shown: String = page.eval("document.querySelector('[data-pulse]').textContent").await;
    let head = console_mesh.json("/blockchain/height").await;
    let api_height: u64 = head["height"].as_str().unwrap().parse().unwrap();
    let shown: u64 = ungrouped(&shown).parse().unwrap();
    assert!(shown <= api_height && api_height - shown < 60, "{shown} is shown, {api_height} is the height");
    page.until_data("[data-chain]", "chain", &head["chainId"]).await;
    let info = console_mesh.json("/api/v2/info").await;
    assert_eq!(info["version"], page.data("[data-version]", "version").await);
    let upgrade = console_mesh.json("/api/v2/upgrade/status").await;
    page.until_data("[data-upgrade]", "upgrade", upgrade["ready"].to_string()).await;
    let limits = console_mesh.json("/limits").await;
    let rows = limits["rows"]["pageDefault"].as_u64().unwrap();
    let text = "document.querySelector('main').innerText.replaceAll('\\u202f', '')";
    page.until(&format!("{text}.includes('{rows}')")).await;
    // The page's own requests are counted as well.
    page.until(
        "[...document.querySelectorAll('[data-service=\"node-info\"] dd')]\
        .some(of => /^[1-9]|^0\\.[0-9]*[1-9]/.test(of.textContent))",
    )
    .await;
    let paint: f64 =
        page.eval("performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? -1").await;
    let weight = "performance.getEntriesByType('resource').filter(of => /app\\.[0-9a-f]+\\./.test(of.name))\
        .reduce((sum, of) => sum + of.encodedBodySize, 0)";
    let weight: f64 = page.eval(weight).await;
    mesh_tests::say(&format!(
        "the console: first paint after {paint:.0} ms, {weight} bytes of script and style on the wire"
    ));
    page.assert_quiet();
}

#[tokio::test]
async fn the_edges_mesh_status_names_no_addresses() {
    let database = Database::fresh().await;
    let mesh = Mesh::configure(&database).without(&["export"]).start().await;
    // A service may answer the first survey late; it is shown by the next one.
    let there = (json!(true), 1);
    eventually(Duration::from_secs(20), "query is not shown", async || shown(&mesh).await == there).await;
    let answer = mesh.get("/console/now").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let now = answer.json();
    assert_eq!(now["isBusThere"], true);
    let services = now["services"].as_array().unwrap();
    let names: Vec<_> = services.iter().map(|service| service["name"].clone()).collect();
    assert_eq!(names, ["export", "node-info", "query", "tx-relay"]);
    let of = |name: &str| services.iter().find(|service| service["name"] == name).unwrap();
    assert_eq!((&of("export")["isTaking"], &of("export")["replicas"]), (&json!(false), &json!([])));
    let [replica] = of("query")["replicas"].as_array().unwrap().as_slice() else { panic!("{now}") };
    let members: Vec<_> = replica.as_object().unwrap().keys().collect();
    let known = ["id", "version", "started", "requests", "errors", "busyNs"];
    assert!(members.iter().all(|member| known.contains(&member.as_str())), "{members:?}");
    for address_part in ["127.0.0.1", "localhost", "nats", "postgres", "mesh."] {
        assert!(!answer.text().contains(address_part), "{address_part}: {}", answer.text());
    }
    // The answer is cached for a moment: the services get no second request.
    let again = mesh.get("/console/now").await.json();
    let taken = |now: &Value| now["takenAt"].as_str().unwrap().parse::<u64>().unwrap();
    assert!(taken(&again) == taken(&now) || taken(&again) - taken(&now) >= 900_000_000, "{now} {again}");
    for path in ["/console/now/", "/console", "/console/app.js"] {
        assert_eq!(mesh.get(path).await.status, 404, "{path}");
    }
    let page = mesh.get("/").await;
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.contains("default-src 'self'") && !policy.contains("unsafe"), "{policy}");
}

/// Whether the status shows `query` as taking requests, and how many replicas of it.
async fn shown(mesh: &Mesh) -> (Value, usize) {
    let now = mesh.get("/console/now").await.json();
    let services = now["services"].as_array().unwrap();
    let query = services.iter().find(|service| service["name"] == "query").unwrap();
    (query["isTaking"].clone(), query["replicas"].as_array().unwrap().len())
}

#[tokio::test]
async fn a_service_that_is_slow_to_answer_is_not_shown_as_missing_and_one_that_is_gone_is() {
    let database = Database::fresh().await;
    let mesh = Mesh::start(&database).await;
    let limit = Duration::from_secs(20);
    let there = (json!(true), 1);
    eventually(limit, "query is not shown", async || shown(&mesh).await == there).await;
    mesh.service("query").signal(Signal::STOP);
    let stopped = Instant::now();
    while stopped.elapsed() < Duration::from_secs(3) {
        assert_eq!(shown(&mesh).await, there, "after {:?}", stopped.elapsed());
    }
    mesh.service("query").signal(Signal::CONT);
    eventually(limit, "query is not shown", async || shown(&mesh).await == there).await;
    mesh.service("query").kill().await;
    eventually(limit, "query is shown", async || shown(&mesh).await == (json!(false), 0)).await;
}
