//! `/limits` shows the configured limits.

use mesh_testbed::{Answer, Mesh};
use mesh_tests::{client::MeshClient, fixture};

use crate::openapi::document::Document;

#[tokio::test]
async fn configured_limits_are_shown_and_enforced() {
    let database = fixture::database().await;
    let mesh = Mesh::configure(&database)
        .env("MESH_PAGE_DEFAULT", "1")
        .env("MESH_PAGE_MAX", "2")
        .env("MESH_ACCOUNTS_MAX_ROWS", "3")
        .env("MESH_EDGE_MAX_BODY_BYTES", "100")
        .env("MESH_QUERY_TIMEOUT_MS", "7000")
        .start()
        .await;
    let mesh_client = MeshClient::new(&mesh);
    let document = Document::fetch(&mesh_client).await;
    let answer = mesh_client.get("/limits").await;
    assert_eq!(document.complaint(&document.operation("Limits"), &answer), None);
    let limits = answer.json();
    assert_eq!(limits["rows"]["pageDefault"], 1);
    assert_eq!(limits["rows"]["pageGreatest"], 2);
    assert_eq!(limits["rows"]["accountsGreatest"], 3);
    assert_eq!(limits["request"]["bodyBytes"], 100);
    assert_eq!(limits["time"]["queryMs"], 7000);

    let rows = async |query: &str| {
        let answer = mesh_client.get(&format!("/api/v2/delegations{query}")).await;
        answer.json()["delegations"]["edges"].as_array().map(Vec::len)
    };
    assert_eq!((rows("").await, rows("?pagination.first=3").await), (Some(1), Some(2)));
    assert_eq!(mesh_client.get("/accounts").await.status, 400);
    let post = |length: usize| {
        let request = mesh_client.request(reqwest::Method::POST, "/transaction/check");
        Answer::to(request.header("content-type", "application/json").body(" ".repeat(length)))
    };
    assert_eq!((post(100).await.status, post(101).await.status), (400, 413));
}
